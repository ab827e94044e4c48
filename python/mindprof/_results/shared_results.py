"""`SharedResults`: the results that every kind of profile has.

`profile`, the autograd `profile` and `LoadedProfile` inherit from it, so each result is defined
and documented once. The engine computes all of them from a finished recording.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from mindprof import _core
from mindprof._results import lists
from mindprof._results.code_costs import CodeCosts, code_costs
from mindprof._results.device_use import Device, device_use
from mindprof._results.event_list import EventList
from mindprof._results.function_event import FunctionEvent
from mindprof._results.function_event_avg import FunctionEventAvg
from mindprof._results.recorded_files import RecordedFiles
from mindprof._results.step_times import StepTimes, step_times

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
