"""`install()`: the engine under the names of a framework's own profiler."""
