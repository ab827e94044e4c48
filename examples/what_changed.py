"""Compares two traces and fails if the amount of work grew, as a check in CI.

Run `python examples/what_changed.py`. The second trace comes from a model with one more layer, so
the exit code is 1. The number of events does not depend on the machine, which allows a strict
limit; to compare times instead, leave out `measure` and allow a few percent.
"""

from __future__ import annotations

import sys

import mindprof
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

# The relative growth of work that is tolerated.
LIMIT = 0.05


def record(layers: int, path: str) -> None:
    """Runs a model with this many layers and writes its trace."""
    model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(layers)))
    # Runs once without the profiler, because the first run in a process includes one-time setup.
    model(torch.ones((4, 16))).sum().backward()
    with profile() as prof:
        model(torch.ones((4, 16))).sum().backward()
    prof.export_chrome_trace(path)


def main() -> int:
    """Records both traces, prints the differences and returns the exit code."""
    record(2, "out/before.json")
    record(3, "out/after.json")
    change = mindprof.diff("out/before.json", "out/after.json", measure="count")
    print(change.table(row_limit=20))
    print(explanation(change))
    return int(not change.verdict(LIMIT))


def explanation(change: mindprof.ProfileDiff) -> str:
    """Explains the two differences below the table: in the number of events and in time."""
    before, after = change.before, change.after
    verdict = change.verdict(LIMIT)
    return (
        f"Work: {before.count} events before, {after.count} after: {verdict}.\n"
        "      This decides the exit code: the number of events is the same in every run.\n"
        f"Time: {before.self_cpu_time:.0f} us before, {after.self_cpu_time:.0f} us after.\n"
        "      This is only shown. Runs this short vary by more than the change itself, and more\n"
        "      work may even take less time. Compare the times of many steps."
    )


if __name__ == "__main__":
    sys.exit(main())
