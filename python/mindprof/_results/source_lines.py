"""Reads the lines of the user's own source files, for reports that may show them."""

from __future__ import annotations

import os
import sys
import tokenize
from collections.abc import Iterable, Mapping
from typing import Any

MOST_BYTES = 4 << 20
"""The largest source file that is read."""


def source_lines(costs: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Returns the names and lines of the files of some lines with costs.

    A trace of a stranger names any file. So only Python files below the current folder are read,
    of at most 4 MB.
    """
    found = []
    for name in dict.fromkeys(cost["file"] for cost in costs):
        path = _path_below(os.getcwd(), name)
        if path is None:
            continue
        try:
            with tokenize.open(path) as file:
                found.append((name, file.read().splitlines()))
        except (OSError, SyntaxError, UnicodeDecodeError):
            continue
    return found


def _path_below(folder: str, name: str) -> str | None:
    here = os.path.realpath(folder)
    for root in ("", *sys.path):
        path = os.path.realpath(os.path.join(root, name))
        if path.startswith(here + os.sep) and _is_shown(path):
            return path
    return None


def _is_shown(path: str) -> bool:
    return path.endswith(".py") and os.path.isfile(path) and os.path.getsize(path) <= MOST_BYTES
