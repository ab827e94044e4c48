"""Recording: what users open, step and close, and how they say what to record."""
