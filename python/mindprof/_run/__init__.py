"""`mindprof run`: a program profiled from its first line to its last, without a change of it."""
