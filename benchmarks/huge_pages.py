"""Measures the effect of huge pages on the first averages of a recording.

Each run is a fresh process that records and then computes the averages once. Runs with and without
huge pages alternate, with the same build: `prctl` disables them for a process, and then the advice
of `crates/allocator` has no effect. Prints medians and their ratio.
"""

from __future__ import annotations

import ctypes
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

EVENTS = 300_000
RUNS = 15
PR_SET_THP_DISABLE = 41


def measure(*, without: bool) -> None:
    """Records, and prints the nanoseconds per event and the page faults of the first averages."""
    if without and ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0:
        raise OSError("huge pages cannot be disabled: run on Linux 3.15 or newer")
    import mindtorch_v2 as torch

    x = torch.ones((4, 4))
    with torch.profiler.profile() as profiler:
        for _ in range(EVENTS):
            x + x
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    started = time.perf_counter_ns()
    profiler.key_averages()
    elapsed = time.perf_counter_ns() - started
    print(elapsed / EVENTS, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)


def run(argument: str) -> tuple[float, int]:
    """Returns the time and the page faults measured in a fresh process."""
    command = [sys.executable, __file__, argument]
    nanoseconds, faults = subprocess.run(command, capture_output=True, check=True).stdout.split()
    return float(nanoseconds), int(faults)


def main() -> None:
    """Measures and prints."""
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text().strip()
    print(f"transparent huge pages of the system: {setting}")
    samples: dict[str, list[tuple[float, int]]] = {"with": [], "without": []}
    for _ in range(RUNS):
        for name, found in samples.items():
            found.append(run(name))
    medians = {
        name: statistics.median(time for time, _ in found) for name, found in samples.items()
    }
    for name, median in medians.items():
        faults = statistics.median(count for _, count in samples[name])
        print(f"{name:<8} {median:>7.1f} ns an event, {faults:>6.0f} page faults")
    print(f"without / with: {medians['without'] / medians['with']:.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(without=sys.argv[1] == "without")
    else:
        main()
