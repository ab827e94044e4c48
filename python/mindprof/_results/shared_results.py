"""`SharedResults`: the results that every kind of profile has.

`profile`, the autograd `profile` and `LoadedProfile` inherit from it, so each result is defined
and documented once. The engine computes all of them from a finished recording.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mindprof import _core
from mindprof._results import lists
from mindprof._results.advice import Advice
from mindprof._results.code_costs import CodeCosts, code_costs
from mindprof._results.critical_path import CriticalPath, critical_path
from mindprof._results.device_use import Device, device_use
from mindprof._results.event_list import EventList
from mindprof._results.function_event import FunctionEvent
from mindprof._results.function_event_avg import FunctionEventAvg
from mindprof._results.recorded_files import RecordedFiles
from mindprof._results.source_lines import source_lines
from mindprof._results.step_times import StepTimes, step_times
from mindprof._results.what_if import WhatIf, what_if

NO_RECORDING = (
    "'NoneType' object has no attribute 'save' (no finished recording: "
    "stop the profiler before exporting)"
)


class SharedResults(RecordedFiles):
    """The averages and exports of a profile.

    A subclass implements `_recording_for`, which returns the recording that results describe, and
    `_write_stacks`, because a profiler needs `with_stack=True` to export stacks and a loaded trace
    does not.
    """

    def _recording_for(self, doing: str, /) -> _core.Profile | None:
        """Returns the recording that results describe, or `None` if none has finished.

        Args:
            doing: What the caller is about to do, for error messages.
        """
        raise NotImplementedError

    def _write_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        raise NotImplementedError

    def _changed_events(self) -> EventList[FunctionEvent] | None:
        """Returns the list of events if the user has changed it or one of its events."""
        return None

    def _finished_recording(self, doing: str, /) -> _core.Profile:
        recording = self._recording_for(doing)
        if recording is None:
            raise AttributeError(NO_RECORDING)
        return recording

    def _recorded(self, doing: str, /) -> _core.Events:
        return self._finished_recording(doing).events()

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList[FunctionEventAvg]:
        """Averages the events by name: one row per operator or range, with counts and sums.

        The list is empty while a profiler records.

        Args:
            group_by_input_shape: Also group by input shapes.
            group_by_stack_n: Also group by this many of the innermost stack frames.
            group_by_overload_name: Also group by operator overload.
            include_python_functions: Include rows for calls of Python functions.

        Raises:
            AssertionError: The profiler was never started.
        """
        recording = self._recording_for("getting key averages")
        changed = self._changed_events()
        if changed is not None and recording is not None:
            return changed.key_averages(
                group_by_input_shape,
                group_by_stack_n,
                group_by_overload_name,
                include_python_functions,
            )
        return lists.key_averages(
            recording,
            group_by_input_shape=group_by_input_shape,
            group_by_stack_n=group_by_stack_n,
            group_by_overload_name=group_by_overload_name,
            include_python_functions=include_python_functions,
        )

    def export_html(
        self,
        path: str | os.PathLike[str],
        compare: SharedResults | str | os.PathLike[str] | None = None,
        source: bool = False,
    ) -> None:
        """Writes the report: one HTML page that needs no server and no network.

        Args:
            path: The file to write.
            compare: An earlier profile, or the path of its trace. The page shows what grew.
            source: Show lines of the user's own Python files that lie below the current folder.

        Raises:
            AttributeError: No recording has finished.
            ValueError: The page would replace the trace that it is compared with.
        """
        recording = self._finished_recording("exporting a report")
        other = None if compare is None else _compared(compare, path)
        lines = source_lines(self.lines()) if source else []
        _core.write_report(recording, path, os.path.basename(os.fspath(path)), other, lines)

    def functions(self, *, mine: str | Sequence[str] | None = None) -> CodeCosts:
        """Returns the user's own functions with what they cost, the most expensive first.

        The own cost of a function is that of its code and of the operators and libraries that it
        calls. Backward work counts at the function that ran its forward operator.

        Args:
            mine: Parts of the paths of the user's files. Without it, every file counts that is not
                of a library.

        Raises:
            AttributeError: No recording has finished.
        """
        return code_costs(self._finished_recording("listing functions"), "functions", mine=mine)

    def lines(
        self, file: str | None = None, *, mine: str | Sequence[str] | None = None
    ) -> CodeCosts:
        """Returns the lines of the user's own code with what they cost.

        Args:
            file: Return only lines of this file, given by its path or the end of it.
            mine: Parts of the paths of the user's files, as for `functions`.

        Raises:
            AttributeError: No recording has finished.
        """
        return code_costs(self._finished_recording("listing lines"), "lines", file=file, mine=mine)

    def modules(self, *, instances: bool = False) -> CodeCosts:
        """Returns the modules of the model with what they cost, forward and backward together.

        Args:
            instances: Return an entry for each module instead of one for each class.

        Raises:
            AttributeError: No recording has finished.
        """
        return code_costs(
            self._finished_recording("listing modules"), "modules", instances=instances
        )

    def steps(self) -> StepTimes:
        """Splits the wall time of each step into classes, and finds slow steps.

        Each moment of a step counts for the first of these classes that anything runs of:
        `kernel`, `copy`, `memset`, `communication`, `runtime`, `data_loading`, `operators`,
        `python`, `idle`. The classes of a step sum to its duration.

        Returns:
            The times in microseconds; no steps if the recording has none.

        Raises:
            AttributeError: There is no finished recording.
        """
        return step_times(self._finished_recording("getting steps").ask("step_times"))

    def advice(self, *, mine: str | Sequence[str] | None = None) -> Advice:
        """Returns why the steps are slow, what mending each cause would save, and what to try.

        The price of a finding is the part of the step time that a replay of the recording saves
        without it, so work that overlaps with other work costs nothing. The profiler's own cost is
        estimated and left out.

        Args:
            mine: Parts of the paths of the user's files, as for `functions`.

        Returns:
            The findings, the most valuable first. `print` shows them as text.

        Raises:
            AttributeError: There is no finished recording.
        """
        return Advice(self._finished_recording("giving advice"), mine)

    def device(self) -> Device:
        """Describes how devices were used: busy and idle time with its causes, and rates.

        Busy time is a union over the streams of a device. Idle time is charged to `cpu_late`,
        `synchronization`, `launch`, `other_stream`, `end_of_work` or `unknown`. Everything is told
        for the whole recording, for all steps together and for each step.

        Returns:
            The devices. The list is empty if the recording has no device work.

        Raises:
            AttributeError: There is no finished recording.
        """
        return device_use(self._finished_recording("describing devices").ask("device"))

    def critical_path(
        self,
        *,
        mine: str | Sequence[str] | None = None,
        limit: int = 10,
        recorded: bool = False,
        out: str | os.PathLike[str] | None = None,
    ) -> CriticalPath:
        """Finds the chain of work and waiting that determines how long the steps take.

        Work beside the path overlaps with it and saves nothing. `print` shows the text of
        `mindprof critical-path`.

        Args:
            mine: Parts of the paths of the user's files, as for `functions`.
            limit: The largest number of functions, modules, operators and kernels each.
            recorded: Count the profiler's own cost, which is left out otherwise.
            out: A Chrome trace to write, with the path as a track of its own and as arrows.

        Raises:
            AttributeError: No recording has finished.
            ValueError: The name of `out` is not that of a Chrome trace.
        """
        recording = self._finished_recording("finding the critical path")
        return critical_path(recording, mine=mine, limit=limit, recorded=recorded, out=out)

    def what_if(
        self,
        *scale: str | Mapping[str, float | str],
        remove: str | Sequence[str] = (),
        synchronization: bool = True,
        data_loading: bool = True,
        overlap_copies: bool = False,
        cuda_graphs: bool = False,
    ) -> WhatIf:
        """Predicts how long steps would take if some of their work were faster, or not there.

        A name is that of an operator, kernel, range, module or function: all of it or a word of
        it, or with `*` for any text. Everything inside of it changes too, with its kernels and its
        backward work.

        Args:
            scale: Names and the factors of their times, from 0 to 1000: `"optimizer=0.5"`,
                `{"optimizer": 0.5}` or `{"optimizer": "50%"}`.
            remove: Names of work that is removed.
            synchronization: `False` lets the CPU run on where it waits for a device.
            data_loading: `False` lets the next batch be there when the loop asks for it.
            overlap_copies: Let copies between the CPU and devices run beside other work.
            cuda_graphs: Launch kernels as one graph, without the cost of operators and launches.

        Example:
            >>> profile.what_if("optimizer=0.5", synchronization=False).saved_us  # doctest: +SKIP
            1250.0

        Raises:
            AttributeError: No recording has finished.
            TypeError: A change is neither a text nor a dictionary.
            ValueError: Nothing has such a name, a factor is out of range, or no change was given.
        """
        without = [
            name
            for name, is_dropped in (
                ("synchronization", not synchronization),
                ("data_loading", not data_loading),
                ("copies", overlap_copies),
                ("launches", cuda_graphs),
            )
            if is_dropped
        ]
        recording = self._finished_recording("replaying steps")
        return what_if(recording, scale, remove, without)

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """Writes one line per stack with its value, in the format of flame graph tools.

        Args:
            path: The file to write.
            metric: The metric to write; see `EventList.supported_export_stacks_metrics`.

        Raises:
            AssertionError: The profiler was never started, or not with `with_stack=True`.
            ValueError: The metric does not exist.
        """
        self._write_stacks(path, metric)


def _compared(
    compare: SharedResults | str | os.PathLike[str], page: str | os.PathLike[str]
) -> tuple[_core.Profile, str]:
    """Returns the recording to compare with, and its name. The page may not replace its file."""
    if isinstance(compare, SharedResults):
        return compare._finished_recording("comparing profiles"), "the other profile"
    if os.path.realpath(compare) == os.path.realpath(page):
        raise ValueError(f"{os.fspath(page)}: the page would replace the trace to compare with")
    return _core.Profile.read(compare), os.path.basename(os.fspath(compare))
