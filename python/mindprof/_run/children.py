"""Notes the processes that a program starts, to name those that are not recorded."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from time import perf_counter_ns
from types import ModuleType
from typing import Any

from mindprof._import_watch import ImportWatch
from mindprof._install.replacements import Replacements
from mindprof._run.span import Span

#: The classes that start processes, by module, and the method that does.
_STARTERS = {
    "multiprocessing.process": ("BaseProcess", "start"),
    "subprocess": ("Popen", "__init__"),
}

#: The modules of the functions that recorded processes run: those of data loader workers.
_RECORDED = ("torch.utils.data.", "mindprof._frameworks.")

#: The module whose functions start one process for each rank.
_SPAWNER = "torch.multiprocessing.spawn"

#: The largest number of names.
_NAMED = 3

#: Helpers of Python that run none of the program's code.
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


class Children:
    """Notes the processes that a program starts through `multiprocessing` and `subprocess`.

    Workers of data loaders are recorded; all others run without the profiler.
    """

    def __init__(self) -> None:
        self._started: list[tuple[Span, str]] = []
        self._process = os.getpid()
        self._replacements = Replacements()
        self._imports = ImportWatch(_STARTERS, self._watch)

    def start(self) -> None:
        """Watches the modules that start processes, now or when they are imported."""
        for name in _STARTERS:
            if name in sys.modules:
                self._watch(sys.modules[name])
        self._imports.start()

    def stop(self) -> None:
        """Restores the replaced methods, unless someone else replaced them since."""
        self._imports.stop()
        self._replacements.undo()

    def not_recorded(self, imports: Sequence[Span]) -> list[str]:
        """Returns texts that name the processes: how many of them, and what they run.

        Args:
            imports: When the program imported; processes that libraries start then do not matter.
        """
        counts: dict[str, int] = {}
        for span, name in self._started:
            if not span.is_in(imports):
                counts[name] = counts.get(name, 0) + 1
        texts = [
            f"{count} processes that run {name}" if count > 1 else f"a process that runs {name}"
            for name, count in counts.items()
        ]
        more = len(texts) - _NAMED
        return texts[:_NAMED] + ([f"{more} more kinds of processes"] if more > 0 else [])

    def _watch(self, module: ModuleType) -> None:
        class_name, method = _STARTERS[module.__name__]
        owner: Any = vars(module).get(class_name)
        theirs = vars(owner).get(method) if owner is not None else None
        if theirs is None:
            return
        describe = _of_process if class_name == "BaseProcess" else _of_command

        @functools.wraps(theirs)
        def start(child: Any, *args: Any, **kwargs: Any) -> Any:
            name = describe(child, args, kwargs) if os.getpid() == self._process else None
            began = perf_counter_ns()
            result = theirs(child, *args, **kwargs)
            if name is not None and os.getpid() == self._process:
                self._started.append((Span(began, perf_counter_ns()), name))
            return result

        self._replacements.replace(owner, method, start)


def _of_process(child: Any, _: Sequence[Any], __: dict[str, Any]) -> str | None:
    target = getattr(child, "_target", None)
    arguments = getattr(child, "_args", ())
    if getattr(target, "__module__", None) == _SPAWNER and arguments:
        # Its processes run a function of torch, which calls the program's.
        target = arguments[0]
    name = getattr(target, "__qualname__", None) or type(child).__name__
    module = getattr(target, "__module__", None) or ""
    return None if str(module).startswith(_RECORDED) else str(name)


def _of_command(_: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
    command = args[0] if args else kwargs.get("args")
    words = [command] if isinstance(command, (str, bytes, os.PathLike)) else list(command or ())
    texts = [os.fsdecode(word) for word in words[:4]]
    if not texts or any(helper in text for helper in _HELPERS for text in texts):
        return None
    first = texts[0].split()[0] if texts[0].split() else texts[0]
    return " ".join([os.path.basename(first), *texts[1:2]])[:40]
