"""The profilers: the classes that users start, step and stop, with schedules and metadata."""
