"""The compilations that torch's compiler made during a run, as far as torch tells."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

#: A compiled function as the engine takes it: name, file, line, number of compilations, time in
#: nanoseconds, and why it was compiled again.
Compiled = tuple[str, str, int, int, int, str | None]

_MODULE = "torch._dynamo.utils"
_METRICS = "get_compilation_metrics"


def compilations() -> list[Compiled]:
    """Returns the compiled functions, those that took longest first.

    The list is empty if the program did not compile, or if this torch does not tell.
    """
    metrics: Any = getattr(sys.modules.get(_MODULE), _METRICS, None)
    if metrics is None:
        return []
    try:
        return _by_function(metrics())
    except Exception:
        # The fields are not public: another torch may name them differently.
        return []


def _by_function(metrics: Iterable[Any]) -> list[Compiled]:
    found: dict[tuple[str, str, int], list[Any]] = {}
    for metric in metrics:
        name, file, line = metric.co_name, metric.co_filename, metric.co_firstlineno
        if name is None or file is None or line is None:
            continue
        found.setdefault((name, file, line), []).append(metric)
    compiled = [_compiled(*function, theirs) for function, theirs in found.items()]
    return sorted(compiled, key=lambda one: -one[4])


def _compiled(name: str, file: str, line: int, metrics: list[Any]) -> Compiled:
    seconds = sum(_seconds(metric) for metric in metrics)
    reasons = [_reason(metric) for metric in metrics]
    reason = next((one for one in reversed(reasons) if one), None)
    file = os.path.relpath(file) if file.startswith(os.getcwd() + os.sep) else file
    return name, os.path.basename(file), line, len(metrics), int(seconds * 1e9), reason


def _seconds(metric: Any) -> float:
    whole = getattr(metric, "duration_us", None)
    if whole:
        return float(whole) / 1e6
    return float(getattr(metric, "entire_frame_compile_time_s", None) or 0.0)


def _reason(metric: Any) -> str | None:
    """Returns the first guard that failed, without the text that torch puts around it."""
    text = getattr(metric, "recompile_reason", None)
    if not isinstance(text, str) or not text.strip():
        return None
    line = next(line for line in text.splitlines() if line.strip())
    reason = line.split(": ", 1)[-1] if line.lstrip().startswith(("-", "0/", "1/")) else line
    reason = reason.split("  # ")[0].strip().rstrip(".")
    return reason[:90] or None
