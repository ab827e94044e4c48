"""The steps of a training loop, found by its optimizer: a program need not call `step()`."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Any

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
        self._finder = _Finder(self._watch)

    def start(self) -> None:
        """Watches the optimizers that there are, and those of modules that are still to come."""
        for name in MODULES:
            if name in sys.modules:
                self._watch(sys.modules[name])
        sys.meta_path.insert(0, self._finder)

    def stop(self) -> None:
        """Watches no longer; a second time changes nothing."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
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


class _Finder(importlib.abc.MetaPathFinder):
    """Says when one of the modules was imported. Finds nothing itself."""

    def __init__(self, after_import: Callable[[ModuleType], None]) -> None:
        self._after_import = after_import
        self._is_asking = False

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns what the other finders find, with a loader that tells."""
        if name not in MODULES or self._is_asking:
            return None
        self._is_asking = True
        try:
            spec = find_spec(name)
        finally:
            self._is_asking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._after_import)
        return spec


class _Loader(importlib.abc.Loader):
    """Loads as another loader does, and says so."""

    def __init__(self, loader: Any, after_import: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._after_import = after_import

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Makes the module as the other does."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module as the other does."""
        self._loader.exec_module(module)
        self._after_import(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
