"""What changed since last week: compare two traces, and fail if the work grew.

Here the second program has one layer more. The number of events does not depend on the machine, so
a limit on it can be strict; for times, leave out `measure` and allow a few percent.
"""

from __future__ import annotations

import sys

import mindprof
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

# By how much the work may grow.
LIMIT = 0.05


def record(layers: int, path: str) -> None:
    """Runs a model of this many layers and writes its trace."""
    model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(layers)))
    # Once without the profiler: the first run of a process gets things ready, which takes longer.
    model(torch.ones((4, 16))).sum().backward()
    with profile() as prof:
        model(torch.ones((4, 16))).sum().backward()
    prof.export_chrome_trace(path)


def main() -> int:
    """Records before and after, prints what changed and returns the exit code of a gate."""
    record(2, "out/before.json")
    record(3, "out/after.json")
    change = mindprof.diff("out/before.json", "out/after.json", measure="count")
    print(change.table(row_limit=20))
    print(explanation(change))
    return int(change.growth > LIMIT)


def explanation(change: mindprof.ProfileDiff) -> str:
    """Says what the two changes below the table mean, that of the number and that of the time."""
    before, after = change.before, change.after
    verdict = "above" if change.growth > LIMIT else "within"
    return (
        f"Work: {before.count} events before, {after.count} after. It grew by {change.growth:.0%}, "
        f"which is {verdict} the limit of {LIMIT:.0%}.\n"
        "      This decides. How often operators run is the same in every run, on any machine.\n"
        f"Time: {before.self_cpu_time:.0f} us before, {after.self_cpu_time:.0f} us after.\n"
        "      This does not decide. Runs as short as this differ by more than the change itself,\n"
        "      so that more work may even take less time. Compare times of many steps."
    )


if __name__ == "__main__":
    sys.exit(main())
