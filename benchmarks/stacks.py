"""What stacks cost: per operator, per Python call, and in memory.

Blocks of all kinds alternate in one process, so that a noisy machine disturbs them alike; medians
of the differences to the block without a profiler are what counts. Times are the thread's own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import thread_time_ns
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

DEPTH = 20
OPERATORS = 20_000
BLOCKS = 25

EVENTS = 1_000_000
CALL_SITES = 50

FLAGS: dict[str, dict[str, Any]] = {
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
    begin = thread_time_ns()
    for _ in range(OPERATORS):
        tensor + tensor
    return (thread_time_ns() - begin) / OPERATORS


def nothing() -> None:
    """Is called."""


def call(_tensor: Any) -> float:
    """Returns the nanoseconds of one call of a Python function."""
    begin = thread_time_ns()
    for _ in range(OPERATORS):
        nothing()
    return (thread_time_ns() - begin) / OPERATORS


def call_native(_tensor: Any) -> float:
    """Returns the nanoseconds of one call of a function written in C."""
    begin = thread_time_ns()
    for _ in range(OPERATORS):
        len(())
    return (thread_time_ns() - begin) / OPERATORS


def measure(work: Callable[[Any], float], flags: dict[str, Any] | None) -> float:
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


def resident_bytes() -> int:
    """Returns how much memory the process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def bytes_per_event(with_stack: bool) -> float:
    """Returns the memory of one event of a million that 50 lines call, once they are looked at."""
    lines = "\n".join("    x + x" for _ in range(CALL_SITES))
    scope: dict[str, Any] = {}
    exec(compile(f"def block(x):\n{lines}\n", "sites.py", "exec"), scope)
    tensor, block = torch.ones((4, 4)), scope["block"]
    before = resident_bytes()
    prof = profile(with_stack=with_stack)
    prof.start()
    for _ in range(EVENTS // CALL_SITES):
        block(tensor)
    prof.stop()
    events = len(prof.events())
    return (resident_bytes() - before) / events


def report_memory() -> None:
    """Prints the memory of an event, each kind in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        without = pool.submit(bytes_per_event, False).result()
    with ProcessPoolExecutor(1, context) as pool:
        with_stack = pool.submit(bytes_per_event, True).result()
    sites = f"{EVENTS:,} events, {CALL_SITES} call sites"
    print(f"{sites}: {without:.1f} bytes each, {with_stack:.1f} with stacks")


def main() -> None:
    """Runs the benchmark."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    report(f"x + x at depth {DEPTH}", add)
    report("call of a Python function", call)
    report("call of a function written in C", call_native)
    report_memory()


if __name__ == "__main__":
    main()
