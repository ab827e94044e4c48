"""Section 4.1: from raw results, made by hand, to events."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from host import torch

profiler, util = torch.autograd.profiler, torch.autograd.profiler_util
DeviceType = torch.profiler.DeviceType

DEFAULTS: dict[str, Any] = {
    "activity_type": "cpu_op",
    "concrete_inputs": [],
    "cuda_elapsed_us": 0,
    "device_index": 0,
    "device_resource_id": 0,
    "device_type": DeviceType.CPU,
    "dtypes": [],
    "external_id": 0,
    "extra_meta": {},
    "flops": 0,
    "flow_id": 0,
    "flow_start": False,
    "flow_type": 0,
    "fwd_thread_id": 0,
    "is_async": False,
    "is_hidden_event": False,
    "is_python_function": False,
    "is_user_annotation": False,
    "kwinputs": {},
    "linked_correlation_id": 0,
    "nbytes": 0,
    "overload_name": "",
    "privateuse1_elapsed_us": 0,
    "python_id": -1,
    "python_module_id": -1,
    "python_parent_id": -1,
    "scope": 0,
    "sequence_nr": -1,
    "shapes": [],
    "stack": [],
    "start_thread_id": 1,
    "structured_input_shapes": [],
    "structured_input_strides": [],
    "typed_metadata": {},
}


class Raw:
    """A raw event: each accessor is a method that says one value."""

    def __init__(self, number: int, name: str, start: int, end: int, **values: Any) -> None:
        values = {**DEFAULTS, "external_id": number, **values}
        values.setdefault("end_thread_id", values["start_thread_id"])
        values |= {"correlation_id": number, "name": name, "start_ns": start, "end_ns": end}
        for accessor, value in values.items():
            setattr(self, accessor, lambda value=value: value)


class Result:
    """Raw results that begin at 1000 ns."""

    def __init__(self, *raw: Raw) -> None:
        self.raw = raw

    def events(self) -> list[Raw]:
        return list(self.raw)

    def trace_start_ns(self) -> int:
        return 1000


def parse(*raw: Raw, use_device: str | None = None, timeout_s: float | None = None) -> Any:
    holder = profiler.profile(use_kineto=True)
    holder.use_device = use_device
    return holder._parse_kineto_results(Result(*raw), timeout_s)


def memory(time: int, size: int, device: Any = DeviceType.CPU, **values: Any) -> Raw:
    name = values.pop("name", "[memory]")
    return Raw(0, name, time, time, nbytes=size, device_type=device, **values)


def test_e_1_events_of_the_profiler_itself_are_dropped() -> None:
    names = [
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    ]
    raw = [Raw(number, name, 1000, 2000) for number, name in enumerate(names, 1)]
    hidden = Raw(8, "aten::mm", 1000, 2000, is_hidden_event=True)
    found = parse(*raw, hidden, Raw(9, "aten::is_leaf_too", 1000, 2000))
    assert [event.name for event in found] == ["aten::is_leaf_too"]


def test_e_2_times_are_microseconds_since_the_trace_began() -> None:
    (event,) = parse(Raw(1, "a", 1234, 2235))
    assert (event.time_range.start, event.time_range.end) == (0.234, 1.235)


def test_e_3_steps_share_a_name_but_in_traces() -> None:
    (event,) = parse(Raw(1, "ProfilerStep#7", 1000, 2000))
    assert (event.name, event.trace_name) == ("ProfilerStep*", "ProfilerStep#7")


def test_e_4_an_event_that_ends_elsewhere_is_asynchronous() -> None:
    flagged, moved, plain = parse(
        Raw(1, "a", 1000, 2000, is_async=True),
        Raw(2, "b", 1001, 2000, start_thread_id=1, end_thread_id=2),
        Raw(3, "c", 1002, 2000),
    )
    assert [event.is_async for event in (flagged, moved, plain)] == [True, True, False]


def test_e_5_memory_is_of_every_event_of_the_host_around_it() -> None:
    found = parse(
        Raw(1, "outer", 1000, 2000),
        Raw(2, "inner", 1500, 1600, is_python_function=True),
        Raw(3, "kernel", 1000, 2000, device_type=DeviceType.CUDA),
        memory(1000, 1),
        memory(1500, 10, DeviceType.MKLDNN, start_thread_id=9),
        memory(1600, 100, DeviceType.IDEEP),
        memory(1700, 1000, DeviceType.CUDA),
        memory(1800, 10_000, DeviceType.HIP),
        memory(2000, 100_000, DeviceType.XPU),
        memory(1900, 1_000_000, DeviceType.Meta),
    )
    by_name = {event.name: event for event in found}
    assert by_name["outer"].cpu_memory_usage == 111
    assert by_name["outer"].device_memory_usage == 111_000
    assert by_name["inner"].cpu_memory_usage == 110
    assert by_name["kernel"].cpu_memory_usage == by_name["kernel"].device_memory_usage == 0
    assert "[memory]" not in by_name


def test_e_6_memory_of_no_event_is_an_event() -> None:
    _, loose = parse(
        Raw(7, "a", 1000, 1100, use_device="cuda"), memory(1500, -64, start_thread_id=3)
    )
    assert (loose.name, loose.id, loose.thread, loose.fwd_thread) == ("[memory]", 8, 3, 3)
    assert (loose.time_range.start, loose.time_range.end) == (0.5, 0.5)
    assert (loose.cpu_memory_usage, loose.device_type) == (-64, DeviceType.CPU)
    assert (loose.trace_name, loose.flops, loose.activity_type) == (None, None, None)
    assert (loose.input_shapes, loose.stack, loose.scope) == ([], [], 0)
    assert (loose.sequence_nr, loose.device_index, loose.device_resource_id) == (-1, 0, 3)


def test_e_6_memory_that_was_not_to_be_had_is_an_event_always() -> None:
    found = parse(
        Raw(7, "a", 1000, 2000),
        memory(1500, 4096, name="[OutOfMemory]"),
        memory(2500, 16),
        memory(2600, 4096, DeviceType.CUDA, name="[OutOfMemory]"),
    )
    assert [(event.name, event.id) for event in found] == [
        ("a", 7),
        ("[OutOfMemory]", 9),
        ("[memory]", 8),
        ("[OutOfMemory]", 10),
    ]
    assert (found[0].cpu_memory_usage, found[1].cpu_memory_usage) == (0, 4096)
    assert found[3].device_memory_usage == 4096
    events = util.EventList(found, profile_memory=True)
    events._build_tree()
    assert found[1].cpu_parent is found[0]
    assert [(row.key, row.count) for row in events.key_averages()] == [
        ("a", 1),
        ("[OutOfMemory]", 2),
        ("[memory]", 1),
    ]


def test_e_6_memory_that_was_not_to_be_had_takes_none_itself() -> None:
    found = parse(
        memory(1500, 4096, name="[OutOfMemory]"),
        memory(1500, 16),
        Raw(7, "a", 1600, 1700),
    )
    assert [(event.name, event.id) for event in found] == [
        ("[memory]", 8),
        ("[OutOfMemory]", 9),
        ("a", 7),
    ]
    assert [event.cpu_memory_usage for event in found] == [16, 4096, 0]


def test_e_7_frames_of_the_framework_are_dropped() -> None:
    frames = [
        "torch/autograd/__init__.py(90): _make_grads",
        "torch/autograd/__init__.py(200): backward",
        "torch/tensor.py(1): backward",
        "torch/_tensor.py(566): backward",
        "torch/testing/_internal/common_utils.py(9): prof_func_call",
        "train.py(1): main",
    ]
    (event,) = parse(Raw(1, "a", 1000, 2000, stack=frames))
    assert event.stack == ["torch/_tensor.py(566): backward", "train.py(1): main"]


def launched(**values: Any) -> list[Raw]:
    on_device = {"device_type": DeviceType.CUDA, "device_index": 2, "linked_correlation_id": 5}
    return [
        Raw(5, "aten::mm", 1000, 2000, start_thread_id=3, **values),
        Raw(50, "cudaLaunchKernel", 1100, 1200, linked_correlation_id=5, start_thread_id=1),
        Raw(50, "gemm", 1300, 1800, **on_device),
        Raw(51, "on another", 1300, 1800, device_type=DeviceType.MPS, linked_correlation_id=5),
    ]


def test_e_8_what_devices_did_is_linked() -> None:
    operator, call, *_ = parse(*launched(), use_device="cuda")
    assert [tuple(kernel) for kernel in operator.kernels] == [("gemm", 2, pytest.approx(0.5))]
    assert call.thread == operator.thread == 3


def test_e_8_numbers_may_be_large() -> None:
    top = 2**64 - 1
    operator, call, _, loose = parse(
        Raw(2**40, "aten::mm", 1000, 2000, start_thread_id=3),
        Raw(50, "cudaLaunchKernel", 1100, 1200, linked_correlation_id=2**40),
        Raw(top, "f", 1200, 1300, is_python_function=True, external_id=0),
        memory(3000, 8),
    )
    assert (operator.id, call.thread, loose.id) == (2**40, 3, top + 1)


def test_e_8_work_is_listed_as_it_was_given() -> None:
    on_device = {"device_type": DeviceType.CUDA, "linked_correlation_id": 6}
    outer, inner, *_ = parse(
        Raw(5, "aten::mm", 1000, 2000),
        Raw(6, "aten::mm", 1000, 2000),
        Raw(50, "second", 1600, 1700, **on_device),
        Raw(51, "first", 1300, 1400, **on_device),
        use_device="cuda",
    )
    assert (outer.kernels, [kernel.name for kernel in inner.kernels]) == ([], ["second", "first"])


def test_e_2_events_may_begin_before_the_trace() -> None:
    early, late = parse(Raw(1, "early", 400, 2000), Raw(2, "late", 1500, 1600))
    assert (early.time_range.start, late.time_range.start) == (-0.6, 0.5)


@pytest.mark.parametrize(
    "values", [{"is_async": True}, {"external_id": 0}, {"linked_correlation_id": 9}]
)
def test_e_8_what_cannot_own_work_has_none(values: dict[str, Any]) -> None:
    operator, call, *_ = parse(*launched(**values), use_device="cuda")
    assert (operator.kernels, call.thread) == ([], 1)


def test_e_8_a_negative_link_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="Got negative correlation id -1 in profiler post"):
        parse(Raw(1, "a", 1000, 2000, linked_correlation_id=-1))


@pytest.mark.parametrize(
    ("use_device", "elapsed"),
    [("cuda", "cuda_elapsed_us"), ("privateuseone", "privateuse1_elapsed_us")],
)
def test_e_9_device_time_that_was_taken_on_the_host(use_device: str, elapsed: str) -> None:
    raw = [
        Raw(1, "timed", 1000, 9000, device_index=4, **{elapsed: 7}),
        Raw(2, "asynchronous", 1001, 2000, is_async=True, **{elapsed: 7}),
        Raw(3, "on a device", 1002, 2000, device_type=DeviceType.CUDA, **{elapsed: 7}),
        Raw(4, "untimed", 1003, 2000),
    ]
    timed, *others = parse(*raw, use_device=use_device)
    assert [tuple(kernel) for kernel in timed.kernels] == [("timed", 4, 7)]
    assert (timed.is_legacy, timed.device_time_total) == (True, 7)
    assert [(event.kernels, event.is_legacy) for event in others] == [([], False)] * 3
    assert parse(*raw)[0].kernels == []


def test_e_10_events_are_sorted_by_start_and_the_longer_one_first() -> None:
    found = parse(
        Raw(1, "late", 3000, 4000),
        Raw(2, "short", 1000, 2000),
        Raw(3, "long", 1000, 3000),
        Raw(4, "as long", 1000, 3000),
    )
    assert [event.name for event in found] == ["long", "as long", "short", "late"]


def test_e_11_a_timeout_gives_what_there_is(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "torch.autograd.profiler"):
        assert parse(Raw(1, "a", 1000, 2000), memory(3000, 8), timeout_s=0) == []
    assert "timed out after 0.000 seconds" in caplog.text
    with pytest.raises(ValueError, match="timeout_s must be non-negative"):
        parse(timeout_s=-1)


def test_what_an_event_says_is_taken_over() -> None:
    said = {
        "fwd_thread_id": 2,
        "shapes": [[1, 2]],
        "concrete_inputs": [None, 3],
        "kwinputs": {"stream": 1},
        "scope": 1,
        "sequence_nr": 12,
        "device_index": 77,
        "device_resource_id": 78,
        "flops": 9,
        "is_user_annotation": True,
        "activity_type": "user_annotation",
        "flow_id": 4,
        "flow_type": 1,
        "flow_start": True,
        "structured_input_shapes": [[1, 2]],
        "structured_input_strides": [[2, 1]],
        "dtypes": ["float"],
        "python_id": 5,
        "python_parent_id": 6,
        "python_module_id": 7,
        "overload_name": "out",
    }
    renamed = {"fwd_thread_id": "fwd_thread", "shapes": "input_shapes", "dtypes": "input_dtypes"}
    (event,) = parse(Raw(1, "a", 1000, 2000, **said))
    for accessor, value in said.items():
        assert getattr(event, renamed.get(accessor, accessor)) == value, accessor
