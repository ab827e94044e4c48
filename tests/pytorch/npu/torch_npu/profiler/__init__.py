"""The names of torch_npu's profiler that programs use."""

from torch_npu.profiler.profiler import (  # type: ignore[import-not-found]  # noqa: F401
    ProfilerAction,
    ProfilerActivity,
    _ExperimentalConfig,
    analyse,
    profile,
    schedule,
    tensorboard_trace_handler,
)
