"""The steps of a training loop, found by its optimizer: a program need not call `step()`."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from mindprof._import_watch import ImportWatch

#: Where optimizers come from, in torch and in the runtime that comes with the package.
MODULES = ("torch.optim.optimizer", "mindtorch_v2.optim.optimizer")


class OptimizerSteps:
    """Calls back after each step of the first optimizer that steps.

    Others, such as the second one of two networks that train against each other, belong to its
    steps.
    """

    def __init__(self, after_step: Callable[[], None]) -> None:
        self.count = 0
        self._process = os.getpid()
        self._after_step = after_step
        self._first: weakref.ref[Any] | None = None
        self._handles: list[Any] = []
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

    def _watch(self, module: ModuleType) -> None:
        register = vars(module).get("register_optimizer_step_post_hook")
        if register is not None:
            self._handles.append(register(self._note))

    def _note(self, optimizer: Any, *_: Any) -> None:
        if os.getpid() != self._process:
            # A forked child that trains on has no recording.
            return
        first = None if self._first is None else self._first()
        if first is None:
            self._first = weakref.ref(optimizer)
        elif first is not optimizer:
            return
        self.count += 1
        self._after_step()
