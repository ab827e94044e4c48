"""Compares what mindprof and MindTorch v2's own profiler add to an operator of MindTorch v2.

Run it with the checkout on the path: `make bench-mindtorch MINDTORCH_SRC=...`. The two profilers
alternate in one run, in three views:

1. The calls alone that the dispatcher makes around an operator while a profiler is on: the best CPU
   time of this thread over many rounds. The inputs are those of `x + x` and of `x + y`, since an
   input that occurs twice is examined once.
2. The same calls, each after an operator that the profilers do not see. They take several times as
   long in both, since an operator runs enough code to evict the profiler from the CPU caches.
3. `x + x` as a whole. It takes a hundred times as long as the calls, and noise or the garbage
   collector can add more than the calls to 200 operators in a row. Operators that the profiler sees
   and operators that it does not see therefore alternate one by one, under one open profiler and
   without garbage collection, and their medians are compared. The same difference without a
   profiler, zero apart from noise, is printed first.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import mindprof
import mindtorch_v2 as torch
from mindtorch_v2._dispatch import dispatcher  # type: ignore[import-not-found]

ROUNDS = 101
OPERATORS = 200
TURNS = 5
PAIRS = 1_000

CASES: list[dict[str, Any]] = [{}, {"record_shapes": True}, {"with_stack": True}]


def call_around(arguments: tuple[Any, Any]) -> None:
    """Makes the calls of the dispatcher around operators, without the operators."""
    keywords = {"alpha": 1}
    for _ in range(OPERATORS):
        if dispatcher.is_profiler_enabled():
            token = dispatcher.dispatch_op_enter("add", "cpu", arguments, keywords)
            if token is not None:
                dispatcher.dispatch_op_exit(token)


def nanoseconds(arguments: tuple[Any, Any], profiler: Any) -> float:
    """Returns the nanoseconds of the calls for one operator, under the profiler if given."""
    call_around(arguments)
    if profiler is not None:
        profiler.start()
        call_around(arguments)
    start = time.thread_time_ns()
    call_around(arguments)
    end = time.thread_time_ns()
    if profiler is not None:
        profiler.stop()
    return (end - start) / OPERATORS


def added_to_calls(
    arguments: tuple[Any, Any], options: dict[str, Any]
) -> tuple[float, float, float]:
    """Returns the time of the calls without a profiler, and what each profiler adds."""
    plain, own, ours = [], [], []
    for _ in range(ROUNDS):
        plain.append(nanoseconds(arguments, None))
        own.append(nanoseconds(arguments, torch.profiler.profile(**options)))
        mindprof.install()
        ours.append(nanoseconds(arguments, torch.profiler.profile(**options)))
        mindprof.uninstall()
    base = min(plain)
    return base, min(own) - base, min(ours) - base


def calls_after_operators(profiler: Any) -> float:
    """Returns the time of the calls under a profiler, each after an operator that it does not see.

    The cost of the clock is subtracted.
    """
    x: Any = torch.ones((2, 2))
    arguments, keywords = (x, x), {"alpha": 1}
    ask, clock = dispatcher.is_profiler_enabled, time.perf_counter_ns
    profiler.start()
    dispatcher.is_profiler_enabled = bool
    calls, nothing = [], []
    for _ in range(PAIRS):
        x + x
        start = clock()
        if ask():
            token = dispatcher.dispatch_op_enter("add", "cpu", arguments, keywords)
            if token is not None:
                dispatcher.dispatch_op_exit(token)
        calls.append(clock() - start)
        x + x
        start = clock()
        nothing.append(clock() - start)
    dispatcher.is_profiler_enabled = ask
    profiler.stop()
    return statistics.median(calls) - statistics.median(nothing)


def added_after_operators(options: dict[str, Any]) -> tuple[float, float]:
    """Returns the time of the calls after an operator, for MindTorch's profiler and for ours."""
    own, ours = [], []
    for _ in range(TURNS):
        own.append(calls_after_operators(torch.profiler.profile(**options)))
        mindprof.install()
        ours.append(calls_after_operators(torch.profiler.profile(**options)))
        mindprof.uninstall()
    return statistics.median(own), statistics.median(ours)


def unheard_and_heard(pairs: int) -> tuple[float, float]:
    """Returns the time of an operator that the profiler does not see, and of one that it sees."""
    x: Any = torch.ones((2, 2))
    ask, clock = dispatcher.is_profiler_enabled, time.perf_counter_ns
    unheard, heard = [], []
    for _ in range(pairs):
        dispatcher.is_profiler_enabled = bool
        start = clock()
        x + x
        unheard.append(clock() - start)
        dispatcher.is_profiler_enabled = ask
        start = clock()
        x + x
        heard.append(clock() - start)
    return statistics.median(unheard), statistics.median(heard)


def added_under(make_profiler: Callable[[], Any]) -> tuple[float, float]:
    """Returns the time of an operator, and what the profiler adds to it."""
    profiler = make_profiler()
    if profiler is not None:
        profiler.start()
    unheard_and_heard(PAIRS // 10)
    unheard, heard = unheard_and_heard(PAIRS)
    if profiler is not None:
        profiler.stop()
    return unheard, heard - unheard


def added_to_operators(options: dict[str, Any]) -> tuple[float, float, float, float]:
    """Returns the time of an operator, and what no profiler, MindTorch's and ours add."""
    bases, none, own, ours = [], [], [], []
    for _ in range(TURNS):
        base, added = added_under(lambda: None)
        bases.append(base)
        none.append(added)
        own.append(added_under(lambda: torch.profiler.profile(**options))[1])
        mindprof.install()
        ours.append(added_under(lambda: torch.profiler.profile(**options))[1])
        mindprof.uninstall()
    base, nothing, own_adds, ours_adds = map(statistics.median, (bases, none, own, ours))
    return base, nothing, own_adds, ours_adds


def main() -> None:
    """Measures and prints."""
    x: Any = torch.ones((2, 2))
    y: Any = torch.ones((2, 2))
    for view, arguments in (("calls for x + x", (x, x)), ("calls for x + y", (x, y))):
        for options in CASES:
            base, own, ours = added_to_calls(arguments, options)
            show(view, options, f"without {base:6.0f} ns", own, ours)
    gc.collect()
    gc.freeze()
    gc.disable()
    for options in CASES:
        own, ours = added_after_operators(options)
        show("calls after x + x", options, "", own, ours)
    for options in CASES:
        base, none, own, ours = added_to_operators(options)
        show("x + x as a whole", options, f"none adds {none:4.0f} ns to {base:6.0f}", own, ours)


def show(view: str, options: dict[str, Any], base: str, own: float, ours: float) -> None:
    """Prints a line."""
    print(
        f"{view:17} {', '.join(options) or 'plain':14} {base:28} "
        f"its own adds {own:6.0f} ns   ours adds {ours:6.0f} ns   ratio {ours / own:.3f}"
    )


if __name__ == "__main__":
    main()
