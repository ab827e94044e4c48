"""`Span`: when something ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """A span of time, by `perf_counter_ns()`.

    Args:
        begin_ns: When it began.
        end_ns: When it ended.
    """

    begin_ns: int
    end_ns: int

    def is_in(self, spans: Sequence[Span]) -> bool:
        """Returns whether it lies within one of some other spans.

        Args:
            spans: The other spans.
        """
        return any(span.begin_ns <= self.begin_ns and self.end_ns <= span.end_ns for span in spans)
