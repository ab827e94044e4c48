"""Events and lists of them, made by hand."""

from __future__ import annotations

from typing import Any

from host import torch

util: Any = torch.autograd.profiler_util
DeviceType: Any = torch.profiler.DeviceType


def fe(number: int, name: str, start: float, end: float, **more: Any) -> Any:
    """Makes an event of the first thread with no frames and no FLOPs."""
    given = {"overload_name": "", "stack": [], "flops": 0, **more}
    return util.FunctionEvent(number, name, given.pop("thread", 1), start, end, **given)


def el(events: list[Any], **more: Any) -> Any:
    """Makes a list and builds its tree."""
    made = util.EventList(events, **more)
    made._build_tree()
    return made


def parents(events: Any) -> dict[str, str | None]:
    """Returns the name of each event's parent."""
    return {event.name: event.cpu_parent and event.cpu_parent.name for event in events}


def cells(table: str, row: int = 0) -> list[str]:
    """Returns the words of a row of a table without a header."""
    return table.splitlines()[3 + row].split()
