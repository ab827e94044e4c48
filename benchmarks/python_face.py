"""Measures the cost of the profiler from Python: of an operator, a named range and a start.

Blocks of all cases alternate in one process, so that noise on the machine affects them alike.
Prints medians without the time of the empty loop. Run it with `make bench`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

BLOCKS = 101
REPEATS = 2_000

x = torch.ones((4, 4))


def empty() -> None:
    """Runs the loop alone."""
    for _ in range(REPEATS):
        pass


def add() -> None:
    """Runs a small operator."""
    for _ in range(REPEATS):
        x + x


def named_range() -> None:
    """Opens and closes an empty range."""
    record_function = torch.profiler.record_function
    for _ in range(REPEATS):
        with record_function("r"):
            pass


def recorded(body: Callable[[], None], **flags: Any) -> Callable[[], None]:
    """Returns a function that times `body` while a profiler records."""

    def run() -> None:
        profiler = torch.profiler.profile(**flags)
        profiler.start()
        started = time.perf_counter_ns()
        body()
        run.nanoseconds = time.perf_counter_ns() - started  # type: ignore[attr-defined]
        profiler.stop()

    return run


def block(body: Callable[[], None]) -> float:
    """Returns nanoseconds per iteration of a block, without starting and stopping the profiler."""
    started = time.perf_counter_ns()
    body()
    elapsed = time.perf_counter_ns() - started
    return getattr(body, "nanoseconds", elapsed) / REPEATS


def first_start_microseconds() -> float:
    """Returns the time of the first start in a process, the median over fresh processes."""
    code = (
        "import time, mindtorch_v2 as torch\n"
        "profiler = torch.profiler.profile()\n"
        "started = time.perf_counter_ns(); profiler.start()\n"
        "print(time.perf_counter_ns() - started)\n"
    )
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(9)]
    return statistics.median(int(run) for run in runs) / 1e3


def main() -> None:
    """Measures and prints."""
    contestants: dict[str, Callable[[], None]] = {
        "empty loop": empty,
        "x + x on 4x4, off": add,
        "x + x on 4x4, on": recorded(add),
        "x + x on 4x4, on, with shapes": recorded(add, record_shapes=True),
        "with record_function, off": named_range,
        "with record_function, on": recorded(named_range),
    }
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(BLOCKS):
        for name, body in contestants.items():
            samples[name].append(block(body))
    medians = {name: statistics.median(values) for name, values in samples.items()}
    floor = medians.pop("empty loop")
    for name, median in medians.items():
        print(f"{name:<32}{median - floor:>8.0f} ns")
    print(f"{'first start() of a process':<32}{first_start_microseconds():>8.0f} us")


if __name__ == "__main__":
    main()
