"""`_ProfilerStats`: the cost of profiling itself."""

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
    """The durations of a profiler's own calls, and the number of events, as in torch."""

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0

    def timed(self, field: str) -> _Timing:
        """Returns a context manager that stores the duration of its body in a field."""
        return _Timing(self, field)


class _Timing:
    """A timed `with` block. A class, because `contextlib` makes a stop several times slower."""

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
