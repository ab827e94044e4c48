"""Notes how often and how long Python's garbage collector runs."""

from __future__ import annotations

import gc
import os
from time import perf_counter_ns


class GarbageTimes:
    """Counts garbage collections and sums up their time, in this process.

    A collection stops the program, and no operator or function shows it.
    """

    def __init__(self) -> None:
        self.count = 0
        self.time_ns = 0
        self._began_ns = 0
        self._process = os.getpid()

    def start(self) -> None:
        """Starts counting."""
        gc.callbacks.append(self._note)

    def stop(self) -> None:
        """Stops counting. A second call has no effect."""
        if self._note in gc.callbacks:
            gc.callbacks.remove(self._note)

    def _note(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._began_ns = perf_counter_ns()
        elif self._began_ns and os.getpid() == self._process:
            self.count += 1
            self.time_ns += perf_counter_ns() - self._began_ns
            self._began_ns = 0
