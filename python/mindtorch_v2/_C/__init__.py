"""Torch's native module, limited to the names that users of a profiler import."""

from mindtorch_v2._C import _autograd as _autograd
from mindtorch_v2._C import _profiler as _profiler
