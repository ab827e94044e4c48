"""The door for frameworks: operators, memory and devices that come from Python."""

from __future__ import annotations

import threading
import time
import warnings
from array import array
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mindprof
import pytest
from mindprof import hosts


def test_operators_nest_among_themselves_and_with_ranges() -> None:
    with mindprof.profile() as prof, mindprof.record_function("step"):
        outer = hosts.open_operator("example::outer")
        hosts.close_operator(hosts.open_operator("example::inner"))
        hosts.close_operator(outer)
    parents = {event.name: event.cpu_parent for event in prof.events()}
    assert parents["example::inner"].name == "example::outer"
    assert parents["example::outer"].name == "step"
    assert not any(event.is_user_annotation for event in prof.events() if event.name != "step")


def test_nothing_is_opened_while_nothing_records() -> None:
    assert not hosts.is_recording()
    operator = hosts.open_operator("example::add", (1,))
    assert operator is None
    hosts.close_operator(operator)
    with mindprof.profile() as prof:
        assert hosts.is_recording()
        assert not hosts.wants_inputs()
    assert len(prof.events()) == 0


def test_an_operator_is_closed_once_and_on_any_thread() -> None:
    with mindprof.profile() as prof:
        operator = hosts.open_operator("example::add")
        thread = threading.Thread(target=hosts.close_operator, args=(operator,))
        thread.start()
        thread.join()
        hosts.close_operator(operator)
    (event,) = prof.events()
    assert event.name == "example::add"


def test_a_handle_that_is_held_stays_that_of_its_own_operator() -> None:
    with mindprof.profile() as prof:
        for number in range(40):
            first = hosts.open_operator(f"example::first_{number}")
            second = hosts.open_operator(f"example::second_{number}")
            hosts.close_operator(second)
            third = hosts.open_operator(f"example::third_{number}")
            assert third is not second
            # The one that is closed for long closes nothing, least of all another one.
            hosts.close_operator(second)
            hosts.close_operator(third)
            hosts.close_operator(first)
            del first, second, third
    names = [event.name for event in prof.events() if event.cpu_parent is not None]
    assert len(names) == 80
    parents = {event.name: event.cpu_parent.name for event in prof.events() if event.cpu_parent}
    for number in range(40):
        for order in ("second", "third"):
            assert parents[f"example::{order}_{number}"] == f"example::first_{number}"
    third_ends = {e.name: e.time_range.end for e in prof.events()}
    third_starts = {e.name: e.time_range.start for e in prof.events()}
    for number in range(40):
        assert third_starts[f"example::third_{number}"] >= third_ends[f"example::second_{number}"]


def test_more_operators_than_handles_are_kept_nest() -> None:
    with mindprof.profile() as prof:
        for _ in range(3):
            opened = [hosts.open_operator(f"example::{depth}") for depth in range(40)]
            for operator in reversed(opened):
                hosts.close_operator(operator)
    rows = {row.key: row.count for row in prof.key_averages()}
    assert rows == {f"example::{depth}": 3 for depth in range(40)}
    parents = {(event.name, getattr(event.cpu_parent, "name", None)) for event in prof.events()}
    outer = [None, *(f"example::{depth}" for depth in range(39))]
    assert parents == {(f"example::{depth}", outer[depth]) for depth in range(40)}


def test_inputs_have_shapes_types_strides_and_values() -> None:
    dense = hosts.TensorInput((2, 3), "float32")
    turned = hosts.TensorInput((3, 2), "int64", (1, 3))
    array_like = SimpleNamespace(shape=(4, 2), dtype="float64", strides=(8, 32), itemsize=8)
    with mindprof.profile(record_shapes=True) as prof:
        assert hosts.wants_inputs()
        inputs = (dense, turned, array_like, 1, 2.5, True, [1, 2], [dense, turned], None, "text")
        hosts.close_operator(hosts.open_operator("example::add", inputs, {"alpha": 7}))
    (event,) = prof.events()
    assert event.input_shapes[:3] == [[2, 3], [3, 2], [4, 2]]
    assert event.structured_input_strides[:3] == [[3, 1], [1, 3], [1, 4]]
    assert event.concrete_inputs[3:7] == [1, 2.5, True, [1, 2]]
    # What was given by keyword comes after.
    assert event.concrete_inputs[-1] == 7
    assert event.input_dtypes[:3] == ["float", "long int", "double"]


def test_memory_counts_to_the_operator_that_takes_it() -> None:
    with mindprof.profile(profile_memory=True) as prof:
        operator = hosts.open_operator("example::empty")
        hosts.report_memory(0x1000, 512, 512)
        hosts.close_operator(operator)
        hosts.report_memory(0x1000, -512, 0)
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["example::empty"].cpu_memory_usage == 512
    assert rows["[memory]"].cpu_memory_usage == -512


class Device(hosts.Framework):
    """A framework with a device of its own kind, whose work is known when a recording ends."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make
        self.begun: list[hosts.Recording] = []
        self.launches: list[int] = []

    def devices(self) -> list[str]:
        return ["npu"]

    def begin(self, recording: hosts.Recording) -> None:
        self.begun.append(recording)

    def end(self, recording: hosts.Recording) -> None:
        self.begun.remove(recording)
        starts = self.launches
        recording.add_device_events(
            "npu",
            ["matmul_kernel", "copy"],
            name=self.make([0, 1]),
            start_ns=self.make([starts[0] + 1_000, starts[0] + 4_000]),
            end_ns=self.make([starts[0] + 3_000, starts[0] + 4_500]),
            stream=self.make([3, 4]),
            correlation=self.make([41, 0]),
        )

    def matmul(self) -> None:
        operator = hosts.open_operator("example::matmul", None, None, 41)
        self.launches.append(time.time_ns())
        hosts.close_operator(operator)


COLUMNS: dict[str, Callable[[Any], Any]] = {
    "lists": list,
    "arrays": lambda values: array("q", values),
    "unsigned": lambda values: array("Q", values),
    "arrow": lambda values: SimpleNamespace(to_numpy=lambda: array("q", values)),
}


@pytest.mark.parametrize("columns", COLUMNS)
def test_a_device_works_for_the_operator_that_asked(
    columns: str, register: Callable[[hosts.Framework], None], tmp_path: Path
) -> None:
    device = Device(COLUMNS[columns])
    register(device)
    assert mindprof.ProfilerActivity.PrivateUse1 in mindprof.supported_activities()
    with mindprof.profile() as prof:
        assert len(device.begun) == 1
        device.matmul()
    assert device.begun == []
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["example::matmul"].device_time_total == pytest.approx(2.0)
    assert rows["matmul_kernel"].self_device_time_total == pytest.approx(2.0)
    assert rows["copy"].self_device_time_total == pytest.approx(0.5)
    kernels = [event for event in prof.events() if event.name == "matmul_kernel"]
    assert [event.device_type for event in kernels] == [mindprof.DeviceType.PrivateUse1]
    prof.export_chrome_trace(tmp_path / "trace.json")
    loaded = mindprof.load(tmp_path / "trace.json")
    again = {row.key: row for row in loaded.key_averages()}
    assert again["example::matmul"].device_time_total == pytest.approx(2.0)
    kernels = [event for event in loaded.events() if event.name == "matmul_kernel"]
    assert [event.device_type for event in kernels] == [mindprof.DeviceType.PrivateUse1]


def test_a_framework_is_told_what_was_asked_for(
    register: Callable[[hosts.Framework], None],
) -> None:
    told = []

    class Asking(Device):
        def begin(self, recording: hosts.Recording) -> None:
            devices = [name for name in ("npu", "cuda") if recording.wants_device(name)]
            told.append((set(recording.activities), devices, recording.with_flops))

        def end(self, recording: hosts.Recording) -> None:
            pass

    register(Asking(list))
    cpu, other = mindprof.ProfilerActivity.CPU, mindprof.ProfilerActivity.PrivateUse1
    for activities in (None, [cpu], [other]):
        with mindprof.profile(activities=activities, with_flops=activities is None):
            pass
    assert told == [({cpu, other}, ["npu"], True), ({cpu}, [], False), ({other}, ["npu"], False)]


def test_a_framework_is_told_once_however_often_it_registers(
    register: Callable[[hosts.Framework], None],
) -> None:
    told = []

    class Counting(hosts.Framework):
        def begin(self, recording: hosts.Recording) -> None:
            told.append(recording.record_shapes)

    framework = Counting()
    register(framework)
    register(framework)
    with mindprof.profile(record_shapes=True), warnings.catch_warnings():
        pass
    hosts.unregister(framework)
    with mindprof.profile():
        pass
    assert told == [True]
