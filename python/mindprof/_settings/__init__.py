"""How a recording is configured: activities, session options and torch's configuration objects."""
