"""What an operator costs that a framework opens and closes from Python.

Each is timed in the same run as a pair of empty calls, and its ratio to that is shown; medians of
rounds, of the time that the processor worked for this thread. `--most NS` makes it an error if an
operator without inputs costs more.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import mindprof
from mindprof import hosts

ROUNDS = 31
OPERATORS = 20_000


def empty(_name: str) -> None:
    """Does nothing."""


def pair_of_empty_calls(count: int) -> None:
    """Calls twice per turn, as an operator is opened and closed."""
    for _ in range(count):
        empty("example::add")
        empty("example::add")


def operators(count: int) -> None:
    """Opens and closes operators by name."""
    enter, leave = hosts.open_operator, hosts.close_operator
    for _ in range(count):
        leave(enter("example::add"))


def operators_with_inputs(count: int) -> None:
    """Opens and closes operators with a tensor and a number."""
    enter, leave = hosts.open_operator, hosts.close_operator
    inputs = (hosts.TensorInput((64, 64), "float32"), 1)
    for _ in range(count):
        leave(enter("example::add", inputs))


def nanoseconds(work: Callable[[int], None]) -> float:
    """Returns what one turn takes."""
    start = time.thread_time_ns()
    work(OPERATORS)
    return (time.thread_time_ns() - start) / OPERATORS


def recorded(work: Callable[[int], None], shapes: bool) -> float:
    """Returns what one turn takes while a profiler records."""
    with mindprof.profile(record_shapes=shapes):
        return nanoseconds(work)


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, help="nanoseconds that an operator may take")
    most = parser.parse_args().most
    cases: dict[str, Callable[[], float]] = {
        "a pair of empty calls": lambda: nanoseconds(pair_of_empty_calls),
        "an operator, nothing records": lambda: nanoseconds(operators),
        "an operator, recorded": lambda: recorded(operators, shapes=False),
        "an operator with inputs, recorded": lambda: recorded(operators_with_inputs, shapes=True),
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, measure in cases.items():
            times[name].append(measure())
    medians = {name: statistics.median(found) for name, found in times.items()}
    unit = medians["a pair of empty calls"]
    for name, median in medians.items():
        print(f"{name:36} {median:7.0f} ns   {median / unit:5.2f} of empty calls")
    return int(most is not None and medians["an operator, recorded"] > most)


if __name__ == "__main__":
    sys.exit(main())
