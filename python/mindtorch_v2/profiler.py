"""The profiler at torch's path: the same objects as in `mindprof`."""

from mindprof import profile, record_function

__all__ = ["profile", "record_function"]
