"""speedscope's own importer reads what is written for it, with the times of torch's trace."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.clients.traces import (
    CLIENTS,
    DEVICE,
    HOST,
    ask_node,
    complete_events,
    convert,
    covered,
    record,
)

# Calls of Python are written by the name of their function alone.
CATEGORIES = ("cpu_op", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset")


def read(path: Path) -> Any:
    return ask_node(
        "speedscope_import.mjs", CLIENTS / "node_modules" / "speedscope" / "dist" / "release", path
    )


def totals(group: Any) -> dict[str, int]:
    """Returns how long each frame was on a stack, over all threads."""
    sums: dict[str, int] = defaultdict(int)
    for profile in group["profiles"]:
        assert profile["unit"] == "nanoseconds"
        for frame in profile["frames"]:
            sums[frame["name"]] += frame["total"]
    return sums


@pytest.mark.parametrize("name", [*DEVICE, *HOST])
def test_every_name_has_its_time(name: str, tmp_path: Path) -> None:
    spans: dict[tuple[str, Any], list[tuple[int, int]]] = defaultdict(list)
    others = set()
    for event in complete_events(name):
        if event["cat"] in CATEGORIES:
            start = round(event["ts"] * 1000)
            spans[event["name"], event["tid"]].append((start, start + round(event["dur"] * 1000)))
        else:
            others.add(event["name"])
    expected: dict[str, int] = defaultdict(int)
    for (key, _), times in spans.items():
        expected[key] += covered(times)
    seen = totals(read(convert(name, tmp_path / "trace.speedscope.json")))
    assert len(expected) > 2
    assert {key: seen[key] for key in expected if key not in others} == expected


def test_a_recording_of_our_own_opens_on_the_thread_that_worked(tmp_path: Path) -> None:
    prof = record()
    prof.export_speedscope(str(tmp_path / "own.speedscope.json"))
    group = read(tmp_path / "own.speedscope.json")
    names = {frame["name"] for frame in group["profiles"][group["shown"]]["frames"]}
    assert {"aten::addmm", "aten::relu", "forward"} <= names
