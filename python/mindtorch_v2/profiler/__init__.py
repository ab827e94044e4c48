"""The profiler at torch's path: the same objects as in `mindprof`."""

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
from mindprof._profiler.profiler_config import RecordScope as RecordScope
from mindprof._profiler.profiler_config import _ExperimentalConfig as _ExperimentalConfig
from mindprof._profiler.step_tracker import KinetoStepTracker as KinetoStepTracker

from mindtorch_v2.profiler import itt as itt
from mindtorch_v2.profiler import profiler as profiler

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
