"""What stacks cost: per operator, per Python call, and in memory.

Blocks of all kinds alternate in one process, so that a noisy machine disturbs them alike; medians of the
differences to the block without a profiler are what counts.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

DEPTH = 20
OPERATORS = 20_000
BLOCKS = 25

FLAGS: dict[str, dict[str, bool]] = {
    "no flags": {},
    "with_stack": {"with_stack": True},
    "shapes, memory": {"record_shapes": True, "profile_memory": True},
    "all flags": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}


def at_depth(depth: int, action: Callable[[], float]) -> float:
    """Returns what `action` returns, called that many calls deep."""
    return action() if depth == 0 else at_depth(depth - 1, action)


def add(tensor: Any) -> float:
    """Returns the nanoseconds of one `x + x`."""
    begin = perf_counter_ns()
    for _ in range(OPERATORS):
        tensor + tensor
    return (perf_counter_ns() - begin) / OPERATORS


def nothing() -> None:
    """Is called."""


def call(_tensor: Any) -> float:
    """Returns the nanoseconds of one call of a Python function."""
    begin = perf_counter_ns()
    for _ in range(OPERATORS):
        nothing()
    return (perf_counter_ns() - begin) / OPERATORS


def call_native(_tensor: Any) -> float:
    """Returns the nanoseconds of one call of a function written in C."""
    begin = perf_counter_ns()
    for _ in range(OPERATORS):
        len(())
    return (perf_counter_ns() - begin) / OPERATORS


def measure(work: Callable[[Any], float], flags: dict[str, bool] | None) -> float:
    """Returns the nanoseconds of one piece of `work`; without a profiler if there are no flags."""
    tensor = torch.ones((4, 4))
    if flags is None:
        return at_depth(DEPTH, lambda: work(tensor))
    prof = profile(**flags)
    prof.start()
    result = at_depth(DEPTH, lambda: work(tensor))
    prof.stop()
    return result


def report(name: str, work: Callable[[Any], float]) -> None:
    """Prints what each kind of profiler adds to one piece of `work`."""
    added: dict[str, list[float]] = {flags: [] for flags in FLAGS}
    plain: list[float] = []
    for _ in range(BLOCKS):
        plain.append(measure(work, None))
        for flags, values in FLAGS.items():
            added[flags].append(measure(work, values) - plain[-1])
    print(f"{name}: {statistics.median(plain):.0f} ns without a profiler")
    for flags, samples in added.items():
        low, middle, high = statistics.quantiles(samples, n=4)
        print(f"  {flags:<16} +{middle:5.0f} ns  [{low:.0f}, {high:.0f}]")


def main() -> None:
    """Runs the benchmark."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    report(f"x + x at depth {DEPTH}", add)
    report("call of a Python function", call)
    report("call of a function written in C", call_native)


if __name__ == "__main__":
    main()
