"""The stack level of the user's code, so that warnings point to its line."""

from __future__ import annotations

import sys


def level_outside() -> int:
    """Returns the `stacklevel` of the first caller outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("mindprof."):
        level, frame = level + 1, frame.f_back
    return level
