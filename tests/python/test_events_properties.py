"""What holds for any events, put together by hand: trees, groups, sums and text."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mindprof import EventList, FunctionEvent, FunctionEventAvg
from mindprof.profiler_util import Interval

names = st.sampled_from(["aten::mm", "aten::add", "naïve 名前", "x" * 60]) | st.text(
    st.characters(exclude_characters="\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), max_size=70
)
"""Any text without a line break: what breaks lines breaks those of a table too, as in torch."""

intervals = st.tuples(st.integers(0, 60), st.integers(0, 30))
shapes = st.lists(st.lists(st.integers(0, 3), max_size=2), max_size=2)


@st.composite
def events(draw: st.DrawFn) -> list[FunctionEvent]:
    made = []
    for number in range(draw(st.integers(0, 15))):
        start, length = draw(intervals)
        made.append(
            FunctionEvent(
                number,
                draw(names),
                draw(st.integers(1, 2)),
                start,
                start + length,
                overload_name=draw(st.sampled_from(["", "Tensor"])),
                input_shapes=draw(shapes),
                stack=draw(st.lists(st.sampled_from(["f", "g"]), max_size=3)),
                cpu_memory_usage=draw(st.integers(-99, 99)),
                is_async=draw(st.booleans()),
                is_user_annotation=draw(st.booleans()),
                flops=draw(st.none() | st.integers(0, 9)),
            )
        )
    return made


groupings = st.fixed_dictionaries(
    {
        "group_by_input_shapes": st.booleans(),
        "group_by_stack_n": st.integers(0, 3),
        "group_by_overload_name": st.booleans(),
    }
)


@settings(deadline=None)
@given(events())
def test_children_lie_inside_their_parents(made: list[FunctionEvent]) -> None:
    built = EventList(made)
    built._build_tree()
    for event in built:
        assert 0 <= event.self_cpu_time_total <= event.cpu_time_total
        for child in event.cpu_children:
            assert child.cpu_parent is event
            assert event.time_range.start <= child.time_range.start
            assert child.time_range.end <= event.time_range.end
            assert child.thread == event.thread
        if event.cpu_parent is not None:
            assert any(child is event for child in event.cpu_parent.cpu_children)


@settings(deadline=None)
@given(events())
def test_a_tree_is_what_a_walk_by_start_gives(made: list[FunctionEvent]) -> None:
    for number, one in enumerate(made):
        # Names of their own, so that no duplicate is merged into its parent.
        one.name = f"{number}"
    expected: dict[int, int | None] = dict.fromkeys(range(len(made)))
    for thread in (1, 2):
        mine = [one for one in made if one.thread == thread and not one.is_async]
        open_ones: list[FunctionEvent] = []
        for one in sorted(mine, key=lambda one: (one.time_range.start, -one.time_range.end)):
            start, end = one.time_range.start, one.time_range.end
            while open_ones and not start < open_ones[-1].time_range.end >= end:
                open_ones.pop()
            expected[one.id] = open_ones[-1].id if open_ones else None
            open_ones.append(one)
    built = EventList(made)
    built._build_tree()
    assert {one.id: one.cpu_parent and one.cpu_parent.id for one in built} == expected


@settings(deadline=None)
@given(events(), groupings)
def test_grouping_partitions_the_events(
    made: list[FunctionEvent], grouping: dict[str, Any]
) -> None:
    built = EventList(made)
    built._build_tree()
    rows = built.key_averages(**grouping)
    assert sum(row.count for row in rows) == len(built)
    counts = Counter(event.key for event in built)
    found: Counter[str] = Counter()
    for row in rows:
        found[row.key] += row.count
    assert found == counts
    for name in ("cpu_time_total", "self_cpu_time_total", "cpu_memory_usage"):
        summed = sum(getattr(row, name) for row in rows)
        assert summed == pytest.approx(sum(getattr(event, name) for event in built))
    total = rows.total_average()
    assert total.count == built.total_average().count == len(built)
    assert total.flops == sum(event.flops or 0 for event in built)


@settings(deadline=None)
@given(events(), groupings)
def test_a_row_is_what_adding_its_events_gives(
    made: list[FunctionEvent], grouping: dict[str, Any]
) -> None:
    built = EventList(made)
    built._build_tree()
    sums: dict[Any, FunctionEventAvg] = {}
    for event in built:
        key = [event.key, event.is_user_annotation]
        if grouping["group_by_input_shapes"]:
            key.append(str(event.input_shapes))
        if grouping["group_by_overload_name"]:
            key.append(event.overload_name)
        key += event.stack[: grouping["group_by_stack_n"]]
        key.append(min(len(event.stack), grouping["group_by_stack_n"]))
        sums.setdefault(tuple(key), FunctionEventAvg()).add(event)
    rows = built.key_averages(**grouping)
    assert [row.key for row in rows] == [row.key for row in sums.values()]
    for row, expected in zip(rows, sums.values(), strict=True):
        assert row.count == expected.count
        assert row.cpu_time_total == pytest.approx(expected.cpu_time_total)
        assert row.self_cpu_memory_usage == expected.self_cpu_memory_usage
        assert row.flops == (expected.flops or 0)


@settings(deadline=None)
@given(events())
def test_lines_are_of_one_length(made: list[FunctionEvent]) -> None:
    for event in made:
        event.overload_name = ""
    lines = EventList(made, with_flops=True, profile_memory=True).table().splitlines()
    if made:
        # As in torch, a header that is wider than its column moves the ones after it.
        del lines[1]
        assert {len(line) for line in lines[:-1]} == {len(lines[0])}


@settings(deadline=None)
@given(events(), st.randoms(use_true_random=False))
def test_the_text_does_not_depend_on_the_order_of_equal_keys(
    made: list[FunctionEvent], random: Any
) -> None:
    # One length, so that no row differs from another of its key but in what was first.
    for one in made:
        one.time_range = Interval(one.time_range.start, one.time_range.start + 5)
        one.input_shapes, one.stack, one.overload_name = [], [], ""
        one.is_async = one.is_user_annotation = False
        one.flops = one.cpu_memory_usage = 0
    shuffled = list(made)
    random.shuffle(shuffled)
    tables = []
    for order in (made, shuffled):
        listed = EventList(order)
        listed._tree_built = True
        rows = EventList(sorted(listed.key_averages(), key=lambda row: row.key))
        tables.append(rows.table(sort_by="count", row_limit=-1))
    assert tables[0] == tables[1]


@settings(deadline=None)
@given(events())
def test_a_row_sums_what_its_events_say(made: list[FunctionEvent]) -> None:
    built = EventList(made)
    built._build_tree()
    for row in built.key_averages():
        mine = [
            event
            for event in built
            if (event.key, event.is_user_annotation) == (row.key, row.is_user_annotation)
        ]
        assert row.count == len(mine)
        for name in ("cpu_time_total", "self_cpu_time_total", "self_cpu_memory_usage"):
            assert getattr(row, name) == pytest.approx(sum(getattr(one, name) for one in mine))
        assert row.max == max(event.cpu_time_total for event in mine)
