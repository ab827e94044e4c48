"""Golden traces of torch, and what is written from them here, by the program and from Python."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import mindprof
import mindtorch_v2 as torch

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "tests" / "goldens"
HOST = ["cpu-torch2.15/cnn-full", "cpu-torch2.15/mlp-full", "cpu-torch2.15/gpt-plain"]
DEVICE = ["h200-torch2.11/gpt-full", "h200-torch2.11/mlp-plain", "h200-torch2.11/threads-full"]
CLIENTS = Path(os.environ.get("CLIENTS", ""))


def golden(name: str) -> Path:
    return GOLDENS / f"{name}.trace.json.gz"


def complete_events(name: str) -> list[dict[str, Any]]:
    """Returns the events of a golden that have a duration, as torch wrote them."""
    with gzip.open(golden(name)) as file:
        return [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]


def covered(spans: list[tuple[int, int]]) -> int:
    """Returns how much time lies in at least one span: a frame that calls itself counts once."""
    total = until = 0
    for start, end in sorted(spans):
        total += max(end - max(start, until), 0)
        until = max(until, end)
    return total


def convert(name: str, output: Path) -> Path:
    """Writes a golden in another format, by the program."""
    program = ROOT / "target" / "debug" / "mindprof"
    subprocess.run([program, "convert", golden(name), output], check=True, capture_output=True)
    return output


def export(name: str, output: Path) -> Path:
    """Writes a golden as a Chrome trace again, from Python."""
    mindprof.load(golden(name)).export_chrome_trace(str(output))
    return output


def record() -> torch.profiler.profile:
    """Returns a recording of our own, of two steps with ranges, shapes, memory and stacks."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        for _ in range(2):
            with torch.profiler.record_function("forward"):
                loss = model(torch.ones((4, 8))).sum()
            loss.backward()
            prof.step()
    return prof


def ask_node(script: str, *arguments: str | Path) -> Any:
    """Returns what a script beside this file prints, as JSON."""
    command = ["node", Path(__file__).with_name(script), *arguments]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)
