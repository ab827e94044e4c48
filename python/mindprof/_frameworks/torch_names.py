"""Interposes in functions of torch that ask which profiler runs, or that change it.

torch knows only its own profilers, so code that asks for one would take the other branch inside of
a recording. And torch takes any object in a thread's slot for its own profiler, also ours, which
receives memory reports (docs/pytorch.md). The function objects stay torch's, so this also holds for
code that imported them before the recording.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any

from mindprof import _core

_CHANGES = (
    "_enable_profiler",
    "_enable_profiler_legacy",
    "_toggle_collection_dynamic",
    "_disable_profiler",
    "_disable_profiler_legacy",
)


# By the first two, torch's own profiler begins to use CUPTI, and by the last it reads the results.
_BEGINNINGS = ("_prepare_profiler", "_enable_profiler")
_END = "_disable_profiler"


def replaced(torch: ModuleType) -> list[_core.InterposedFunction]:
    """Interposes in torch's functions while the result is held.

    A function that a program has replaced with its own is left alone.
    """
    native = torch._C._autograd
    kinds = torch._C._profiler.ActiveProfilerType
    answers: dict[str, tuple[Any, ...]] = {
        "_profiler_enabled": (False, True),
        "_profiler_type": (kinds.NONE, kinds.KINETO),
        **dict.fromkeys(_CHANGES, ()),
    }
    held = []
    for name, of_function in answers.items():
        with suppress(AttributeError, TypeError):
            held.append(_core.InterposedFunction(getattr(native, name), *of_function))
    return held


def watched(
    torch: ModuleType,
    lock: threading.RLock,
    before: Callable[[], object],
) -> list[_core.InterposedFunction]:
    """Has torch's profilers begin and end with a lock held, while the result is held.

    Args:
        torch: The module.
        lock: The lock.
        before: Called before a profiler is prepared or started, also if that is done by us.
    """
    native = torch._C._autograd
    held = []
    for name in (*_BEGINNINGS, _END):
        first = None if name == _END else before
        with suppress(AttributeError, TypeError):
            function = getattr(native, name)
            held.append(_core.InterposedFunction(function, lock=lock, before=first))
    return held


def can_hide_slot(torch: ModuleType) -> bool:
    """Returns whether our object can be hidden from the functions that change torch's profiler."""
    native = torch._C._autograd
    functions = [getattr(native, name) for name in _CHANGES if hasattr(native, name)]
    try:
        for function in functions:
            _core.InterposedFunction(function)
    except TypeError:
        return False
    return True


def own_question(torch: ModuleType) -> Callable[[], bool]:
    """Returns torch's own function that tells whether its profiler runs on the current thread."""
    return partial(_core.torchs_own_answer, torch._C._autograd._profiler_enabled)


def runs_own_profiler(torch: ModuleType) -> bool:
    """Returns whether a profiler of torch's own runs on the current thread."""
    return bool(own_question(torch)())
