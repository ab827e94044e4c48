"""What a run says about a recording before its table: what is not in it, and what to do."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from copy import copy
from typing import Any

from mindprof import _core
from mindprof._profiler.profile import PROFILER_STEP_NAME
from mindprof._results.event_list import EventList
from mindprof._results.format import _format_time as format_time
from mindprof._results.lists import key_averages
from mindprof._run.data_waits import FROM_WORKERS, NEXT_BATCH, DataWaits, LoopTimes
from mindprof._run.imports import IMPORT, ImportLog
from mindprof._run.run_profile import AFTER_LAST, BEFORE_FIRST, RunProfile
from mindprof._run.worker_times import WorkerTimes

#: The schedule that a hint proposes, in optimizer steps.
_WAIT, _ACTIVE = 2, 5

#: From which share of the time on something is worth a word.
_MUCH = 0.1

#: How a recording says that it had no room for events.
_NO_ROOM = "over the byte budget"

#: How many of the imported modules are named.
_NAMED_MODULES = 3


class Summary:
    """The rows of a recording that are about the program, and what else there is to say of it.

    Imports and steps are no rows: they would lead the table, and say nothing about what the
    program does.
    """

    def __init__(self, prof: RunProfile, log: ImportLog, workers: WorkerTimes) -> None:
        """Sorts the rows.

        Args:
            prof: A profiler of a run that has stopped.
            log: What was imported while it recorded, or before.
            workers: When loaders had workers start and end, likewise.
        """
        self._prof = prof
        self._log = log
        recording = prof.recording
        self._workers = len(recording.processes()) - 1
        # Without Python's calls, the time of which ranges have as their own: waiting is seen.
        shown, has_calls = recording.without_calls(), False
        found = _rows(shown)
        self._imports = [row for row in found if self._is_import(row)]
        self._steps = [row for row in found if _is_step(row)]
        self._has_operators = len(self._imports) + len(self._steps) < len(found)
        if not self._has_operators:
            shown, has_calls = recording, True
            found = _rows(shown, include_python_functions=True)
        #: What the table is made of. Its shares and its total are those of these rows.
        imports = [row.key for row in self._imports]
        self.rows = self._without_apart(found, shown.time_inside(imports, has_calls))
        # What workers ran is in the rows, beside the time of the program.
        apart = [*imports, *(row.key for row in self._steps)]
        self._inside_us = shown.process_time(recording.own_process(), apart)
        self._is_cut = any(_NO_ROOM in cause for cause in _core.profile_loss(recording))
        self._recorded_us = prof.recorded_us
        # What other threads and processes import takes none of the program's time.
        self._rest_us = self._recorded_us - prof.overlap_us(log.of_main)
        starts = [start for start in workers.starts if prof.overlap_us([start.span]) > 0]
        ends = [span for span in workers.ends if prof.overlap_us([span]) > 0]
        waits, has_workers = prof.loop_spans(NEXT_BATCH), bool(prof.loop_spans(FROM_WORKERS))
        self._waits = DataWaits(waits, starts, ends, has_workers)

    def _without_apart(self, found: EventList[Any], inside: list[float]) -> EventList[Any]:
        """Returns the rows without imports and steps, and without the time of imports in them."""
        for row, time_us in zip(found, inside, strict=True):
            row.cpu_time_total = max(row.cpu_time_total - time_us, 0)
        apart = {row.key for row in (*self._imports, *self._steps)}
        rows = copy(found)
        rows[:] = [row for row in found if row.key not in apart]
        return rows

    def ranges_json(self) -> str:
        """Returns which ranges are no rows, as the trace says it to whoever makes a table of it."""
        ranges = {"imports": self._imports, "steps": self._steps}
        return json.dumps({name: [row.key for row in rows] for name, rows in ranges.items()})

    def _is_import(self, row: Any) -> bool:
        module = row.key.removeprefix(IMPORT)
        # A range of the program's own may begin with the same word.
        return module != row.key and (module in self._log.modules or module in sys.modules)

    @property
    def _imports_us(self) -> float:
        return float(sum(row.self_cpu_time_total for row in self._imports))

    def facts(self) -> Iterator[str]:
        """Yields what is to be known of the table."""
        yield f"{format_time(self._recorded_us)} were recorded"
        if self._imports:
            yield f"imports: {format_time(self._imports_us)}{self._modules()}, not in the table"
        others_us = self._prof.overlap_us(self._log.of_others)
        if others_us:
            yield f"imports on other threads: {format_time(others_us)} of that"
        yield from self._steps_said()
        # Waits are events too, of which some may be lost.
        if not self._is_cut:
            yield from self._waits.said(self._rest_us)
        if self._is_cut:
            yield "what ran when the budget was full is in no row: times and counts are too low"
        if self._is_mostly_outside():
            outside = format_time(self._outside_us())
            yield f"{outside} passed outside of all rows, in Python or waiting"
        if self._workers > 0:
            workers = "1 worker" if self._workers == 1 else f"{self._workers} workers"
            processes = f"{self._workers + 1} processes: the program and {workers}"
            yield f"the table adds up what ran in {processes}"

    def _modules(self) -> str:
        """Returns the modules that took the longest to import."""
        slowest = sorted(self._imports, key=lambda row: -row.self_cpu_time_total)
        named = [
            f"{row.key.removeprefix(IMPORT)} {format_time(row.self_cpu_time_total)}"
            for row in slowest[:_NAMED_MODULES]
            if row.self_cpu_time_total >= _MUCH * self._imports_us
        ]
        return f" ({', '.join(named)})" if named else ""

    def _steps_said(self) -> Iterator[str]:
        times, until_first_us = self._prof.step_times, self._prof.until_first_us
        count = self._step_count
        steps = f"{count} optimizer steps" if count > 1 else "1 optimizer step"
        if until_first_us is not None:
            started = "imports and all that comes before among it"
            first = format_time(until_first_us)
            yield f"until the end of the first optimizer step: {first}, {started}"
            steps += "; those after the first"
        if times:
            middle, least, most = statistics.median(times), min(times), max(times)
            spread = f" (median; {format_time(least)} to {format_time(most)})"
            yield f"{steps}: {format_time(middle)}{spread if len(times) > 1 else ''}"
        if (after_us := self._prof.after_last_us) is not None:
            yield f"{AFTER_LAST}: {format_time(after_us)}"
        for row in self._steps:
            if row.key in (AFTER_LAST, BEFORE_FIRST):
                yield f"{row.key}: {format_time(row.cpu_time_total)}"

    @property
    def _step_count(self) -> int:
        return len(self._prof.step_times) + (self._prof.until_first_us is not None)

    def _outside_us(self) -> float:
        """Returns the time that is in no row, at least: several threads add up to more."""
        return self._rest_us - self._inside_us

    def _is_mostly_outside(self) -> bool:
        # What was lost would be rows too.
        return self._has_operators and not self._is_cut and self._outside_us() > self._rest_us / 2

    def hints(self, has_schedule: bool, has_stacks: bool) -> Iterator[str]:
        """Yields what could be done about it.

        Args:
            has_schedule: Whether steps are recorded, in place of the whole run.
            has_stacks: Whether Python's calls are recorded.
        """
        if self._is_cut:
            less = "" if has_schedule else ", --active N records N optimizer steps alone"
            yield f"the budget was full: --budget SIZE gives it more room{less}"
        if self._is_mostly_outside():
            place = "the flame graph has it" if has_stacks else "without --no-stacks it is recorded"
            yield f"most of the time passed in Python or waiting: {place}"
        if not self._is_cut:
            steps, step_times = self._prof.steps_span, self._prof.step_times
            yield from self._waits.hints(LoopTimes(self._rest_us, steps, step_times))
        is_much = self._recorded_us - self._rest_us > _MUCH * self._recorded_us
        if has_schedule and is_much:
            yield "the first step begins with the program: --wait 1 leaves it and the imports out"
        elif is_much and self._step_count >= _WAIT + _ACTIVE:
            words = f"--wait {_WAIT} --active {_ACTIVE}"
            yield f"{words} records {_ACTIVE} optimizer steps alone, without the start"


def _rows(recording: _core.Profile, include_python_functions: bool = False) -> EventList[Any]:
    return key_averages(
        recording,
        group_by_input_shape=False,
        group_by_stack_n=0,
        group_by_overload_name=False,
        include_python_functions=include_python_functions,
    )


def _is_step(row: Any) -> bool:
    return row.key in (AFTER_LAST, BEFORE_FIRST) or row.key.startswith(PROFILER_STEP_NAME)
