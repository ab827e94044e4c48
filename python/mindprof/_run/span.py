"""`Span`: when something ran."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """When something ran, by `perf_counter_ns()`.

    Args:
        begin_ns: When it began.
        end_ns: When it ended.
    """

    begin_ns: int
    end_ns: int

    @property
    def us(self) -> float:
        """How many microseconds it took."""
        return (self.end_ns - self.begin_ns) / 1000
