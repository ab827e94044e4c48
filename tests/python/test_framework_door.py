"""The door for frameworks: operators, memory and devices that come from Python."""

from __future__ import annotations

import re
import threading
import time
import warnings
from array import array
from collections.abc import Callable, Iterator
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


def test_an_operator_that_raises_is_closed() -> None:
    with mindprof.profile() as prof:
        with pytest.raises(KeyError), hosts.operator("example::add", 1):
            raise KeyError
        with hosts.operator("example::mul"):
            pass
    assert [event.cpu_parent for event in prof.events()] == [None, None]


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


@pytest.fixture(name="register")
def _register() -> Iterator[Callable[[hosts.Framework], None]]:
    registered = []

    def register(framework: hosts.Framework) -> None:
        hosts.register(framework)
        registered.append(framework)

    yield register
    for framework in registered:
        hosts.unregister(framework)


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
    assert rows["example::matmul"].device_time_total == 2.0
    assert rows["matmul_kernel"].self_device_time_total == 2.0
    assert rows["copy"].self_device_time_total == 0.5
    kernels = [event for event in prof.events() if event.name == "matmul_kernel"]
    assert [event.device_type for event in kernels] == [mindprof.DeviceType.PrivateUse1]
    prof.export_chrome_trace(tmp_path / "trace.json")
    again = {row.key: row for row in mindprof.load(tmp_path / "trace.json").key_averages()}
    assert again["example::matmul"].device_time_total == 2.0


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"stream": [1]}, "column stream has 1 numbers, expected 2"),
        ({"name": [0, 2]}, "expected an id below 2"),
        ({"start_ns": [-1, 5]}, "column start_ns has -1, expected a number from 0 on"),
        ({"end_ns": [0, 5]}, "ends before it begins"),
        ({"correlation": [1, 1 << 40]}, "column correlation has 1099511627776"),
    ],
)
def test_columns_that_make_no_sense_are_refused(
    change: dict[str, list[int]],
    text: str,
    register: Callable[[hosts.Framework], None],
) -> None:
    class Wrong(hosts.Framework):
        def end(self, recording: hosts.Recording) -> None:
            columns = {"name": [0, 1], "start_ns": [3, 4], "end_ns": [5, 6], **change}
            with pytest.raises(ValueError, match=re.escape(text)):
                recording.add_device_events("npu", ["a", "b"], **columns)

    register(Wrong())
    with mindprof.profile() as prof, mindprof.record_function("step"):
        pass
    assert [row.key for row in prof.key_averages()] == ["step"]


def test_a_framework_that_fails_costs_its_own_part_only(
    register: Callable[[hosts.Framework], None],
) -> None:
    class Broken(hosts.Framework):
        def end(self, recording: hosts.Recording) -> None:
            raise OSError(f"the device is gone, shapes={recording.record_shapes}")

    register(Broken())
    prof = mindprof.profile()
    prof.start()
    with mindprof.record_function("step"):
        pass
    with pytest.warns(RuntimeWarning, match=r"Broken.end failed.*the device is gone"):
        prof.stop()
    assert [row.key for row in prof.key_averages()] == ["step"]


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


def test_what_is_no_framework_is_refused() -> None:
    for found in (object(), hosts.Framework):
        with pytest.raises(TypeError, match="an instance of Framework"):
            hosts.register(found)  # type: ignore[arg-type]


def test_devices_that_cannot_be_asked_are_told_of() -> None:
    class Broken(hosts.Framework):
        def devices(self) -> list[str]:
            raise ZeroDivisionError

    broken = Broken()
    hosts.register(broken)
    try:
        with pytest.warns(RuntimeWarning, match="Broken.devices failed"), mindprof.profile():
            pass
    finally:
        hosts.unregister(broken)


def test_strides_are_as_many_as_sizes() -> None:
    with pytest.raises(ValueError, match="a stride for each of 2 dimensions, found 1"):
        hosts.TensorInput((2, 3), "float32", (1,))
