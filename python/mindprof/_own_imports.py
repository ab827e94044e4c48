"""Keeps the modules that mindprof imports apart from those of a program that it runs.

`python -m mindprof` puts the current folder first on the path, and a `random.py` there would take
the place of the standard library's for mindprof itself. `mindprof run` gives the program the path
and the modules that it would have without mindprof.
"""

from __future__ import annotations

import itertools
import sys

#: The modules that were there before mindprof: Python itself imports them.
AT_START = frozenset(sys.modules)

_MODULE = "mindprof"


def leave_folder() -> None:
    """Removes the current folder from the path if this is `python -m mindprof`."""
    # While Python looks for the module, this is the program's name.
    if sys.argv[:1] == ["-m"] and _is_program() and not is_safe() and sys.path:
        del sys.path[0]


def has_own_folder() -> bool:
    """Returns whether the first folder of the path is that of our own program."""
    return not _is_program() and not is_safe()


def is_safe() -> bool:
    """Returns whether Python puts no folder of a program on the path (`-P`, `PYTHONSAFEPATH`)."""
    return bool(getattr(sys.flags, "safe_path", False))


def _is_program() -> bool:
    words = getattr(sys, "orig_argv", [])
    after = (word for option, word in itertools.pairwise(words) if option == "-m")
    return next(after, None) == _MODULE or f"-m{_MODULE}" in words
