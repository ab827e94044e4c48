"""`functions()`, `lines()` and `modules()` of real PyTorch: costs are on the user's own lines."""

from __future__ import annotations

import json
from pathlib import Path

import mindprof
import pytest
import torch  # type: ignore[import-not-found]

HERE = Path(__file__)


class Half(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x).relu()  # line of the model


def item_by_item(values: torch.Tensor) -> float:
    total = 0.0
    for value in values:
        total += value.item()
    return total


def fetch(data: torch.Tensor) -> torch.Tensor:
    return data[:32] * 2  # makes no backward node


def step(model: torch.nn.Module, data: torch.Tensor) -> None:
    loss = model(fetch(data)).sum()
    loss.backward()
    item_by_item(data[0])


def recorded() -> mindprof.profile:
    torch.manual_seed(0)
    model = torch.nn.Sequential(Half(), Half())
    data = torch.randn(64, 64)
    step(model, data)
    with mindprof.profile(with_stack=True, record_shapes=True, with_flops=True) as prof:
        for _ in range(3):
            step(model, data)
    return prof


def line_of(text: str) -> int:
    lines = HERE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_backward_work_is_on_the_line_of_the_forward_operator() -> None:
    lines = {line["line"]: line for line in recorded().lines(HERE.name)}
    model = lines[line_of("line of the" + " model")]["own"]
    assert model["backward_us"] > 0
    # `data[:32]` carries the sequence number of the first layer's node, and is innocent.
    assert lines[line_of("makes no" + " backward node")]["own"]["backward_us"] == 0
    backward = sum(line["own"]["backward_us"] for line in lines.values())
    accumulate = lines[line_of("loss.back" + "ward()")]["own"]["backward_us"]
    made = lines[line_of("loss = model(")]["own"]["backward_us"]
    assert model["backward_us"] + made + accumulate == pytest.approx(backward)


def test_functions_are_the_users_with_their_calls() -> None:
    prof = recorded()
    functions = {entry["function"]: entry for entry in prof.functions()}
    assert functions["step"]["calls"] == 3
    assert functions["forward"]["calls"] == 6
    assert functions["item_by_item"]["hottest_line"] in range(
        line_of("for value in " + "values"), line_of("total += value" + ".item()") + 1
    )
    assert functions["item_by_item"]["line"] == line_of("def item_by" + "_item(")
    assert {entry["file"].rsplit("/", 1)[-1] for entry in prof.functions()} >= {HERE.name}
    assert "item_by_item" in str(prof.functions())
    assert prof.functions(mine="nowhere") == []


def test_modules_have_forward_and_backward_work() -> None:
    prof = recorded()
    modules = {entry["module"]: entry for entry in prof.modules()}
    assert modules["Half"]["instances"] == 2
    assert modules["Half"]["calls"] == 6
    assert modules["Linear"]["own"]["backward_us"] > 0
    assert modules["Linear"]["own"]["flops"] > 0
    assert modules["Sequential"]["total"]["cpu_us"] >= modules["Half"]["total"]["cpu_us"]
    assert {"Half_0", "Half_1"} <= {entry["module"] for entry in prof.modules(instances=True)}


def test_a_loaded_trace_says_what_the_recording_said(tmp_path: Path) -> None:
    prof = recorded()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    loaded = mindprof.load(tmp_path / "trace.json")
    assert [entry["function"] for entry in loaded.functions()] == [
        entry["function"] for entry in prof.functions()
    ]
    assert [entry["module"] for entry in loaded.modules()] == [
        entry["module"] for entry in prof.modules()
    ]
    sources = json.loads((tmp_path / "trace.json").read_text())["mindprof_sources"]["own"]
    assert str(HERE) in [path for _, path in sources]
    assert not [path for _, path in sources if "site-packages" in path or "/torch/" in path]
