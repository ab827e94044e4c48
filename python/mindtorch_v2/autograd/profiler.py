"""The older profiler at torch's path, with its helpers."""

from __future__ import annotations

from mindprof import EventList, record_function
from mindprof._core import is_profiling
from mindprof._profiler.autograd_profile import profile
from mindprof._profiler.emit import emit_itt, emit_nvtx
from mindprof._profiler.nvprof import EnforceUnique, load_nvprof, parse_nvprof_trace
from mindprof._profiler.stats import _ProfilerStats as _ProfilerStats
from mindprof._profiler.step_tracker import KinetoStepTracker
from mindprof._results.raw_results import MEMORY_EVENT_NAME as MEMORY_EVENT_NAME
from mindprof._results.raw_results import OUT_OF_MEMORY_EVENT_NAME as OUT_OF_MEMORY_EVENT_NAME
from mindprof.profiler_util import FunctionEvent, MemRecordsAcc

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]


def __getattr__(name: str) -> bool:
    # Users read this name as a plain module variable.
    if name == "_is_profiler_enabled":
        return is_profiling()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
