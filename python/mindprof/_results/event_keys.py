"""Events as mappings with MindTorch v2's keys: `event["kind"]`, `dict(event)`.

A recorded event reads the values from the profile (`crates/python/src/function_event/mapping.rs`).
This module computes them for events created by hand, and has the views that both kinds share.

| key | value |
|---|---|
| `name` | the name of the event |
| `kind` | `"op"` for an operator, `"scope"` for a user's range; `"python_function"`, `"runtime"`, `"kernel"`, `"memory"` or `"other"` for other events of traces |
| `device_type` | the name of the kind of device, such as `"CPU"` |
| `start_ns`, `end_ns`, `duration_ns` | integer nanoseconds, with the origin of `time_range` |
| `step` | the profiler step in which the event began |
| `thread_id` | the system's id of the thread |
| `input_shapes`, `stack` | as the attributes; present if they were recorded |
| `correlation_id` | unique for each operator; equal for a kernel and its launch |
| `cpu_memory_allocated_before`, `..._after`, `..._delta` | the bytes that the CPU allocator had handed out; present if memory was recorded |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any

_KINDS = {
    "cpu_op": "op",
    "user_annotation": "scope",
    "gpu_user_annotation": "scope",
    "python_function": "python_function",
    "kernel": "kernel",
    "gpu_memcpy": "kernel",
    "gpu_memset": "kernel",
    "cuda_sync": "kernel",
}
_STEP_PREFIX = "ProfilerStep#"


class KeyedEventMixin:
    """Makes an event a mapping whose values follow from its attributes.

    Example:
        >>> from mindprof.profiler_util import FunctionEvent
        >>> event = FunctionEvent(7, "aten::mm", 1, 0.0, 12.5)
        >>> event["kind"], event["duration_ns"], "stack" in event, event.get("stack")
        ('op', 12500, False, None)
    """

    # The mapping of the recorded event, if this event is a copy of one.
    _recorded_keys: dict[str, Any] | None = None

    def __getitem__(self, key: str) -> Any:
        return _values(self)[key]

    def __contains__(self, key: object) -> bool:
        return key in _values(self)

    def __iter__(self) -> Iterator[str]:
        return iter(_values(self))

    def __len__(self) -> int:
        return len(_values(self))

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the value of `key`, or `default` if it was not recorded."""
        try:
            return self[key]
        except KeyError:
            return default

    def keys(self) -> KeysView[str]:
        """Returns the keys of the event."""
        return KeysView(self)

    def values(self) -> ValuesView[Any]:
        """Returns the values, in the order of the keys."""
        return ValuesView(self)

    def items(self) -> ItemsView[str, Any]:
        """Returns the key-value pairs."""
        return ItemsView(self)


def _values(event: Any) -> dict[str, Any]:
    """Returns the mapping of an event created by hand, which has no memory totals."""
    if event._recorded_keys is not None:
        return dict(event._recorded_keys)
    start, end = (round(moment * 1000) for moment in (event.time_range.start, event.time_range.end))
    kind = _kind(event)
    values = {
        "name": event.name,
        "kind": kind,
        "device_type": event.device_type.name,
        "start_ns": start,
        "end_ns": end,
        "duration_ns": end - start,
        "step": _step(event),
        "thread_id": event.device_resource_id,
    }
    if event.input_shapes:
        values["input_shapes"] = event.input_shapes
    if event.stack:
        values["stack"] = event.stack
    if kind in ("op", "runtime", "kernel"):
        values["correlation_id"] = event.id
    return values


def _kind(event: Any) -> str:
    if event.is_user_annotation:
        return "scope"
    if event.is_python_function:
        return "python_function"
    if event.activity_type is None:
        return "memory" if event.name.startswith("[") else "op"
    if event.activity_type.endswith(("_runtime", "_driver")):
        return "runtime"
    return _KINDS.get(event.activity_type, "other")


def _step(event: Any) -> int:
    """Returns the number of the innermost step around an event, or zero if there is none."""
    while event is not None:
        number = event.name.removeprefix(_STEP_PREFIX)
        if number != event.name and number.isdecimal():
            return int(number)
        event = event.cpu_parent
    return 0
