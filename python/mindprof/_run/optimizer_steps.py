"""The steps of a training loop, found by its optimizer: a program need not call `step()`."""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from mindprof._import_watch import ImportWatch
from mindprof._install.replacements import Replacements

#: Where optimizers come from, in torch and in the runtime that comes with the package.
MODULES = ("torch.optim.optimizer", "mindtorch_v2.optim.optimizer")

#: torch's method that makes a `step` of one that opens no range and calls no hooks.
_MAKER = "profile_hook_step"


class OptimizerSteps:
    """Calls back after each step of the first optimizer that steps.

    Others, such as the second one of two networks that train against each other, belong to its
    steps. A step of torch has returned then: a window that ended within it would have its range
    only in part, and a step that calls that of a class it is derived from would be two.

    Args:
        after_step: What is called.
    """

    def __init__(self, after_step: Callable[[], None]) -> None:
        self.count = 0
        self._process = os.getpid()
        self._after_step = after_step
        self._first: weakref.ref[Any] | None = None
        self._handles: list[Any] = []
        self._outside = _Outside(self._step)
        self._imports = ImportWatch(MODULES, self._watch)

    def start(self) -> None:
        """Watches the optimizers that there are, and those of modules that are still to come."""
        for name in MODULES:
            if name in sys.modules:
                self._watch(sys.modules[name])
        self._imports.start()

    def stop(self) -> None:
        """Watches no longer; a second time changes nothing."""
        self._imports.stop()
        while self._handles:
            self._handles.pop().remove()
        self._outside.remove()

    def _watch(self, module: ModuleType) -> None:
        register = vars(module).get("register_optimizer_step_post_hook")
        if register is not None:
            self._handles.append(register(_opaque(self._note)))
        self._outside.add(module)

    def _note(self, optimizer: Any, *_: Any) -> None:
        if os.getpid() != self._process:
            # A forked child that trains on has no recording.
            return
        first = None if self._first is None else self._first()
        if first is None:
            self._first = weakref.ref(optimizer)
        elif first is not optimizer:
            return
        if not self._outside.postpone(optimizer):
            self._step()

    def _step(self) -> None:
        self.count += 1
        self._after_step()


def _opaque(hook: Callable[..., None]) -> Callable[..., None]:
    """Returns a hook that torch's compiler calls as it is where a step is compiled.

    It looks into others, and warns of what it cannot follow there.
    """

    def call(*args: Any) -> None:
        hook(*args)

    # What `torch.compiler.disable` sets, which would import the compiler.
    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    return call


class _Outside:
    """Stands around the functions in which torch opens the range of a step and calls its hooks.

    torch makes one for each class of optimizers, when the first one of the class is made.
    """

    def __init__(self, after_step: Callable[[], None]) -> None:
        self._after_step = after_step
        self._inside = _Inside()
        self._replacements = Replacements()

    def add(self, module: ModuleType) -> None:
        """Has steps return through here, of classes of which no optimizer was made yet."""
        optimizer = vars(module).get("Optimizer", object)
        theirs = vars(optimizer).get(_MAKER)
        if isinstance(theirs, staticmethod):
            ours = staticmethod(self._maker(theirs.__func__, vars(module).get("torch")))
            self._replacements.replace(optimizer, _MAKER, ours)

    def remove(self) -> None:
        """Puts back what was there, unless something else stands there by now."""
        self._replacements.undo()

    def postpone(self, optimizer: Any) -> bool:
        """Has the call made when the optimizer's step returns; false if it is in none of ours."""
        is_inside = any(entered is optimizer for entered in self._inside.entered)
        self._inside.over = optimizer if is_inside else None
        return is_inside

    def _maker(self, theirs: Callable[..., Any], torch: Any) -> Callable[..., Any]:
        def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
            return self._around(theirs(func), torch)

        return profile_hook_step

    def _around(self, hooked: Callable[..., Any], torch: Any) -> Callable[..., Any]:
        inside = self._inside

        @functools.wraps(hooked)
        def step(*args: Any, **kwargs: Any) -> Any:
            compiler = getattr(torch, "compiler", None)
            if compiler is not None and compiler.is_compiling():
                # What is compiled stays whole.
                return hooked(*args, **kwargs)
            optimizer = args[0] if args else kwargs.get("self")
            inside.entered.append(optimizer)
            try:
                return hooked(*args, **kwargs)
            finally:
                inside.entered.pop()
                # One step may lie in another of the same optimizer.
                is_outermost = all(entered is not optimizer for entered in inside.entered)
                if inside.over is not None and inside.over is optimizer and is_outermost:
                    inside.over = None
                    self._after_step()

        return step


class _Inside(threading.local):
    """The optimizers whose steps a thread is in, and that whose step has ended and counts."""

    over: Any = None

    def __init__(self) -> None:
        self.entered: list[Any] = []
