"""What torch's own tests touch below the public surface: switches, statistics, raw results."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

from host import export, profile, torch, work

ActiveType = torch._C._profiler.ActiveProfilerType


def recorded(**arguments: Any) -> Any:
    with profile(**arguments) as profiler:
        work()
    return profiler


def config(**arguments: Any) -> Any:
    return torch.profiler._ExperimentalConfig(**arguments)


def test_building_the_tree_takes_time_that_is_told() -> None:
    profiler = profile()
    with profiler:
        for _ in range(200):
            work()
    assert profiler.profiler._stats.function_events_build_tree_call_duration_us == 0
    profiler.key_averages()
    assert profiler.profiler._stats.function_events_build_tree_call_duration_us > 0


def test_own_results_can_be_parsed() -> None:
    profiler = recorded(record_shapes=True)
    events = profiler.profiler._parse_kineto_results(profiler.profiler.kineto_results)
    assert [event.name for event in events] == [event.name for event in profiler.events()]


def test_results_say_when_the_trace_starts() -> None:
    profiler = recorded()
    start = profiler.profiler.kineto_results.trace_start_ns()
    assert isinstance(start, int)
    assert start > 10**18


def test_values_of_lists_can_be_left_out(tmp_path: Path) -> None:
    def values() -> list[str]:
        with profile(record_shapes=True) as profiler:
            torch.ones(2, 3)
        events = export(profiler, tmp_path)["traceEvents"]
        (ones,) = [event for event in events if event["name"] == "aten::ones"]
        found: list[str] = ones["args"]["Concrete Inputs"]
        return found

    switch = torch._C._profiler._set_record_concrete_inputs_enabled_val
    assert values() == ["[2, 3]", "", "", "", "False"]
    switch(False)
    try:
        assert values() == ["", "", "", "", "False"]
    finally:
        switch(True)


def test_arrows_to_backward_nodes_can_be_left_out(tmp_path: Path) -> None:
    def arrows() -> int:
        x = torch.ones(2, requires_grad=True)
        with profile() as profiler:
            (x * 2).sum().backward()
        events = export(profiler, tmp_path)["traceEvents"]
        return sum(event.get("cat") == "fwdbwd" for event in events)

    switch = torch._C._profiler._set_fwd_bwd_enabled_val
    assert arrows() == 4
    switch(False)
    try:
        assert arrows() == 0
    finally:
        switch(True)


def test_the_oldest_profiler_says_that_it_is_legacy() -> None:
    active = torch._C._autograd._profiler_type
    assert active() == ActiveType.NONE
    with torch.autograd.profiler_legacy.profile() as profiler:
        assert active() == ActiveType.LEGACY
    assert active() == ActiveType.NONE
    assert profiler.profiler_kind == torch.autograd.ProfilerState.CPU
    with profile():
        assert active() == ActiveType.KINETO


def test_children_can_be_found_alone() -> None:
    util = torch.autograd.profiler_util
    outer = util.FunctionEvent(0, "outer", 1, 0.0, 10.0)
    inner = util.FunctionEvent(1, "inner", 1, 2.0, 5.0)
    events = util.EventList([outer, inner])
    events._populate_cpu_children()
    assert inner.cpu_parent is outer
    assert [child.name for child in outer.cpu_children] == ["inner"]
    assert len(events) == 2


def test_collections_of_garbage_are_recorded(tmp_path: Path) -> None:
    with profile(
        with_stack=True, experimental_config=config(record_python_gc_info=True)
    ) as profiler:
        gc.collect()
    events = export(profiler, tmp_path)["traceEvents"]
    found = [event for event in events if event["name"] == "Python GC"]
    assert len(found) >= 1
    assert {event["cat"] for event in found} == {"python_function"}
    before = len(gc.callbacks)
    with profile(with_stack=True) as profiler:
        gc.collect()
    events = export(profiler, tmp_path)["traceEvents"]
    assert not [event for event in events if event["name"] == "Python GC"]
    assert len(gc.callbacks) == before


def test_other_threads_are_left_out_when_it_is_said(tmp_path: Path) -> None:
    with profile(experimental_config=config(profile_all_threads=False)) as profiler:
        thread = threading.Thread(target=lambda: torch.ones(3).relu())
        thread.start()
        thread.join()
        work()
    names = {event["name"] for event in export(profiler, tmp_path)["traceEvents"]}
    assert "aten::add" in names
    assert "aten::relu" not in names


def test_nothing_ends_after_the_window(tmp_path: Path) -> None:
    for _ in range(20):
        trace = export(recorded(with_stack=True), tmp_path)["traceEvents"]
        (end,) = [event["ts"] for event in trace if event["name"] == "Record Window End"]
        spans = [event for event in trace if event.get("ph") == "X"]
        assert all(event["ts"] + event["dur"] <= end for event in spans)
