"""What the profiler adds to an operator of MindTorch v2: ours installed, against its own.

Run with the checkout on the path: `make bench-mindtorch MINDTORCH_SRC=...`. Rounds without a
profiler, with its own and with ours alternate in one run; what each adds is the median of the
differences to the round without one.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import mindprof
import mindtorch_v2 as torch

ROUNDS = 31
OPERATORS = 1_000


def nanoseconds(profiler: Any) -> float:
    """Returns what an operator takes, with a profiler unless that is None."""
    x: Any = torch.ones((2, 2))
    x + x
    if profiler is not None:
        profiler.start()
    start = time.perf_counter_ns()
    for _ in range(OPERATORS):
        x + x
    end = time.perf_counter_ns()
    if profiler is not None:
        profiler.stop()
    return (end - start) / OPERATORS


def added(options: dict[str, Any]) -> tuple[float, float, float]:
    """Returns what an operator takes without, and what its own profiler and ours add."""
    plain, own, ours = [], [], []
    for _ in range(ROUNDS):
        base = nanoseconds(None)
        plain.append(base)
        own.append(nanoseconds(torch.profiler.profile(**options)) - base)
        mindprof.install()
        base = nanoseconds(None)
        ours.append(nanoseconds(torch.profiler.profile(**options)) - base)
        mindprof.uninstall()
    return statistics.median(plain), statistics.median(own), statistics.median(ours)


def main() -> None:
    """Measures and prints."""
    cases: list[dict[str, Any]] = [{}, {"record_shapes": True}, {"with_stack": True}]
    for options in cases:
        plain, own, ours = added(options)
        asked = ", ".join(options) or "plain"
        print(
            f"{asked:14} operator {plain:7.0f} ns   its own adds {own:7.0f} ns   "
            f"ours adds {ours:7.0f} ns   ratio {ours / own:.3f}"
        )


if __name__ == "__main__":
    main()
