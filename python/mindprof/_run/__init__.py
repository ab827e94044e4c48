"""`mindprof run`: profiles an unmodified program from its first line to its last."""
