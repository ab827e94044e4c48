"""The profiler at the path of torch's implementation module, from which users import too."""

from mindprof import (
    CuspyConfig,
    ExecutionTraceObserver,
    PerformanceMetricsConfig,
    ProfilerAction,
    ProfilerActivityConfig,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from mindprof._profiler.kineto_profile import _WARNINGS_SHOWN as _WARNINGS_SHOWN
from mindprof._profiler.kineto_profile import _KinetoProfile as _KinetoProfile
from mindprof._profiler.observer import _ITraceObserver as _ITraceObserver
from mindprof._profiler.profile import PROFILER_STEP_NAME as PROFILER_STEP_NAME

__all__ = [
    "CuspyConfig",
    "ExecutionTraceObserver",
    "PerformanceMetricsConfig",
    "ProfilerAction",
    "ProfilerActivityConfig",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
