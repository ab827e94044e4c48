"""What came of a recording: events, rows, their lists, and what is written of them."""
