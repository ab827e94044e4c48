"""Measures the cost of stacks: per operator, per Python call, in memory, and on export.

Blocks of all kinds alternate in one process, so that noise on the machine affects them alike.
Prints medians of the differences to the block without a profiler, in CPU time of the thread.

`export_stacks` is measured in separate processes, as a user sees it: the first file after `stop()`,
including everything that is computed for it. To compare with torch, run

    .venv/bin/python benchmarks/stacks.py --torch-python PYTHON_WITH_TORCH
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any

DEPTH = 20
OPERATORS = 20_000
BLOCKS = 25

EVENTS = 1_000_000
CALL_SITES = 50

EXPORTED = 300_000
METRIC = "self_cpu_time_total"

FLAGS: dict[str, dict[str, Any]] = {
    "no flags": {},
    "with_stack": {"with_stack": True},
    "shapes, memory": {"record_shapes": True, "profile_memory": True},
    "all flags": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}


def at_depth(depth: int, action: Callable[[], float]) -> float:
    """Calls `action` below `depth` further frames, and returns its result."""
    return action() if depth == 0 else at_depth(depth - 1, action)


def add(tensor: Any) -> float:
    """Returns the nanoseconds of one `x + x`."""
    begin = thread_time_ns()
    for _ in range(OPERATORS):
        tensor + tensor
    return (thread_time_ns() - begin) / OPERATORS


def nothing() -> None:
    """Does nothing."""


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


def measure(
    work: Callable[[Any], float], flags: dict[str, Any] | None, host: str = "mindtorch_v2"
) -> float:
    """Returns the nanoseconds of one unit of `work`, without a profiler if `flags` is None."""
    torch: Any = importlib.import_module(host)
    tensor = torch.ones((4, 4))
    if flags is None:
        return at_depth(DEPTH, lambda: work(tensor))
    prof = torch.profiler.profile(**flags)
    prof.start()
    result = at_depth(DEPTH, lambda: work(tensor))
    prof.stop()
    return result


def report(name: str, work: Callable[[Any], float]) -> float:
    """Prints what each set of flags adds to one unit of `work`, and returns the last result."""
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
    return statistics.median(samples)


def report_torch(torch_python: str, added: float) -> None:
    """Prints the time of torch's own `x + x`, and `added` as a share of it."""
    command = [torch_python, __file__, "--operator", "torch"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"  torch: {found['plain']:.0f} ns, {found['recorded'] - found['plain']:.0f} more with all"
    )
    print(f"  all flags add {added / found['plain']:.2f} of torch's operator")


def operator(host: str) -> dict[str, float]:
    """Returns the nanoseconds of an operator of a package, plain and with all flags."""
    flags = FLAGS["all flags"]
    # Fewer blocks, because torch takes long to process its events.
    samples = [(measure(add, None, host), measure(add, flags, host)) for _ in range(3)]
    plain, recorded = zip(*samples, strict=True)
    return {"plain": statistics.median(plain), "recorded": statistics.median(recorded)}


def resident_bytes() -> int:
    """Returns the resident memory of the process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def bytes_per_event(with_stack: bool) -> float:
    """Returns the bytes per event of a million events from 50 call sites, after reading them."""
    torch: Any = importlib.import_module("mindtorch_v2")
    lines = "\n".join("    x + x" for _ in range(CALL_SITES))
    scope: dict[str, Any] = {}
    exec(compile(f"def block(x):\n{lines}\n", "sites.py", "exec"), scope)
    tensor, block = torch.ones((4, 4)), scope["block"]
    before = resident_bytes()
    prof = torch.profiler.profile(with_stack=with_stack)
    prof.start()
    for _ in range(EVENTS // CALL_SITES):
        block(tensor)
    prof.stop()
    events = len(prof.events())
    return (resident_bytes() - before) / events


def report_memory() -> None:
    """Prints the memory per event with and without stacks, each measured in its own process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        without = pool.submit(bytes_per_event, False).result()
    with ProcessPoolExecutor(1, context) as pool:
        with_stack = pool.submit(bytes_per_event, True).result()
    sites = f"{EVENTS:,} events, {CALL_SITES} call sites"
    print(f"{sites}: {without:.1f} bytes each, {with_stack:.1f} with stacks")


def export(host: str, side: int) -> dict[str, float]:
    """Records and exports stacks in this process. Returns milliseconds, lines and bytes."""
    torch: Any = importlib.import_module(host)
    profiler: Any = importlib.import_module(f"{host}.profiler")
    flags: dict[str, Any] = {"with_stack": True}
    if host == "torch":
        # Without it torch's stacks stay empty.
        config: Any = importlib.import_module("torch._C._profiler")._ExperimentalConfig
        flags["experimental_config"] = config(verbose=True)
    tensor = torch.ones((side, side))
    prof = profiler.profile(**flags)

    def work() -> float:
        for _ in range(EXPORTED):
            tensor + tensor
        return 0.0

    prof.start()
    at_depth(DEPTH, work)
    prof.stop()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stacks.txt"
        begin = perf_counter_ns()
        prof.export_stacks(str(path), METRIC)
        milliseconds = (perf_counter_ns() - begin) / 1e6
        text = path.read_bytes()
    return {"ms": milliseconds, "lines": text.count(b"\n"), "bytes": len(text)}


def run_export(python: str, host: str, side: int) -> dict[str, float]:
    """Measures in a fresh process."""
    command = [python, __file__, "--measure", host, "--side", str(side)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def report_export(torch_python: str | None) -> None:
    """Prints the time of `export_stacks` for operators too short for a line and longer ones."""
    for side in (4, 256):
        runs = [run_export(sys.executable, "mindtorch_v2", side) for _ in range(3)]
        ours = {name: statistics.median(found[name] for found in runs) for name in runs[0]}
        print(f"export_stacks, {EXPORTED:,} times x + x on {side}x{side} at depth {DEPTH}")
        print(f"  mindprof {ours['ms']:10.1f} ms, {ours['lines']:9,.0f} lines")
        if torch_python is not None:
            torchs = run_export(torch_python, "torch", side)
            ratio = torchs["ms"] / ours["ms"]
            print(f"  torch    {torchs['ms']:10.1f} ms, {torchs['lines']:9,.0f} lines", end="")
            print(f", {ratio:.0f} times as long", flush=True)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--export", action="store_true", help="measure `export_stacks` only")
    parser.add_argument("--torch-python", default=os.environ.get("TORCH_PYTHON"))
    parser.add_argument("--measure", help="the package whose export to measure in this process")
    parser.add_argument("--operator", help="the package whose operator to measure in this process")
    parser.add_argument("--side", type=int, default=4)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(export(arguments.measure, arguments.side)))
        return
    if arguments.operator:
        print(json.dumps(operator(arguments.operator)))
        return
    if not arguments.export:
        added = report(f"x + x at depth {DEPTH}", add)
        if arguments.torch_python is not None:
            report_torch(arguments.torch_python, added)
        report("call of a Python function", call)
        report("call of a function written in C", call_native)
        report_memory()
    report_export(arguments.torch_python)


if __name__ == "__main__":
    main()
