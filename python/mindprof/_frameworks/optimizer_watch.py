"""Reports the state of torch's optimizers to the recorder after each of their steps.

torch calls a method for its own profiler there, which we replace while memory is recorded. torch's
step hooks are no alternative: they must not change while a step runs them, and programs often call
`profile.step` from one.
"""

from __future__ import annotations

from types import ModuleType

from mindprof import _core

_NAME = "_optimizer_step_code"


def replace(torch: ModuleType) -> None:
    """Replaces torch's method with ours. A second call has no effect."""
    found = getattr(torch.optim.Optimizer, _NAME, None)
    if found is not None and not isinstance(found, _core.OptimizerWatch):
        setattr(torch.optim.Optimizer, _NAME, _method(_core.OptimizerWatch(found)))


def _method(watch: _core.OptimizerWatch) -> object:
    """Wraps the watch in a method that `torch.compile` recognizes.

    torch 2.11 calls other descriptors as plain functions, without the optimizer.
    """
    import ctypes

    make = ctypes.pythonapi.PyInstanceMethod_New
    make.argtypes, make.restype = [ctypes.py_object], ctypes.py_object
    return make(watch)


def restore(torch: ModuleType) -> None:
    """Restores torch's method, unless someone else has replaced it since."""
    found = getattr(torch.optim.Optimizer, _NAME, None)
    if isinstance(found, _core.OptimizerWatch):
        setattr(torch.optim.Optimizer, _NAME, found.theirs)
