"""Events, rows and lists: what they say, and what can be done with them."""

from __future__ import annotations

import copy
import gc
import json
import operator
import pickle
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mindprof import DeviceType, EventList, FunctionEvent, FunctionEventAvg, _core
from mindprof.profiler_util import Interval, Kernel, MemRecordsAcc, StringTable

TRACE = Path(__file__).parents[1] / "goldens" / "cpu-torch2.15" / "cnn-full.trace.json.gz"


def recorded() -> EventList:
    return EventList(_core.Profile.read(TRACE).events())


def event(name: str, start: float, end: float, **more: Any) -> FunctionEvent:
    return FunctionEvent(1, name, 1, start, end, **{"overload_name": "", "flops": 0, **more})


def test_a_recorded_list_is_a_list_that_holds_nothing_until_someone_looks() -> None:
    events = recorded()
    assert isinstance(events, list)
    assert (len(events), list.__len__(events)) == (1593, 0)
    averages = events.key_averages()
    assert averages.table()
    assert (list.__len__(events), list.__len__(averages)) == (0, 0)
    assert events[3].name
    assert list.__len__(events) == 4
    assert len(list(events)) == list.__len__(events) == 1593


def test_walking_hands_out_the_items_of_the_list() -> None:
    events = recorded()
    walked = list(iter(events))
    assert walked[0] is events[0]
    assert walked[-1] is events[-1]
    assert [item.name for item in reversed(events)][::-1] == [item.name for item in walked]


def test_walking_survives_a_change_on_the_way() -> None:
    events = recorded()
    walk = iter(events)
    next(walk)
    events.append("last")
    assert list(walk)[-1] == "last"


@pytest.mark.parametrize(
    "read",
    [
        lambda events: operator.add([], events),
        lambda events: operator.add(events, []),
        lambda events: events[:],
        lambda events: [*events],
        lambda events: events * 1,
        lambda events: list(events),
        lambda events: sorted(events, key=lambda item: item.time_range.start),
        lambda events: events.copy(),
        lambda events: list(reversed(events))[::-1],
        lambda events: (lambda *items: [*items])(*events),
    ],
)
def test_every_way_to_read_a_list_sees_all_items(read: Any) -> None:
    events = recorded()
    items = read(events)
    assert type(items) is list
    assert len(items) == 1593
    assert items == events
    assert events == items
    assert not operator.ne(events, items)


def test_a_changed_list_says_what_it_holds() -> None:
    rows = recorded().key_averages()
    first = rows[0].key
    rows.sort(key=lambda row: row.count, reverse=True)
    lines = rows.table(row_limit=-1).splitlines()
    assert lines[3].split()[0] == rows[0].key
    gone = rows.pop(0)
    assert gone.key not in [line.split()[0] for line in rows.table(row_limit=-1).splitlines()[3:-2]]
    assert any(first in line for line in rows.table(row_limit=-1).splitlines())
    rows.clear()
    assert rows.table() == "No events were recorded.\n"


def test_an_untouched_list_and_one_of_its_items_print_the_same() -> None:
    makers: list[Callable[[], EventList]] = [
        lambda: recorded().key_averages(),
        lambda: recorded().key_averages(group_by_input_shapes=True),
        lambda: recorded().key_averages(group_by_stack_n=3),
        recorded,
    ]
    wishes: list[dict[str, Any]] = [{}, {"sort_by": "cpu_time_total", "row_limit": 7}]
    for make in makers:
        untouched, by_hand = make(), make()
        by_hand.append(by_hand.pop())
        assert by_hand._untouched() is None
        for options in wishes:
            assert by_hand.table(**options) == untouched.table(**options)


def test_averages_of_changed_events_are_those_of_recorded_ones() -> None:
    untouched, by_hand = recorded(), recorded()
    by_hand.append(by_hand.pop())
    for grouping in (
        {},
        {"group_by_input_shapes": True},
        {"group_by_stack_n": 5},
        {"include_python_functions": True},
    ):
        expected = untouched.key_averages(**grouping)
        found = by_hand.key_averages(**grouping)
        assert found.table(row_limit=-1) == expected.table(row_limit=-1)
    assert repr(by_hand.total_average()) == repr(untouched.total_average())


def test_what_is_set_on_an_event_stays_and_counts() -> None:
    events = recorded()
    events[700].name = "renamed"
    assert events[700].name == events[700].key == "renamed"
    assert "renamed" in [row.key for row in events.key_averages(include_python_functions=True)]
    events[3].anything = 1
    assert events[3].anything == 1
    del events[3].anything
    with pytest.raises(AttributeError):
        _ = events[3].anything


def test_what_is_set_on_a_row_shows_in_the_table() -> None:
    rows = recorded().key_averages()
    rows[0].key = "renamed"
    assert "renamed" in rows.table()


def test_handles_are_out_of_the_collectors_sight() -> None:
    events = recorded()
    handles = list(events)
    assert not any(gc.is_tracked(handle) for handle in handles)


def test_recorded_events_are_of_torchs_class() -> None:
    item: Any = recorded()[10]
    assert isinstance(item, FunctionEvent)
    assert item.__class__ is FunctionEvent
    assert repr(item).startswith("<FunctionEvent id=0 name=")
    assert item == recorded_again(item)
    with pytest.raises(AttributeError, match="'FunctionEvent' object has no attribute 'foo'"):
        getattr(item, "foo")  # noqa: B009


def recorded_again(item: Any) -> Any:
    return item.cpu_children[0].cpu_parent if item.cpu_children else item


def test_parents_and_children_know_each_other() -> None:
    for item in recorded():
        for child in item.cpu_children:
            assert child.cpu_parent == item
            assert hash(child.cpu_parent) == hash(item)


def test_rows_are_not_subscriptable() -> None:
    with pytest.raises(TypeError, match="not subscriptable"):
        recorded().key_averages()[0]["key"]  # type: ignore[index]


def test_a_device_type_equals_its_own_name() -> None:
    row = recorded().key_averages()[0]
    assert row.device_type == "CPU"
    assert row.device_type.name == "CPU"
    assert row.device_type != "CUDA"
    assert DeviceType.CUDA != 1
    assert {DeviceType.CUDA: 1}["CUDA"] == 1  # type: ignore[index]
    assert int(DeviceType.PrivateUse1) == 20
    assert str(DeviceType(99)) == "DeviceType.???"
    assert pickle.loads(pickle.dumps(DeviceType.XPU)) == DeviceType.XPU
    with pytest.raises(TypeError):
        _ = DeviceType.CPU < DeviceType.CUDA  # type: ignore[operator]


def test_an_unknown_sort_key_is_an_attribute_error() -> None:
    events = recorded()
    with pytest.raises(AttributeError, match="'FunctionEventAvg' object has no attribute 'colour'"):
        events.key_averages().table(sort_by="colour")
    with pytest.raises(AttributeError, match="'FunctionEvent' object has no attribute 'colour'"):
        events.table(sort_by="colour")
    assert EventList().table(sort_by="colour") == "No events were recorded.\n"
    assert events.table(sort_by="id", row_limit=1)


def test_the_total_of_nothing_is_zero() -> None:
    total = EventList().total_average()
    assert (total.key, total.count, total.cpu_time_total, total.cpu_time) == ("Total", 0, 0, 0.0)
    assert EventList().self_cpu_time_total == 0


def test_averages_of_averages_are_refused() -> None:
    rows = recorded().key_averages()
    with pytest.raises(AssertionError, match="Expected tree to be built"):
        rows.key_averages()
    with pytest.raises(TypeError):
        recorded().key_averages(group_by_stack_n=None)  # type: ignore[arg-type]


def test_a_negative_number_of_frames_cuts_stacks_and_groups_nothing() -> None:
    events = recorded()
    rows = events.key_averages(group_by_stack_n=-1)
    assert [row.key for row in rows] == [row.key for row in events.key_averages()]
    assert any(row.stack for row in rows)


def test_deprecated_names_warn() -> None:
    item = recorded()[0]
    for name in ("cuda_time", "cuda_time_total", "self_cuda_time_total", "self_cuda_memory_usage"):
        with pytest.warns(FutureWarning, match="is deprecated"):
            assert getattr(item, name) == 0
    with pytest.warns(FutureWarning, match="Use `metadata` instead"):
        assert item.event_metadata is None
    with pytest.warns(FutureWarning):
        assert recorded().key_averages()[0].cuda_time == 0


def test_adding_up_by_hand() -> None:
    row = FunctionEventAvg()
    assert row.key is None
    with pytest.raises(AttributeError):
        _ = row.is_user_annotation
    row += event("a", 0, 10, flops=None)
    row.add(event("a", 0, 30, flops=5))
    assert (row.count, row.cpu_time, row.flops) == (2, 20.0, 5)
    assert row.add(row).count == 4
    with pytest.raises(AssertionError, match="Expected keys to match, but got b vs a"):
        row.add(event("b", 0, 1))
    with pytest.raises(AttributeError, match="'int' object has no attribute 'key'"):
        FunctionEventAvg().add(3)  # type: ignore[arg-type]


def test_self_time_is_never_negative() -> None:
    parent, child = event("parent", 0, 10), event("child", 0, 30)
    parent.append_cpu_child(child)
    assert parent.self_cpu_time_total == 0


def test_trees_by_hand() -> None:
    events = EventList(
        [event("a", 0, 100), event("a", 10, 90), event("b", 20, 30), event("c", 100, 100)]
    )
    events[1].append_kernel("k", 0, 7.0)
    events._build_tree()
    assert [item.name for item in events] == ["a", "b", "c"]
    assert events[0].kernels == [Kernel("k", 0, 7.0)]
    assert events[1].cpu_parent is events[0]
    assert events[2].cpu_parent is None
    with pytest.raises(AssertionError, match="There is already a CPU parent event for b"):
        events._build_tree()


def test_copies_keep_the_class_and_slices_do_not() -> None:
    events = recorded()
    copied = copy.copy(events)
    assert type(copied) is EventList
    assert len(copied) == len(events)
    assert copied.key_averages().table() == events.key_averages().table()
    assert type(events[1:3]) is list
    rows = EventList([event("a", 0, 10)], profile_memory=True)
    again = pickle.loads(pickle.dumps(rows))
    assert type(again) is EventList
    assert again._profile_memory
    assert again[0].name == "a"


def test_exports_of_lists(tmp_path: Path) -> None:
    events = EventList(
        [
            event("a", 0, 10, trace_name="a", stack=["f.py(1): foo bar", "main"]),
            event("b", 20, 30),
        ]
    )
    events[0].append_kernel("k", 0, 1.0)
    events.export_chrome_trace(tmp_path / "list.json")
    entries = json.loads((tmp_path / "list.json").read_text())
    assert [entry["ph"] for entry in entries] == ["X", "s"]
    assert entries[1]["cat"] == "cpu_to_cuda"
    events.export_stacks(tmp_path / "stacks.txt", "self_cpu_time_total")
    assert (tmp_path / "stacks.txt").read_text() == "main;f.py(1):_foo_bar 10\n"
    with pytest.raises(ValueError, match="metric should be one of"):
        events.export_stacks(tmp_path / "stacks.txt", "count")


def test_percentiles_are_attributes_and_columns() -> None:
    rows = recorded().key_averages()
    assert "p99" not in rows.table()
    text = rows.table(percentiles=True, row_limit=1)
    assert "CPU p50       CPU p90       CPU p99       CPU max" in text
    row = max(rows, key=lambda row: row.count)
    assert 0 < row.p50 <= row.p90 <= row.p99 <= row.max <= row.cpu_time_total
    assert FunctionEventAvg().p50 is None


@pytest.mark.parametrize("width", [40, 80, 0])
def test_a_table_is_as_wide_as_asked_for(width: int) -> None:
    by_hand = EventList([event("a" * 60, 0, 4)])
    by_hand._tree_built = True
    for rows in (recorded().key_averages(), by_hand.key_averages(), by_hand):
        lines = rows.table(max_width=width or None).splitlines()
        widest = max(len(line.rstrip()) for line in lines)
        assert (widest <= width) == (width > 0)
        assert "Self CPU" in "".join(lines)


def test_a_narrow_table_has_what_it_is_sorted_by() -> None:
    rows = recorded().key_averages()
    assert "CPU time avg" not in rows.table(max_width=60)
    assert "CPU time avg" in rows.table("cpu_time", max_width=60)


def test_shapes_that_are_cut_say_so() -> None:
    one = event("a", 0, 4)
    one.input_shapes = [[64, 1024], [1024, 2048]]
    rows = EventList([one])
    rows._tree_built = True
    averages = rows.key_averages(group_by_input_shapes=True)
    assert "[[64, 1024], ..." in averages.table(max_width=80)
    assert "[[64, 1024], [1024, 2048]]" in averages.table(max_width=200)


@pytest.mark.parametrize("width", [0, -1])
def test_no_width_is_no_limit(width: int) -> None:
    rows = recorded().key_averages()
    assert rows.table(max_width=width) == rows.table()


def test_percentiles_of_rows_made_by_hand() -> None:
    events = EventList([event("a", 0, length) for length in (4, 1, 3, 2)])
    events._tree_built = True
    (row,) = events.key_averages()
    assert (row.p50, row.p90, row.p99, row.max) == (2, 4, 4, 4)
    assert "4.000us" in events.key_averages().table(percentiles=True).splitlines()[3]
    added = FunctionEventAvg()
    for one in events:
        added += one
    assert (added.p50, added.max) == (2, 4)
    added += row
    assert (added.count, added.p50, added.max) == (8, 2, 4)
    # What a row of a recording was made of is not told, so a sum with it has no percentiles.
    other = recorded().key_averages()[0]
    other.key = "a"
    added += other
    assert added.p50 is None


def test_recorded_events_leave_shares_behind_too() -> None:
    events = recorded()
    assert (events[0].self_cpu_percent, events[0].total_device_percent) == (-1, -1)
    line = events.table(row_limit=1).splitlines()[3]
    assert f" {events[0].self_cpu_percent} " in line
    assert f" {events[0].total_cpu_percent} " in line
    assert events[0].total_device_percent == -1
    assert not events._source.changed  # type: ignore[union-attr]
    rows = events.key_averages()
    rows.table()
    assert rows[0].self_cpu_percent.endswith("%")


def test_calls_of_python_functions_are_numbered_in_start_order() -> None:
    calls = [item for item in recorded() if item.is_python_function]
    assert [call.python_id for call in calls] == list(range(1, len(calls) + 1))
    by_number = {call.python_id: call for call in calls}
    assert calls[0].python_parent_id == -1
    for call in calls[1:]:
        caller = by_number[call.python_parent_id]
        # Frames of the framework itself are not shown.
        assert call.stack[0] == caller.name or not _core.is_shown_frame(caller.name)
    modules = {call.name: call.python_module_id for call in calls if call.python_module_id >= 0}
    assert modules["nn.Module: Conv2d_1"] == 1
    other = next(item for item in recorded() if not item.is_python_function)
    assert (other.python_id, other.python_parent_id, other.python_module_id) == (-1, -1, -1)


def test_arrows_join_forward_and_backward() -> None:
    ends = [item for item in recorded() if item.flow_id]
    assert {item.flow_type for item in ends} == {1}
    tails = {item.flow_id: item for item in ends if item.flow_start}
    heads = {item.flow_id: item for item in ends if not item.flow_start}
    assert tails.keys() == heads.keys()
    for number, head in heads.items():
        assert (head.scope, head.sequence_nr) == (1, tails[number].sequence_nr)
    assert (recorded()[0].flow_id, recorded()[0].flow_type, recorded()[0].flow_start) == (
        0,
        0,
        False,
    )


def test_what_flops_leave_out_is_told() -> None:
    events = recorded()
    missing = [row.key for row in events.uncounted_flops()]
    assert "aten::relu" in missing
    assert not {"aten::conv2d", "aten::addmm", "aten::linear"} & set(missing)


def test_plain_values() -> None:
    rows = recorded().key_averages().to_dicts()
    assert rows[0]["key"] == "ProfilerStep*"
    assert rows[0]["device_type"] == "CPU"
    assert json.loads(json.dumps(rows)) == rows
    assert recorded().to_dicts()[5]["start_us"] > 0


def test_small_classes() -> None:
    assert Interval(2, 5).elapsed_us() == 3
    assert StringTable()["ra"] == "ra"

    class Record:
        def __init__(self, time: int) -> None:
            self.time = time

        def start_ns(self) -> int:
            return self.time

    records = [[Record(time), False] for time in (5, 1, 3)]
    found = [pair[0].time for pair in MemRecordsAcc(records).in_interval(1, 3)]
    assert found == [1, 3]


def test_nothing_warns_on_the_usual_way() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        str(recorded().key_averages(group_by_input_shapes=True, group_by_stack_n=2))


class Witness:
    """Something that a test can see die."""


def self_cycle(event: Any) -> None:
    event.me = event


def cycle_of_two(event: Any) -> None:
    other = event.cpu_children[0]
    event.other, other.other = other, event


def cycle_by_a_list(event: Any) -> None:
    event.all = [event.cpu_children[0], {"event": (event,)}]


def cycle_by_an_object(event: Any) -> None:
    event.holder = Witness()
    event.holder.event = event


def cycle_by_the_list_of_events(event: Any) -> None:
    event.around = event.list
    del event.list


@pytest.mark.parametrize(
    "tie",
    [self_cycle, cycle_of_two, cycle_by_a_list, cycle_by_an_object, cycle_by_the_list_of_events],
)
def test_what_is_set_on_handles_is_collected_with_them(tie: Callable[[Any], None]) -> None:
    """A circle from a handle to itself, by way of the store that keeps what is set."""
    events = recorded()
    event: Any = next(event for event in events if event.cpu_children)
    event.list = list(events)
    tie(event)
    event.witness = Witness()
    seen = weakref.ref(event.witness)
    gc.collect()
    assert seen() is not None
    assert event.witness is seen()
    del events, event
    gc.collect()
    assert seen() is None


def test_handles_that_nothing_is_set_on_are_not_followed() -> None:
    event: Any = recorded()[3]
    assert not gc.is_tracked(event)
    event.note = "text"
    assert gc.is_tracked(event)
    event.note = "text again"
    assert event.note == "text again"
