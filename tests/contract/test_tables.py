"""Tables of events made by hand: the exact text that torch prints of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from host import torch

util = torch.autograd.profiler_util
DeviceType = torch.profiler.DeviceType

EXPECTED = Path(__file__).with_name("tables.txt").read_text()


def expected(number: str) -> str:
    """Returns the text that stands under `## number`."""
    found = re.search(rf"^## {number}\n(.*?)(?=^## |\Z)", EXPECTED, re.M | re.S)
    assert found, number
    return found.group(1)


def fe(number: int, name: str, start: float, end: float, **more: Any) -> Any:
    given = {"overload_name": "", "stack": [], "flops": 0, **more}
    return util.FunctionEvent(number, name, given.pop("thread", 1), start, end, **given)


def el(events: list[Any], **more: Any) -> Any:
    made = util.EventList(events, **more)
    made._build_tree()
    return made


def family() -> Any:
    return el(
        [
            fe(1, "parent", 0, 100),
            fe(2, "child", 10, 40),
            fe(3, "child2", 40, 90),
            fe(4, "leaf", 50, 60),
            fe(5, "other", 200, 1300),
        ]
    )


def with_device() -> Any:
    outer = fe(1, "aten::mm", 0, 100, use_device="cuda")
    inner = fe(2, "aten::inner", 10, 50, use_device="cuda")
    inner.append_kernel("k1", 0, 30.0)
    on_device = {"thread": 7, "use_device": "cuda", "device_type": DeviceType.CUDA}
    kernel = fe(3, "k1", 60, 90, **on_device)
    note = fe(4, "annot", 55, 95, is_user_annotation=True, **on_device)
    return el([outer, inner, kernel, note], use_device="cuda")


def with_memory() -> Any:
    return el(
        [
            fe(1, "p", 0, 100, cpu_memory_usage=3000, device_memory_usage=2048, use_device="cuda"),
            fe(2, "c", 10, 20, cpu_memory_usage=-1000, use_device="cuda"),
        ],
        profile_memory=True,
        use_device="cuda",
    )


TABLES = {
    "12.1": lambda: family().table(),
    "12.2": lambda: family().table(header="H", top_level_events_only=True),
    "12.3": lambda: family().table(max_name_column_width=8),
    "12.4": lambda: el([fe(1, "a", 0, 100, is_async=True), fe(2, "b", 20, 30)]).table(),
    "12.5": lambda: with_device().table(),
    "12.6": lambda: with_memory().table(),
    "12.7": lambda: el([fe(1, "a", 0, 10, node_id=0), fe(2, "b", 20, 30, node_id=1)]).table(),
    "12.8": lambda: el(
        [fe(1, "a", 0, 10, stack=["f.py(1): foo", "g.py(2): bar"]), fe(2, "b", 20, 30)]
    ).table(),
    "12.9": lambda: el(
        [fe(1, "a", 0, 10, input_shapes=[[100, 200, 300]] * 8), fe(2, "b", 20, 30)]
    ).table(max_shapes_column_width=20),
    "12.10": lambda: el(
        [
            fe(1, "a", 0, 10, flops=999),
            fe(2, "b", 20, 30, flops=0),
            fe(3, "c", 40, 50, flops=1234567),
        ],
        with_flops=True,
    ).table(),
}


@pytest.mark.parametrize("number", TABLES)
def test_the_text_is_torchs(number: str) -> None:
    assert TABLES[number]() == expected(number)


@pytest.mark.differs("its cells of FLOPs and of frames are exchanged")
def test_flops_and_frames_stand_under_their_own_headers() -> None:
    frames = ["f.py(1): foo", "g.py(2): bar"]
    rows = el([fe(1, "a", 0, 10, flops=5, stack=frames, input_shapes=[[1]])], with_flops=True)
    lines = rows.table().splitlines()
    assert lines[1].endswith("  Source Location    Total FLOPs  ")
    assert lines[3].endswith("  f.py(1): foo             5.000  ")
    assert lines[4].endswith("  g.py(2): bar                    ")


@pytest.mark.differs("it raises")
def test_flops_that_are_not_known_are_no_error() -> None:
    rows = el([fe(1, "[memory]", 0, 0, flops=None), fe(2, "b", 0, 1, flops=5)], with_flops=True)
    assert "--" in rows.table()


@pytest.mark.differs("it raises")
def test_a_share_of_nothing_is_no_error() -> None:
    asked = fe(1, "a", 0, 10, use_device="cuda")
    asked.append_kernel("k", 0, 7.0)
    # The kernel itself is not in the list, so the total of device time is zero: torch raises.
    line = el([asked], use_device="cuda").table().splitlines()[3]
    assert line.split()[6:9] == ["7.000us", "NaN", "7.000us"]


@pytest.mark.differs("it forgets open events")
def test_machines_on_one_thread_are_told_apart() -> None:
    # torch forgets an open event when one of another machine comes between.
    built = el(
        [fe(1, "a", 0, 9, node_id=0), fe(2, "b", 1, 2, node_id=1), fe(3, "c", 3, 4, node_id=0)]
    )
    assert [event.cpu_parent and event.cpu_parent.name for event in built] == [None, None, "a"]


def test_names_near_the_limit() -> None:
    for length, shown in ((51, "n" * 51), (52, "n" * 52 + "..."), (60, "n" * 52 + "...")):
        assert el([fe(1, "n" * length, 0, 1)]).table().splitlines()[3].split()[0] == shown


def test_row_limits_and_units() -> None:
    assert len(family().table(row_limit=0).splitlines()) == 5
    assert len(family().table(row_limit=-1).splitlines()) == 10
    assert "0.100ms" in family().table(time_unit="ms")
    assert family().table(time_unit="h") == family().table()


def test_an_unnamed_device_is_an_error() -> None:
    rows = el([fe(1, "k", 0, 10, use_device="cuda", device_type=DeviceType.CUDA)])
    rows[0].use_device = ""
    assert rows.table()
    averages = util.EventList([fe(1, "a", 0, 1), *with_device()])
    with pytest.raises(RuntimeError, match="use_device is None, but there is device performance"):
        averages.table()


def test_numbers() -> None:
    assert [util._format_time(time) for time in (0.0004, 999.9996, 1234.5678, 1e6, -5000)] == [
        "0.000us",
        "1000.000us",
        "1.235ms",
        "1.000s",
        "-5000.000us",
    ]
    assert util._format_time_share(1, 3) == "33.33%"
    assert util._format_time_share(0, 0) == "NaN"
    with pytest.raises(AssertionError, match="Expected time_us == 0 but got 1"):
        util._format_time_share(1, 0)
    assert [util._format_memory(size) for size in (0, 1023, 1024, -1024, 5 << 40)] == [
        "0 B",
        "1023 B",
        "1.00 KB",
        "-1.00 KB",
        "5120.00 GB",
    ]


def test_names() -> None:
    assert util._rewrite_name("ProfilerStep#3") == "ProfilerStep#3"
    assert util._rewrite_name("ProfilerStep#3", with_wildcard=True) == "ProfilerStep*"
    assert util._filter_name("aten::is_leaf")
    assert not util._filter_name("aten::mm")
    assert not util._filter_stack_entry("torch/autograd/__init__.py(1): backward")
    assert util._filter_stack_entry("train.py(1): main")


def test_tables_leave_shares_on_their_rows() -> None:
    events = family()
    assert events[0].self_cpu_percent == -1
    events.table()
    found = [(event.self_cpu_percent, event.total_cpu_percent) for event in events]
    assert found[0] == ("1.67%", "8.33%")
    assert found[4] == ("91.67%", "91.67%")
    assert events[0].total_device_percent == -1
    on_device = with_device()
    on_device.table()
    assert [event.total_device_percent for event in on_device][2:] == ["100.00%", "133.33%"]
    rows = family().key_averages()
    rows.table()
    assert rows[0].self_cpu_percent == "1.67%"


def test_what_was_timed_on_the_host_is_told_by_its_kernels() -> None:
    # The way of older profilers: the event itself is its kernel, and it sums no children.
    outer = fe(1, "a", 0, 10, use_device="cuda", is_legacy=True)
    outer.append_kernel("a", 0, 7.0)
    inner = fe(2, "b", 1, 5, use_device="cuda", is_legacy=True)
    inner.append_kernel("b", 0, 3.0)
    events = el([outer, inner], use_device="cuda")
    assert [event.device_time_total for event in events] == [7.0, 3.0]
    assert [event.self_device_time_total for event in events] == [4.0, 3.0]
    # On the host and counted all the same: the shares are of both.
    events.table()
    assert [event.total_device_percent for event in events] == ["57.14%", "42.86%"]
    assert [row.is_legacy for row in events.key_averages()] == [True, True]
