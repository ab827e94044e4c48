"""Whatever is done to a recorded list, it says what a list made by hand of the same events says."""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mindprof import EventList, FunctionEvent, _core, profile

from tests.workloads import torch

METRIC = "self_cpu_time_total"


@cache
def recording() -> Any:
    """Returns a few events of every kind: nested, with shapes, stacks, memory, FLOPs and calls."""
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True) as prof:
        x = torch.ones((4, 4), requires_grad=True)
        (x @ x).sum().backward()
    assert prof.profiler is not None
    return prof.profiler.kineto_results


def two_lists() -> tuple[EventList, list[Any]]:
    """Returns a list of the recording, and a plain list of the same events."""
    store = recording().events()
    return EventList(store), list(EventList(store))


class Do:
    """Something that is done to a list, with a name to be shown where it fails."""

    def __init__(self, name: str, action: Callable[[list[Any]], Any]) -> None:
        self.name, self.action = name, action

    def __repr__(self) -> str:
        return self.name


def made_by_hand(number: int) -> FunctionEvent:
    event = FunctionEvent(number, "by hand", 1, number, number + 3.5, stack=["f"], trace_name="h")
    event.overload_name, event.flops, event.input_shapes = "", 2, [[number]]
    return event


HAND_MADE = made_by_hand(3)
places = st.integers(-3, 40)
slices = st.builds(slice, st.none() | places, st.none() | places, st.sampled_from([None, 1]))


def call(method: str, *arguments: Any) -> Callable[[list[Any]], Any]:
    return lambda listed: getattr(listed, method)(*arguments)


def took(event: Any) -> float:
    time: float = event.cpu_time_total
    return time


def within(action: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Returns an action that leaves a list alone which is too short for it."""

    def attempt(listed: list[Any]) -> Any:
        try:
            return action(listed)
        except (IndexError, ValueError) as error:
            return type(error)

    return attempt


READING = [
    Do("len", len),
    Do("first", within(lambda listed: listed[0])),
    Do("copy", lambda listed: listed.copy()),
    Do("plus", lambda listed: listed + [HAND_MADE]),  # noqa: RUF005
    Do("from the right", lambda listed: [HAND_MADE] + listed),  # noqa: RUF005
    Do("twice", lambda listed: listed * 2),
    Do("walk halfway", lambda listed: [one for one, _ in zip(listed, range(5), strict=False)]),
    Do("is in", lambda listed: HAND_MADE in listed),
    Do("index", within(lambda listed: listed.index(HAND_MADE))),
    Do("count", lambda listed: listed.count(HAND_MADE)),
    Do("reversed", lambda listed: list(reversed(listed))),
    Do("not equal", lambda listed: listed != []),
]
CHANGING = [
    Do("append", lambda listed: listed.append(HAND_MADE)),
    Do("extend", lambda listed: listed.extend([HAND_MADE, HAND_MADE])),
    Do("extend by itself", lambda listed: listed.extend(listed[:3])),
    Do("add", call("__iadd__", [HAND_MADE])),
    Do("twice", call("__imul__", 2)),
    Do("sort by name", lambda listed: listed.sort(key=lambda one: one.key)),
    Do("sort by time", lambda listed: listed.sort(key=took, reverse=True)),
    Do("reverse", lambda listed: listed.reverse()),
    Do("remove", within(lambda listed: listed.remove(HAND_MADE))),
    Do("clear", lambda listed: listed.clear()),
]
reading = st.sampled_from(READING)
changing = st.one_of(
    st.sampled_from(CHANGING),
    places.map(lambda at: Do(f"pop {at}", within(lambda listed: listed.pop(at)))),
    places.map(lambda at: Do(f"insert {at}", lambda listed: listed.insert(at, HAND_MADE))),
    places.map(lambda at: Do(f"set {at}", within(call("__setitem__", at, HAND_MADE)))),
    places.map(lambda at: Do(f"del {at}", within(call("__delitem__", at)))),
    slices.map(lambda part: Do(f"set {part}", call("__setitem__", part, [HAND_MADE]))),
    slices.map(lambda part: Do(f"del {part}", call("__delitem__", part))),
)


def by_hand(events: list[Any], like: EventList) -> EventList:
    made = EventList(
        list(events),
        use_device=like._use_device,
        profile_memory=like._profile_memory,
        with_flops=like._with_flops,
    )
    made._tree_built = True
    return made


def row(average: Any) -> dict[str, Any]:
    names = """key count cpu_time_total self_cpu_time_total cpu_memory_usage flops input_shapes
        self_cpu_memory_usage stack scope is_async is_user_annotation overload_name node_id
        p50 max"""
    return {name: rounded(getattr(average, name)) for name in names.split()}


def rounded(value: Any) -> Any:
    """The engine sums nanoseconds where it recorded, and floats where it did not."""
    return round(value, 3) if isinstance(value, float) else value


def said(events: EventList, folder: Path) -> dict[str, Any]:
    """Returns all that a list says and writes."""
    events.export_stacks(folder / "stacks.txt", METRIC)
    events.export_chrome_trace(folder / "trace.json")
    groupings: list[dict[str, Any]] = [
        {},
        {"group_by_input_shapes": True},
        {"group_by_stack_n": 2, "include_python_functions": True},
    ]
    rows = [events.key_averages(**grouping) for grouping in groupings]
    total = events.total_average()
    return {
        "tables": [events.table(row_limit=-1), events.table(sort_by="cpu_time_total")],
        "row tables": [listed.table(sort_by="count") for listed in rows],
        "rows": [[row(one) for one in listed] for listed in rows],
        "total": (total.key, total.count, rounded(total.cpu_time_total), total.flops),
        "self time": rounded(events.self_cpu_time_total),
        "stacks": (folder / "stacks.txt").read_text(),
        "trace": (folder / "trace.json").read_text(),
    }


@settings(deadline=None, max_examples=60)
@given(st.lists(changing | reading, min_size=1, max_size=6))
def test_a_changed_list_says_what_one_made_by_hand_says(steps: list[Do]) -> None:
    compare(steps)


@pytest.mark.parametrize("step", [*READING, *CHANGING], ids=repr)
def test_each_thing_that_is_done_alone(step: Do) -> None:
    compare([step])


def compare(steps: list[Do]) -> None:
    """Does all steps to a recorded list and to a plain one, and compares what they say."""
    recorded, plain = two_lists()
    for step in steps:
        assert step.action(recorded) == step.action(plain), step
    with tempfile.TemporaryDirectory() as folder:
        expected = said(by_hand(plain, recorded), Path(folder))
        assert said(recorded, Path(folder)) == expected
    assert list(recorded) == plain


@settings(deadline=None, max_examples=40)
@given(st.lists(changing | reading, max_size=4))
def test_changed_rows_print_as_ones_made_by_hand(steps: list[Do]) -> None:
    recorded = EventList(recording().events()).key_averages(group_by_input_shapes=True)
    plain = list(EventList(recording().events()).key_averages(group_by_input_shapes=True))
    for step in steps:
        step.action(recorded)
        step.action(plain)
    made = EventList(plain, profile_memory=True, with_flops=True)
    assert recorded.table(row_limit=-1) == made.table(row_limit=-1)


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("touched", [False, True])
def test_a_copied_list_says_the_same(way: str, touched: bool, tmp_path: Path) -> None:
    recorded = EventList(recording().events())
    if touched:
        recorded[3].name = "renamed"
        del recorded[5:8]
    expected = said(recorded, tmp_path)
    copied = COPIES[way](recorded)
    assert type(copied) is EventList
    assert said(copied, tmp_path) == expected
    rows = recorded.key_averages(group_by_input_shapes=True)
    again = COPIES[way](rows)
    assert [row(one) for one in again] == [row(one) for one in rows]
    assert again.table() == rows.table()


@pytest.mark.parametrize("way", COPIES)
def test_a_copied_event_is_one_of_its_own(way: str) -> None:
    event = EventList(recording().events())[4]
    copied = COPIES[way](event)
    assert isinstance(copied, FunctionEvent)
    assert repr(copied) == repr(event)
    for name in ("stack", "input_shapes", "flops", "sequence_nr", "thread", "cpu_time_total"):
        assert getattr(copied, name) == getattr(event, name), name
    copied.name = "another"
    assert event.name != "another"
    by_itself = COPIES[way](made_by_hand(7))
    assert repr(by_itself) == repr(made_by_hand(7))


def test_a_copy_of_several_events_holds_their_recording_once() -> None:
    events = list(EventList(recording().events()))
    one, all_of_them = pickle.dumps(events[:1]), pickle.dumps(events)
    assert len(all_of_them) < len(one) + 40 * len(events)
    loaded = pickle.loads(all_of_them)
    assert loaded[1].cpu_parent in (None, *loaded)
    assert [event.name for event in loaded] == [event.name for event in events]


def test_damage_is_told() -> None:
    with pytest.raises((_core.ProfilerError, ValueError)):
        _core.events_of_trace(b"not a trace", [])
