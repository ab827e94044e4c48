"""What `mindprof run` is told on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mindprof import _core
from mindprof._settings.options import DEFAULT_BUDGET_BYTES

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from mindprof._dataclass import dataclass

_DESCRIPTION = """\
Runs a Python program with the profiler on and changes nothing of it. At its end, also after Ctrl-C
or an exception, the rows with the most time are shown, and a folder holds the trace, the table and
the stacks."""

_EPILOGUE = """\
exit status: that of the program; 2 if it cannot be run; 130 after Ctrl-C, 143 after SIGTERM, 129
after SIGHUP

examples:
  mindprof run train.py --epochs 1
  mindprof run --memory --shapes train.py
  mindprof run --wait 5 --active 3 train.py     three optimizer steps, after the first five
  mindprof run -m package.train --epochs 1"""


@dataclass
class Arguments:
    """What to run, what to record of it, and where to put the results."""

    target: str
    """A script, or a module's name."""
    is_module: bool
    words: list[str]
    """What the program gets as its own arguments."""
    out: Path | None
    """The folder of the results; one that is named after the program if None."""
    shapes: bool
    memory: bool
    flops: bool
    stacks: bool
    install: bool
    """Whether the program's own use of torch's profiler is served too."""
    wait: int
    warmup: int
    active: int
    """How many optimizer steps a window has; the whole run is one window if 0."""
    repeat: int
    budget_bytes: int
    sort: str
    limit: int
    quiet: bool


def parse(words: Sequence[str]) -> Arguments:
    """Reads the command line; says what is wrong and exits with 2 if it is.

    Args:
        words: What follows `mindprof run`.
    """
    parser = _parser()
    before, is_module, target, after = _split(parser, list(words))
    found = parser.parse_args(before)
    if target is None:
        parser.error("a script is missing, or -m and a module")
    if not found.active and (found.wait or found.warmup or found.repeat is not None):
        parser.error("--wait, --warmup and --repeat need --active: how many steps to record")
    return Arguments(
        target=target,
        is_module=is_module,
        words=after,
        out=found.out,
        shapes=found.shapes,
        memory=found.memory,
        flops=found.flops,
        stacks=found.stacks,
        install=found.install,
        wait=found.wait,
        warmup=found.warmup,
        active=found.active,
        repeat=1 if found.repeat is None else found.repeat,
        budget_bytes=found.budget,
        sort=found.sort,
        limit=found.limit,
        quiet=found.quiet,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mindprof run",
        usage="mindprof run [OPTIONS] SCRIPT [ARGUMENTS]\n       "
        "mindprof run [OPTIONS] -m MODULE [ARGUMENTS]",
        description=_DESCRIPTION,
        epilog=_EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "-o",
        "--out",
        type=Path,
        metavar="FOLDER",
        help="where the results go, over what is there; a new folder if not given; each rank of a "
        "distributed program has one in it (rank0)",
    )
    add("--shapes", action="store_true", help="record the shapes of inputs")
    add("--memory", action="store_true", help="record memory, and write its timeline")
    add("--flops", action="store_true", help="count floating point operations")
    add("--no-stacks", dest="stacks", action="store_false", help="record no Python calls: cheaper")
    add(
        "--no-install",
        dest="install",
        action="store_false",
        help="leave torch.profiler to torch, if the program uses it itself",
    )
    add("--active", type=_steps, default=0, metavar="N", help="record N optimizer steps")
    add("--wait", type=_count, default=0, metavar="N", help="skip the first N steps")
    add(
        "--warmup",
        type=_count,
        default=0,
        metavar="N",
        help="then N steps that are not kept, to let caches fill",
    )
    add(
        "--repeat",
        type=_count,
        default=None,
        metavar="N",
        help="N windows of so many steps, one if not given; 0 repeats them until the end",
    )
    add(
        "--budget",
        type=_bytes,
        default=DEFAULT_BUDGET_BYTES,
        metavar="SIZE",
        help=f"how much memory a recording may take, as 512MiB; {DEFAULT_BUDGET_BYTES >> 20}MiB",
    )
    add(
        "--sort",
        choices=sorted(_core.sort_keys()),
        default="self_cpu_time_total",
        metavar="KEY",
        help="what rows are sorted by; self_cpu_time_total",
    )
    add("--limit", type=_count, default=15, metavar="ROWS", help="how many rows are shown; 15")
    add("-q", "--quiet", action="store_true", help="show no table, only where the results are")
    return parser


def _split(
    parser: argparse.ArgumentParser, words: list[str]
) -> tuple[list[str], bool, str | None, list[str]]:
    """Returns our options, whether `-m` was said, the program, and its own arguments.

    Everything from the program on is its own, also what looks like one of our options.
    """
    takes_value = {
        option
        for action in parser._actions
        for option in action.option_strings
        if action.nargs is None
    }
    index = 0
    while index < len(words):
        word = words[index]
        if word == "-m":
            return words[:index], True, _at(words, index + 1), words[index + 2 :]
        if word == "--":
            return words[:index], False, _at(words, index + 1), words[index + 2 :]
        if not word.startswith("-") or word == "-":
            return words[:index], False, word, words[index + 1 :]
        index += 2 if word in takes_value else 1
    return words, False, None, []


def _at(words: list[str], index: int) -> str | None:
    return words[index] if index < len(words) else None


#: As the other commands have them.
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def _bytes(text: str) -> int:
    number = text.rstrip("BKMGIbkmgi")
    unit = text[len(number) :].upper()
    if not number.isdecimal() or unit not in _UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: write 1000000, 512MB or 1GiB")
    return int(number) * _UNITS[unit]


def _steps(text: str) -> int:
    number = _count(text)
    if number == 0:
        raise argparse.ArgumentTypeError(
            "0 steps are none to record: say how many, or leave it out to record the whole run"
        )
    return number


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below zero")
    return number
