"""`install()`: replaces a framework's own profiler with this one."""
