"""Measures what recording one event costs a training step on a GPU.

    python benchmarks/own_cost.py [--rounds N] [WORKLOAD...]

The first rows record operators alone: the time beyond that of the step alone, by the number of
operators. The last one records the device too; what that adds is divided by the number of runtime
calls. `crates/answers/src/recorder_cost.rs` holds the constants that advice subtracts. Run it with
a Python that has torch, on a machine with CUDA and nothing else to do.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
from typing import Any

import mindprof
from cuda_overhead import WORKLOADS, seconds_per_step  # type: ignore[import-not-found]

CPU, CUDA = mindprof.ProfilerActivity.CPU, mindprof.ProfilerActivity.CUDA
WAYS: dict[str, dict[str, Any]] = {
    "operators": {"activities": [CPU]},
    "with shapes": {"activities": [CPU], "record_shapes": True},
    "with memory": {"activities": [CPU], "profile_memory": True},
    "with sampled stacks": {"activities": [CPU], "with_stack": "sampled"},
    "with devices": {"activities": [CPU, CUDA]},
}


def counts(step: Any) -> tuple[int, int]:
    """Returns the numbers of operators and of runtime calls in a step."""
    with mindprof.profile(activities=[CPU, CUDA]) as prof:
        step()
    names = [event.name for event in prof.events() if event.device_type.name == "CPU"]
    calls = sum(name.startswith(("cuda", "cu")) for name in names)
    return len(names) - calls, calls


def main() -> None:
    """Measures the workloads of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", choices=[*WORKLOADS, []], metavar="WORKLOAD")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()
    for name in arguments.workloads or WORKLOADS:
        step = WORKLOADS[name]()
        for _ in range(10):
            step()
        operators, calls = counts(step)
        extra: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(arguments.rounds):
            alone = seconds_per_step(step, contextlib.nullcontext(), arguments.steps)
            for way, options in WAYS.items():
                taken = seconds_per_step(step, mindprof.profile(**options), arguments.steps)
                extra[way].append(taken - alone)
        found = {way: statistics.median(times) * 1e9 for way, times in extra.items()}
        print(f"{name}: {operators} operators and {calls} runtime calls in a step")
        base = found["operators"]
        for way, time in found.items():
            if way == "with devices":
                print(f"  {way:20} {(time - base) / max(calls, 1):7.0f} ns for each runtime call")
            elif way == "operators":
                print(f"  {way:20} {time / operators:7.0f} ns for each operator")
            else:
                print(f"  {way:20} {(time - base) / operators:+7.0f} ns for each operator")


if __name__ == "__main__":
    main()
