"""What profiling itself cost."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass
    from types import TracebackType
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

    def timed(self, field: str) -> _Timing:
        """Puts how long the body takes into a field."""
        return _Timing(self, field)


class _Timing:
    """A body that is timed. A class of its own: `contextlib` costs a stop several times as much."""

    __slots__ = ("_field", "_started", "_stats")

    def __init__(self, stats: _ProfilerStats, field: str) -> None:
        self._stats = stats
        self._field = field

    def __enter__(self) -> None:
        self._started = perf_counter_ns()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        if exc_type is None:
            setattr(self._stats, self._field, (perf_counter_ns() - self._started) // 1000)
