"""`install()` and `uninstall()`: once in a process, for frameworks that are there or still come."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from mindprof._import_watch import ImportWatch
from mindprof._install.mindtorch_names import MINDTORCH_MODULE, replace_mindtorch_names
from mindprof._install.replacements import Replacements
from mindprof._install.torch_names import TORCH_MODULE, replace_torch_names

#: By the module after whose import it is done, what is done.
_STEPS: dict[str, Callable[[ModuleType, Replacements], None]] = {
    TORCH_MODULE: replace_torch_names,
    MINDTORCH_MODULE: replace_mindtorch_names,
}


class _Installation:
    """What is installed in this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.replacements: dict[str, Replacements] = {}
        self.imports: ImportWatch | None = None
        if hasattr(os, "register_at_fork"):
            # A child that is forked while another thread installs finds it done or not begun.
            os.register_at_fork(
                before=self.lock.acquire,
                after_in_parent=self.lock.release,
                after_in_child=self.lock.release,
            )

    def install(self) -> None:
        with self.lock:
            if self.imports is not None:
                return
            self.imports = ImportWatch(_STEPS, self.meet)
            # Before the look at what is there, so that nothing comes in between.
            self.imports.start()
        for name in _STEPS:
            if name in sys.modules:
                # Waits for another thread that is still importing it.
                self.meet(import_module(name))

    def meet(self, module: ModuleType) -> None:
        """Replaces the names of a framework, unless that is done."""
        with self.lock:
            name = module.__name__
            if self.imports is not None and name not in self.replacements:
                self.replacements[name] = Replacements()
                _STEPS[name](module, self.replacements[name])

    def uninstall(self) -> None:
        with self.lock:
            if self.imports is None:
                return
            self.imports.stop()
            self.imports = None
            while self.replacements:
                self.replacements.popitem()[1].undo()


_INSTALLATION = _Installation()


def install() -> None:
    """Puts the engine in the place of torch's profiler: code that is written for that uses it.

    `torch.profiler.profile` and `tensorboard_trace_handler` are ours from then on, and so is
    `torch.autograd.profiler.profile`. A torch that is not there yet gets them when it is imported.
    A second call changes nothing.

    MindTorch v2, where it is in the process, has its operators recorded and its profiler served in
    the same way.

    What a program took out of torch before (`from torch.profiler import profile`) stays torch's.

    Example:
        >>> install()
        >>> uninstall()
    """
    _INSTALLATION.install()


def uninstall() -> None:
    """Puts back what was there before `install()`; a second call changes nothing."""
    _INSTALLATION.uninstall()
