"""What torch did, as recorded, and how the embedded host is compared with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mindtorch_v2.profiler import profile

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("torch.json").read_text())


def near(expected: Any) -> Any:
    """Returns what compares equal to numbers within 1e-4 of those expected, however nested."""
    if isinstance(expected, dict):
        return {key: near(value) for key, value in expected.items()}
    if isinstance(expected, list):
        return [near(value) for value in expected]
    if isinstance(expected, float):
        return pytest.approx(expected, rel=1e-4, abs=1e-6)
    return expected


def operators(run: Callable[[], Any], trace: Path) -> list[str]:
    """Returns the names of what a profile sees, each below its parent and indented.

    ```text
    Optimizer.step#SGD.step   |-----------------|
      aten::mul_                |----|
        aten::to                 |--|
      aten::add_                       |----|
    ```
    """
    with profile() as prof:
        run()
    prof.export_chrome_trace(str(trace))
    events = [
        event
        for event in json.loads(trace.read_text())["traceEvents"]
        if event.get("cat") in ("cpu_op", "user_annotation")
    ]
    lines = []
    ends: list[float] = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while ends and ends[-1] <= event["ts"]:
            ends.pop()
        lines.append("  " * len(ends) + event["name"])
        ends.append(event["ts"] + event["dur"])
    return lines
