"""What the door for frameworks refuses: each error names the argument that was wrong."""

from __future__ import annotations

import re
import time
from array import array
from collections.abc import Callable
from typing import Any

import mindprof
import pytest
from mindprof import hosts


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"stream": [1]}, "argument 'stream': expected 2 numbers, as in 'name', found 1"),
        ({"name": [0, 2]}, "argument 'name': expected indices into the 2 strings of 'names'"),
        ({"start_ns": [-1, 5]}, "argument 'start_ns': expected non-negative numbers, found -1"),
        ({"end_ns": [5, 3]}, "argument 'end_ns': expected a time not before 'start_ns'"),
        (
            {"correlation": [1, 1 << 40]},
            "argument 'correlation': expected numbers up to 4294967295",
        ),
        (
            {"stream": [1, 1 << 70]},
            f"argument 'stream': expected numbers from 0 to {(1 << 63) - 1}, found {1 << 70}",
        ),
        (
            {"stream": array("Q", [1, (1 << 64) - 1])},
            f"argument 'stream': expected numbers from 0 to {(1 << 63) - 1}, found {(1 << 64) - 1}",
        ),
        (
            {"stream": array("L", [1 << 63, 1])},
            f"argument 'stream': expected numbers from 0 to {(1 << 63) - 1}, found {1 << 63}",
        ),
    ],
)
def test_columns_that_make_no_sense_are_refused(
    change: dict[str, list[int] | array[int]],
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


class Ending(hosts.Framework):
    """Runs something when a recording ends."""

    def __init__(self, run: Callable[[hosts.Recording], None]) -> None:
        self.run = run

    def end(self, recording: hosts.Recording) -> None:
        self.run(recording)


def add_kernel(recording: hosts.Recording, **change: Any) -> None:
    now = time.time_ns()
    columns: dict[str, Any] = {"name": [0], "start_ns": [now], "end_ns": [now + 5]}
    given: dict[str, Any] = {"device": "npu", "names": ["kernel"], **columns, **change}
    recording.add_device_events(**given)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"device": "cpu"}, ValueError, "'device': .* device name in lower case.*found 'cpu'"),
        ({"device": "meta"}, ValueError, "found 'meta'"),
        ({"device": ""}, ValueError, "found ''"),
        ({"device": "cuda:0"}, ValueError, "found 'cuda:0'"),
        ({"device": "CUDA"}, ValueError, "found 'CUDA'"),
        ({"device": None}, TypeError, "'device': expected a device name, found None"),
        ({"stream": b"3"}, TypeError, "'stream': .*column of integers, found b'3'"),
        ({"stream": bytearray(b"3")}, TypeError, "'stream': .*column of integers"),
        ({"correlation": "3"}, TypeError, "'correlation': .*integers, found '3'"),
        ({"stream": memoryview(bytes(8)).cast("q", (1, 1))}, TypeError, "one of 2 dimensions"),
        ({"stream": [1.5]}, TypeError, r"'stream': .*found list \('float'"),
        ({"device_index": 0}, TypeError, r"'device_index': .*found int \("),
        ({"start_ns": None}, TypeError, r"'start_ns': .*found NoneType \("),
        ({"names": "kernel"}, TypeError, "'names': expected a list of strings, found 'kernel'"),
        ({"names": b"kernel"}, TypeError, "'names': expected a list of strings, found b'kernel'"),
        ({"names": ["a", 3]}, TypeError, r"'names': .*found 3 at \[1\]"),
        ({"names": None}, TypeError, "'names': .*found None"),
    ],
)
def test_what_is_misread_easily_is_refused(
    change: dict[str, Any],
    error: type[Exception],
    text: str,
    register: Callable[[hosts.Framework], None],
) -> None:
    refused = []

    def end(recording: hosts.Recording) -> None:
        with pytest.raises(error, match=text):
            add_kernel(recording, **change)
        refused.append(True)

    register(Ending(end))
    with mindprof.profile() as prof:
        pass
    assert refused == [True]
    assert len(prof.events()) == 0


CLOCKS: dict[str, Callable[[], int]] = {
    "since the machine began": time.monotonic_ns,
    "microseconds": lambda: time.time_ns() // 1_000,
    "an hour ago": lambda: time.time_ns() - 3_600_000_000_000,
    "in an hour": lambda: time.time_ns() + 3_600_000_000_000,
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_times_of_another_clock_are_refused(
    clock: str, register: Callable[[hosts.Framework], None]
) -> None:
    begin = time.time_ns()
    texts = []

    def end(recording: hosts.Recording) -> None:
        start = CLOCKS[clock]()
        with pytest.raises(ValueError, match="far from the recording") as raised:
            add_kernel(recording, start_ns=[start], end_ns=[start + 5])
        texts.append((start, str(raised.value)))

    register(Ending(end))
    with mindprof.profile():
        pass
    ((start, text),) = texts
    earliest, latest, found = map(int, re.findall(r"\d{6,}", text))
    assert found == start
    assert earliest < begin < latest
    assert not earliest <= start <= latest


def test_work_that_was_asked_for_shortly_before_is_taken(
    register: Callable[[hosts.Framework], None],
) -> None:
    begin = time.time_ns() - 1_000_000_000
    register(Ending(lambda recording: add_kernel(recording, start_ns=[begin])))
    with mindprof.profile() as prof:
        pass
    assert [event.name for event in prof.events()] == ["kernel"]


def test_what_comes_after_the_end_is_refused(
    register: Callable[[hosts.Framework], None],
) -> None:
    ended: list[hosts.Recording] = []
    register(Ending(ended.append))
    with mindprof.profile() as prof:
        pass
    with pytest.raises(RuntimeError, match="the recording has ended"):
        add_kernel(ended[0])
    assert len(prof.events()) == 0


def test_devices_without_a_name_are_told_of(register: Callable[[hosts.Framework], None]) -> None:
    class Nameless(hosts.Framework):
        def devices(self) -> list[str]:
            return ["cpu"]

    register(Nameless())
    with pytest.warns(RuntimeWarning, match="Nameless.devices failed.*found 'cpu'"):
        assert mindprof.supported_activities() == {mindprof.ProfilerActivity.CPU}


@pytest.mark.parametrize("found", ["npu", b"npu", None, 3, [4]])
def test_devices_that_are_no_list_of_names_are_told_of(
    found: Any, register: Callable[[hosts.Framework], None]
) -> None:
    class Careless(hosts.Framework):
        def devices(self) -> Any:
            return found

    register(Careless())
    text = r"Careless.devices failed.*TypeError\(.*Careless.devices\(\): expected a list of strings"
    with pytest.warns(RuntimeWarning, match=text) as raised:
        assert mindprof.supported_activities() == {mindprof.ProfilerActivity.CPU}
    assert repr(found if isinstance(found, (str, bytes)) else 4 if found == [4] else found) in str(
        raised[0].message
    )
    assert raised[0].filename == __file__


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((3,), TypeError, "argument 'name': expected a string, found 3"),
        (("a", [1]), TypeError, r"argument 'inputs': expected a tuple, found \[1\]"),
        (("a", None, [1]), TypeError, r"argument 'keywords': expected a dict, found \[1\]"),
        (
            ("a", None, None, 1.5),
            TypeError,
            "argument 'correlation': expected an integer from 0.*, found 1.5",
        ),
        (("a", None, None, -1), ValueError, "argument 'correlation': .*to 4294967295, found -1"),
        (("a", None, None, 1 << 32), ValueError, "argument 'correlation': .*found 4294967296"),
    ],
)
def test_what_no_operator_is_opened_with_is_said_by_name(
    arguments: tuple[Any, ...], error: type[Exception], text: str
) -> None:
    with mindprof.profile() as prof, pytest.raises(error, match=text):
        hosts.open_operator(*arguments)
    with pytest.raises(TypeError, match=r"argument 'operator': .*, found 'a'"):
        hosts.close_operator("a")  # type: ignore[arg-type]
    assert len(prof.events()) == 0


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((-1, 8, 8), ValueError, "argument 'address': .*found -1"),
        ((1, 1 << 70, 8), ValueError, f"argument 'bytes': .*found {1 << 70}"),
        ((1, 8, -8), ValueError, "argument 'total': .*found -8"),
        ((1, 8, None), TypeError, "argument 'total': .*, found None"),
    ],
)
def test_what_is_no_memory_is_said_by_name(
    arguments: tuple[Any, ...], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        hosts.report_memory(*arguments)


@pytest.mark.parametrize(
    ("bytes_", "total", "text"),
    [
        (1 << 62, 1 << 62, "argument 'bytes': expected at most 4398046511104 bytes, found 46"),
        (-(1 << 62), 0, "argument 'bytes': expected at most 4398046511104 bytes, found -46"),
        (512, 1 << 62, "argument 'total': expected at most 140737488355328, found 46"),
        (-(1 << 63), 0, "argument 'bytes': expected at most 4398046511104 bytes, found -92"),
    ],
)
def test_amounts_that_no_machine_has_are_refused(bytes_: int, total: int, text: str) -> None:
    with mindprof.profile(profile_memory=True) as prof:
        for _ in range(4):
            with pytest.raises(ValueError, match=text):
                hosts.report_memory(0x1000, bytes_, total)
        hosts.report_memory(0x1000, 1 << 42, 1 << 47)
    (row,) = prof.key_averages()
    assert row.cpu_memory_usage == 1 << 42


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
