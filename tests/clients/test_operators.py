"""HolisticTraceAnalysis counts the operators of four gloo ranks as the table of each rank does."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import mindprof
import pytest
from hta.trace_analysis import TraceAnalysis

from tests.clients.traces import golden
from tests.hta_view import hta_view

Sums = dict[str, tuple[int, float]]


def seen_by_hta(paths: dict[int, Path]) -> dict[int, Sums]:
    """Returns the number of calls and their time by name and rank, in HTA's whole microseconds."""
    files = {rank: str(path) for rank, path in paths.items()}
    traces = TraceAnalysis(trace_files=files, trace_dir="").t
    names = traces.symbol_table.get_sym_table()
    found: dict[int, Sums] = {}
    for rank in paths:
        frame = traces.get_trace(rank)
        calls, times = Counter[str](), Counter[str]()
        for name, duration in zip(frame["name"], frame["dur"], strict=True):
            # Work within a microsecond has a negative duration there.
            name = re.sub(r"^(ProfilerStep)#\d+$", r"\1*", names[name])
            calls[name] += 1
            times[name] += max(duration, 0)
        found[rank] = {name: (calls[name], times[name]) for name in calls}
    return found


def seen_here(path: Path, view: Path) -> Sums:
    rows = mindprof.load(hta_view(path, view)).key_averages()
    return {row.key: (row.count, row.cpu_time_total) for row in rows}


@pytest.mark.filterwarnings("ignore")
def test_calls_and_times_of_four_gloo_ranks_are_the_same(tmp_path: Path) -> None:
    paths = {rank: golden(f"gloo-torch2.15/rank{rank}") for rank in range(4)}
    for rank, expected in seen_by_hta(paths).items():
        found = seen_here(paths[rank], tmp_path / "view.json")
        assert found == expected
        assert found["gloo:all_reduce"][0] == found["ProfilerStep*"][0] == 9
        # Steps, and operators of which the slow rank has more.
        assert sum(calls for calls, _ in found.values()) == (3204 if rank == 2 else 1404)


@pytest.mark.filterwarnings("ignore")
def test_an_operator_that_only_calls_its_own_name_counts_once_as_in_torchs_table(
    tmp_path: Path,
) -> None:
    # `aten::sum` calls `aten::sum` of another signature; torch's key_averages() counts it once.
    with gzip.open(golden("gloo-torch2.15/rank0")) as file:
        trace = json.load(file)
    calls = [event for event in trace["traceEvents"] if event["name"] == "aten::mm"]
    outer: list[dict[str, Any]] = [
        event | {"ts": event["ts"] - 0.001, "dur": event["dur"] + 0.002} for event in calls
    ]
    trace["traceEvents"] = [*outer, *trace["traceEvents"]]
    path = tmp_path / "rank0.json.gz"
    with gzip.open(path, "wt") as file:
        json.dump(trace, file)
    before = seen_by_hta({0: golden("gloo-torch2.15/rank0")})[0]["aten::mm"][0]
    assert seen_by_hta({0: path})[0]["aten::mm"][0] == 2 * before
    assert seen_here(path, tmp_path / "view.json")["aten::mm"][0] == before
