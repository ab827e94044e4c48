"""Measures the cost of an operator that a framework opens and closes from Python.

Each case is timed in the same run as a pair of empty calls, and printed with its ratio to them.
Times are medians over rounds, of the CPU time of this thread. Inputs are a tensor and a number; the
tensor is a `TensorInput`, which needs no attribute access, a Python object with three attributes,
or a numpy array. With `--most NS` the exit status is 1 if an operator without inputs, or with a
`TensorInput`, costs more.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import mindprof
import numpy as np
from mindprof import hosts

ROUNDS = 31
OPERATORS = 20_000


def empty(_name: str) -> None:
    """Does nothing."""


def pair_of_empty_calls(count: int) -> None:
    """Makes two calls per iteration, as opening and closing an operator does."""
    for _ in range(count):
        empty("example::add")
        empty("example::add")


def operators(count: int) -> None:
    """Opens and closes operators by name."""
    enter, leave = hosts.open_operator, hosts.close_operator
    for _ in range(count):
        leave(enter("example::add"))


class Tensor:
    """A tensor of a framework, described by its attributes."""

    def __init__(self) -> None:
        self.shape = (64, 64)
        self.stride = (64, 1)
        self.dtype = "float32"


def operators_with(tensor: Any) -> Callable[[int], None]:
    """Returns a function that opens and closes operators with a tensor and a number."""

    def work(count: int) -> None:
        enter, leave = hosts.open_operator, hosts.close_operator
        inputs = (tensor, 1)
        for _ in range(count):
            leave(enter("example::add", inputs))

    return work


def nanoseconds(work: Callable[[int], None]) -> float:
    """Returns the nanoseconds of one iteration."""
    start = time.thread_time_ns()
    work(OPERATORS)
    return (time.thread_time_ns() - start) / OPERATORS


def recorded(work: Callable[[int], None], shapes: bool) -> float:
    """Returns the nanoseconds of one iteration while a profiler records."""
    with mindprof.profile(record_shapes=shapes):
        return nanoseconds(work)


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, help="the most nanoseconds that an operator may take")
    most = parser.parse_args().most
    cases: dict[str, Callable[[], float]] = {
        "a pair of empty calls": lambda: nanoseconds(pair_of_empty_calls),
        "an operator, nothing records": lambda: nanoseconds(operators),
        "an operator, recorded": lambda: recorded(operators, shapes=False),
    }
    tensors = {
        "a TensorInput": hosts.TensorInput((64, 64), "float32"),
        "a tensor of Python": Tensor(),
        "an array of numpy": np.zeros((64, 64), dtype=np.float32),
    }
    for name, tensor in tensors.items():
        work = operators_with(tensor)
        cases[f"with {name} and a number"] = partial(recorded, work, shapes=True)
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, measure in cases.items():
            times[name].append(measure())
    medians = {name: statistics.median(found) for name, found in times.items()}
    unit = medians["a pair of empty calls"]
    for name, median in medians.items():
        print(f"{name:36} {median:7.0f} ns   {median / unit:5.2f} of empty calls")
    limited = (medians["an operator, recorded"], medians["with a TensorInput and a number"])
    return int(most is not None and max(limited) > most)


if __name__ == "__main__":
    sys.exit(main())
