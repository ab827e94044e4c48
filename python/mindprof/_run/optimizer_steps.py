"""Finds the steps of a training loop by its optimizer, so that programs need not call `step()`."""

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

#: The modules that define optimizers, in torch and in the embedded runtime.
MODULES = ("torch.optim.optimizer", "mindtorch_v2.optim.optimizer")

#: torch's method that wraps a `step` so that it opens a range and calls hooks.
_MAKER = "profile_hook_step"


class OptimizerSteps:
    """Calls a function after each step of the first optimizer that steps.

    Other optimizers, such as that of a second network in adversarial training, belong to the steps
    of the first. The call is made after torch's `step` has returned: a window that ended inside it
    would contain only a part of its range, and a `step` that calls `super().step()` would count
    twice.

    Args:
        after_step: The function to call.
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
        """Watches the imported optimizers, and those that are imported later."""
        for name in MODULES:
            if name in sys.modules:
                self._watch(sys.modules[name])
        self._imports.start()

    def stop(self) -> None:
        """Stops watching. Further calls have no effect."""
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
            # A forked child that goes on training is not recorded.
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
    """Returns a hook that torch's compiler calls without tracing it.

    The compiler traces other hooks, and warns about what it cannot follow.
    """

    def call(*args: Any) -> None:
        hook(*args)

    # `torch.compiler.disable` sets this too, but importing the compiler takes seconds.
    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    return call


class _Outside:
    """Wraps the functions in which torch opens the range of a step and calls its hooks.

    torch creates one such function per optimizer class, with the first optimizer of the class.
    """

    def __init__(self, after_step: Callable[[], None]) -> None:
        self._after_step = after_step
        self._inside = _Inside()
        self._replacements = Replacements()

    def add(self, module: ModuleType) -> None:
        """Wraps the steps of classes that have no optimizer yet."""
        optimizer = vars(module).get("Optimizer", object)
        theirs = vars(optimizer).get(_MAKER)
        if isinstance(theirs, staticmethod):
            ours = staticmethod(self._maker(theirs.__func__, vars(module).get("torch")))
            self._replacements.replace(optimizer, _MAKER, ours)

    def remove(self) -> None:
        """Restores the replaced functions, unless someone else replaced them since."""
        self._replacements.undo()

    def postpone(self, optimizer: Any) -> bool:
        """Postpones the call until the optimizer's step returns; false if no wrapper is active."""
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
                # A compiled step stays one graph.
                return hooked(*args, **kwargs)
            optimizer = args[0] if args else kwargs.get("self")
            inside.entered.append(optimizer)
            try:
                return hooked(*args, **kwargs)
            finally:
                inside.entered.pop()
                # A step may call another step of the same optimizer.
                is_outermost = all(entered is not optimizer for entered in inside.entered)
                if inside.over is not None and inside.over is optimizer and is_outermost:
                    inside.over = None
                    self._after_step()

        return step


class _Inside(threading.local):
    """The optimizers whose steps a thread is in, and the one whose step has just ended."""

    over: Any = None

    def __init__(self) -> None:
        self.entered: list[Any] = []
