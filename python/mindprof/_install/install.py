"""`install()` and `uninstall()`: process-wide, for frameworks imported before or after the call."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from mindprof._import_watch import ImportWatch
from mindprof._install.mindtorch_names import MINDTORCH_MODULE, replace_mindtorch_names
from mindprof._install.npu_names import NPU_MODULE, replace_npu_names
from mindprof._install.replacements import Replacements
from mindprof._install.torch_names import TORCH_MODULE, replace_torch_names

#: The function to call after the import of each module.
_STEPS: dict[str, Callable[[ModuleType, Replacements], None]] = {
    TORCH_MODULE: replace_torch_names,
    MINDTORCH_MODULE: replace_mindtorch_names,
    NPU_MODULE: replace_npu_names,
}


class _Installation:
    """The process-wide state of `install()`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.replacements: dict[str, Replacements] = {}
        self.imports: ImportWatch | None = None
        if hasattr(os, "register_at_fork"):
            # A child never sees a half-finished installation of another thread.
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
            # Starts before the loop below, so that no import slips in between.
            self.imports.start()
        for name in _STEPS:
            if name in sys.modules:
                # Waits if another thread is still importing the module.
                self.meet(import_module(name))

    def meet(self, module: ModuleType) -> None:
        """Replaces the names of a framework, unless that has happened already."""
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
    """Replaces torch's profiler with this one, so that existing code uses it unchanged.

    `torch.profiler.profile`, `torch.profiler.tensorboard_trace_handler` and
    `torch.autograd.profiler.profile` refer to mindprof from then on. If torch is imported later,
    the names are replaced after its import. A second call has no effect.

    If the process uses MindTorch v2, its operators are recorded and its profiler is replaced too.
    So is the profiler of torch_npu, if torch's collector has a plugin that records NPUs.

    Names that the program imported earlier (`from torch.profiler import profile`) remain torch's.

    Example:
        >>> install()
        >>> uninstall()
    """
    _INSTALLATION.install()


def uninstall() -> None:
    """Restores the names that `install()` replaced. A second call has no effect."""
    _INSTALLATION.uninstall()
