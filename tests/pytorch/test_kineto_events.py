"""`kineto_results.events()` lists raw events with the accessors of torch's `_KinetoEvent`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from torch.autograd import DeviceType  # type: ignore[import-not-found]
from torch.profiler import record_function  # type: ignore[import-not-found]

from tests.pytorch.made_collection import MadeCollection
from tests.pytorch.one_collection import OVERHEAD, take
from tests.pytorch.workloads import workload

KINETO_EVENT = torch._C._autograd._KinetoEvent
TELLS_ORIGIN = hasattr(KINETO_EVENT, "is_python_function")
ACCESSORS = [name for name in dir(KINETO_EVENT) if not name.startswith("_")]

# Measured, or numbered from where the last recording ended. torch numbers threads by process.
TIMES = {"start_ns", "end_ns", "duration_ns"}
THREADS = {"start_thread_id", "end_thread_id", "fwd_thread_id"}
NUMBERS = {"correlation_id", "external_id", "sequence_nr", "flow_id"} | THREADS
SAME = [name for name in ACCESSORS if name not in TIMES | NUMBERS]

torchs_profile = torch.profiler.profile


@pytest.fixture(name="installed")
def _installed() -> Iterator[None]:
    mindprof.install()
    yield
    mindprof.uninstall()


def program() -> Callable[[], Any]:
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 2)

    def step() -> None:
        with record_function("range"):
            x = torch.ones(3, 4)
            model(x).sum().backward()
        joined = torch.cat([x, x], dim=1)
        torch.add(joined, joined, alpha=2)
        joined.view(4, 6).to(torch.float64)

    for _ in range(2):
        step()
    return step


def results(prof: Any) -> Any:
    return prof.profiler.kineto_results


def raw(profile: Any, step: Callable[[], Any], **options: Any) -> Any:
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as prof:
        step()
    return results(prof).events()


def numbered(values: list[int]) -> list[int]:
    """Renumbers by rank, where zero and -1 say that there is no number."""
    ranks = {value: rank for rank, value in enumerate(sorted({v for v in values if v > 0}), 1)}
    return [ranks.get(value, value) for value in values]


@pytest.mark.parametrize("profile", [torch.profiler.profile, mindprof.profile])
def test_numbers_of_operators_go_on_from_one_recording_to_the_next(profile: Any) -> None:
    step = program()
    numbers = [
        event.correlation_id()
        for _ in range(3)
        for event in raw(profile, step)
        if event.name().startswith("aten::")
    ]
    assert len(numbers) == len(set(numbers)) > 30
    assert 0 < min(numbers) <= max(numbers) < 2**32 - 1


def test_a_number_is_the_same_in_events_and_traces(tmp_path: Path) -> None:
    step = program()
    raw(mindprof.profile, step)
    with mindprof.profile() as prof:
        step()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    written = [e["args"]["External id"] for e in events if e.get("cat") == "cpu_op"]
    listed = [e.correlation_id() for e in results(prof).events() if e.activity_type() == "cpu_op"]
    assert sorted(written) == sorted(listed)
    shown = {e.id: e.name for e in prof.events() if e.name.startswith("aten::")}
    names = {e.correlation_id(): e.name() for e in results(prof).events()}
    assert {number: names[number] for number in shown} == shown


OPTIONS = [
    {},
    {"record_shapes": True},
    {"profile_memory": True},
    {"record_shapes": True, "with_flops": True, "profile_memory": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "+".join(options) or "plain")
def test_every_accessor_has_torchs_value_and_type(options: dict[str, Any]) -> None:
    step = program()
    expected, found = raw(torchs_profile, step, **options), raw(mindprof.profile, step, **options)
    assert [event.name() for event in found] == [event.name() for event in expected]
    for accessor in SAME:
        values = [getattr(event, accessor)() for event in found]
        assert values == [getattr(event, accessor)() for event in expected], accessor
    for accessor in NUMBERS & set(ACCESSORS):
        values, others = ([getattr(e, accessor)() for e in events] for events in (found, expected))
        assert numbered(values) == numbered(others), accessor
    for accessor in ACCESSORS:
        kinds, others = (
            [type(getattr(e, accessor)()) for e in events] for events in (found, expected)
        )
        if accessor == "device_type":
            assert all(issubclass(kind, DeviceType) for kind in kinds)
        else:
            assert kinds == others, accessor


@pytest.mark.parametrize("name", ["mlp", "cnn", "gpt"])
def test_workloads_have_torchs_events(name: str) -> None:
    step = workload(name)
    found = raw(mindprof.profile, step)
    # Once CUPTI runs, torch adds runtime calls to a profile of the CPU alone.
    expected = [e for e in raw(torchs_profile, step) if not e.name().startswith("cuda")]
    for accessor in ("name", "scope", "is_async", "is_user_annotation", "device_index"):
        values = [getattr(event, accessor)() for event in found]
        assert values == [getattr(event, accessor)() for event in expected], accessor
    for accessor in ("correlation_id", "fwd_thread_id", "sequence_nr"):
        values, others = ([getattr(e, accessor)() for e in events] for events in (found, expected))
        assert numbered(values) == numbered(others), accessor


def test_times_are_those_of_the_events() -> None:
    with mindprof.profile(profile_memory=True) as prof:
        torch.ones(3) + 1
    zero = results(prof).trace_start_ns()
    shown = {event.id: event for event in prof.events()}
    seen = 0
    for event in results(prof).events():
        assert zero <= event.start_ns() <= event.end_ns()
        assert event.duration_ns() == event.end_ns() - event.start_ns()
        if event.correlation_id() in shown and event.correlation_id() != 0:
            same = shown[event.correlation_id()]
            assert same.name == event.name()
            assert same.time_range.start == (event.start_ns() - zero) / 1000
            seen += 1
    assert seen == len([event for event in prof.events() if event.name != "[memory]"]) > 0
    starts = [event.start_ns() for event in results(prof).events()]
    assert starts == sorted(starts)


def test_the_list_is_a_sequence() -> None:
    events = raw(mindprof.profile, program())
    names = [event.name() for event in events]
    assert len(names) == len(events) > 10
    assert [events[n].name() for n in range(len(events))] == names
    assert events[-1].name() == names[-1]
    assert [event.name() for event in events[2:-2]] == names[2:-2]
    assert [event.name() for event in events[::-3]] == names[::-3]
    assert [event.name() for event in reversed(events)] == names[::-1]
    assert events[1:1] == []
    assert isinstance(events[:2], list)
    assert events[3] == events[3]
    assert events[3] in events
    assert events[3] != events[4]
    assert len(set(events)) == len(events)
    assert [event.name() for event in list(events)] == names
    for index in (len(events), -len(events) - 1):
        with pytest.raises(IndexError, match="list index out of range"):
            events[index]
    with pytest.raises(TypeError):
        events["a"]


def test_the_list_of_shown_events_is_as_long_as_before() -> None:
    with mindprof.profile(profile_memory=True) as prof:
        torch.ones(3) + 1
    raws = results(prof).events()
    inside = [event for event in raws if event.name() == "[memory]"]
    assert len(prof.events()) < len(raws)
    assert len(inside) >= 2
    assert len(list(prof.events())) == len(prof.events())


def test_a_changed_event_leaves_its_raw_event_alone() -> None:
    with mindprof.profile() as prof:
        torch.ones(3)
    events = results(prof).events()
    prof.events()[0].name = "changed"
    assert events[0].name() == "aten::ones"


def test_raw_stacks_have_every_frame() -> None:
    with mindprof.profile(with_stack=True) as prof:
        torch.ones(3)
    [event] = [e for e in results(prof).events() if e.name() == "aten::ones"]
    assert any("test_raw_stacks_have_every_frame" in frame for frame in event.stack())
    calls = [e for e in results(prof).events() if e.is_python_function()]
    if not calls and not hasattr(torch._C._autograd._KinetoEvent, "is_python_function"):
        pytest.skip("the collector of this torch has no raw events of Python calls")
    assert {call.activity_type() for call in calls} == {"python_function"}
    assert all(call.python_id() >= 0 for call in calls)


def test_steps_keep_their_numbers() -> None:
    with mindprof.profile(schedule=mindprof.schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
        for _ in range(3):
            torch.ones(3)
            prof.step()
    names = {event.name() for event in results(prof).events()}
    assert {"ProfilerStep#1", "ProfilerStep#2"} <= names


@pytest.mark.usefixtures("installed")
def test_results_save_a_trace(tmp_path: Path) -> None:
    with torch.profiler.profile() as prof:
        torch.ones(3)
    results(prof).save(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert "aten::ones" in [event.get("name") for event in events]


def test_an_end_on_another_thread_is_refused() -> None:
    import threading

    with mindprof.profile() as prof:
        handle = mindprof.record_function("elsewhere")
        handle.__enter__()
        ender = threading.Thread(target=handle.__exit__, args=(None, None, None))
        ender.start()
        ender.join()
    [event] = [e for e in results(prof).events() if e.name() == "elsewhere"]
    assert event.is_async()
    assert event.start_thread_id() == 1
    with pytest.raises(RuntimeError, match=r"end_thread_id\(\) of \"elsewhere\" is not recorded"):
        event.end_thread_id()


def test_parsing_raw_results_of_torch_takes_a_timeout() -> None:
    with torchs_profile(activities=[torch.profiler.ProfilerActivity.CPU]) as other:
        torch.ones(3)
    with mindprof.profile() as prof:
        torch.ones(3)
    parser: Any = prof.profiler
    parse = parser._parse_kineto_results
    for result in (results(other), results(prof)):
        for arguments in ({}, {"timeout_s": None}, {"timeout_s": 60.0}):
            assert "aten::ones" in [event.name for event in parse(result, **arguments)]
        assert parse(result, timeout_s=0.0) == []
        with pytest.raises(ValueError, match="timeout_s must be non-negative"):
            parse(result, timeout_s=-1.0)


torchs_parser = torch.autograd.profiler.profile


def test_torchs_own_parser_reads_our_results() -> None:
    options: dict[str, Any] = {
        "record_shapes": True,
        # Older releases give memory to an operator by rounded times.
        "profile_memory": TELLS_ORIGIN,
        "with_flops": True,
    }
    step = program()
    with mindprof.profile(**options) as prof:
        step()
    parsed = torchs_parser(**options)._parse_kineto_results(results(prof))
    events = torch.autograd.profiler_util.EventList(parsed, profile_memory=True, with_flops=True)
    events._build_tree()
    assert [event.name for event in events] == [event.name for event in prof.events()]
    for ours, theirs in zip(prof.events(), events, strict=True):
        for name in ("cpu_memory_usage", "input_shapes", "sequence_nr", "flops", "thread", "scope"):
            assert getattr(ours, name) == getattr(theirs, name), (ours.name, name)
        if ours.name != "[memory]":
            assert ours.id == theirs.id
    assert [summed(row) for row in events.key_averages()] == [
        summed(row) for row in prof.key_averages()
    ]


def summed(row: Any) -> tuple[Any, ...]:
    times = (round(row.cpu_time_total, 3), round(row.self_cpu_time_total, 3))
    return (row.key, row.count, row.cpu_memory_usage, row.self_cpu_memory_usage, row.flops, *times)


OF_DEVICES = ("device_type", "linked_correlation_id", "start_ns", "end_ns", "scope", "sequence_nr")


@pytest.mark.parametrize("seed", range(5))
def test_events_of_devices_are_those_of_torchs_collector(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDPROF_TORCH_BACKEND", "kineto")
    made: Any = MadeCollection(seed, TELLS_ORIGIN)
    prof = take(made, record_shapes=True).ours
    found, expected = results(prof).events(), made.events()
    assert results(prof).trace_start_ns() == made.trace_start_ns()
    compared = ("name", *OF_DEVICES, *(["activity_type"] if TELLS_ORIGIN else []))
    for accessor in compared:
        assert counted(found, accessor) == counted(expected, accessor), accessor
    # What the device's profiler did itself is numbered anew.
    on_device, theirs = (
        [event for event in events if event.name() not in OVERHEAD] for events in (found, expected)
    )
    for accessor in ("correlation_id", "device_index"):
        assert counted(on_device, accessor) == counted(theirs, accessor), accessor


def counted(events: Any, accessor: str) -> Counter[tuple[str, Any]]:
    return Counter((event.name(), getattr(event, accessor)()) for event in events)
