"""Numbers that operators of a real torch are given have the values that torch.profiler tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindprof
import torch  # type: ignore[import-not-found]

from tests.pytorch.test_same_run import ordered, record_twice


def step() -> None:
    x = torch.ones(2)
    torch._foreach_mul([x, x], [1, 2.5])
    torch._foreach_add([x, x], [True, 2])
    torch._foreach_mul([x] * 31, [1, 2.5] + [1] * 29)
    torch._foreach_mul([x, x], [0.5, 2.5])
    torch.add(x, x, alpha=3)
    torch.full([2], 1 - 2j)
    torch._foreach_add([x.to(torch.complex64)], [0.1j])
    torch._foreach_add([x.to(torch.complex64)] * 2, [2, 1e300 - 1e-5j])


def told_of(recording: Any) -> list[tuple[str, Any]]:
    return [(event.name, event.concrete_inputs) for event in ordered(recording.events())]


def texts(recording: Any, path: Path) -> list[tuple[str, Any]]:
    recording.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    operators.sort(key=lambda event: (event["ts"], -event["dur"]))
    arguments = [(event["name"], event["args"]) for event in operators]
    return [(name, (told["Concrete Inputs"], told["Input type"])) for name, told in arguments]


def test_numbers_are_those_of_torch(tmp_path: Path) -> None:
    theirs, ours = record_twice(step, record_shapes=True)
    found = told_of(ours)
    assert found == told_of(theirs)
    assert ("aten::_foreach_mul", [None, [1, 2.5]]) in found
    assert ("aten::_foreach_add", [None, [True, 2]]) in found
    assert ("aten::_foreach_add", [None, [2, 1e300 - 1e-5j]]) in found
    assert ("aten::full", [[2], 1 - 2j, None, None, None, False]) in found
    assert texts(ours, tmp_path / "ours.json") == texts(theirs, tmp_path / "theirs.json")
    assert told_of(mindprof.load(tmp_path / "theirs.json")) == told_of(theirs)
