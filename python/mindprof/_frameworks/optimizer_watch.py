"""Reports the state of torch's optimizers to the recorder after each of their steps.

torch calls a method for its own profiler there, which we replace while memory is recorded. torch's
step hooks are no alternative: they must not change while a step runs them, and programs often call
`profile.step` from one.
"""

from __future__ import annotations

from types import ModuleType

from mindprof import _core
from mindprof._frameworks.shared_replacement import SharedReplacement

_NAME = "_optimizer_step_code"

REPLACEMENT = SharedReplacement()


def replaced(torch: ModuleType) -> list[_core.Replacement]:
    """Replaces torch's method with ours while the result is held. Empty if torch has none."""
    optimizer = torch.optim.Optimizer
    found = vars(optimizer).get(_NAME)
    if found is None:
        return []
    theirs = getattr(optimizer, _NAME)
    return [REPLACEMENT.hold(optimizer, _NAME, lambda: _method(_core.OptimizerWatch(theirs)))]


def _method(watch: _core.OptimizerWatch) -> object:
    """Wraps the watch in a method that `torch.compile` recognizes.

    torch 2.11 calls other descriptors as plain functions, without the optimizer.
    """
    import ctypes

    make = ctypes.pythonapi.PyInstanceMethod_New
    make.argtypes, make.restype = [ctypes.py_object], ctypes.py_object
    return make(watch)
