"""Events and rows as plain values, and as columns for data frames."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from mindprof import _core
from mindprof._function_event_avg import FunctionEventAvg

_SHARED = {
    "key": "text",
    "count": "int",
    "cpu_time_total": "float",
    "self_cpu_time_total": "float",
    "device_time_total": "float",
    "self_device_time_total": "float",
    "cpu_memory_usage": "int",
    "self_cpu_memory_usage": "int",
    "device_memory_usage": "int",
    "self_device_memory_usage": "int",
    "flops": "int",
    "is_async": "bool",
    "is_user_annotation": "bool",
}
_TEXTS = {"device_type": "text", "input_shapes": "text", "stack": "text"}
_OF_ROWS = {"p50": "float", "p90": "float", "p99": "float", "max": "float"}
_OF_EVENTS = {"thread": "int", "start_us": "float", "end_us": "float", "sequence_nr": "int"}


def plain(item: Any) -> dict[str, Any]:
    """Returns what is known of an event or a row as plain values. Times are microseconds."""
    values = {name: getattr(item, name, None) for name in _SHARED}
    values["device_type"] = item.device_type.name
    values["input_shapes"] = str(item.input_shapes) if item.input_shapes else ""
    values["stack"] = ";".join(item.stack or [])
    if isinstance(item, FunctionEventAvg):
        values.update({name: getattr(item, name) for name in _OF_ROWS})
    else:
        values["thread"] = item.thread
        values["start_us"] = item.time_range.start
        values["end_us"] = item.time_range.end
        values["sequence_nr"] = item.sequence_nr
    return values


def columns(items: Iterable[Any]) -> _core.ArrowTable:
    """Returns events or rows, whichever the first one is, by column."""
    dicts = [plain(item) for item in items]
    kinds = {**_SHARED, **_TEXTS, **(_OF_ROWS if dicts and "p50" in dicts[0] else _OF_EVENTS)}
    return _core.ArrowTable.of_columns(
        [(name, kind, [values.get(name) for values in dicts]) for name, kind in kinds.items()]
    )


def library(name: str) -> Any:
    """Imports a library that is not needed otherwise.

    Raises:
        ImportError: It is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs {name}: pip install {name}", name=name) from error
