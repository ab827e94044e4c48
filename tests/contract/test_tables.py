"""Tables of events made by hand: the exact text that torch prints of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from by_hand import DeviceType, cells, el, fe, util

EXPECTED = Path(__file__).with_name("tables.txt").read_text()


def expected(number: str) -> str:
    """Returns the text that stands under `## number`."""
    found = re.search(rf"^## {number}\n(.*?)(?=^## |\Z)", EXPECTED, re.M | re.S)
    assert found, number
    return found.group(1)


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
def test_b_3_flops_and_frames_stand_under_their_own_headers() -> None:
    frames = ["f.py(1): foo", "g.py(2): bar"]
    rows = el([fe(1, "a", 0, 10, flops=5, stack=frames, input_shapes=[[1]])], with_flops=True)
    lines = rows.table().splitlines()
    assert lines[1].endswith("  Source Location    Total FLOPs  ")
    assert lines[3].endswith("  f.py(1): foo             5.000  ")
    assert lines[4].endswith("  g.py(2): bar                    ")


@pytest.mark.differs("it raises")
def test_b_17_flops_that_are_not_known_are_no_error() -> None:
    rows = el([fe(1, "[memory]", 0, 0, flops=None), fe(2, "b", 0, 1, flops=5)], with_flops=True)
    assert "--" in rows.table()


@pytest.mark.differs("it raises")
def test_b_13_a_share_of_nothing_is_no_error() -> None:
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


def test_b_10_names_near_the_limit() -> None:
    for length, shown in ((51, "n" * 51), (52, "n" * 52 + "..."), (60, "n" * 52 + "...")):
        assert el([fe(1, "n" * length, 0, 1)]).table().splitlines()[3].split()[0] == shown


def test_row_limits_and_units() -> None:
    assert len(family().table(row_limit=0).splitlines()) == 5
    assert len(family().table(row_limit=-1).splitlines()) == 10
    assert "0.100ms" in family().table(time_unit="ms")
    assert family().table(time_unit="h") == family().table()


def test_b_2_an_unnamed_device_is_an_error() -> None:
    rows = el([fe(1, "k", 0, 10, use_device="cuda", device_type=DeviceType.CUDA)])
    rows[0].use_device = ""
    assert rows.table()
    averages = util.EventList([fe(1, "a", 0, 1), *with_device()])
    with pytest.raises(RuntimeError, match="use_device is None, but there is device performance"):
        averages.table()


def test_b_16_numbers() -> None:
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


def test_b_18_tables_leave_shares_on_their_rows() -> None:
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


def test_b_1_the_first_row_names_the_device() -> None:
    first, second = fe(1, "a", 0, 1, use_device="xpu"), fe(2, "b", 2, 3, use_device="cuda")
    first.append_kernel("k", 0, 3.0)
    kernel = fe(3, "k", 4, 5, use_device="cuda", device_type=DeviceType.CUDA, thread=2)
    header = el([first, second, kernel], use_device="cuda").table().splitlines()[1]
    assert "Self XPU    Self XPU %     XPU total  XPU time avg" in header
    with_device = fe(1, "a", 0, 1, use_device="cuda", device_memory_usage=5)
    lines = el([with_device], use_device="cuda", profile_memory=True).table().splitlines()
    # Thirteen letters in a column of twelve: they move what comes after them.
    assert len(lines[1]) == len(lines[0]) + 1


def test_b_3_the_row_of_a_stack_is_above_its_callers() -> None:
    lines = el([fe(1, "a", 0, 1, stack=["f.py(1): f", "g.py(2): g"])]).table().splitlines()
    assert lines[3].rstrip().endswith("  f.py(1): f")
    assert lines[4].strip() == "g.py(2): g"
    assert lines[3].index("f.py") == lines[4].index("g.py") == lines[1].index("Source")


def test_b_4_a_blank_row_follows_every_row_once_there_are_stacks() -> None:
    lines = el([fe(1, "a", 0, 1, stack=["f"]), fe(2, "b", 2, 3)]).table().splitlines()
    assert [line.split()[:1] for line in lines[3:7]] == [["a"], [], ["b"], []]
    assert len(lines[4]) == len(lines[0])


def test_b_10_without_a_limit_names_are_whole() -> None:
    name = "n" * 200
    event = fe(1, name, 0, 1, overload_name="o" * 90)
    assert cells(el([event]).table(max_name_column_width=None))[:2] == [name, "o" * 90]
    assert cells(el([event]).table(max_name_column_width=3))[:2] == ["...", "..."]
    assert cells(el([event]).table())[1] == "o" * 52 + "..."


def test_b_11_shapes_are_cut_without_a_mark() -> None:
    rows = el([fe(1, "a", 0, 1, input_shapes=[[100, 200], [300]])])
    assert rows.table(max_shapes_column_width=9).splitlines()[3].endswith("  [[100, 20  ")
    assert (
        rows.table(max_shapes_column_width=None).splitlines()[3].endswith("[[100, 200], [300]]  ")
    )


def test_b_12_sources_keep_their_ends() -> None:
    rows = el([fe(1, "a", 0, 1, stack=["folder/module.py(123): function"])])
    assert rows.table(max_src_column_width=15).splitlines()[3].endswith("  ...3): function  ")
    assert rows.table(max_src_column_width=3).splitlines()[3].endswith("  ion  ")


def test_b_13_shares_are_of_all_rows() -> None:
    rows = el([fe(1, "a", 0, 30), fe(2, "b", 30, 40), fe(3, "c", 5, 6)])
    table = rows.table(row_limit=1)
    assert cells(table)[1:5] == ["72.50%", "29.000us", "75.00%", "30.000us"]
    nothing = el([fe(1, "a", 0, 0)]).table()
    assert (cells(nothing)[1], cells(nothing)[3]) == ("NaN", "NaN")


def test_b_14_asynchronous_rows_have_a_bare_zero() -> None:
    table = el([fe(1, "a", 0, 9, is_async=True), fe(2, "b", 0, 1)]).table()
    assert cells(table)[1:5] == ["0.00%", "0.000us", "0", "9.000us"]


def test_b_15_device_shares_are_of_work_and_not_of_ranges() -> None:
    on_device = {"thread": 7, "use_device": "cuda", "device_type": DeviceType.CUDA}
    work = [fe(1, "k1", 0, 30, **on_device), fe(2, "k2", 30, 40, **on_device)]
    note = fe(3, "range", 0, 60, is_user_annotation=True, **on_device)
    table = el([*work, note], use_device="cuda").table()
    assert [cells(table, row)[7] for row in range(3)] == ["75.00%", "25.00%", "150.00%"]
    assert table.endswith("Self CUDA time total: 40.000us\n")


@pytest.mark.parametrize(
    ("flops", "header", "cell"),
    [
        ([999], "Total FLOPs", "999.000"),
        ([1000], "Total KFLOPs", "1.000"),
        ([123_456_789, 10**12], "Total MFLOPs", "123.457"),
        ([10**18], "Total PFLOPs", "1000.000"),
        ([5, 10**9], "Total FLOPs", "5.000"),
    ],
)
def test_b_17_the_smallest_count_chooses_the_unit(flops: list[int], header: str, cell: str) -> None:
    made = [fe(number, "a", number, number + 1, flops=count) for number, count in enumerate(flops)]
    table = el(made, with_flops=True).table()
    assert table.splitlines()[1].rstrip().endswith(f"  {header}")
    assert cells(table)[-1] == cell


def test_arguments_of_empty_lists_are_not_looked_at() -> None:
    assert "a" not in util.EventList().table(sort_by="nothing of the kind").split()


def test_sort_by_takes_any_attribute_and_any_device() -> None:
    events = [fe(1, "a", 0, 3, use_device="cuda"), fe(2, "b", 5, 6, use_device="cuda")]
    events[1].append_kernel("k", 0, 5.0)
    kernel = fe(3, "k", 7, 8, use_device="cuda", device_type=DeviceType.CUDA, thread=2)
    rows = el([*events, kernel], use_device="cuda")
    for name, first in {
        "name": "k",
        "id": "k",
        "cpu_time_total": "a",
        "device_time_total": "b",
        "self_cuda_time_total": "b",
        "xpu_time_total": "b",
        "privateuse1_time": "b",
    }.items():
        assert cells(rows.table(sort_by=name))[0] == first, name
    with pytest.raises(AttributeError, match="'FunctionEvent' object has no attribute 'foo'"):
        rows.table(sort_by="foo")
    with pytest.raises(AttributeError, match="'FunctionEventAvg' object has no attribute 'foo'"):
        rows.key_averages().table(sort_by="foo")
