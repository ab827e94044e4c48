"""Rows of lists that were changed or created by hand.

The engine groups and sums the events; this module creates the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindprof import _core
from mindprof._results.function_event import FunctionEvent
from mindprof._results.function_event_avg import DESCRIPTIONS, FunctionEventAvg

Item = FunctionEvent | FunctionEventAvg

#: The sums that include the children of an event.
_TOTALS = ("cpu_time_total", "device_time_total", "cpu_memory_usage", "device_memory_usage")


def rows_of(
    events: list[Any],
    *,
    by_input_shapes: bool,
    by_stack_n: int,
    by_overload_name: bool,
    python_functions: bool,
) -> list[FunctionEventAvg]:
    """Returns one row per group of events."""
    grouping = {
        "by_key": True,
        "input_shapes": by_input_shapes,
        "stack_frames": max(by_stack_n, 0),
        "overload_name": by_overload_name,
        "python_functions": python_functions,
    }
    rows = []
    for first, sums, members in _core.given_groups(events, grouping):
        calls = [events[member] for member in members]
        if getattr(calls[0], "is_python_function", False):
            sums.update(_outermost_totals(calls))
        row = row_of(events[first], sums)
        row._spread = [events[member].cpu_time_total for member in members]
        row.stack = (row.stack or [])[:by_stack_n]
        if not by_input_shapes:
            row.input_shapes = ""
        if not by_overload_name:
            row.overload_name = ""
        rows.append(row)
    return rows


def _outermost_totals(calls: list[Any]) -> dict[str, Any]:
    """Returns the totals of a Python function, counting only the outermost of recursive calls."""
    ends: dict[Any, float] = {}
    outermost = []
    for call in sorted(calls, key=lambda call: (call.time_range.start, -call.time_range.end)):
        times = call.time_range
        end = ends.get(call.thread)
        if end is None or times.start >= end or times.end > end:
            ends[call.thread] = times.end
            outermost.append(call)
    return {name: sum(getattr(call, name) for call in outermost) for name in _TOTALS}


def total_of(items: Sequence[Item]) -> FunctionEventAvg:
    """Returns a row that sums items and takes its description from the last one.

    There must be at least one item.
    """
    grouping = {
        "by_key": False,
        "input_shapes": False,
        "stack_frames": 0,
        "overload_name": False,
        "python_functions": True,
    }
    summed: Sequence[Item] = items
    if any(getattr(item, "is_python_function", False) for item in items):
        # Grouping by name first counts recursive calls once.
        summed = rows_of(
            list(items),
            by_input_shapes=False,
            by_stack_n=0,
            by_overload_name=False,
            python_functions=True,
        )
    ((_, sums, _),) = _core.given_groups(list(summed), grouping)
    return row_of(items[-1], sums)


def row_of(described: Item, sums: dict[str, Any]) -> FunctionEventAvg:
    """Returns a row with the given sums and the description of another item."""
    row = FunctionEventAvg()
    for name in DESCRIPTIONS:
        setattr(row, name, getattr(described, name))
    row.__dict__.update(sums)
    return row
