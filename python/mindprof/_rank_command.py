"""`mindprof ranks --on ENGINE`: reads the files on processes or a cluster, and prints the answers.

The engine's own command reads on threads. Here, other engines make the summary, and that command
answers from it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import warnings
from collections.abc import Sequence

from mindprof import _core, ranks

# The options of `mindprof ranks` that have a value, which must not be taken for a path.
_VALUED = ("--row-limit", "--width", "--html")
# Options that read the events of traces, which summaries do not have.
_OF_TRACES = ("--trace", "--parquet", "--ranks")
_ENGINES = ("processes", "ray", "dask")


def asks_for_engine(arguments: Sequence[str]) -> bool:
    """Returns whether these arguments of `mindprof ranks` name an engine other than threads."""
    following = dict(itertools.pairwise(arguments))
    named = following.get("--on") or next(
        (one.partition("=")[2] for one in arguments if one.startswith("--on=")), None
    )
    return named in _ENGINES


def run(arguments: Sequence[str]) -> int:
    """Runs `mindprof ranks` with such arguments, and returns its exit code."""
    parser = argparse.ArgumentParser(prog="mindprof ranks", add_help=False, allow_abbrev=False)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--on", choices=_ENGINES, required=True)
    parser.add_argument("--threads", "--workers", type=int, dest="workers")
    parser.add_argument("--json", action="store_true")
    for option in (*_VALUED, *_OF_TRACES):
        parser.add_argument(option)
    options = parser.parse_args(arguments)
    for option in _OF_TRACES:
        if getattr(options, option[2:]) is not None:
            parser.error(f"{option} reads the traces on this machine: leave out --on")
    if "-" in options.paths:
        parser.error("stdin is read on this machine: leave out --on")
    try:
        job = ranks.open(options.paths)
        with warnings.catch_warnings():
            # The files are named below, in the words of the command.
            warnings.simplefilter("ignore", ranks.RankWarning)
            summary = job.summarize(on=options.on, workers=options.workers)
    except (ImportError, OSError, _core.ProfilerError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for reason in job.failures.values():
        print(f"warning: {reason}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        merged = os.path.join(folder, "job.ranks")
        with open(merged, "wb") as file:
            file.write(summary.to_bytes())
        command = ["mindprof", "ranks", merged]
        for option in _VALUED:
            value = getattr(options, option[2:].replace("-", "_"))
            command += [] if value is None else [option, value]
        command += ["--json"] if options.json else []
        sys.stdout.flush()
        sys.stderr.flush()
        code = _core.run_command(command)
    return max(code, 1 if job.failures else 0)
