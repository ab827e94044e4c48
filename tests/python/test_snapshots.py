"""Memory snapshots of every pickle protocol, made up to torch's schema: new and old ones."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import mindprof
import pytest

FRAME = {"name": "step", "filename": "/home/me/train.py", "line": 7}
MIB = 1 << 20


def entry(action: str, addr: int, size: int, time_us: int, **more: Any) -> dict[str, Any]:
    frames = [FRAME] if action == "alloc" else []
    found = {"action": action, "addr": addr, "size": size, "stream": 0, "frames": frames}
    return {**found, "time_us": time_us, **more}


def snapshot() -> dict[str, Any]:
    """A segment of 8 MiB: 2 MiB from before the history, 2 MiB of a step, 4 MiB that it freed."""
    frames = [FRAME, FRAME]
    base = 1 << 47
    blocks: list[dict[str, Any]] = [
        {"address": base, "size": 2 * MIB, "state": "active_allocated", "frames": []},
        {"address": base + 2 * MIB, "size": 2 * MIB, "state": "active_allocated", "frames": frames},
        {"address": base + 4 * MIB, "size": 4 * MIB, "state": "inactive", "frames": []},
    ]
    for block in blocks:
        block["requested_size"] = block["size"]
    trace = [
        entry("alloc", base + 2 * MIB, 2 * MIB, 1_000),
        entry("alloc", base + 4 * MIB, 4 * MIB, 1_010),
        entry("free_requested", base + 4 * MIB, 4 * MIB, 1_020),
        entry("free_completed", base + 4 * MIB, 4 * MIB, 1_030),
        entry("snapshot", 0, 4 * MIB, 1_040, user_metadata="", compile_context="N/A"),
    ]
    segment = {
        "device": 1,
        "address": base,
        "total_size": 8 * MIB,
        "stream": 1 << 63,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "blocks": blocks,
    }
    settings = {"expandable_segments": False, "garbage_collection_threshold": 0.5}
    return {
        "segments": [segment],
        "device_traces": [[], trace],
        "allocator_settings": settings,
        "external_annotations": [{"stage": "START", "name": "step", "time_us": 1_000}],
        "some_bytes": b"\0" * 300,
        "a_set": {1, 2},
    }


def read(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mindprof", "memory", str(path), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def answer(path: Path) -> dict[str, Any]:
    done = read(path, "--json")
    assert done.returncode == 0, done.stderr
    [device] = json.loads(done.stdout)["devices"]
    assert isinstance(device, dict)
    return device


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_is_read(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "snapshot.pickle"
    data = snapshot()
    if protocol < 4:
        # A set of these protocols is a call.
        del data["a_set"]
    if protocol < 3:
        # And so are bytes.
        del data["some_bytes"]
    path.write_bytes(pickle.dumps(data, protocol))
    device = answer(path)
    assert device["device"] == 1
    assert device["peak"] == {
        "time_us": 10,
        "entry": 1,
        "allocated_bytes": 8 * MIB,
        "reserved_bytes": 8 * MIB,
    }
    assert device["at_end"]["allocated_bytes"] == 4 * MIB
    assert device["history"]["before_bytes"] == 2 * MIB
    assert device["history"]["contradictions"] == 0
    [mine, before] = device["held"]["lines"]
    assert (mine["place"]["line"], mine["bytes"], before["held_by"]) == (7, 6 * MIB, "before")


def test_long_lists_that_python_writes_in_parts_are_whole(tmp_path: Path) -> None:
    data = snapshot()
    rounds = [
        entry(action, 1 << 40, 512, 2_000 + number)
        for number in range(2_500)
        for action in ("alloc", "free_completed")
    ]
    data["device_traces"][1] += rounds
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(data))
    assert answer(path)["history"]["entries"] == 5_005


def test_snapshots_of_old_versions_are_read(tmp_path: Path) -> None:
    """Blocks had a history instead of frames, and neither addresses nor times."""
    data = snapshot()
    del data["allocator_settings"], data["external_annotations"]
    for block in data["segments"][0]["blocks"]:
        del block["address"], block["requested_size"]
        block["history"] = [{"addr": 0, "real_size": block["size"] - 12, "frames": [FRAME]}]
        del block["frames"]
    data["device_traces"] = []
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(data))
    device = answer(path)
    assert device["peak"] is None
    assert device["space"]["allocated_bytes"] == 4 * MIB
    assert device["space"]["rounding_bytes"] == 24
    text = read(path).stdout
    assert "no history" in text
    assert "The peak is not known" in text


def test_the_list_of_segments_alone_is_read(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot()["segments"]))
    assert answer(path)["space"]["reserved_bytes"] == 8 * MIB


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    path = tmp_path / "snapshot.pickle"
    for protocol in (2, 3, 4, 5):
        path.write_bytes(pickle.dumps({**snapshot(), "evil": Evil()}, protocol))
        done = read(path)
        assert done.returncode == 1
        assert "would run code" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_load_names_the_command_that_reads_snapshots(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot()))
    with pytest.raises(mindprof.ProfilerError, match="`mindprof memory FILE`"):
        mindprof.load(path)
