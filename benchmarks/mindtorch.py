"""What the profiler adds to an operator of MindTorch v2: ours installed, against its own.

Run with the checkout on the path: `make bench-mindtorch MINDTORCH_SRC=...`. Two views, both of time
that the processor worked for this thread: the calls that the dispatcher makes around an operator
while a profiler is on, by themselves, and `x + x` as a whole, less what it takes without one. Its
own profiler and ours alternate in one run; of each the best of many rounds counts, since what a
busy machine adds to an operator is more than what is looked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mindprof
import mindtorch_v2 as torch
from mindtorch_v2._dispatch import dispatcher  # type: ignore[import-not-found]

ROUNDS = 101
OPERATORS = 200


def calls_of_the_dispatcher(x: Any) -> None:
    """Asks and calls as the dispatcher does for one operator, without the operator."""
    arguments, keywords = (x, x), {"alpha": 1}
    for _ in range(OPERATORS):
        if dispatcher.is_profiler_enabled():
            token = dispatcher.dispatch_op_enter("add", "cpu", arguments, keywords)
            if token is not None:
                dispatcher.dispatch_op_exit(token)


def whole_operators(x: Any) -> None:
    """Runs operators."""
    for _ in range(OPERATORS):
        x + x


def nanoseconds(work: Callable[[Any], None], profiler: Any) -> float:
    """Returns what one turn takes, with a profiler unless that is None."""
    x: Any = torch.ones((2, 2))
    work(x)
    if profiler is not None:
        profiler.start()
    start = time.thread_time_ns()
    work(x)
    end = time.thread_time_ns()
    if profiler is not None:
        profiler.stop()
    return (end - start) / OPERATORS


def added(work: Callable[[Any], None], options: dict[str, Any]) -> tuple[float, float, float]:
    """Returns what a turn takes without, and what its own profiler and ours add."""
    plain, own, ours = [], [], []
    for _ in range(ROUNDS):
        plain.append(nanoseconds(work, None))
        own.append(nanoseconds(work, torch.profiler.profile(**options)))
        mindprof.install()
        ours.append(nanoseconds(work, torch.profiler.profile(**options)))
        mindprof.uninstall()
    base = min(plain)
    return base, min(own) - base, min(ours) - base


def main() -> None:
    """Measures and prints."""
    cases: list[dict[str, Any]] = [{}, {"record_shapes": True}, {"with_stack": True}]
    for work in (calls_of_the_dispatcher, whole_operators):
        for options in cases:
            base, own, ours = added(work, options)
            print(
                f"{work.__name__:24} {', '.join(options) or 'plain':14} without {base:6.0f} ns   "
                f"its own adds {own:6.0f} ns   ours adds {ours:6.0f} ns   ratio {ours / own:.3f}"
            )


if __name__ == "__main__":
    main()
