"""The oldest profiler's path: the same class as in `autograd.profiler`."""

from mindprof._profiler.autograd_profile import profile

__all__ = ["profile"]
