"""torch's operators by the observer, and devices by Kineto beside it.

Without a GPU, torch is told that it can record CUDA: Kineto then starts and stops as usual and has
no events. What it has on a GPU is compared with torch in test_device_links.py.
"""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from mindprof import ProfilerActivity, _core

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


@pytest.fixture(autouse=True)
def _with_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = torch._C._profiler.ProfilerActivity
    both = {groups.CPU, groups.CUDA}
    monkeypatch.setattr(torch.autograd, "_supported_activities", lambda: both)
    monkeypatch.delenv("MINDPROF_TORCH_BACKEND", raising=False)


@pytest.fixture(autouse=True)
def _leaves_nothing() -> Iterator[None]:
    yield
    gc.collect()
    from mindprof._frameworks.torch_sessions import kineto_is_claimed

    assert not kineto_is_claimed()
    assert not torch.autograd._profiler_enabled()
    assert not torch.autograd.profiler._is_profiler_enabled


def names(prof: mindprof.profile) -> list[str]:
    return sorted({row.key for row in prof.key_averages() if row.key.startswith("aten::")})


def add() -> None:
    x = torch.ones(3, 4)
    x.add(x)


ADDED = ["aten::add", "aten::empty", "aten::fill_", "aten::ones"]


def test_operators_come_from_the_observer() -> None:
    options: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    with mindprof.profile(activities=BOTH, **options) as prof:
        add()
    assert names(prof) == ADDED
    event = next(event for event in prof.events() if event.name == "aten::add")
    assert event.input_shapes[0] == [3, 4]
    assert event.cpu_memory_usage == 48
    assert any("test_devices.py" in frame for frame in event.stack)


def test_ranges_of_compiled_code_have_their_inputs() -> None:
    x = torch.ones(3, 4)
    with mindprof.profile(activities=BOTH, record_shapes=True) as prof:
        opened = torch._C._profiler._RecordFunctionFast("fused", [x], {"grid": "g"})
        with opened:
            x.add(x)
    [event] = [event for event in prof.events() if event.name == "fused"]
    assert event.input_shapes == [[3, 4]]
    assert event.kwinputs == {"grid": "g"}
    assert [child.name for child in event.cpu_children] == ["aten::add"]


def test_a_second_recording_has_operators_but_no_devices() -> None:
    inner = mindprof.profile(activities=BOTH)
    with mindprof.profile(activities=BOTH) as outer:
        with pytest.warns(UserWarning, match="device events are recorded exclusively"):
            inner.start()
        add()
        inner.stop()
        add()
    assert names(inner) == names(outer) == ADDED
    count = {row.key: row.count for row in outer.key_averages()}
    assert count["aten::add"] == 2


def test_recordings_of_the_cpu_are_possible_beside_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with (
            mindprof.profile(activities=[ProfilerActivity.CPU]) as first,
            mindprof.profile(activities=BOTH) as second,
            mindprof.profile(activities=[ProfilerActivity.CPU], profile_memory=True) as third,
        ):
            add()
    assert names(first) == names(second) == names(third) == ADDED


def test_devices_alone_have_no_operators() -> None:
    with mindprof.profile(activities=[ProfilerActivity.CUDA]) as prof:
        add()
    assert names(prof) == []


def test_devices_alone_are_recorded_beside_the_observer() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with (
            mindprof.profile(activities=[ProfilerActivity.CPU]) as operators,
            mindprof.profile(activities=[ProfilerActivity.CUDA]) as devices,
        ):
            add()
    assert (names(operators), names(devices)) == (ADDED, [])


def test_a_schedule_prepares_and_records_several_cycles() -> None:
    seen = []
    schedule = mindprof.schedule(wait=1, warmup=1, active=2, repeat=2)
    with mindprof.profile(
        activities=BOTH, schedule=schedule, on_trace_ready=lambda prof: seen.append(names(prof))
    ) as prof:
        for _ in range(8):
            add()
            prof.step()
    assert seen == [ADDED, ADDED]


# Of torch before 2.15, which continues to collect.
@pytest.mark.filterwarnings("ignore:collection continues:UserWarning")
@pytest.mark.parametrize("group", BOTH)
def test_a_group_can_be_paused(group: ProfilerActivity) -> None:
    with mindprof.profile(activities=BOTH) as prof:
        prof.toggle_collection_dynamic(False, [group])
        add()
        prof.toggle_collection_dynamic(True, [group])
        torch.ones(1).mul(2)
    paused = [] if group is ProfilerActivity.CPU else ["aten::add"]
    assert [name for name in names(prof) if name == "aten::add"] == paused
    assert "aten::mul" in names(prof)


def test_it_stops_on_another_thread() -> None:
    prof = mindprof.profile(activities=BOTH, profile_memory=True)
    prof.start()
    add()
    thread = threading.Thread(target=prof.stop)
    thread.start()
    thread.join()
    assert names(prof) == ADDED


def test_a_dropped_recording_releases_kineto() -> None:
    prof = mindprof.profile(activities=BOTH)
    prof.start()
    del prof
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with mindprof.profile(activities=BOTH) as after:
            add()
    assert names(after) == ADDED


def test_a_profiler_of_torch_inside_ends_the_devices_but_not_the_operators() -> None:
    prof = mindprof.profile(activities=BOTH)
    prof.start()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        add()
    add()
    with pytest.warns(UserWarning, match="device events are lost"):
        prof.stop()
    assert names(prof) == ADDED
    assert prof.lost_events == 1


def test_inside_a_profiler_of_torch_there_are_operators_only() -> None:
    prof = mindprof.profile(activities=BOTH)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        with pytest.warns(UserWarning, match="device events are recorded exclusively"):
            prof.start()
        add()
        prof.stop()
    assert names(prof) == ADDED
    assert any(row.key == "aten::add" for row in theirs.key_averages())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_records_operators() -> None:
    with mindprof.profile(activities=BOTH) as prof:
        add()
        child = os.fork()
        if child == 0:
            try:
                with mindprof.profile(activities=[ProfilerActivity.CPU]) as of_child:
                    add()
                os._exit(0 if names(of_child) == ADDED else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    assert names(prof) == ADDED


# Preparing Kineto may hang in a child of a process that uses CUDA.
def test_a_recording_of_devices_alone_is_empty_where_they_are_out_of_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch._C, "_cuda_isInBadFork", lambda: True, raising=False)
    with mindprof.profile(activities=[ProfilerActivity.CUDA]) as prof:
        add()
        assert not _core.kineto_is_active()
    assert names(prof) == []
    with mindprof.profile(activities=BOTH) as both:
        add()
    assert names(both) == ADDED


def test_a_warning_that_is_an_error_leaves_no_recording() -> None:
    with mindprof.profile(activities=BOTH), warnings.catch_warnings():
        warnings.simplefilter("error")
        inner = mindprof.profile(activities=BOTH)
        with pytest.raises(UserWarning, match="device events are recorded exclusively"):
            inner.start()
