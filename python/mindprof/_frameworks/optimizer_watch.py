"""What torch's optimizers keep, told to the recorder after each of their steps.

torch calls a method of its own there, for its profiler, and that is where ours stands while memory
is recorded. Its hooks for steps would do as well, but they may not change while a step runs them,
and a profiler is often stepped by one of them.
"""

from __future__ import annotations

from types import ModuleType

from mindprof import _core

_NAME = "_optimizer_step_code"


def replace(torch: ModuleType) -> None:
    """Has the recorder told of optimizers. A second call changes nothing."""
    found = getattr(torch.optim.Optimizer, _NAME, None)
    if found is not None and not isinstance(found, _core.OptimizerWatch):
        setattr(torch.optim.Optimizer, _NAME, _method(_core.OptimizerWatch(found)))


def _method(watch: _core.OptimizerWatch) -> object:
    """Makes it a method that `torch.compile` knows for one, of whichever torch.

    That of torch 2.11 calls what binds itself as if it was no method, without the optimizer.
    """
    import ctypes

    make = ctypes.pythonapi.PyInstanceMethod_New
    make.argtypes, make.restype = [ctypes.py_object], ctypes.py_object
    return make(watch)


def restore(torch: ModuleType) -> None:
    """Puts torch's method back, unless something else stands there by now."""
    found = getattr(torch.optim.Optimizer, _NAME, None)
    if isinstance(found, _core.OptimizerWatch):
        setattr(torch.optim.Optimizer, _NAME, found.theirs)
