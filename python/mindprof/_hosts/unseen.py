"""A host whose operators nobody records: the real torch."""

from __future__ import annotations

import sys
import warnings

_TEXT = (
    "torch is loaded, but this profiler records the operators of mindtorch_v2: those of torch are "
    "not in the recording. Record them with torch.profiler, export_chrome_trace(path), and read "
    "the file with mindprof.load(path) or `mindprof table`. Ranges of record_function, and with "
    "with_stack=True all Python calls, are recorded here too."
)

_said = False


def warn_of_unseen_host() -> None:
    """Warns, once in a process, where the only host that ran operators is one that is not seen."""
    global _said
    if _said or "torch" not in sys.modules or "mindtorch_v2" in sys.modules:
        return
    _said = True
    warnings.warn(_TEXT, stacklevel=_outside())


def _outside() -> int:
    """Returns how many calls up the program is that uses this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("mindprof."):
        level, frame = level + 1, frame.f_back
    return level
