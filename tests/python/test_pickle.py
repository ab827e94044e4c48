"""Rows, lists, events and loaded profiles travel as themselves, and are copied likewise."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindprof
import pytest
from mindprof import EventList, FunctionEvent, FunctionEventAvg, LoadedProfile, load

from tests.workloads import torch

GOLDENS = Path(__file__).parents[1] / "goldens"
GPT = GOLDENS / "h200-torch2.11" / "gpt-full.trace.json.gz"
MLP = GOLDENS / "cpu-torch2.15" / "mlp-full.trace.json.gz"

GROUPINGS: list[dict[str, Any]] = [
    {},
    {"group_by_input_shapes": True},
    {"group_by_stack_n": 5},
    {"include_python_functions": True},
]
TABLES: list[dict[str, Any]] = [
    {},
    {"sort_by": "self_cpu_time_total", "row_limit": -1},
    {"sort_by": "cuda_time_total", "row_limit": 7, "time_unit": "us"},
    {"top_level_events_only": True, "row_limit": -1},
    {"percentiles": True, "row_limit": 20, "header": "again"},
]
LINKS = {"cpu_parent", "cpu_children"}


def travelled(one: Any) -> Any:
    return pickle.loads(pickle.dumps(one))


WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": travelled,
    "first protocol": lambda one: pickle.loads(pickle.dumps(one, protocol=0)),
    "deepcopy": copy.deepcopy,
}


def attributes(one: Any) -> dict[str, Any]:
    """Returns all that an event or a row says of itself, other events aside."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        for name in dir(one):
            if name.startswith("_") or name in LINKS:
                continue
            value = getattr(one, name)
            if not inspect.isroutine(value):
                found[name] = value
    if "time_range" in found:
        found["time_range"] = (found["time_range"].start, found["time_range"].end)
    return found


def recorded() -> mindprof.profile:
    with mindprof.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        weight = torch.ones(4, 4, requires_grad=True)
        (weight @ weight).sum().backward()
    prof.add_metadata("model", "small")
    return prof


@pytest.fixture(scope="module")
def gpt() -> LoadedProfile:
    return load(GPT)


def test_a_row_carries_its_own_data_and_not_the_recording(gpt: LoadedProfile) -> None:
    rows = gpt.key_averages()
    assert len(rows) == 155
    assert max(len(pickle.dumps(row)) for row in rows) <= 4_000
    assert len(pickle.dumps(rows)) <= 100_000


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("grouping", GROUPINGS, ids=str)
def test_rows_say_the_same_elsewhere(
    gpt: LoadedProfile, grouping: dict[str, Any], way: str
) -> None:
    rows = gpt.events().key_averages(**grouping)
    again = WAYS[way](rows)
    assert type(again) is EventList
    assert [attributes(row) for row in again] == [attributes(row) for row in rows]
    for options in TABLES:
        assert again.table(**options) == rows.table(**options), options
    assert again.to_dicts() == rows.to_dicts()
    assert again.self_cpu_time_total == rows.self_cpu_time_total
    assert attributes(again.total_average()) == attributes(rows.total_average())


def test_a_row_keeps_what_it_ran_inside_of_and_leaves_what_ran_inside_of_it(
    gpt: LoadedProfile,
) -> None:
    names = ["id", "name", "thread", "scope", "cpu_time_total", "cpu_memory_usage", "sequence_nr"]
    nested = 0
    for row in gpt.key_averages():
        again = travelled(row)
        assert again.cpu_children is None
        assert (again.cpu_parent is None) == (row.cpu_parent is None)
        if row.cpu_parent is not None:
            nested += 1
            for name in names:
                assert getattr(again.cpu_parent, name) == getattr(row.cpu_parent, name), name
    assert nested > 50


def test_a_row_can_be_used_elsewhere(gpt: LoadedProfile) -> None:
    rows = gpt.key_averages()
    again = travelled(rows)
    again.sort(key=lambda row: row.self_cpu_time_total)
    assert [row.key for row in again] == [
        row.key for row in sorted(rows, key=lambda row: row.self_cpu_time_total)
    ]
    row = travelled(rows[3])
    row += travelled(rows[3])
    assert row.count == 2 * rows[3].count
    assert row.p50 is None
    twice = travelled(travelled(rows[3]))
    assert attributes(twice) == attributes(rows[3])


@pytest.mark.parametrize("way", [*WAYS, "copy"])
def test_what_is_set_on_a_row_travels_and_stays_its_own(gpt: LoadedProfile, way: str) -> None:
    row: Any = gpt.key_averages()[0]
    row.note = "mine"
    row.count = 17
    again = {**WAYS, "copy": copy.copy}[way](row)
    assert (again.note, again.count) == ("mine", 17)
    again.count = 3
    assert row.count == 17


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_row_has_its_children(
    gpt: LoadedProfile, copied: Callable[[FunctionEventAvg], FunctionEventAvg]
) -> None:
    for row in gpt.key_averages():
        again = copied(row)
        children = [child.name for child in row.cpu_children]
        assert again.cpu_children is not None
        assert [child.name for child in again.cpu_children] == children


def test_rows_of_events_made_by_hand_leave_them_behind() -> None:
    outer = FunctionEvent(0, "outer", 1, 0.0, 9.0, stack=["f.py(1): f"])
    inner = FunctionEvent(1, "inner", 1, 1.0, 4.0)
    events = EventList([outer, inner])
    events._build_tree()
    rows = travelled(events.key_averages())
    assert [(row.key, row.cpu_parent and row.cpu_parent.name, row.p50) for row in rows] == [
        ("outer", None, 9.0),
        ("inner", "outer", 3.0),
    ]
    assert [row.cpu_children for row in rows] == [None, None]
    assert rows.table() == events.key_averages().table()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", [GPT, MLP], ids=["gpt", "mlp"])
def test_events_say_the_same_elsewhere(path: Path, way: str) -> None:
    events = load(path).events()
    again = WAYS[way](events)
    assert [attributes(event) for event in again] == [attributes(event) for event in events]
    for name in ("cpu_parent", "cpu_children"):
        named = [repr(getattr(event, name)) for event in events]
        assert [repr(getattr(event, name)) for event in again] == named, name
    assert again.table() == events.table()


@pytest.mark.parametrize("way", WAYS)
def test_events_that_were_linked_by_hand_travel_together(way: str) -> None:
    events = load(MLP).events()
    first, second = events[0], events[1]
    first.cpu_children = [second, first]
    second.cpu_parent = first
    again = WAYS[way]([first, second])
    assert again[0].cpu_children == [again[1], again[0]]
    assert again[1].cpu_parent == again[0]
    again[0].name = "another"
    assert first.name != "another"


def test_a_deep_copy_shares_the_recording() -> None:
    events = load(MLP).events()
    events[2].name = "renamed"
    again = copy.deepcopy(events)
    assert again[2].name == "renamed"
    again[2].name = "renamed again"
    assert events[2].name == "renamed"


@pytest.mark.parametrize("way", WAYS)
def test_a_loaded_profile_says_the_same_elsewhere(way: str, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.json"
    recorded().export_chrome_trace(damaged)
    trace = json.loads(damaged.read_text())
    first = next(event for event in trace["traceEvents"] if event["ph"] == "X")
    trace["traceEvents"].append({**first, "name": "backwards", "dur": -3})
    damaged.write_text(json.dumps(trace))
    with pytest.warns(mindprof.RepairWarning):
        profile = load(damaged)
    again = WAYS[way](profile)
    assert repr(again) == repr(profile)
    assert (again.path, again.repairs) == (profile.path, profile.repairs)
    assert again.repairs
    assert (again.metadata, again.loss) == (profile.metadata, profile.loss)
    assert again.metadata["model"] == "small"
    assert again.key_averages().table() == profile.key_averages().table()
    # To the same place, because files say theirs.
    left, right = (
        Path(one.export_chrome_trace(tmp_path / "again.json")).read_bytes()
        for one in (profile, again)
    )
    assert left == right


def test_a_loaded_profile_keeps_what_was_set_on_its_events() -> None:
    profile = load(MLP)
    plain = len(pickle.dumps(profile))
    assert profile.events()[0].name
    assert len(pickle.dumps(profile)) == plain
    profile.events()[0].name = "renamed"
    assert travelled(profile).events()[0].name == "renamed"
    assert copy.deepcopy(profile).events()[0].name == "renamed"


def test_live_rows_and_events_travel() -> None:
    prof = recorded()
    rows = prof.key_averages(group_by_input_shape=True)
    assert [attributes(row) for row in travelled(rows)] == [attributes(row) for row in rows]
    assert travelled(rows).table() == rows.table()
    events = prof.events()
    assert travelled(events).table() == events.table()


def test_an_event_beyond_its_profile_is_refused() -> None:
    event: Any = load(MLP).events()[3]
    make, (store, (is_memory, _)) = event.__reduce__()
    with pytest.raises(ValueError, match="invalid pickle: event 1000000000 is out of range"):
        make(store, (is_memory, 10**9))
