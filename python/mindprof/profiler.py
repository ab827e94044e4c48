"""The names of `torch.profiler`: replace `torch` with `mindprof` in an import to switch.

>>> from mindprof.profiler import ProfilerActivity, _ExperimentalConfig, profile
>>> config = _ExperimentalConfig(profile_all_threads=False)
>>> with profile(activities=[ProfilerActivity.CPU], experimental_config=config) as prof:
...     pass
"""

from mindprof import (
    CuspyConfig,
    DeviceType,
    ExecutionTraceObserver,
    PerformanceMetricsConfig,
    ProfilerAction,
    ProfilerActivity,
    ProfilerActivityConfig,
    kineto_available,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from mindprof._profiler.kineto_profile import _KinetoProfile as _KinetoProfile
from mindprof._profiler.step_tracker import KinetoStepTracker as KinetoStepTracker
from mindprof._settings.profiler_config import RecordScope as RecordScope
from mindprof._settings.profiler_config import _ExperimentalConfig as _ExperimentalConfig

_supported_activities = supported_activities

__all__ = [
    "CuspyConfig",
    "DeviceType",
    "ExecutionTraceObserver",
    "PerformanceMetricsConfig",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerActivityConfig",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
