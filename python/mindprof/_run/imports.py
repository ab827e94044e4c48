"""Imports as one range each: the calls inside them are not part of what a program does.

Importing a large framework takes millions of calls. Recording them would fill the budget before
the first line of the program runs, and would make the import several times slower.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from time import perf_counter_ns
from types import ModuleType
from typing import Any

from mindprof._core import pause_calls, record_function, resume_calls
from mindprof._import_watch import hidden_in_tracebacks
from mindprof._run.marks import Marks
from mindprof._run.span import Span

#: The beginning of the name of an import's range; the module follows.
IMPORT = "import "

#: The function that the interpreter calls for a module that is not yet imported.
_LOAD = "_find_and_load"


class Imports:
    """Records each outermost import of a thread as a range and does not follow the calls in it."""

    def __init__(self, after_import: Callable[[], None], marks: Marks) -> None:
        """Prepares the hook, on the main thread of the program.

        Args:
            after_import: Called after each import on this thread.
            marks: Receives the modules and times of imports.
        """
        self._after_import = after_import
        self._marks = marks
        self._thread = threading.get_ident()
        self._local = threading.local()
        self._machinery: Any = importlib._bootstrap
        self._before: Any = None

    def start(self) -> None:
        """Replaces the interpreter's function."""
        self._before = getattr(self._machinery, _LOAD)
        setattr(self._machinery, _LOAD, self._load)

    def stop(self) -> None:
        """Restores the interpreter's function."""
        setattr(self._machinery, _LOAD, self._before)

    @hidden_in_tracebacks
    def _load(self, name: str, import_: Any) -> ModuleType:
        """Imports a module as the interpreter does."""
        module: ModuleType
        if getattr(self._local, "is_inside", False):
            module = self._before(name, import_)
            return module
        is_main = threading.get_ident() == self._thread
        self._local.is_inside = True
        self._marks.modules.add(name)
        began_ns = perf_counter_ns()
        try:
            # The range comes first, so that its stack ends with the importing line.
            with record_function(IMPORT + name):
                pause_calls()
                try:
                    module = self._before(name, import_)
                    # Only the thread that started the recording can attach a framework.
                    if is_main:
                        self._after_import()
                finally:
                    resume_calls()
            return module
        finally:
            marks = self._marks
            spans = marks.imports if is_main else marks.other_imports
            spans.append(Span(began_ns, perf_counter_ns()))
            self._local.is_inside = False
