"""The process that runs the rounds: chooses activities, runs them and checks the results."""

from __future__ import annotations

import gc
import importlib.util
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import mindtorch_v2 as torch

from soak.activities import ACTIVITIES
from soak.arguments import Arguments
from soak.growth import Growth
from soak.rounds import Round
from soak.surroundings import Surroundings, check_after

#: The largest number of activities in a round.
MOST_ACTIVITIES = 3


def work(arguments: Arguments) -> int:
    """Runs the rounds, and returns the exit status: 1 after the first failure."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        return run_all(arguments, Path(folder))


def run_all(arguments: Arguments, folder: Path) -> int:
    """Runs the rounds, all in one folder, and checks memory at the end."""
    warm_up(folder)
    growth, counts = Growth(), Counter[str]()
    end = time.monotonic() + arguments.seconds
    number = arguments.first
    while is_next(arguments, number, end):
        random = Random(f"{arguments.seed} {number}")
        names = choose(random, arguments.only)
        print(f"round {number} {' '.join(names)}", flush=True)
        counts.update(names)
        try:
            run_round(random, names, folder)
        except BaseException:
            traceback.print_exc()
            return 1
        growth.sample()
        number += 1
    rounds = number - arguments.first
    shown = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(f"seed {arguments.seed}: {rounds} rounds held ({shown})")
    try:
        print(growth.check())
    except AssertionError as error:
        print(f"memory is not flat: {error}", file=sys.stderr)
        return 1
    return 0


def is_next(arguments: Arguments, number: int, end: float) -> bool:
    """Returns whether another round follows."""
    if arguments.rounds is not None:
        return number < arguments.first + arguments.rounds
    return time.monotonic() < end


def choose(random: Random, only: tuple[str, ...]) -> list[str]:
    """Returns the names of the activities of a round."""
    names = sorted(only or ACTIVITIES)
    return random.choices(names, k=1 if only else random.randrange(1, MOST_ACTIVITIES + 1))


def run_round(random: Random, names: list[str], folder: Path) -> None:
    """Runs the activities of a round one by one, and checks after each."""
    for name in names:
        before = Surroundings.look()
        with empty(folder):
            done = Round(random, folder)
            ACTIVITIES[name](done)
            gc.collect()
            check_after(done, before)


@contextmanager
def empty(folder: Path) -> Iterator[None]:
    """Empties the folder at the end."""
    # The folder is reused, because Python 3.12 interns the parts of every path forever.
    try:
        yield
    finally:
        for entry in folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def warm_up(folder: Path) -> None:
    """Creates everything that lives as long as the process: thread pools, imported tools."""
    side = 300
    large = torch.ones((side, side))
    large @ large
    for name in ("yappi", "pyinstrument", "viztracer", "coverage"):
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    with empty(folder):
        ACTIVITIES["exports"](Round(Random(0), folder))
