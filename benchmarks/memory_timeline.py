"""Compares how long torch.profiler and mindprof take to write a memory timeline.

Each measurement runs in its own process: it records `x + x` on 4x4 with shapes, memory and stacks,
stops, and writes the `.json`, then the `.raw.json.gz` and the `.html`. The time of the first file
includes everything that is computed lazily from a recording. Run it with

    .venv/bin/python benchmarks/memory_timeline.py --torch-python PYTHON_WITH_TORCH

torch is measured only at the smallest size, where it takes seconds, unless `--torch-limit` is
larger.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

SIZES = (10_000, 100_000, 300_000)
SUFFIXES = (".json", ".raw.json.gz", ".html")


def measure(host: str, events: int) -> dict[str, float]:
    """Records and writes in this process. Returns milliseconds by suffix."""
    warnings.simplefilter("ignore")
    torch: Any = importlib.import_module(host)
    profiler: Any = importlib.import_module(f"{host}.profiler")
    x = torch.ones((4, 4))
    profile = profiler.profile(record_shapes=True, profile_memory=True, with_stack=True)
    profile.start()
    for _ in range(events):
        _ = x + x
    profile.stop()
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        # torch's page needs matplotlib.
        for suffix in SUFFIXES if host != "torch" else SUFFIXES[:2]:
            path = os.path.join(folder, f"memory{suffix}")
            started = time.perf_counter_ns()
            profile.export_memory_timeline(path, device="cpu")
            found[suffix] = (time.perf_counter_ns() - started) / 1e6
    return found


def run(python: str, host: str, events: int) -> dict[str, float]:
    """Measures in a fresh process."""
    command = [python, __file__, "--measure", host, "--events", str(events)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(torch_python: str, torch_limit: int, sizes: list[int]) -> None:
    """Prints one line per number of ops and kind of file."""
    print(f"{'ops':>10}  {'file':14}{'mindprof':>13}{'torch':>13}{'times':>9}")
    for events in sizes:
        runs = [run(sys.executable, "mindtorch_v2", events) for _ in range(3)]
        theirs = run(torch_python, "torch", events) if events <= torch_limit else {}
        for suffix in SUFFIXES:
            ours = statistics.median(found[suffix] for found in runs)
            line = f"{events:>10,}  {suffix:14}{ours:>10.1f} ms"
            if suffix in theirs:
                line += f"{theirs[suffix]:>10.0f} ms{theirs[suffix] / ours:>9.0f}"
            print(line, flush=True)


def main() -> None:
    """Measures in this process, or starts processes that do and compares them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", default=os.environ.get("TORCH_PYTHON", sys.executable))
    parser.add_argument("--torch-limit", type=int, default=SIZES[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of ops")
    parser.add_argument(
        "--measure", help="the package to measure in this process: torch or mindtorch_v2"
    )
    parser.add_argument("--events", type=int, default=SIZES[0])
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.events)))
    else:
        compare(arguments.torch_python, arguments.torch_limit, arguments.sizes)


if __name__ == "__main__":
    main()
