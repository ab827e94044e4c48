"""Reads the lines of the user's own source files, for reports that may show them."""

from __future__ import annotations

import os
import sys
import tokenize
from collections.abc import Iterable, Mapping
from typing import Any


def source_lines(costs: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Returns the names and lines of the files of some lines with costs.

    Only files below the current folder are read: others may not be the user's to show.
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
        if path.startswith(here + os.sep) and os.path.isfile(path):
            return path
    return None
