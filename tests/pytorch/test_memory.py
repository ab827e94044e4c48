"""Allocations of a real torch: told as torch's own profiler tells them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]

from tests.pytorch.workloads import workload


def memory_events(prof: Any, path: Path) -> list[dict[str, Any]]:
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    found = [event for event in events if event.get("name") == "[memory]"]
    return sorted(found, key=lambda event: event["ts"])


def record(profile: Any, step: Callable[[], Any]) -> Any:
    activities = [torch.profiler.ProfilerActivity.CPU]
    with profile(activities=activities, profile_memory=True) as prof:
        step()
    return prof


def known_workload(name: str) -> Callable[[], Any]:
    """Returns a step whose blocks torch knows: it tells of no end whose begin was not told."""
    step = workload(name)
    record(torch.profiler.profile, step)
    return step


@pytest.mark.parametrize("name", ["mlp", "cnn", "gpt"])
def test_sequences_are_torchs(name: str, tmp_path: Path) -> None:
    step = known_workload(name)
    theirs = memory_events(record(torch.profiler.profile, step), tmp_path / "theirs.json")
    ours = memory_events(record(mindprof.profile, step), tmp_path / "ours.json")
    sizes = [event["args"]["Bytes"] for event in theirs]
    assert [event["args"]["Bytes"] for event in ours] == sizes
    assert len(sizes) > 20
    changes = [
        [
            event["args"]["Total Allocated"] - events[0]["args"]["Total Allocated"]
            for event in events
        ]
        for events in (theirs, ours)
    ]
    assert changes[0] == changes[1]


def bytes_by_row(profile: Any, step: Callable[[], Any]) -> dict[str, tuple[int, int]]:
    rows = record(profile, step).key_averages()
    return {row.key: (row.cpu_memory_usage, row.self_cpu_memory_usage) for row in rows}


@pytest.mark.parametrize("name", ["mlp", "gpt"])
def test_rows_have_torchs_bytes(name: str) -> None:
    step = known_workload(name)
    theirs, ours = (
        bytes_by_row(profile, step) for profile in (torch.profiler.profile, mindprof.profile)
    )
    # Once CUPTI runs, torch adds runtime calls to a profile of the CPU alone.
    theirs = {key: row for key, row in theirs.items() if not key.startswith("cuda")}
    assert ours.keys() == theirs.keys()
    # Older ones give a block to an operator by rounded times, now and then to the one beside it.
    if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 15):
        assert ours == theirs
    assert sum(own for _, own in ours.values()) == sum(own for _, own in theirs.values())


def test_what_was_there_before_is_not_known(tmp_path: Path) -> None:
    before = torch.ones(64)
    with mindprof.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, profile_memory=True
    ) as prof:
        before.add(1)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    command = [sys.executable, "-m", "mindprof", "memory", str(tmp_path / "trace.json")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    told = subprocess.check_output(command, env=environment, text=True)
    assert " MB as far as known, " in told or " B as far as known, " in told
    assert "as far as known: blocks from before the window are counted to its end" in told
    assert "the trace does not report the memory in use before the window" in told


def test_a_recording_holds_nothing_of_those_before(tmp_path: Path) -> None:
    peaks = []
    for _ in range(3):
        with mindprof.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            record_shapes=True,
            profile_memory=True,
        ) as prof:
            kept = torch.ones(1000)
        # torch does not see that.
        del kept
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        command = [sys.executable, "-m", "mindprof", "memory", "--json"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        told = subprocess.check_output([*command, str(tmp_path / "trace.json")], env=environment)
        (device,) = json.loads(told)
        peaks.append((device["peak_bytes"], device["precision"]))
    assert peaks == [(4000, "at least")] * 3


def test_torchs_own_profiler_works_after_a_recording_of_memory() -> None:
    record(mindprof.profile, lambda: torch.ones(8))
    kept = []
    theirs = record(torch.profiler.profile, lambda: kept.append(torch.ones(100)))
    assert sum(row.self_cpu_memory_usage for row in theirs.key_averages()) == 400


def test_inside_of_torchs_own_profiler_memory_is_not_recorded_and_told_so() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        prof = mindprof.profile(profile_memory=True)
        with pytest.warns(UserWarning, match=r"torch\.profiler is running on this thread"):
            prof.start()
        kept = torch.ones(100)
        prof.stop()
    del kept
    assert [row.key for row in prof.key_averages()].count("aten::ones") == 1
    assert sum(row.self_cpu_memory_usage for row in prof.key_averages()) == 0
    assert "aten::ones" in [row.key for row in theirs.key_averages()]


def test_a_recording_that_ends_on_another_thread_leaves_the_first_one_usable() -> None:
    prof = mindprof.profile(profile_memory=True)
    prof.start()
    kept = torch.ones(100)
    worker = threading.Thread(target=prof.stop)
    worker.start()
    worker.join()
    assert sum(row.self_cpu_memory_usage for row in prof.key_averages()) == 400
    # The slot of this thread is still ours: a second recording uses it, and empties it.
    again = record(mindprof.profile, lambda: kept.clone())
    assert sum(row.self_cpu_memory_usage for row in again.key_averages()) == 0
    theirs = record(torch.profiler.profile, lambda: torch.ones(8))
    assert "aten::ones" in [row.key for row in theirs.key_averages()]


def test_two_recordings_at_once_both_have_the_memory() -> None:
    with mindprof.profile(profile_memory=True) as outer:
        with mindprof.profile(profile_memory=True) as inner:
            kept = torch.ones(100)
        more = torch.ones(50)
    totals = [
        sum(row.self_cpu_memory_usage for row in prof.key_averages()) for prof in (outer, inner)
    ]
    assert totals == [600, 400]
    del kept, more


def test_memory_of_numpy_counts_only_while_it_is_used(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    size = 1_000_000
    arrays = [numpy.zeros(size // 4, dtype=numpy.float32) for _ in range(20)]
    with mindprof.profile(record_shapes=True, profile_memory=True) as prof:
        for array in arrays:
            torch.from_numpy(array).sum()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    command = [sys.executable, "-m", "mindprof", "memory", "--json", str(tmp_path / "trace.json")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    (device,) = json.loads(subprocess.check_output(command, env=environment))
    assert size <= device["peak_bytes"] < 2 * size
    assert device["untimed"] == {"blocks": 20, "bytes": 20 * size}
