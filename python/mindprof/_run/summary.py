"""What a run says about a recording before its table: what is not in it, and what to do."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Collection, Iterator
from copy import copy
from typing import Any

from mindprof import _core
from mindprof._profiler.profile import PROFILER_STEP_NAME
from mindprof._results.event_list import EventList
from mindprof._results.format import _format_time as format_time
from mindprof._results.lists import key_averages
from mindprof._run.imports import IMPORT
from mindprof._run.run_profile import AFTER_LAST, BEFORE_FIRST, RunProfile

#: How torch names the ranges that tell of training.
_OPTIMIZER_STEP = "Optimizer.step#"
_NEXT_BATCH = "enumerate(DataLoader)#"

#: From which share of the time on something is worth a word.
_MUCH = 0.1

#: How many of the imported modules are named.
_NAMED_MODULES = 3


class Summary:
    """The rows of a recording that are about the program, and what else there is to say of it.

    Imports and steps are no rows: they would lead the table, and say nothing about what the
    program does.
    """

    def __init__(self, prof: RunProfile, imported: Collection[str]) -> None:
        """Sorts the rows.

        Args:
            prof: A profiler of a run that has stopped.
            imported: The modules that were imported while it recorded, or before.
        """
        self._prof = prof
        self._imported = imported
        recording = prof.recording
        self._workers = len(recording.processes()) - 1
        # Without Python's calls, the time of which ranges have as their own: waiting is seen.
        shown = recording.without_calls()
        found = _rows(shown)
        self._imports = [row for row in found if self._is_import(row)]
        self._steps = [row for row in found if _is_step(row)]
        self._has_operators = len(self._imports) + len(self._steps) < len(found)
        if not self._has_operators:
            shown = recording
            found = _rows(shown, include_python_functions=True)
        #: What the table is made of. Its shares and its total are those of these rows.
        self.rows = self._without_apart(found, shown)
        self._recorded_us = prof.recorded_us

    def _without_apart(self, found: EventList[Any], shown: _core.Profile) -> EventList[Any]:
        """Returns the rows without imports and steps, and without the time of imports in them."""
        imports = [row.key for row in self._imports]
        apart = {*imports, *(row.key for row in self._steps)}
        rows = copy(found)
        rows[:] = [row for row in found if row.key not in apart]
        inside = shown.time_inside(imports)
        for row in rows:
            row.cpu_time_total = max(row.cpu_time_total - inside.get(row.key, 0), 0)
        return rows

    def _is_import(self, row: Any) -> bool:
        module = row.key.removeprefix(IMPORT)
        # A range of the program's own may begin with the same word.
        return module != row.key and (module in self._imported or module in sys.modules)

    @property
    def _imports_us(self) -> float:
        return float(sum(row.self_cpu_time_total for row in self._imports))

    def facts(self) -> Iterator[str]:
        """Yields what is to be known of the table."""
        yield f"{format_time(self._recorded_us)} were recorded"
        if self._imports:
            yield f"imports: {format_time(self._imports_us)}{self._modules()}, not in the table"
        yield from self._steps_said()
        yield from self._waiting_said()
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
        return f" ({', '.join(named)})"

    def _steps_said(self) -> Iterator[str]:
        times = self._prof.step_times
        if times:
            middle, least, most = statistics.median(times), min(times), max(times)
            steps = f"{len(times)} optimizer steps" if len(times) > 1 else "1 optimizer step"
            spread = f" (median; {format_time(least)} to {format_time(most)})"
            yield f"{steps}: {format_time(middle)}{spread if len(times) > 1 else ''}"
        for row in self._steps:
            if row.key in (AFTER_LAST, BEFORE_FIRST):
                yield f"{row.key}: {format_time(row.cpu_time_total)}"

    def _waiting_us(self) -> float:
        rows = [row for row in self.rows if row.key.startswith(_NEXT_BATCH)]
        return float(sum(row.cpu_time_total for row in rows))

    def _waiting_said(self) -> Iterator[str]:
        rest = self._recorded_us - self._imports_us
        waiting = self._waiting_us()
        if waiting > 0 and rest > 0:
            share = f"{waiting / rest:.0%} of the time without imports"
            yield f"the loop waited {format_time(waiting)} for its data: {share}"

    def _outside_us(self) -> float:
        """Returns the time that is in no row, at least: rows of several threads add up to more."""
        rows = sum(row.self_cpu_time_total for row in self.rows)
        return float(self._recorded_us - self._imports_us - rows)

    def _is_mostly_outside(self) -> bool:
        # What workers ran is in the rows, beside the time of the program.
        rest = self._recorded_us - self._imports_us
        return self._has_operators and not self._workers and self._outside_us() > rest / 2

    def hints(self, has_schedule: bool, has_stacks: bool) -> Iterator[str]:
        """Yields what could be done about it.

        Args:
            has_schedule: Whether steps are recorded, in place of the whole run.
            has_stacks: Whether Python's calls are recorded.
        """
        if self._is_mostly_outside():
            place = "the flame graph has it" if has_stacks else "without --no-stacks it is recorded"
            yield f"most of the time is Python's own: {place}"
        rest = self._recorded_us - self._imports_us
        if rest > 0 and self._waiting_us() > 2 * _MUCH * rest:
            yield "the data is late: more workers (DataLoader num_workers), or less work per item"
        is_much = self._imports_us > _MUCH * self._recorded_us
        if has_schedule and is_much:
            yield "the first step begins with the program: --wait 1 leaves it and the imports out"
        elif is_much and any(row.key.startswith(_OPTIMIZER_STEP) for row in self.rows):
            yield "--wait 2 --active 5 records five optimizer steps alone, without the start"


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
