"""Raw results as torch's recorder hands them over, made into events by torch's rules.

What mindprof itself records never takes this way. It is for results of a real torch that someone
holds in their hands, and for tools that make results of their own: anything whose events answer to
the names of torch's accessors.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from time import perf_counter_ns
from typing import Any

from mindprof._results.device_type import DeviceType
from mindprof._results.format import _filter_name, _filter_stack_entry, _rewrite_name
from mindprof._results.function_event import FunctionEvent
from mindprof._results.records import MemRecordsAcc

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"

# torch's name, because users set the level of this logger.
log = logging.getLogger("torch.autograd.profiler")

_HOST_MEMORY = (DeviceType.CPU, DeviceType.MKLDNN, DeviceType.IDEEP)
_DEVICE_MEMORY = (DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.HIP, DeviceType.XPU)
_DEVICE_WORK = (DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.XPU)

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
"""By argument of an event, the accessor that says it."""


class RawResults:
    """Raw results on their way to events.

    Args:
        result: Says `events()` and `trace_start_ns()`.
        use_device: The device that worked beside the host.
        timeout_s: After how long to go on with the events that there are; None for never.

    Raises:
        ValueError: The time is negative.
    """

    def __init__(self, result: Any, use_device: str | None, timeout_s: float | None) -> None:
        if timeout_s is not None and timeout_s < 0:
            raise ValueError("timeout_s must be non-negative")
        self._raw = list(result.events())
        self._start_ns = result.trace_start_ns()
        self._use_device = use_device
        self._timeout_s = timeout_s
        self._begun_ns = perf_counter_ns()
        # Pairs of a record, and whether an event has claimed it.
        self._memory = [[raw, False] for raw in self._raw if raw.name() == MEMORY_EVENT_NAME]
        self._by_time = MemRecordsAcc(self._memory)

    def events(self) -> list[FunctionEvent]:
        """Returns the events, by time.

        Raises:
            RuntimeError: An event was done for one with a negative number.
        """
        events: list[FunctionEvent] = []
        timed_out = False
        for raw in self._raw:
            if timed_out := timed_out or self._is_late():
                break
            if not (_filter_name(raw.name()) or _is_hidden(raw)):
                events.append(self._event(raw))
        _link(events)
        last_id = max((event.id for event in events), default=0)
        unclaimed = [raw for raw, is_claimed in self._memory if not is_claimed]
        failed = [raw for raw in self._raw if raw.name() == OUT_OF_MEMORY_EVENT_NAME]
        for number, raw in enumerate([*unclaimed, *failed], start=last_id + 1):
            if timed_out := timed_out or self._is_late():
                break
            events.append(self._memory_event(raw, number))
        if timed_out:
            log.warning(
                "Profiler _parse_kineto_results timed out after %.3f seconds, "
                "returning partial results with %d events",
                self._timeout_s,
                len(events),
            )
        events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
        return events

    def _is_late(self) -> bool:
        if self._timeout_s is None:
            return False
        return perf_counter_ns() - self._begun_ns >= int(self._timeout_s * 1e9)

    def _event(self, raw: Any) -> FunctionEvent:
        device = _device_of(raw)
        host_bytes = device_bytes = 0
        if device == DeviceType.CPU:
            for pair in self._by_time.in_interval(raw.start_ns(), raw.end_ns()):
                host_bytes += _bytes(pair[0], _HOST_MEMORY)
                device_bytes += _bytes(pair[0], _DEVICE_MEMORY)
                pair[1] = True
        event = FunctionEvent(
            id=raw.correlation_id(),
            name=_rewrite_name(raw.name(), with_wildcard=True),
            trace_name=_rewrite_name(raw.name()),
            thread=raw.start_thread_id(),
            start_us=(raw.start_ns() - self._start_ns) / 1000,
            end_us=(raw.end_ns() - self._start_ns) / 1000,
            stack=[frame for frame in raw.stack() if _filter_stack_entry(frame)],
            use_device=self._use_device,
            cpu_memory_usage=host_bytes,
            device_memory_usage=device_bytes,
            is_async=raw.is_async() or raw.start_thread_id() != raw.end_thread_id(),
            device_type=device,
            extra_meta=raw.extra_meta() or None,
            typed_metadata=raw.typed_metadata() or None,
            **{name: getattr(raw, said)() for name, said in _TAKEN_AS_THEY_ARE.items()},
        )
        self._add_time_of_its_own(event, raw)
        return event

    def _add_time_of_its_own(self, event: FunctionEvent, raw: Any) -> None:
        """Adds the device time that was taken on the host, the way of older recorders."""
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

    def _memory_event(self, raw: Any, number: int) -> FunctionEvent:
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
            cpu_memory_usage=_bytes(raw, _HOST_MEMORY),
            device_memory_usage=_bytes(raw, _DEVICE_MEMORY),
        )


def _link(events: list[FunctionEvent]) -> None:
    """Gives events what devices did for them, and runtime calls the thread of their events."""
    work: dict[int, list[FunctionEvent]] = defaultdict(list)
    for event in events:
        link: int = event.linked_correlation_id
        if link < 0:
            raise RuntimeError(f"Got negative correlation id {link} in profiler post processing")
        if link > 0:
            work[link].append(event)
    for event in events:
        is_owner = event.linked_correlation_id == 0 and event.external_id != 0
        if not is_owner or event.device_type != DeviceType.CPU or event.is_async:
            continue
        for done in work.get(event.id, []):
            if done.device_type in _DEVICE_WORK:
                event.append_kernel(done.name, done.device_index, done.time_range.elapsed_us())
            elif done.device_type == DeviceType.CPU:
                done.thread = event.thread


def _is_hidden(raw: Any) -> bool:
    is_hidden = getattr(raw, "is_hidden_event", None)
    return bool(is_hidden is not None and is_hidden())


def _device_of(raw: Any) -> DeviceType:
    # By number, because a real torch has a type of its own.
    return DeviceType(int(raw.device_type()))


def _bytes(raw: Any, devices: tuple[DeviceType, ...]) -> int:
    taken: int = raw.nbytes() if _device_of(raw) in devices else 0
    return taken
