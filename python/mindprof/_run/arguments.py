"""The command line of `mindprof run`: its options, its help and the parsed result."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from mindprof import _core

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from mindprof._dataclass import dataclass

_DESCRIPTION = """\
Profile an unmodified Python program. When it ends, even by Ctrl-C or an
exception, print what takes most of its time and where, and write the trace,
the table and the stacks to a folder."""

_EPILOGUE = """\
examples:
  mindprof run train.py --epochs 1
  mindprof run --memory --shapes train.py
  mindprof run --wait 5 --active 3 train.py    skip five steps, record three
  mindprof run -m package.train --epochs 1
  generate | mindprof run -                    read the program from stdin

exit codes: those of the program, 2 usage error, 130 Ctrl-C, 143 SIGTERM,
129 SIGHUP"""


#: The default of `--budget`: half of other recordings, because the end of a run waits for the
#: analysis, and what does not fit is summed up.
_BUDGET_BYTES = 128 << 20

#: The values of `--stacks`.
STACKS = ("sampled", "every", "off")


@dataclass
class Arguments:
    """The parsed command line: the program, what to record, and where to write the results.

    Created by `parse` and passed to everything that takes part in the run.
    """

    target: str
    """The path of a script, `-` for stdin, or the name of a module."""
    is_module: bool
    words: list[str]
    """The arguments of the program itself."""
    out: Path | None
    """The folder for the results; a new one, named after the program, if None."""
    shapes: bool
    memory: bool
    flops: bool
    stacks: bool
    is_sampled: bool
    """Whether stacks are sampled; otherwise every call is traced."""
    details: bool
    """Whether dtypes and memory are recorded for the first screen."""
    keep_all: bool
    """Whether the trace has every event, however large it is."""
    install: bool
    """Whether mindprof also replaces torch's profiler for the program."""
    wait: int
    warmup: int
    active: int
    """The number of optimizer steps in a window; 0 if the whole run is one window."""
    repeat: int
    budget_bytes: int
    sort: str
    limit: int
    quiet: bool


def parse(words: Sequence[str]) -> Arguments:
    """Parses the command line; prints an error and exits with 2 if it is wrong.

    Args:
        words: The arguments after `mindprof run`.
    """
    parser = _parser()
    before, is_module, target, after = _split(parser, list(words))
    found = parser.parse_args(before)
    if target is None:
        parser.error("a script is missing: add one, or use -m MODULE or - for stdin")
    if not found.active and (found.wait or found.warmup or found.repeat is not None):
        parser.error(
            "--wait, --warmup and --repeat need --active: add --active N to record N steps"
        )
    # Who holds the memory is known from calls of modules.
    stacks = found.stacks or ("every" if found.memory else "sampled")
    return Arguments(
        target=target,
        is_module=is_module,
        words=after,
        out=found.out,
        shapes=found.shapes,
        memory=found.memory,
        flops=found.flops,
        stacks=stacks != "off",
        is_sampled=stacks == "sampled",
        details=stacks != "off",
        keep_all=found.keep == "all",
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


class _Parser(argparse.ArgumentParser):
    """A parser that suggests the option that a wrong one is most like."""

    def error(self, message: str) -> NoReturn:
        words = message.partition("unrecognized arguments: ")[2].split()
        if words:
            from difflib import get_close_matches

            known = [option for action in self._actions for option in action.option_strings]
            wrong = words[0].partition("=")[0]
            if near := get_close_matches(wrong, known, n=1):
                message += f"\nhint: did you mean `{near[0]}`?"
        super().error(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="mindprof run",
        usage="mindprof run [OPTIONS] SCRIPT [ARGUMENTS]\n       "
        "mindprof run [OPTIONS] -m MODULE [ARGUMENTS]\n       "
        "mindprof run [OPTIONS] - [ARGUMENTS]",
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
        help="write results to FOLDER, replacing files there, and to FOLDER/rankN if distributed "
        "[default: a new folder]",
    )
    add("--shapes", action="store_true", help="record input shapes")
    add("--memory", action="store_true", help="record memory and write a timeline")
    add("--flops", action="store_true", help="count floating-point operations")
    add(
        "--stacks",
        choices=STACKS,
        metavar="HOW",
        help="sampled: sample Python stacks; every: trace each call, which is slower; off "
        "[default: sampled, every with --memory]",
    )
    add("--no-stacks", dest="stacks", action="store_const", const="off", help="--stacks off")
    add(
        "--no-install",
        dest="install",
        action="store_false",
        help="do not replace torch.profiler in a program that uses it",
    )
    add(
        "--active",
        type=_steps,
        default=0,
        metavar="N",
        help="record N optimizer steps [default: the whole run]",
    )
    add(
        "--wait",
        type=_count,
        default=0,
        metavar="N",
        help="with --active: skip the first N steps",
    )
    add(
        "--warmup",
        type=_count,
        default=0,
        metavar="N",
        help="then discard N steps, to fill caches",
    )
    add(
        "--repeat",
        type=_count,
        default=None,
        metavar="N",
        help="record N windows of steps; 0 repeats until the end [default: 1]",
    )
    add(
        "--budget",
        type=_bytes,
        default=_BUDGET_BYTES,
        metavar="SIZE",
        help="limit the memory of a recording; of a longer one the last events are kept "
        f"[default: {_BUDGET_BYTES >> 20}MiB]",
    )
    add(
        "--keep",
        choices=("last", "all"),
        default="last",
        metavar="WHAT",
        help="if the trace has over 400,000 records or the files over 30 MB, keep the last records "
        "(last) or all (all) [default: last]",
    )
    add(
        "--sort",
        "--sort-by",
        choices=sorted(_core.sort_keys()),
        default="self_cpu_time_total",
        metavar="KEY",
        help="sort the rows of the table by KEY [default: self_cpu_time_total]",
    )
    add(
        "--limit",
        "--row-limit",
        type=_count,
        default=0,
        metavar="ROWS",
        help="also print the first ROWS rows of the table [default: 0]",
    )
    add("-q", "--quiet", action="store_true", help="print only the paths of the results")
    return parser


def _split(
    parser: argparse.ArgumentParser, words: list[str]
) -> tuple[list[str], bool, str | None, list[str]]:
    """Returns our options, whether `-m` was given, the program, and its arguments.

    Everything after the program belongs to it, even if it looks like one of our options.
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


#: The units of sizes, as in the other commands.
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def _bytes(text: str) -> int:
    number = text.rstrip("BKMGIbkmgi")
    unit = text[len(number) :].upper()
    if not number.isdecimal() or unit not in _UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size: use 1000000, 512MB or 1GiB")
    return int(number) * _UNITS[unit]


def _steps(text: str) -> int:
    number = _count(text)
    if number == 0:
        raise argparse.ArgumentTypeError(
            "0 steps record nothing: use 1 or more, or omit --active to record the whole run"
        )
    return number


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number: use a whole number") from None
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative: use a positive number")
    return number
