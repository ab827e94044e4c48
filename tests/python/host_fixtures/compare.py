"""What torch did, as recorded, and how the embedded host is compared with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mindtorch_v2.profiler import profile

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("torch.json").read_text())


def near(expected: Any, rel: float = 1e-4) -> Any:
    """Returns what compares equal to numbers within `rel` of those expected, however nested."""
    if isinstance(expected, dict):
        return {key: near(value, rel) for key, value in expected.items()}
    if isinstance(expected, list):
        return [near(value, rel) for value in expected]
    if isinstance(expected, float):
        return pytest.approx(expected, rel=rel, abs=rel / 100)
    return expected


def recorded_step(name: str, which: str) -> list[str]:
    """Returns the operators of a step of torch's, as `operators` does."""
    return [RECORDED["lines"][number] for number in RECORDED["steps"][name][which]]


def operators(run: Callable[[], Any]) -> list[str]:
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
    lines: list[str] = []

    def walk(event: Any, depth: int) -> None:
        lines.append("  " * depth + event.name)
        for child in event.cpu_children:
            walk(child, depth + 1)

    for event in prof.events():
        if event.cpu_parent is None:
            walk(event, 0)
    return lines
