"""Section 5: every attribute of events and rows, with its first value, and what follows from it."""

from __future__ import annotations

import os
import warnings
from threading import get_native_id
from typing import Any

import pytest
from by_hand import DeviceType, el, fe, util
from host import profile, torch

FIRST_VALUES: dict[str, Any] = {
    "id": 3,
    "name": "aten::x",
    "key": "aten::x",
    "overload_name": None,
    "trace_name": None,
    "thread": 8,
    "fwd_thread": None,
    "kernels": [],
    "count": 1,
    "cpu_children": [],
    "cpu_parent": None,
    "input_shapes": None,
    "structured_input_shapes": None,
    "structured_input_strides": None,
    "input_dtypes": None,
    "concrete_inputs": None,
    "kwinputs": None,
    "stack": None,
    "scope": 0,
    "use_device": None,
    "cpu_memory_usage": 0,
    "device_memory_usage": 0,
    "is_async": False,
    "is_remote": False,
    "sequence_nr": -1,
    "node_id": -1,
    "device_type": DeviceType.CPU,
    "device_index": 0,
    "device_resource_id": 8,
    "is_legacy": False,
    "flops": None,
    "is_user_annotation": False,
    "is_python_function": False,
    "activity_type": None,
    "flow_id": None,
    "flow_type": None,
    "flow_start": None,
    "external_id": 0,
    "linked_correlation_id": 0,
    "metadata": None,
    "python_id": -1,
    "python_parent_id": -1,
    "python_module_id": -1,
    "self_cpu_percent": -1,
    "total_cpu_percent": -1,
    "total_device_percent": -1,
    "cpu_time": 9.75,
    "cpu_time_total": 9.75,
    "self_cpu_time_total": 9.75,
    "device_time": 0.0,
    "device_time_total": 0,
    "self_device_time_total": 0,
    "self_cpu_memory_usage": 0,
    "self_device_memory_usage": 0,
    "cpu_time_str": "9.750us",
    "cpu_time_total_str": "9.750us",
    "self_cpu_time_total_str": "9.750us",
    "device_time_str": "0.000us",
    "device_time_total_str": "0.000us",
    "self_device_time_total_str": "0.000us",
}

FIRST_VALUES_OF_ROWS: dict[str, Any] = {
    "key": None,
    "count": 0,
    "node_id": 0,
    "is_async": False,
    "is_remote": False,
    "use_device": None,
    "cpu_time_total": 0,
    "device_time_total": 0,
    "self_cpu_time_total": 0,
    "self_device_time_total": 0,
    "input_shapes": None,
    "overload_name": None,
    "stack": None,
    "scope": None,
    "cpu_memory_usage": 0,
    "device_memory_usage": 0,
    "self_cpu_memory_usage": 0,
    "self_device_memory_usage": 0,
    "cpu_children": None,
    "cpu_parent": None,
    "device_type": DeviceType.CPU,
    "is_legacy": False,
    "flops": 0,
    "cpu_time": 0.0,
    "device_time": 0.0,
    "cpu_time_str": "0.000us",
    "cpu_time_total_str": "0.000us",
}

FORMER_NAMES = {
    "cuda_time": "`cuda_time` is deprecated, please use `device_time` instead.",
    "cuda_time_total": "`cuda_time_total` is deprecated. Use `device_time_total` instead.",
    "self_cuda_time_total": (
        "`self_cuda_time_total` is deprecated. Use `self_device_time_total` instead."
    ),
    "self_cuda_memory_usage": (
        "`self_cuda_memory_usage` is deprecated. Use `self_device_memory_usage` instead."
    ),
    "event_metadata": "`event_metadata` is deprecated. Use `metadata` instead.",
}


def made() -> Any:
    return util.FunctionEvent(3, "aten::x", 8, 0.5, 10.25)


@pytest.mark.parametrize("name", FIRST_VALUES)
def test_an_event_has(name: str) -> None:
    assert getattr(made(), name) == FIRST_VALUES[name]


@pytest.mark.parametrize("name", FIRST_VALUES_OF_ROWS)
def test_a_row_has(name: str) -> None:
    assert getattr(util.FunctionEventAvg(), name) == FIRST_VALUES_OF_ROWS[name]


def test_a_new_row_does_not_know_who_named_it() -> None:
    row = util.FunctionEventAvg()
    assert not hasattr(row, "is_user_annotation")
    row.add(fe(1, "a", 0, 1, is_user_annotation=True))
    assert row.is_user_annotation is True


def test_recorded_events_and_rows_have_them_too() -> None:
    with profile() as prof:
        torch.ones(2) + 1
    event, row = prof.events()[0], prof.key_averages()[0]
    for name in FIRST_VALUES:
        assert hasattr(event, name), name
    for name in (*FIRST_VALUES_OF_ROWS, "is_user_annotation"):
        assert hasattr(row, name), name


def test_the_numbers_of_a_recorded_event() -> None:
    with profile() as prof:
        torch.ones(2) + 1
    first, *_, last = prof.events()
    # A process and a thread of the system where a device would have its own numbers, and threads
    # from one up.
    assert (first.device_index, first.device_resource_id) == (os.getpid(), get_native_id())
    assert (first.thread, first.fwd_thread) == (last.thread, last.fwd_thread) == (1, 0)
    assert first.id == first.external_id < last.id
    assert (first.activity_type, first.linked_correlation_id) == ("cpu_op", 0)


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_former_names_warn(name: str) -> None:
    with pytest.warns(FutureWarning) as told:
        getattr(made(), name)
    assert [str(one.message) for one in told] == [FORMER_NAMES[name]]


def test_a_row_has_one_former_name() -> None:
    row = util.FunctionEventAvg()
    with pytest.warns(FutureWarning, match="`cuda_time` is deprecated"):
        assert row.cuda_time == 0.0
    for name in FORMER_NAMES.keys() - {"cuda_time"}:
        assert not hasattr(row, name), name


def test_the_name_cannot_be_set_by_its_other_name() -> None:
    with pytest.raises(AttributeError):
        made().key = "b"


def test_what_an_event_is_printed_as() -> None:
    event = fe(1, "aten::x", 0.5, 10.25, input_shapes=[[1, 2]])
    assert repr(event) == (
        "<FunctionEvent id=1 name=aten::x overload_name= device_type=DeviceType.CPU node_id=-1 "
        "cpu_time=9.750us start_us=0.5 end_us=10.25 cpu_children=[] None_time=0.000us "
        "name=aten::x thread=1 input_shapes=[[1, 2]] cpu_memory_usage=0 None_memory_usage=0 "
        "is_async=False is_remote=False seq_nr=-1 is_legacy=False>"
    )
    event.use_device = "cuda"
    assert "cuda_time=0.000us" in repr(event)
    assert "cuda_memory_usage=0" in repr(event)


def test_what_a_row_is_printed_as() -> None:
    row = util.FunctionEventAvg().add(fe(1, "a", 0, 26))
    assert repr(row) == (
        "<FunctionEventAvg key=a self_cpu_time=26.000us cpu_time=26.000us  "
        "self_cuda_time=0.000us cuda_time=0.000us input_shapes=None cpu_memory_usage=0 "
        "cuda_memory_usage=0>"
    )


def test_asynchronous_events_have_nothing_of_their_own() -> None:
    event = fe(1, "a", 0, 9, is_async=True, use_device="cuda", cpu_memory_usage=5)
    event.append_kernel("k", 0, 3.0)
    assert (event.cpu_time_total, event.self_cpu_time_total) == (9, 0)
    assert (event.device_time_total, event.self_device_time_total) == (0, 0)
    assert (event.self_cpu_memory_usage, event.self_device_memory_usage) == (0, 0)


def test_device_time_is_of_kernels_and_children() -> None:
    outer = fe(1, "a", 0, 9, use_device="cuda", device_memory_usage=7)
    inner = fe(2, "b", 1, 5, use_device="cuda", device_memory_usage=3, cpu_memory_usage=2)
    outer.append_kernel("k", 0, 3.0)
    inner.append_kernel("k", 0, 4.0)
    el([outer, inner])
    assert (outer.device_time_total, outer.self_device_time_total) == (7.0, 3.0)
    assert (outer.self_device_memory_usage, outer.self_cpu_memory_usage) == (4, -2)
    outer.use_device = None
    assert (outer.device_time_total, outer.self_device_time_total) == (0, 0)


@pytest.mark.parametrize("name", ["CUDA", "PrivateUse1", "MTIA", "HPU", "XPU"])
def test_what_a_device_did_took_its_time(name: str) -> None:
    event = fe(1, "k", 2, 9, use_device="cuda", device_type=getattr(DeviceType, name))
    assert (event.cpu_time_total, event.self_cpu_time_total) == (0, 0)
    assert (event.device_time_total, event.self_device_time_total) == (7, 7)


def test_other_devices_are_refused() -> None:
    event = fe(1, "k", 2, 9, use_device="mps", device_type=DeviceType.MPS)
    with pytest.raises(AssertionError, match="Expected device_type to be CUDA, PrivateUse1, MTIA"):
        _ = event.device_time_total


def test_parents_and_children_are_events_of_the_host() -> None:
    host, device = fe(1, "a", 0, 9), fe(2, "k", 0, 9, device_type=DeviceType.CUDA)
    wrongs: list[tuple[Any, tuple[Any, ...], str]] = [
        (device.append_kernel, ("k", 0, 1.0), "Expected device_type to be CPU"),
        (device.append_cpu_child, (host,), "Expected device_type to be CPU"),
        (device.set_cpu_parent, (host,), "Expected device_type to be CPU"),
        (host.append_cpu_child, (3,), "Expected child to be a FunctionEvent"),
        (host.set_cpu_parent, (3,), "Expected parent to be a FunctionEvent"),
        (host.append_cpu_child, (device,), "Expected child device_type to be CPU"),
        (host.set_cpu_parent, (device,), "Expected parent device_type to be CPU"),
    ]
    for wrong, given, text in wrongs:
        with pytest.raises(AssertionError, match=text):
            wrong(*given)


def test_rows_add_up() -> None:
    row = util.FunctionEventAvg()
    assert row.add(fe(1, "a", 0, 10, flops=3, cpu_memory_usage=5)) is row
    row += fe(2, "a", 20, 50, flops=None, cpu_memory_usage=-1)
    again = util.FunctionEventAvg().add(row).add(row)
    assert (row.count, row.cpu_time_total, row.cpu_time) == (2, 40, 20.0)
    assert (row.flops, row.cpu_memory_usage) == (3, 4)
    assert (again.count, again.cpu_time_total, again.flops) == (4, 80, 6)
    with pytest.raises(AssertionError, match="Expected keys to match, but got zz vs a"):
        row.add(fe(1, "zz", 0, 1))
    with pytest.raises(AssertionError, match="Expected other to be a FunctionEvent or Function"):
        row.add(3)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'key'"):
        util.FunctionEventAvg().add(3)


def test_a_list_takes_its_own_arguments_and_no_others() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        listed = util.EventList((fe(1, "a", 0, 1),), use_device="cuda", with_flops=True)
    assert (listed._use_device, listed._profile_memory, listed._with_flops) == ("cuda", False, True)
    assert (listed._tree_built, len(listed)) == (False, 1)
    assert len(util.EventList()) == 0
    with pytest.raises(TypeError):
        util.EventList(bogus=1)
    with pytest.raises(TypeError):
        util.EventList([], "cuda")
    with pytest.raises(TypeError):
        util.EventList(3)
