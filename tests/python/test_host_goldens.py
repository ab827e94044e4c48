"""The workloads of the goldens on the embedded host: torch's rows, each as often."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
import pytest
from mindprof import profile, schedule

from tests.host.golden_workloads import WORKLOADS

GOLDENS = Path(__file__).parent.parent / "goldens" / "cpu-torch2.15"
FILES = {"mlp": "mlp-full", "cnn": "cnn-full", "gpt": "gpt-plain"}


def says(name: str) -> dict[str, Any]:
    with gzip.open(GOLDENS / f"{FILES[name]}.says.json.gz", "rt") as file:
        known: dict[str, Any] = json.load(file)
    return known


def recorded(name: str, **flags: Any) -> profile:
    """Runs a workload as it was recorded: two steps to warm up, then two of three are kept."""
    step = WORKLOADS[name](torch)
    step()
    step()
    plan = schedule(wait=0, warmup=1, active=2, repeat=1)
    with profile(schedule=plan, acc_events=True, **flags) as profiler:
        for _ in range(3):
            step()
            profiler.step()
    return profiler


@pytest.mark.parametrize("name", FILES)
def test_rows_and_counts_are_torchs(name: str) -> None:
    rows = recorded(name).key_averages()
    found = {row.key: row.count for row in rows}
    assert found == {row["key"]: row["count"] for row in says(name)["default"]}


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_rows_by_shape_and_their_flops_are_torchs(name: str) -> None:
    rows = recorded(name, record_shapes=True, with_flops=True)
    grouped = rows.key_averages(group_by_input_shape=True)
    found = {(row.key, str(row.input_shapes)): (row.count, row.flops) for row in grouped}
    known = {
        (row["key"], str(row["input_shapes"])): (row["count"], row["flops"])
        for row in says(name)["by_input_shape"]
    }
    assert found == known
