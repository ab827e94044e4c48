"""Stands in for functions of torch that ask which profiler runs, or that change it.

torch knows only its own profilers, so code that asks for one would take the other branch inside of
a recording. And torch takes any object in a thread's slot for its own profiler, also ours, which
receives memory reports (docs/pytorch.md). Both functions are replaced during a recording.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from mindprof import _core
from mindprof._frameworks.shared_replacement import SharedReplacement

#: The modules that have the functions, or import them from one that has.
_MODULES = (
    "torch._C._autograd",
    "torch.autograd",
    "torch.autograd.profiler",
    "torch.autograd.profiler_legacy",
    "torch.profiler",
    "torch.profiler.profiler",
)

_QUESTIONS = ("_profiler_enabled", "_profiler_type")
_CHANGES = ("_toggle_collection_dynamic", "_disable_profiler", "_disable_profiler_legacy")

_STAND_INS = (_core.TorchAnswer, _core.TorchWithoutSlot)
_StandIn = _core.TorchAnswer | _core.TorchWithoutSlot

#: The functions that are replaced, by module and name.
REPLACEMENTS: dict[tuple[str, str], SharedReplacement] = {}

# One for each function, because compiled code recognizes functions by their identity.
_stand_ins: dict[str, _StandIn] = {}


def replaced(torch: ModuleType) -> list[_core.Replacement]:
    """Replaces torch's functions with ours while the result is held."""
    return [_hold(torch, module, name, found) for module, name, found in _places()]


def own_question(torch: ModuleType) -> Callable[[], bool]:
    """Returns torch's own function that tells whether its profiler runs on the current thread."""
    ask = torch.autograd._profiler_enabled
    theirs: Callable[[], bool] = getattr(ask, "theirs", ask)
    return theirs


def runs_own_profiler(torch: ModuleType) -> bool:
    """Returns whether a profiler of torch's own runs on the current thread."""
    return bool(own_question(torch)())


def _hold(torch: ModuleType, module: ModuleType, name: str, found: Any) -> _core.Replacement:
    shared = REPLACEMENTS.setdefault((module.__name__, name), SharedReplacement())
    theirs = found.theirs if isinstance(found, _STAND_INS) else found
    return shared.hold(module, name, lambda: _stand_in(torch, name, theirs), theirs=theirs)


def _places() -> Iterator[tuple[ModuleType, str, Any]]:
    for place in _MODULES:
        # `torch._C._autograd` is an attribute of `torch._C` and not always listed as a module.
        module = sys.modules.get(place) or _attribute(place)
        for name in (*_QUESTIONS, *_CHANGES):
            found = vars(module).get(name) if module is not None else None
            if module is not None and found is not None:
                yield module, name, found


def _attribute(place: str) -> ModuleType | None:
    parent, _, name = place.rpartition(".")
    found = getattr(sys.modules.get(parent), name, None)
    return found if isinstance(found, ModuleType) else None


def _stand_in(torch: ModuleType, name: str, theirs: Any) -> _StandIn:
    known = _stand_ins.get(name)
    if known is None or known.theirs is not theirs:
        known = _stand_ins[name] = _make(torch, name, theirs)
    return known


def _make(torch: ModuleType, name: str, theirs: Any) -> _StandIn:
    if name == "_profiler_enabled":
        return _core.TorchAnswer(theirs, False, True)
    if name == "_profiler_type":
        kinds = torch._C._profiler.ActiveProfilerType
        return _core.TorchAnswer(theirs, kinds.NONE, kinds.KINETO)
    return _core.TorchWithoutSlot(theirs)
