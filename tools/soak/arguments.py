"""The command line of a run: its seed, its length, its rounds and activities."""

from __future__ import annotations

import argparse
import os
import random
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

#: The folder from which the package can be imported.
HOME = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Arguments:
    """The options of a run. A round depends only on the seed and on its number."""

    seed: int
    """The seed of all random choices."""
    first: int
    """The number of the first round."""
    rounds: int | None
    """The number of rounds, or None for as many as the time allows."""
    seconds: float
    """The seconds after which no further round begins."""
    only: tuple[str, ...]
    """The activities to choose from, or all if empty."""

    def command(self) -> list[str]:
        """Returns the command-line options of this run."""
        words = ["--seed", str(self.seed), "--first", str(self.first)]
        if self.rounds is not None:
            words += ["--rounds", str(self.rounds)]
        else:
            words += ["--seconds", str(self.seconds)]
        return [*words, *(["--only", ",".join(self.only)] if self.only else [])]

    def repetition(self, first: int, rounds: int) -> str:
        """Returns the shell command that repeats some rounds."""
        chosen = Arguments(self.seed, first, rounds, self.seconds, self.only)
        words = [sys.executable, "-m", "soak", *chosen.command()]
        return f"cd {shlex.quote(str(HOME))} && {shlex.join(words)}"


def parse(words: list[str], names: list[str]) -> Arguments:
    """Parses the command line, and picks a random seed if none is given.

    Args:
        words: The arguments after the name of the program.
        names: The names of all activities.
    """
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--seed", type=int, help="repeat the run of this seed; default: random")
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="the length of the run; default: 600"
    )
    parser.add_argument("--rounds", type=int, help="the number of rounds, instead of seconds")
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    parser.add_argument("--only", default="", help=f"some of: {','.join(names)}")
    found = parser.parse_args(words)
    only = tuple(filter(None, found.only.split(",")))
    if unknown := sorted(set(only) - set(names)):
        parser.error(f"unknown activity {', '.join(unknown)}; expected some of: {', '.join(names)}")
    seed = random.SystemRandom().randrange(1 << 32) if found.seed is None else found.seed
    return Arguments(seed, found.first, found.rounds, found.seconds, only)


def environment() -> dict[str, str]:
    """Returns the environment in which another interpreter finds this package."""
    paths = [str(HOME), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
