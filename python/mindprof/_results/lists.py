"""From finished recordings to lists: the one place where rows and events come out of the engine."""

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
    """Returns one row per name and whatever else rows are told apart by.

    Args:
        recording: All that was recorded; None for nothing.
        group_by_input_shape: Tell rows apart by shapes.
        group_by_stack_n: Tell rows apart by that many frames.
        group_by_overload_name: Tell rows apart by overload.
        include_python_functions: Have rows for calls of Python functions too.
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
    """Returns the events of recordings one by one, those of the first recording first."""
    if not recordings:
        return EventList()
    first, *others = (EventList(recording.events()) for recording in recordings)
    for other in others:
        first.extend(other)
    return first


def export_stacks(
    recording: _core.Profile | None, path: str | os.PathLike[str], metric: str
) -> None:
    """Writes the stacks of a recording with a value each.

    Raises:
        ValueError: `metric` is none of those that there are.
    """
    check_metric(metric)
    if recording is None:
        EventList().export_stacks(path, metric)
    else:
        _core.write_stacks(recording, path, metric)
