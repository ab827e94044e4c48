"""`profile(only=...)` with real torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]

CPU = [torch.profiler.ProfilerActivity.CPU]


def step() -> None:
    x = torch.ones(3, 3, requires_grad=True)
    with torch.profiler.record_function("forward"):
        y = torch.nn.functional.linear(x, x).relu().sum()
    y.backward()


def recorded(number: int = 1, **options: Any) -> mindprof.profile:
    with mindprof.profile(activities=CPU, **options) as prof:
        for _ in range(number):
            step()
    return prof


def names(prof: mindprof.profile) -> list[str]:
    return [event.name for event in prof.events()]


def outermost(prof: mindprof.profile) -> list[str]:
    ranges = {"forward"}
    return [
        event.name
        for event in prof.events()
        if event.cpu_parent is None or event.cpu_parent.name in ranges
    ]


def test_ranges_alone_are_recorded_and_operators_afterwards_too() -> None:
    step()
    whole = names(recorded())
    assert names(recorded(only="ranges")) == ["forward"]
    with mindprof.profile(activities=CPU, only="ranges") as ranges:
        step()
        with mindprof.profile(activities=CPU) as inner:
            step()
        step()
    assert names(ranges) == ["forward"] * 3
    assert names(inner) == whole
    assert names(recorded()) == whole


def test_operators_are_chosen_by_pattern_forward_and_backward() -> None:
    step()
    whole = names(recorded())
    found = names(recorded(only=["aten::mm", "*Backward0"]))
    expected = [
        name for name in whole if name in ("forward", "aten::mm") or name.endswith("Backward0")
    ]
    assert found == expected
    assert {"aten::mm", "ReluBackward0"} <= set(found)


def test_depth_counts_operators_on_every_thread() -> None:
    step()
    whole = outermost(recorded())
    assert names(recorded(only="depth=1")) == whole
    with mindprof.profile(activities=CPU, only="depth=1") as prof:
        threads = [threading.Thread(target=step) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(names(prof)) == sorted(whole * 4)


def test_a_share_holds_whole_trees_and_is_scaled() -> None:
    step()
    whole = {row.key: row.count for row in recorded().key_averages()}
    number = 2000
    prof = recorded(number, only="share=0.25")
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["forward"].count == number
    for key in ("aten::linear", "aten::relu", "autograd::engine::evaluate_function: ReluBackward0"):
        # Fifteen standard deviations on either side.
        assert abs(rows[key].count - whole[key] * number) < 1200, key
    # Each tree comes with everything inside it.
    events = names(prof)
    assert events.count("ReluBackward0") == events.count("aten::threshold_backward")
    assert events.count("aten::linear") == events.count("aten::matmul")


def test_operators_left_out_give_no_backward_node_a_wrong_forward_operator(tmp_path: Path) -> None:
    prof = recorded(only=["aten::ones", "*Backward0"])
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    assert not [event for event in events if event.get("cat") == "fwdbwd"]


def test_the_collector_of_torch_refuses_a_limit() -> None:
    program = (
        "import torch, mindprof\n"
        "try:\n"
        "    mindprof.profile(only='depth=1').start()\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "MINDPROF_TORCH_BACKEND": "kineto"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "only= has no effect on torch's own collector" in found.stdout


@pytest.mark.parametrize("only", ["ranges", "aten::add", "depth=1", "share=0.5"])
def test_a_limit_leaves_nothing_open(only: str) -> None:
    x = torch.ones(2)
    for _ in range(3):
        with mindprof.profile(activities=CPU, only=only), pytest.raises(RuntimeError):
            x.view(3)
    with mindprof.profile(activities=CPU, only="depth=1") as prof:
        x + x
    assert names(prof) == ["aten::add"]
