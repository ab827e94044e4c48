"""The host under test: `mindtorch_v2`, or the real torch when `CONTRACT_HOST=torch`."""

from __future__ import annotations

import gzip
import importlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

NAME = os.environ.get("CONTRACT_HOST", "mindtorch_v2")
IS_TORCH = NAME == "torch"

torch: Any = importlib.import_module(NAME)
SUBMODULES = "profiler.profiler profiler.itt autograd.profiler_util autograd.profiler_legacy"
for submodule in SUBMODULES.split():
    importlib.import_module(f"{NAME}.{submodule}")

CPU = torch.profiler.ProfilerActivity.CPU
CUDA = torch.profiler.ProfilerActivity.CUDA
Action = torch.profiler.ProfilerAction

CLEARS_EVENTS = (
    "Warning: Profiler clears events at the end of each cycle. Only events from the current cycle "
    "will be reported. To keep events across cycles, set acc_events=True."
)

LETTERS = {
    "N": Action.NONE,
    "W": Action.WARMUP,
    "R": Action.RECORD,
    "S": Action.RECORD_AND_SAVE,
}


def profile(**arguments: Any) -> Any:
    """Makes a profiler."""
    return torch.profiler.profile(**arguments)


def record(name: Any, args: Any = None) -> Any:
    """Makes a range."""
    return torch.profiler.record_function(name, args)


def mark(name: str) -> None:
    """Records an empty range."""
    with record(name):
        pass


def work() -> Any:
    """Runs an operator that is recorded as `aten::add`."""
    return torch.ones(2, 2) + 1


def follow(letters: str) -> Any:
    """Makes a schedule from letters, one per step; the last one goes on."""
    return lambda step: LETTERS[letters[min(step, len(letters) - 1)]]


def counts(profiler: Any) -> dict[str, int]:
    """Returns how often each name was recorded."""
    return {row.key: row.count for row in profiler.key_averages()}


def load(path: Path | str) -> dict[str, Any]:
    """Reads a trace."""
    data = Path(path).read_bytes()
    trace: dict[str, Any] = json.loads(gzip.decompress(data) if str(path).endswith(".gz") else data)
    return trace


def export(profiler: Any, folder: Path, **arguments: Any) -> dict[str, Any]:
    """Exports a trace into a folder and reads it."""
    path = folder / "trace.json"
    profiler.export_chrome_trace(str(path), **arguments)
    return load(path)


def events(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the operators and ranges of a trace."""
    wanted = ("cpu_op", "user_annotation")
    return [event for event in trace["traceEvents"] if event.get("cat") in wanted]


def names(trace: dict[str, Any]) -> Counter[str]:
    """Returns how often a trace has each operator and range."""
    return Counter(event["name"] for event in events(trace))
