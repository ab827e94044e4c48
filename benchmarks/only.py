"""Compares the overhead of recordings that hold some operators with one that holds all.

Each round runs the same training steps without a profiler, with mindprof and with mindprof and each
limit, one right after the other. The result is the median over rounds of the thread's CPU time
beyond that of the run without a profiler, as a share of that of the whole recording, and the share
of the events. Run it with a Python that has torch: `PYTHONPATH=python PYTHON benchmarks/only.py`.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import mindprof
import torch  # type: ignore[import-not-found]

CPU = [torch.profiler.ProfilerActivity.CPU]
LIMITS = [None, "ranges", "aten::addmm", "depth=1", "share=0.01"]
RUNS = 4
STEPS = 5


def training() -> Callable[[], None]:
    """Returns a function that trains a small model for a few steps."""
    layers = torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x, y = torch.randn(32, 64), torch.randn(32, 10)

    def run() -> None:
        for _ in range(STEPS):
            with torch.profiler.record_function("step"):
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(x), y).backward()
                optimizer.step()

    return run


def best(work: Callable[[], None]) -> int:
    """Returns the least CPU time of several runs, in nanoseconds."""
    work()
    times = []
    for _ in range(RUNS):
        started = time.thread_time_ns()
        work()
        times.append(time.thread_time_ns() - started)
    return min(times)


def measure(rounds: int, options: dict[str, Any]) -> None:
    """Prints the overhead with each limit as a share of that without one."""
    work = training()
    extra: dict[str | None, list[int]] = {limit: [] for limit in LIMITS}
    events = dict.fromkeys(LIMITS, 0)
    for number in range(rounds + 1):
        gc.collect()
        gc.disable()
        plain = best(work)
        # The order alternates, so that no limit always comes first.
        for limit in LIMITS[:: -1 if number % 2 else 1]:
            with mindprof.profile(activities=CPU, only=limit, **options) as prof:
                taken = best(work)
            events[limit] = len(prof.events())
            # The first round warms up.
            if number > 0:
                extra[limit].append(taken - plain)
        gc.enable()
    whole = statistics.median(extra[None])
    for limit in LIMITS[1:]:
        share = statistics.median(extra[limit]) / whole
        kept = events[limit] / events[None]
        print(f"{options or 'plain'} {limit:12} time {share:5.2f}   events {kept:6.3f}", flush=True)


def main() -> None:
    """Measures plain recordings and those with shapes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    mindprof.supported_activities()
    print(f"torch {torch.__version__}, mindprof {mindprof.__version__}, {rounds} rounds")
    measure(rounds, {})
    measure(rounds, {"record_shapes": True})


if __name__ == "__main__":
    main()
