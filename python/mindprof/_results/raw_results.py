"""`RawResults`: converts raw results of torch's collector to events by torch's rules.

mindprof's own recordings do not need this. It serves programs that pass raw results to
`_parse_kineto_results`: those of a real torch, or any object with the same accessors. The engine
reads the results and relates the events to each other; this module creates the event objects.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from mindprof import _core
from mindprof._results.device_type import DeviceType
from mindprof._results.format import _filter_stack_entry, _rewrite_name
from mindprof._results.function_event import FunctionEvent
from mindprof._results.lazy_list import PORTION
from mindprof._results.logger import logger

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"


_TAKEN_AS_THEY_ARE = {
    "overload_name": "overload_name",
    "fwd_thread": "fwd_thread_id",
    "input_shapes": "shapes",
    "concrete_inputs": "concrete_inputs",
    "kwinputs": "kwinputs",
    "scope": "scope",
    "sequence_nr": "sequence_nr",
    "device_index": "device_index",
    "device_resource_id": "device_resource_id",
    "flops": "flops",
    "is_user_annotation": "is_user_annotation",
    "is_python_function": "is_python_function",
    "activity_type": "activity_type",
    "flow_id": "flow_id",
    "flow_type": "flow_type",
    "flow_start": "flow_start",
    "external_id": "external_id",
    "linked_correlation_id": "linked_correlation_id",
    "structured_input_shapes": "structured_input_shapes",
    "structured_input_strides": "structured_input_strides",
    "input_dtypes": "dtypes",
    "python_id": "python_id",
    "python_parent_id": "python_parent_id",
    "python_module_id": "python_module_id",
}
"""The accessor of a raw event that gives each argument of `FunctionEvent`."""


def recorded_events(recording: _core.Profile, timeout_s: float | None) -> list[FunctionEvent]:
    """Returns the events of a recording of ours, like `RawResults.events` those of torch.

    Args:
        recording: The recording.
        timeout_s: The time after which the rest is left out; `None` for no limit.

    Raises:
        ValueError: The timeout is negative.
    """
    _check(timeout_s)
    begun = perf_counter()
    source = recording.events()
    events: list[FunctionEvent] = []
    while len(events) < source.count_shown():
        if timeout_s is not None and perf_counter() - begun >= timeout_s:
            _warn(timeout_s, len(events))
            break
        events += source.make(len(events), len(events) + PORTION)
    return events


def _check(timeout_s: float | None) -> None:
    if timeout_s is not None and timeout_s < 0:
        raise ValueError("timeout_s must be non-negative")


def _warn(timeout_s: float | None, count: int) -> None:
    logger().warning(
        "Profiler _parse_kineto_results timed out after %.3f seconds, "
        "returning partial results with %d events",
        timeout_s,
        count,
    )


def _taken(raw: Any) -> dict[str, Any]:
    """Returns the arguments of `FunctionEvent` that a raw event has accessors for.

    Older releases of torch lack some of them.
    """
    accessors = {name: getattr(raw, said, None) for name, said in _TAKEN_AS_THEY_ARE.items()}
    taken = {name: accessor() for name, accessor in accessors.items() if accessor is not None}
    for name in ("extra_meta", "typed_metadata"):
        accessor = getattr(raw, name, None)
        taken[name] = None if accessor is None else accessor() or None
    return taken


class RawResults:
    """A conversion of raw results to events.

    Args:
        result: The raw results, an object with `events()` and `trace_start_ns()`.
        use_device: The device that was recorded besides the CPU.
        timeout_s: The time after which the conversion stops with partial results; `None` for no
            limit.

    Raises:
        ValueError: The timeout is negative.
    """

    def __init__(self, result: Any, use_device: str | None, timeout_s: float | None) -> None:
        _check(timeout_s)
        self._result = result
        self._start_ns = result.trace_start_ns()
        self._use_device = use_device
        self._timeout_s = timeout_s

    def events(self) -> list[FunctionEvent]:
        """Returns the events in order of time.

        Raises:
            RuntimeError: An event has a negative linked correlation id.
        """
        events: list[FunctionEvent]
        events, is_late = _core.raw_events(
            self._result, self._event, self._memory_event, self._timeout_s
        )
        if is_late:
            _warn(self._timeout_s, len(events))
        return events

    def _event(self, raw: Any) -> FunctionEvent:
        """Creates an event; the engine adds its memory and kernels afterwards."""
        event = FunctionEvent(
            id=raw.correlation_id(),
            name=_rewrite_name(raw.name(), with_wildcard=True),
            trace_name=_rewrite_name(raw.name()),
            thread=raw.start_thread_id(),
            start_us=(raw.start_ns() - self._start_ns) / 1000,
            end_us=(raw.end_ns() - self._start_ns) / 1000,
            stack=[frame for frame in raw.stack() if _filter_stack_entry(frame)],
            use_device=self._use_device,
            is_async=raw.is_async() or raw.start_thread_id() != raw.end_thread_id(),
            # Converted by number, because a real torch has its own class.
            device_type=DeviceType(int(raw.device_type())),
            **_taken(raw),
        )
        self._add_time_of_its_own(event, raw)
        return event

    def _add_time_of_its_own(self, event: FunctionEvent, raw: Any) -> None:
        """Adds device time that was measured on the CPU, as torch's older recorders did."""
        if event.device_type != DeviceType.CPU or event.is_async:
            return
        elapsed = 0
        if self._use_device == "cuda":
            elapsed = raw.cuda_elapsed_us()
        elif self._use_device == "privateuseone":
            elapsed = raw.privateuse1_elapsed_us()
        if elapsed > 0:
            event.append_kernel(event.name, event.device_index, elapsed)
            event.is_legacy = True

    def _memory_event(
        self, raw: Any, number: int, host_bytes: int, device_bytes: int
    ) -> FunctionEvent:
        time_us = (raw.start_ns() - self._start_ns) / 1000
        thread = raw.start_thread_id()
        return FunctionEvent(
            number,
            raw.name(),
            thread,
            time_us,
            time_us,
            overload_name="",
            fwd_thread=thread,
            input_shapes=[],
            stack=[],
            use_device=self._use_device,
            cpu_memory_usage=host_bytes,
            device_memory_usage=device_bytes,
        )
