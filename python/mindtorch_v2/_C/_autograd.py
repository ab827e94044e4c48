"""The autograd part of torch's native module."""

from mindprof._core import is_profiling
from mindprof._device_type import DeviceType as DeviceType
from mindprof._profiler_config import ActiveProfilerType


def _profiler_type() -> ActiveProfilerType:
    """Returns which recorder is running."""
    return ActiveProfilerType.KINETO if is_profiling() else ActiveProfilerType.NONE
