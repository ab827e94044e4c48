"""`SharedResults`: the results that every kind of profile has.

`profile`, the autograd `profile` and `LoadedProfile` inherit from it, so each result is defined
and documented once. The engine computes all of them from a finished recording.
"""

from __future__ import annotations

import os

from mindprof import _core
from mindprof._results import lists
from mindprof._results.event_list import EventList
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

    def _recorded(self, doing: str, /) -> _core.Events:
        recording = self._recording_for(doing)
        if recording is None:
            raise AttributeError(NO_RECORDING)
        return recording.events()

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
        return lists.key_averages(
            self._recording_for("getting key averages"),
            group_by_input_shape=group_by_input_shape,
            group_by_stack_n=group_by_stack_n,
            group_by_overload_name=group_by_overload_name,
            include_python_functions=include_python_functions,
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
        recording = self._recording_for("getting steps")
        if recording is None:
            raise AttributeError(NO_RECORDING)
        return step_times(recording.ask("step_times"))

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
