"""Functions that turn finished recordings into lists of events and rows."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mindprof import _core
from mindprof._results.event_list import EventList
from mindprof._results.function_event import FunctionEvent
from mindprof._results.function_event_avg import FunctionEventAvg
from mindprof._results.metrics import check_metric


def key_averages(
    recording: _core.Profile | None,
    *,
    group_by_input_shape: bool,
    group_by_stack_n: int,
    group_by_overload_name: bool,
    include_python_functions: bool,
) -> EventList[FunctionEventAvg]:
    """Averages the events of a recording by name.

    Args:
        recording: The recording; `None` gives an empty list.
        group_by_input_shape: Also group by input shapes.
        group_by_stack_n: Also group by this many of the innermost stack frames.
        group_by_overload_name: Also group by operator overload.
        include_python_functions: Include rows for calls of Python functions.
    """
    if recording is None:
        return EventList()
    return EventList(recording.events()).key_averages(
        group_by_input_shapes=group_by_input_shape,
        group_by_stack_n=group_by_stack_n,
        group_by_overload_name=group_by_overload_name,
        include_python_functions=include_python_functions,
    )


def events(recordings: Sequence[_core.Profile]) -> EventList[FunctionEvent]:
    """Returns the events of all recordings in one list, in the order of the recordings."""
    if not recordings:
        return EventList()
    first, *others = (EventList(recording.events()) for recording in recordings)
    for other in others:
        first.extend(other)
    return first


def export_stacks(
    recording: _core.Profile | None, path: str | os.PathLike[str], metric: str
) -> None:
    """Writes the stacks of a recording with their values; an empty file for `None`.

    Raises:
        ValueError: The metric does not exist.
    """
    check_metric(metric)
    if recording is None:
        EventList().export_stacks(path, metric)
    else:
        _core.write_stacks(recording, path, metric)
