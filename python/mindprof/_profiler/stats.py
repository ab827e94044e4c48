"""What profiling itself cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from mindprof._dataclass import dataclass


@dataclass
class _ProfilerStats:
    """Durations of a profiler's own work, and how much it recorded."""

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0

    @contextmanager
    def timed(self, field: str) -> Iterator[None]:
        """Puts how long the body takes into a field."""
        started = perf_counter_ns()
        yield
        setattr(self, field, (perf_counter_ns() - started) // 1000)
