"""Exported traces keep the rules of torch's own validator of traces."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]

validator = pytest.importorskip("torch.profiler._trace_validator")

GOLDENS = Path(__file__).resolve().parents[1] / "goldens"
FROM_CUDA = sorted((GOLDENS / "h200-torch2.11").rglob("*.trace.json.gz"))
EVERYTHING = {
    "record_shapes": True,
    "profile_memory": True,
    "with_stack": True,
    "with_flops": True,
}


def mlp() -> tuple[torch.nn.Module, torch.Tensor]:
    layers = torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)
    return torch.nn.Sequential(*layers), torch.randn(8, 16)


def gpt() -> tuple[torch.nn.Module, torch.Tensor]:
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return net, torch.randn(2, 8, 32)


def violations(path: Path) -> list[str]:
    passed, found = validator.validate_trace(str(path))
    assert passed == (not found)
    return [str(violation) for violation in found]


@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["plain", "everything"])
@pytest.mark.parametrize("model", [mlp, gpt])
def test_recordings_of_the_cpu_pass(model: Any, options: dict[str, Any], tmp_path: Path) -> None:
    net, x = model()
    optimizer = torch.optim.AdamW(net.parameters())
    with mindprof.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as prof:
        for _ in range(3):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
            prof.step()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    backward = [event for event in events if "evaluate_function" in event.get("name", "")]
    assert any("Sequence number" in event["args"] for event in backward), "the rules have a subject"
    assert violations(path) == []


@pytest.mark.parametrize("golden", FROM_CUDA, ids=lambda path: str(path.relative_to(GOLDENS)))
def test_traces_of_cuda_break_no_more_rules_than_torchs_own(golden: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    command = [sys.executable, "-m", "mindprof", "convert", str(golden), str(path)]
    subprocess.run(command, check=True, capture_output=True)
    assert violations(path) == violations(golden)


def test_there_are_traces_of_cuda() -> None:
    assert FROM_CUDA


def test_a_broken_trace_does_not_pass(tmp_path: Path) -> None:
    def node(name: str) -> dict[str, Any]:
        name = f"autograd::engine::evaluate_function: {name}"
        return {"ph": "X", "name": name, "ts": 1, "dur": 1, "args": {"Sequence number": 3}}

    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [node("One"), node("Two")]}))
    assert len(violations(path)) == 1
