"""Sections 4.7 and 5.5: what lists of events write, and how numbers are printed."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
from by_hand import el, fe, util

METRICS = [
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
]


def traced() -> Any:
    asked = fe(1, 'a "quoted"', 0.5, 10, trace_name='a "quoted"')
    asked.append_kernel("k", 0, 1.0)
    asked.append_kernel("k", 0, 2.0)
    remote = fe(2, "b", 1, 2, trace_name="b", is_remote=True, node_id=2, thread=1)
    return util.EventList([asked, fe(3, "not traced", 3, 4), remote])


def test_the_trace_of_a_list(tmp_path: Path) -> None:
    path = str(tmp_path / "trace.json")
    traced().export_chrome_trace(path)
    place = {"pid": "CPU functions", "args": {}}
    first = {"name": 'a "quoted"', "ts": 0.5, "tid": 1, **place}
    assert json.loads(Path(path).read_text()) == [
        {**first, "ph": "X", "dur": 9.5},
        {**first, "ph": "s", "id": 0, "cat": "cpu_to_cuda"},
        {**first, "ph": "s", "id": 1, "cat": "cpu_to_cuda"},
        {"name": "b", "ph": "X", "ts": 1, "dur": 1, "tid": " node_id:2, thread_id:1 ", **place},
    ]
    util.EventList(traced(), use_device="xpu").export_chrome_trace(path)
    assert "cpu_to_xpu" in Path(path).read_text()
    util.EventList().export_chrome_trace(path)
    assert Path(path).read_text() == "[]"


def test_the_stacks_of_a_list(tmp_path: Path) -> None:
    path = str(tmp_path / "stacks.txt")
    frames = ["f.py(1): foo bar", "g;h.py(2):\tb\nar ", "main"]
    events = el(
        [
            fe(1, "a", 0, 10.9, stack=frames),
            fe(2, "too short", 20, 20.9, stack=frames),
            fe(3, "without a stack", 30, 40),
            fe(4, "f", 50, 52, stack=["main"], is_python_function=True),
        ]
    )
    events.export_stacks(path, "self_cpu_time_total")
    assert Path(path).read_text() == "main;g_h.py(2):_b_ar_;f.py(1):_foo_bar 10\nmain 2\n"
    for metric in METRICS[1:]:
        events.export_stacks(path, metric)
        assert Path(path).read_text() == ""


def test_other_metrics_are_refused(tmp_path: Path) -> None:
    assert util.EventList().supported_export_stacks_metrics() == METRICS
    for wrong in ("count", "cpu_time_total", ""):
        with pytest.raises(ValueError, match="metric should be one of: \\['self_cpu_time_total'"):
            util.EventList().export_stacks(str(tmp_path / "stacks.txt"), wrong)


def test_slices_and_sums_are_plain_lists() -> None:
    events = el([fe(1, "a", 0, 1), fe(2, "b", 2, 3)], with_flops=True)
    assert type(events[:1]) is type(events + events) is type(events * 2) is list
    copied = copy.copy(events)
    assert (type(copied), copied._with_flops, copied._tree_built) == (util.EventList, True, True)
    assert str(events) == events.table()
    assert repr(events) == f"[{events[0]!r}, {events[1]!r}]"


TIMES = {
    0: "0.000us",
    0.0004: "0.000us",
    0.5: "0.500us",
    -1: "-1.000us",
    999.9994: "999.999us",
    999.9996: "1000.000us",
    1000: "1.000ms",
    1234.5678: "1.235ms",
    999999.9: "1000.000ms",
    1e6: "1.000s",
    1e12: "1000000.000s",
    -5000: "-5000.000us",
    -5e6: "-5000000.000us",
    math.inf: "infs",
}

SIZES = {
    0: "0 B",
    1023: "1023 B",
    1024: "1.00 KB",
    -1024: "-1.00 KB",
    1048575: "1024.00 KB",
    2**30 - 1: "1024.00 MB",
    5 * 2**40: "5120.00 GB",
}


@pytest.mark.parametrize("time", TIMES)
def test_times(time: float) -> None:
    assert util._format_time(time) == TIMES[time]


def test_a_time_that_is_no_number() -> None:
    assert util._format_time(math.nan) == "nanus"


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size: int) -> None:
    assert util._format_memory(size) == SIZES[size]


def test_shares() -> None:
    found = [util._format_time_share(part, 100) for part in (200, -1, 33.333)]
    assert found == ["200.00%", "-1.00%", "33.33%"]


def test_small_classes() -> None:
    interval = util.Interval(2, 5.5)
    assert (interval.start, interval.end, interval.elapsed_us()) == (2, 5.5, 3.5)
    kernel = util.Kernel("k", 1, 2.0)
    assert (kernel._fields, tuple(kernel)) == (("name", "device", "duration"), ("k", 1, 2.0))


class Record:
    def __init__(self, time: int) -> None:
        self.time = time

    def start_ns(self) -> int:
        return self.time


def test_memory_records_are_found_by_time() -> None:
    pairs = [[Record(time), False] for time in (30, 10, 20, 20)]
    found = util.MemRecordsAcc(pairs).in_interval(10, 20)
    assert [pair[0].time for pair in found] == [10, 20, 20]
    assert list(util.MemRecordsAcc([]).in_interval(0, 99)) == []


def test_metadata_is_understood_by_key() -> None:
    texts = {
        "grid": "[1, 2, 3]",
        "registers per thread": "32",
        "est. achieved occupancy %": "12.5",
        "Is asynchronized op": "true",
        "unknown": "x",
    }
    event = util.FunctionEvent(1, "k", 1, 0, 1, extra_meta=texts)
    with pytest.warns(FutureWarning):
        found = event.event_metadata
    assert (found.grid, found.registers_per_thread) == ([1, 2, 3], 32)
    assert (found.est_occupancy_pct, found.is_async, found.stream) == (12.5, True, None)
    with pytest.warns(FutureWarning):
        assert util.FunctionEvent(1, "k", 1, 0, 1, extra_meta={"x": "y"}).event_metadata is None
