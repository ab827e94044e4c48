"""Section 2.10: `toggle_collection_dynamic`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from host import (
    CPU,
    CUDA,
    counts,
    events,
    export,
    follow,
    mark,
    names,
    profile,
    record,
    work,
)
from host import torch as host_torch


def test_p_100_arguments_are_checked() -> None:
    with profile() as profiler:
        with pytest.raises(TypeError, match="'int' object is not iterable"):
            profiler.toggle_collection_dynamic(True, 3)
        text = r"_toggle_collection_dynamic\(\): incompatible function arguments."
        with pytest.raises(TypeError, match=text):
            profiler.toggle_collection_dynamic(True, [3])
        profiler.toggle_collection_dynamic(False, [])
        mark("still on")
    assert counts(profiler) == {"still on": 1}


def test_p_101_collection_stops_at_once_and_goes_on() -> None:
    with profile() as profiler:
        mark("before")
        profiler.toggle_collection_dynamic(False, [CPU])
        mark("off")
        work()
        profiler.toggle_collection_dynamic(True, [CPU])
        mark("after")
    assert counts(profiler) == {"before": 1, "after": 1}


def test_p_101_an_open_range_closes_as_usual(tmp_path: Path) -> None:
    with profile() as profiler:
        with record("outer"):
            profiler.toggle_collection_dynamic(False, [CPU])
            work()
            mark("off")
        profiler.toggle_collection_dynamic(True, iter([CPU]))
        mark("after")
    trace = export(profiler, tmp_path)
    assert names(trace) == {"outer": 1, "after": 1}
    outer, after = sorted(events(trace), key=lambda event: event["ts"])
    assert "finished" not in outer["args"]
    assert outer["ts"] + outer["dur"] <= after["ts"]


def memory_rows(profiler: Any) -> int:
    """Returns how many allocations stand alone."""
    return counts(profiler).get("[memory]", 0)


def test_p_102_memory_is_recorded_all_the_same() -> None:
    with profile(profile_memory=True) as profiler:
        profiler.toggle_collection_dynamic(False, [CPU])
        kept = work()
        profiler.toggle_collection_dynamic(True, [CPU])
    assert memory_rows(profiler) > 0
    assert kept is not None


def test_p_103_nothing_is_warned_of_in_python() -> None:
    with warnings.catch_warnings(record=True) as warned, profile() as profiler:
        warnings.simplefilter("always")
        for activities in ([CPU], [CUDA], [CPU, CUDA]):
            profiler.toggle_collection_dynamic(False, activities)
            profiler.toggle_collection_dynamic(True, activities)
    assert warned == []


def test_p_104_repeating_is_harmless_and_stop_while_off_is_fine() -> None:
    with profile() as profiler:
        profiler.toggle_collection_dynamic(True, [CPU])
        mark("on")
        profiler.toggle_collection_dynamic(False, [CPU])
        assert host_torch.autograd._profiler_enabled()
        mark("off")
    assert counts(profiler) == {"on": 1}


def test_p_105_outside_of_a_recording() -> None:
    text = "Expected tls_state to be true, but got false."
    profiler = profile(schedule=follow("NWS"))
    profiler.toggle_collection_dynamic(False, [CPU])
    profiler.start()
    profiler.step()
    with pytest.raises(RuntimeError, match=text):
        profiler.toggle_collection_dynamic(False, [CPU])
    profiler.step()
    profiler.stop()
    with pytest.raises(RuntimeError, match=text):
        profiler.toggle_collection_dynamic(True, [CPU])


def test_p_106_the_next_profiler_begins_on() -> None:
    with profile() as profiler:
        profiler.toggle_collection_dynamic(False, [CPU])
    with profile() as another:
        mark("on")
    assert counts(profiler) == {}
    assert counts(another) == {"on": 1}


@pytest.mark.differs("torch's outer profiler ends without events")
def test_other_profilers_are_not_touched() -> None:
    with profile() as outer, profile() as inner:
        inner.toggle_collection_dynamic(False, [CPU])
        mark("off in one")
        inner.toggle_collection_dynamic(True, [CPU])
    assert counts(inner) == {}
    assert counts(outer) == {"off in one": 1}
