"""The path of torch's native module, as far as users of a profiler reach into it."""

from mindtorch_v2._C import _autograd as _autograd
from mindtorch_v2._C import _profiler as _profiler
