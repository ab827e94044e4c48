"""Notes how often and how long Python's garbage collector runs."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from time import perf_counter_ns

from mindprof._run.span import Span


class GarbageTimes:
    """Notes the garbage collections of this process.

    A collection stops the program, and no operator or function shows it.
    """

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._began_ns = 0
        self._process = os.getpid()

    def start(self) -> None:
        """Starts to note collections."""
        gc.callbacks.append(self._note)

    def stop(self) -> None:
        """Stops. A second call has no effect."""
        if self._note in gc.callbacks:
            gc.callbacks.remove(self._note)

    def outside(self, spans: Sequence[Span]) -> tuple[int, int]:
        """Returns the number of collections outside of some spans, and their nanoseconds.

        Args:
            spans: Spans in time order, such as imports, whose collections do not matter.
        """
        times = [span.end_ns - span.begin_ns for span in self._spans if not span.is_in(spans)]
        return len(times), sum(times)

    def _note(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._began_ns = perf_counter_ns()
        elif self._began_ns and os.getpid() == self._process:
            self._spans.append(Span(self._began_ns, perf_counter_ns()))
            self._began_ns = 0
