"""How long a training loop waits for its data: all the time, or once while workers start."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from mindprof import _core
from mindprof._results.format import _format_time as format_time

#: How torch names the range in which a loop gets its next batch, and that of one with workers.
_NEXT_BATCH = "enumerate(DataLoader)#"
_FROM_WORKERS = f"{_NEXT_BATCH}_MultiProcessing"

#: From which share of the time on waiting is worth a hint.
_MUCH = 0.2

#: How many workers a loader has of which that is not known.
_SOME_WORKERS = 4


class DataWaits:
    """The waits of a window."""

    def __init__(
        self,
        recording: _core.Profile,
        rows: Sequence[Any],
        ends_us: Sequence[float] = (),
        starts: int = 0,
        workers: int | None = None,
    ) -> None:
        """Looks for the waits.

        Args:
            recording: What the window recorded.
            rows: Its rows, without the time of imports.
            ends_us: How long each end of workers took in it.
            starts: How many loaders had their workers start in it.
            workers: How many workers a loader has, if that is known.
        """
        waits_us = recording.durations(_NEXT_BATCH)
        found = [row for row in rows if row.key.startswith(_NEXT_BATCH)]
        total_us = float(sum(row.cpu_time_total for row in found))
        for end_us in sorted(ends_us, reverse=True):
            # That in which they ended has little else: the shortest that is no shorter.
            around = min((wait for wait in waits_us if wait >= end_us), default=None)
            if around is not None:
                waits_us.remove(around)
                total_us -= around
        self._waits_us = waits_us
        self._ends_us = sum(ends_us)
        self._total_us = max(total_us, 0.0)
        self._has_workers = any(row.key.startswith(_FROM_WORKERS) for row in found)
        self._starts = starts
        self._workers = workers or _SOME_WORKERS

    def said(self, rest_us: float) -> Iterator[str]:
        """Yields what the loop waited.

        Args:
            rest_us: How long the window was, without imports.
        """
        if rest_us <= 0:
            return
        if self._ends_us > 0:
            yield f"the end of loaders' workers: {format_time(self._ends_us)}"
        if self._total_us <= 0 or not self._waits_us:
            return
        share = f"{self._total_us / rest_us:.0%} of the time without imports"
        usual, longest = format_time(self._usual_us()), format_time(max(self._waits_us))
        batches = f"; about {usual} for a batch, {longest} for the longest wait"
        few = len(self._waits_us) < 2
        total = format_time(self._total_us)
        yield f"the loop waited {total} for its data: {share}{'' if few else batches}"

    def hints(self, step_times: Sequence[float], steps: int, rest_us: float) -> Iterator[str]:
        """Yields what could be done about it.

        Args:
            step_times: How long steps took, as far as that is known.
            steps: How many there were.
            rest_us: How long the window was, without imports.
        """
        if not self._waits_us or rest_us <= 0:
            return
        usual_us = self._usual_us() * len(self._waits_us)
        # What a run did before its steps makes their data no earlier.
        waited_us, of_us, where = usual_us, rest_us, ""
        if step_times:
            # Those that wait and those that do not take turns too.
            waited_us, of_us = usual_us / steps, statistics.mean(step_times)
        # Loops without an optimizer wait outside of steps.
        if step_times and waited_us < of_us:
            where = f", {format_time(waited_us)} of the {format_time(of_us)} of a step on average"
        if waited_us > _MUCH * of_us:
            more = "more workers" if self._has_workers else "load it in workers"
            yield f"the data is late{where}: {more} (DataLoader num_workers), or less work per item"
        elif (rest := self._total_us - usual_us + self._ends_us) > _MUCH * rest_us:
            yield from self._start_hint(rest)

    def _start_hint(self, first_us: float) -> Iterator[str]:
        first = f"{format_time(first_us)} of the wait for data"
        if self._has_workers and (self._starts > 0 or self._ends_us > 0):
            yield (
                f"{first} is the start or the end of workers, other batches come in time; "
                "if every epoch pays it, DataLoader persistent_workers=True keeps them"
            )
        else:
            yield f"{first} is for few batches: something that the dataset does once"

    def _usual_us(self) -> float:
        """Returns how long a batch was waited for through the window, whatever the first took.

        Workers finish in turns, so that one long wait is followed by short ones: as many waits
        together as there are workers are even.
        """
        waits, turn = self._waits_us, self._workers
        if self._starts == 1 and len(waits) > turn:
            # Each worker starts with a batch.
            waits = waits[turn:]
        turn = min(turn, len(waits))
        ends = range(turn, len(waits) + 1)
        return statistics.median(sum(waits[end - turn : end]) / turn for end in ends)
