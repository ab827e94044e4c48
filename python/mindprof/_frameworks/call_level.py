"""How far up the program is that called, for warnings that are to name its line."""

from __future__ import annotations

import sys


def level_outside() -> int:
    """Returns how many calls up from the caller the program is that uses this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("mindprof."):
        level, frame = level + 1, frame.f_back
    return level
