"""Code written against the objects of `torch.profiler` takes ours: events, rows, lists, enums."""

from __future__ import annotations

import copy
import operator
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from mindprof import profiler_util as ours
from torch.autograd import DeviceType  # type: ignore[import-not-found]
from torch.autograd import profiler_util as theirs

# Taken before `install()`, as a program that imports torch first has it.
NAMES = ("EventList", "FunctionEvent", "FunctionEventAvg", "FormattedTimesMixin", "Interval")
CLASSES = {name: getattr(theirs, name) for name in (*NAMES, "Kernel", "MemRecordsAcc")}


@pytest.fixture(name="profile", params=["installed", "imported"])
def _profile(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Yields `torch.profiler.profile` under `install()`, and `mindprof.profile` without it."""
    if request.param == "imported":
        yield mindprof.profile
        return
    mindprof.install()
    yield torch.profiler.profile
    mindprof.uninstall()


def recorded(profile: Callable[..., Any], **options: Any) -> Any:
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as prof:
        x = torch.ones(3, 4)
        torch.add(x, x)
        torch.add(x, x)
    return prof


def equals(one: Any, other: Any) -> list[bool]:
    """Says by every means of Python whether two objects are equal."""
    return [
        one == other,
        other == one,
        not operator.ne(one, other),
        not operator.ne(other, one),
        one in [other],
        other in [one],
        one in {other},
        other in {one},
        {one: True}.get(other, False),
        {other: True}.get(one, False),
    ]


def test_device_types_are_torchs(profile: Callable[..., Any]) -> None:
    prof = recorded(profile)
    found = [item.device_type for item in (*prof.events(), *prof.key_averages())]
    found += [prof.key_averages().total_average().device_type]
    found += [ours.FunctionEvent(0, "a", 1, 0.0, 1.0).device_type, mindprof.DeviceType.CPU]
    assert len(found) > 5
    for device in found:
        assert all(equals(device, DeviceType.CPU))
        assert all(equals(device, mindprof.DeviceType.CPU))
        assert not any(equals(device, DeviceType.CUDA))
        assert not any(equals(device, mindprof.DeviceType.CUDA))
        assert hash(device) == hash(DeviceType.CPU)
        assert isinstance(device, DeviceType)
        assert isinstance(device, mindprof.DeviceType)
        assert device != 0
        assert repr(device) == repr(DeviceType.CPU)
        assert str(device) == str(DeviceType.CPU)
        assert (device.name, device.value, int(device)) == ("CPU", 0, 0)


@pytest.mark.parametrize("name", DeviceType.__members__)
def test_every_device_type_has_torchs_number_and_hash(name: str) -> None:
    own, other = getattr(mindprof.DeviceType, name), getattr(DeviceType, name)
    assert all(equals(own, other))
    assert (own.value, hash(own)) == (other.value, hash(other))
    assert own == name


def test_activities_are_torchs() -> None:
    for name, other in torch.profiler.ProfilerActivity.__members__.items():
        own = getattr(mindprof.ProfilerActivity, name)
        assert all(equals(own, other))
        assert hash(own) == hash(other)
    activity = torch.profiler.ProfilerActivity.CPU
    prof = mindprof.profile(activities=[activity])
    assert prof.activities == {activity}
    assert {activity} == prof.activities


def test_device_types_survive_pickling_and_copies() -> None:
    for device in mindprof.DeviceType.__members__.values():
        for copied in (
            pickle.loads(pickle.dumps(device)),
            copy.copy(device),
            copy.deepcopy(device),
        ):
            assert all(equals(device, copied))
            assert isinstance(copied, DeviceType)
            assert isinstance(copied, mindprof.DeviceType)


def test_torch_takes_a_device_type_of_ours() -> None:
    event = theirs.FunctionEvent(
        0, "a", 1, 0.0, 5.0, use_device="cuda", device_type=mindprof.DeviceType.CUDA
    )
    assert (event.cpu_time_total, event.device_time_total) == (0, 5.0)


def test_events_rows_and_lists_are_torchs(profile: Callable[..., Any]) -> None:
    prof = recorded(profile)
    event, row = prof.events()[0], prof.key_averages()[0]
    assert isinstance(event, CLASSES["FunctionEvent"])
    assert isinstance(event, CLASSES["FormattedTimesMixin"])
    assert not isinstance(event, CLASSES["FunctionEventAvg"])
    assert isinstance(event.time_range, CLASSES["Interval"])
    assert isinstance(event.__class__, type)
    assert issubclass(event.__class__, CLASSES["FunctionEvent"])
    assert isinstance(row, CLASSES["FunctionEventAvg"])
    assert not isinstance(row, CLASSES["FunctionEvent"])
    assert isinstance(prof.events(), CLASSES["EventList"])
    assert isinstance(prof.key_averages(), CLASSES["EventList"])
    assert isinstance(prof.key_averages().total_average(), CLASSES["FunctionEventAvg"])
    assert type(event).__name__ == "FunctionEvent"
    assert type(row).__name__ == "FunctionEventAvg"
    assert isinstance(event, mindprof.FunctionEvent)
    assert isinstance(prof.events(), mindprof.EventList)


def test_objects_made_by_hand_are_torchs() -> None:
    event = ours.FunctionEvent(0, "a", 1, 0.0, 1.0)
    event.append_kernel("k", 0, 2.0)
    assert isinstance(event, CLASSES["FunctionEvent"])
    assert isinstance(event.kernels[0], CLASSES["Kernel"])
    assert isinstance(ours.FunctionEventAvg(), CLASSES["FunctionEventAvg"])
    assert isinstance(ours.EventList(), CLASSES["EventList"])
    assert isinstance(ours.Interval(0, 1), CLASSES["Interval"])
    assert event.kernels[0] == CLASSES["Kernel"]("k", 0, 2.0)


def test_install_leaves_torchs_classes_alone() -> None:
    before = dict(vars(theirs))
    mindprof.install()
    during = dict(vars(theirs))
    mindprof.uninstall()
    assert before == during == dict(vars(theirs))
    assert not isinstance(theirs.FunctionEvent(0, "a", 1, 0.0, 1.0), mindprof.FunctionEvent)


def test_torchs_rows_add_our_events_and_rows(profile: Callable[..., Any]) -> None:
    prof = recorded(profile)
    [row] = [row for row in prof.key_averages() if row.key == "aten::add"]
    total = CLASSES["FunctionEventAvg"]()
    for event in prof.events():
        if event.name == "aten::add":
            total += event
    assert (total.key, total.count) == ("aten::add", 2)
    assert total.cpu_time_total == pytest.approx(row.cpu_time_total)
    assert total.add(row).count == 4
    assert total.device_type == DeviceType.CPU


def test_our_rows_add_torchs_events_and_rows() -> None:
    row = ours.FunctionEventAvg()
    row += theirs.FunctionEvent(0, "a", 1, 0.0, 5.0)
    row += ours.FunctionEvent(1, "a", 1, 5.0, 8.0)
    assert (row.count, row.cpu_time_total, row.max) == (2, 8.0, 5.0)
    other = theirs.FunctionEventAvg().add(theirs.FunctionEvent(0, "a", 1, 0.0, 2.0))
    assert (row.add(other).count, row.cpu_time_total, row.max) == (3, 10.0, None)
    with pytest.raises(AssertionError, match="FunctionEvent or FunctionEventAvg"):
        row.add(theirs.Interval(0, 1))


def test_our_events_take_torchs_as_family() -> None:
    parent, child = ours.FunctionEvent(0, "a", 1, 0, 9), theirs.FunctionEvent(1, "b", 1, 1, 4)
    parent.append_cpu_child(child)
    child.set_cpu_parent(parent)
    assert parent.self_cpu_time_total == 6
    parent.set_cpu_parent(theirs.FunctionEvent(2, "c", 1, 0, 10))
    assert parent.cpu_parent.name == "c"


def test_torchs_list_groups_and_prints_our_events(profile: Callable[..., Any]) -> None:
    prof = recorded(profile, record_shapes=True)
    listed = CLASSES["EventList"](prof.events())
    listed._tree_built = True
    counts = {row.key: row.count for row in listed.key_averages()}
    assert counts == {row.key: row.count for row in prof.key_averages()}
    arguments = {"sort_by": "self_cpu_time_total", "max_name_column_width": 20}
    rows = prof.key_averages()
    expected = rows.table(**arguments)
    assert theirs._build_table(rows, **arguments) == expected
    assert listed.table() == prof.events().table()
    assert listed.total_average().count == len(prof.events())
    assert listed.self_cpu_time_total == pytest.approx(prof.events().self_cpu_time_total)


def test_torchs_list_builds_the_tree_of_our_events(profile: Callable[..., Any]) -> None:
    prof = recorded(profile)
    copies = [copy.copy(event) for event in prof.events()]
    for event in copies:
        event.cpu_parent, event.cpu_children = None, []
    listed = CLASSES["EventList"](copies)
    listed._build_tree()
    parents = [event.cpu_parent and event.cpu_parent.name for event in listed]
    assert parents == [event.cpu_parent and event.cpu_parent.name for event in prof.events()]


def test_our_list_takes_torchs_events() -> None:
    events = [theirs.FunctionEvent(n, "a", 1, 10.0 * n, 10.0 * n + 5) for n in range(3)]
    listed = mindprof.EventList(events)
    listed._build_tree()
    [row] = listed.key_averages()
    assert (row.key, row.count, row.cpu_time_total) == ("a", 3, 15.0)
    assert "15.000us" in listed.key_averages().table()


def pickled(item: Any) -> Any:
    return pickle.loads(pickle.dumps(item))


def test_objects_survive_pickling_and_copies(profile: Callable[..., Any]) -> None:
    prof = recorded(profile, record_shapes=True)
    event, row = prof.events()[0], prof.key_averages()[0]
    for make in (pickled, copy.copy, copy.deepcopy):
        assert isinstance(make(event), CLASSES["FunctionEvent"])
        assert repr(make(event)) == repr(event)
        assert isinstance(make(row), CLASSES["FunctionEventAvg"])
        assert repr(make(row)) == repr(row)
        events = make(prof.events())
        assert isinstance(events, CLASSES["EventList"])
        assert (events._use_device, events._tree_built) == (None, True)
        assert [found.name for found in events] == [found.name for found in prof.events()]


def python(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    # Entries of the path may be relative to the folder of the tests.
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    return subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


LATE = """
import sys
import mindprof
from mindprof.profiler_util import FunctionEvent, EventList
event = FunctionEvent(0, "a", 1, 0.0, 1.0)
before = mindprof.DeviceType.CPU
assert "torch" not in sys.modules and event.device_type == "CPU"
import torch
from torch.autograd import DeviceType, profiler_util as theirs
devices = {mindprof.DeviceType.CPU: 1}
assert devices[DeviceType.CPU] == 1
assert isinstance(event, theirs.FunctionEvent)
assert before == DeviceType.CPU and before == mindprof.DeviceType.CPU
assert isinstance(EventList([event]), theirs.EventList)
assert DeviceType.CPU == FunctionEvent(0, "a", 1, 0.0, 1.0).device_type
with mindprof.profile() as prof:
    torch.ones(2)
assert devices[prof.events()[0].device_type] == 1
assert [e for e in prof.profiler.kineto_results.events() if DeviceType.CPU == e.device_type()]
"""


def test_a_torch_that_comes_later(tmp_path: Path) -> None:
    done = python(LATE, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_without_torch_never_imports_it(tmp_path: Path) -> None:
    program = """
import sys, mindprof
from mindprof.profiler_util import EventList, FunctionEvent
events = EventList([FunctionEvent(0, "a", 1, 0.0, 1.0)])
events._build_tree()
assert {mindprof.DeviceType.CPU: 1}["CPU"] == 1
assert events.key_averages()[0].device_type == mindprof.DeviceType.CPU
assert "torch" not in sys.modules
"""
    done = python(program, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


NOT_OF_MEMORY = (
    "concrete_inputs",
    "flow_id",
    "flow_start",
    "flow_type",
    "input_dtypes",
    "kwinputs",
    "structured_input_shapes",
    "structured_input_strides",
)


def test_memory_events_have_nothing_that_only_operators_have(profile: Callable[..., Any]) -> None:
    with profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, record_shapes=True
    ) as prof:
        x = torch.ones(1000)
        y = x + x
        del x, y
    memory = next(event for event in prof.events() if event.name == "[memory]")
    operator = next(event for event in prof.events() if event.name == "aten::add")
    for name in NOT_OF_MEMORY:
        assert getattr(memory, name) is None, name
        assert getattr(operator, name) is not None, name
    raw = next(e for e in prof.profiler.kineto_results.events() if e.name() == "[memory]")
    assert (raw.flow_id(), raw.flow_start(), raw.dtypes()) == (0, False, [])


def test_vars_of_an_event_are_those_of_torchs(profile: Callable[..., Any]) -> None:
    event = recorded(profile).events()[0]
    found = vars(event)
    assert found.keys() == vars(ours.FunctionEvent(0, "x", 0, 0, 0)).keys()
    assert found["name"] == "aten::ones"
    if hasattr(CLASSES["FunctionEvent"](0, "x", 0, 0, 0), "python_id"):
        assert found.keys() >= vars(CLASSES["FunctionEvent"](0, "x", 0, 0, 0)).keys()


def test_changes_of_events_reach_the_rows(profile: Callable[..., Any]) -> None:
    prof = recorded(profile)
    before = {row.key: row.count for row in prof.key_averages()}
    assert before["aten::add"] == 2
    adds = [event for event in prof.events() if event.name == "aten::add"]
    adds[0].name = "renamed"
    after = {row.key: row.count for row in prof.key_averages()}
    assert after == {**before, "aten::add": 1, "renamed": 1}
    prof.events().clear()
    assert list(prof.key_averages()) == []
