"""The autograd part of torch's native module."""

from mindprof._core import is_profiling
from mindprof._results.device_type import DeviceType as DeviceType
from mindprof._settings.profiler_config import ActiveProfilerType, open_legacy_profilers


def _profiler_type() -> ActiveProfilerType:
    """Returns the type of the active profiler."""
    if open_legacy_profilers:
        return ActiveProfilerType.LEGACY
    return ActiveProfilerType.KINETO if is_profiling() else ActiveProfilerType.NONE
