"""Autograd: `backward`, `grad`, custom functions and gradient modes.

As in torch, the names of the older profiler are available here too.
"""

from mindprof._core import (
    is_profiling,
    record_function_with_args_enter,
    record_function_with_args_exit,
)
from mindprof._frameworks.present import supported_activities
from mindprof._profiler.profile import _is_kineto_stopped as _is_kineto_stopped
from mindprof._results.device_type import DeviceType as DeviceType
from mindprof._settings.activity import ProfilerActivity as ProfilerActivity
from mindprof._settings.activity import kineto_available as kineto_available
from mindprof._settings.profiler_config import ProfilerConfig as ProfilerConfig
from mindprof._settings.profiler_config import ProfilerState as ProfilerState

from mindtorch_v2.autograd import profiler, profiler_legacy, profiler_util
from mindtorch_v2.autograd._function import Function
from mindtorch_v2.autograd._grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from mindtorch_v2.autograd._gradients import backward, grad

_profiler_enabled = is_profiling
_record_function_with_args_enter = record_function_with_args_enter
_record_function_with_args_exit = record_function_with_args_exit
_supported_activities = supported_activities

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "profiler",
    "profiler_legacy",
    "profiler_util",
    "set_grad_enabled",
]
