"""`Span`: when something ran."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """A span of time, by `perf_counter_ns()`.

    Args:
        begin_ns: When it began.
        end_ns: When it ended.
    """

    begin_ns: int
    end_ns: int
