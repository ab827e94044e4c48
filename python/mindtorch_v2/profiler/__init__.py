"""The profiler at torch's path: the same objects as in `mindprof`."""

from mindprof.profiler import (
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
from mindprof.profiler import KinetoStepTracker as KinetoStepTracker
from mindprof.profiler import RecordScope as RecordScope
from mindprof.profiler import _ExperimentalConfig as _ExperimentalConfig
from mindprof.profiler import _KinetoProfile as _KinetoProfile
from mindprof.profiler import _supported_activities as _supported_activities

from mindtorch_v2.profiler import itt as itt
from mindtorch_v2.profiler import profiler as profiler

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
