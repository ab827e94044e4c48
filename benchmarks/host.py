"""Compares the speed of the embedded runtime with torch: a small op, a training step, a product.

Run it with the Python of the runtime and pass one that has torch:
`python benchmarks/host.py /path/to/python-with-torch`. Two processes with one thread each take
turns block by block, so that noise on the machine affects both alike. Prints ratios of medians.
"""

from __future__ import annotations

import importlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

BLOCKS = 25


def contestants(torch: Any) -> dict[str, tuple[Callable[[], Any], int]]:
    """Returns the functions to measure by name, and their repetitions in a block."""
    torch.manual_seed(0)
    x, square = torch.ones(4, 4), torch.randn(512, 512)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch, target = torch.randn(32, 64), torch.randn(32, 10)
    difference = torch.nn.MSELoss()

    def step() -> None:
        optimizer.zero_grad()
        difference(model(batch), target).backward()
        optimizer.step()

    return {
        "x + x on 4x4": (lambda: x + x, 20_000),
        "training step of 64-128-10, batch 32": (step, 300),
        "512x512x512 product": (lambda: square @ square, 10),
    }


def serve(name: str) -> None:
    """Reads names of functions from stdin, and prints the nanoseconds of one block for each."""
    torch: Any = importlib.import_module(name)
    if hasattr(torch, "set_num_threads"):
        torch.set_num_threads(1)
    measured = contestants(torch)
    for line in sys.stdin:
        call, repeats = measured[line.strip()]
        started = time.perf_counter_ns()
        for _ in range(repeats):
            call()
        print((time.perf_counter_ns() - started) / repeats, flush=True)


def main() -> None:
    """Measures both packages in turn and prints ratios."""
    environment = {**os.environ, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    commands = {"mindtorch_v2": sys.executable, "torch": sys.argv[1]}
    servers = {
        name: subprocess.Popen(
            [python, __file__, "--serve", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for name, python in commands.items()
    }

    def block(name: str, what: str) -> float:
        server = servers[name]
        assert server.stdin is not None
        assert server.stdout is not None
        print(what, file=server.stdin, flush=True)
        return float(server.stdout.readline())

    for what in contestants(importlib.import_module("mindtorch_v2")):
        samples: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(BLOCKS):
            for name in servers:
                samples[name].append(block(name, what))
        ours, theirs = (statistics.median(samples[name]) for name in servers)
        print(f"{what:<40}{ours / theirs:>6.2f} of torch   ({ours:.0f} ns, {theirs:.0f} ns)")
    for server in servers.values():
        server.kill()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        main()
