"""What changed since last week: compare two traces, and fail if the work grew.

Here the second program has one layer more. The number of events does not depend on the machine, so
a limit on it can be strict; for times, leave out `measure` and allow a few percent.
"""

from __future__ import annotations

import sys

import mindprof
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile


def record(layers: int, path: str) -> None:
    """Runs a model of this many layers and writes its trace."""
    model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(layers)))
    with profile() as prof:
        model(torch.ones((4, 16))).sum().backward()
    prof.export_chrome_trace(path)


def main() -> int:
    """Records before and after, prints what changed and returns the exit code of a gate."""
    record(2, "out/before.json")
    record(3, "out/after.json")
    change = mindprof.diff("out/before.json", "out/after.json", measure="count")
    print(change.table(row_limit=20))
    print(f"grew by {change.growth:.0%}")
    return int(change.growth > 0.05)


if __name__ == "__main__":
    sys.exit(main())
