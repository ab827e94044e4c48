"""How long a training loop waits for its data: all the time, or once while workers start."""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from mindprof._results.format import _format_time as format_time
from mindprof._run.span import Span
from mindprof._run.worker_times import WorkersStart

#: How torch names the range in which a loop gets its next batch, and that of one with workers.
NEXT_BATCH = "enumerate(DataLoader)#"
FROM_WORKERS = f"{NEXT_BATCH}_MultiProcessing"

#: From which share of the time on waiting is worth a hint.
_MUCH = 0.2

#: Batches are few if they are such a share of all, and have such a share of the time.
_FEW = 0.05
_MOST = 0.8


class LoopTimes(NamedTuple):
    """What is known of the loop that waits.

    Args:
        rest_us: How long the window was, without imports.
        steps: When its optimizer steps ran of which it is known when they began; None without any.
        step_times: How long each of them took.
    """

    rest_us: float
    steps: Span | None = None
    step_times: Sequence[float] = ()


class DataWaits:
    """The waits of the loop in a window."""

    def __init__(
        self,
        waits: Sequence[Span],
        starts: Sequence[WorkersStart] = (),
        ends: Sequence[Span] = (),
        has_workers: bool = False,
    ) -> None:
        """Sorts the waits.

        Args:
            waits: When the loop asked for batches, in time order.
            starts: When loaders had their workers start.
            ends: When loops that asked for a batch had them end, as there was none.
            has_workers: Whether a loader has any.
        """
        begins = [wait.begin_ns for wait in waits]
        firsts: set[int] = set()
        for start in starts:
            first = bisect_left(begins, start.span.end_ns)
            # Each worker starts with a batch. Where nothing comes after, data may be late as well.
            rest = first + start.workers
            firsts |= set(range(first, rest)) if rest < len(waits) else {first}
        # That in which they ended found no batch.
        found = [(bisect_right(begins, end.begin_ns) - 1, end) for end in ends]
        lasts = {at for at, end in found if at >= 0 and _is_within(end, waits[at])}
        self._waits = [wait for at, wait in enumerate(waits) if at not in lasts]
        later = set(range(len(waits))) - lasts - firsts
        self._later = [waits[at] for at in sorted(later)]
        self._firsts_us = _sum_us(self._waits) - _sum_us(self._later)
        self._ends_us = _sum_us(ends)
        self._has_workers = has_workers

    def said(self, rest_us: float) -> Iterator[str]:
        """Yields what the loop waited.

        Args:
            rest_us: How long the window was, without imports.
        """
        if rest_us <= 0:
            return
        if self._ends_us > 0:
            yield f"the end of loaders' workers: {format_time(self._ends_us)}"
        times = [wait.us for wait in self._waits]
        total_us = min(sum(times), rest_us)
        if total_us <= 0:
            return
        waited = f"the loop waited {format_time(total_us)} for its data: "
        share = f"{total_us / rest_us:.0%} of the time without imports"
        middle, longest = format_time(statistics.median(times)), format_time(max(times))
        batches = f"; {middle} for a batch (median), {longest} for the longest wait"
        yield waited + share + (batches if len(times) > 1 else "")

    def hints(self, loop: LoopTimes) -> Iterator[str]:
        """Yields what could be done about it."""
        if not self._waits or loop.rest_us <= 0:
            return
        start_us = self._firsts_us + self._ends_us
        found = [*self._late(loop)]
        if start_us > _MUCH * loop.rest_us:
            start = f"{format_time(start_us)} is the wait for workers that start, or their end; "
            epochs = "if every epoch pays it, DataLoader persistent_workers=True keeps them"
            found.append((start_us, start + epochs))
        for _, hint in sorted(found, reverse=True):
            yield hint

    def _late(self, loop: LoopTimes) -> Iterator[tuple[float, str]]:
        """Yields hints on data that is late, each with the time that it is about."""
        more = "more workers" if self._has_workers else "load it in workers"
        cure = f"{more} (DataLoader num_workers), or less work per item"
        later_us, steps_us = _sum_us(self._later), sum(loop.step_times)
        if loop.steps is None or not steps_us:
            if later_us > _MUCH * loop.rest_us:
                yield later_us, f"the data is late{_mostly(self._later)}: {cure}"
            return
        # What a run did before its steps makes their data no earlier.
        inside = [wait for wait in self._later if _is_within(wait, loop.steps)]
        inside_us, count = _sum_us(inside), len(loop.step_times)
        if inside_us > _MUCH * steps_us:
            waited, step = format_time(inside_us / count), format_time(steps_us / count)
            where = f"{waited} of the {step} of a step on average{_mostly(inside)}"
            yield inside_us, f"the data is late, {where}: {cure}"
        outside_us = later_us - inside_us
        if outside_us > _MUCH * loop.rest_us:
            where = "outside of the optimizer steps, as in a first batch or an evaluation"
            yield outside_us, f"{format_time(outside_us)} of the wait for data is {where}: {cure}"


def _sum_us(waits: Sequence[Span]) -> float:
    return sum(wait.us for wait in waits)


def _is_within(inner: Span, outer: Span) -> bool:
    return outer.begin_ns <= inner.begin_ns and inner.end_ns <= outer.end_ns


def _mostly(waits: Sequence[Span]) -> str:
    """Returns of how many waits most of the time is, if these are few."""
    times = sorted((wait.us for wait in waits), reverse=True)
    few = int(_FEW * len(times))
    if not few or sum(times[:few]) < _MOST * sum(times):
        return ""
    most_us = _MOST * sum(times)
    count = 1 + sum(so_far < most_us for so_far in accumulate(times))
    return f", mostly for {count} of {len(times)} batches"
