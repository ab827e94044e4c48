"""What torch has under `autograd`: here, the names that belong to the profiler."""

from mindprof._activity import ProfilerActivity as ProfilerActivity
from mindprof._activity import kineto_available as kineto_available
from mindprof._activity import supported_activities
from mindprof._core import (
    is_profiling,
    record_function_with_args_enter,
    record_function_with_args_exit,
)
from mindprof._device_type import DeviceType as DeviceType
from mindprof._profile import _is_kineto_stopped as _is_kineto_stopped
from mindprof._profiler_config import ProfilerConfig as ProfilerConfig
from mindprof._profiler_config import ProfilerState as ProfilerState

from mindtorch_v2.autograd import profiler, profiler_legacy, profiler_util

_profiler_enabled = is_profiling
_record_function_with_args_enter = record_function_with_args_enter
_record_function_with_args_exit = record_function_with_args_exit
_supported_activities = supported_activities

__all__ = ["profiler", "profiler_legacy", "profiler_util"]
