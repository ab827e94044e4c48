"""Imports as one range each: the calls inside of them are no part of what a program does.

To import a large framework takes millions of calls, which would fill the recording before the
program's first line of its own, and take several times as long.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from time import perf_counter_ns
from types import ModuleType
from typing import Any

from mindprof._core import pause_calls, record_function, resume_calls

#: How the ranges of imports begin.
IMPORT = "import "

#: The function that the interpreter calls for a module that is not there yet.
_LOAD = "_find_and_load"


class ImportLog:
    """What was imported, and when."""

    def __init__(self) -> None:
        #: The modules that have ranges.
        self.modules: set[str] = set()
        #: When imports of the program's main thread began and ended, by `perf_counter_ns()`.
        self.of_main: list[tuple[int, int]] = []
        #: The same of all other threads.
        self.of_others: list[tuple[int, int]] = []


class Imports:
    """Has imports be ranges, one on a thread at a time, in which calls are not followed."""

    def __init__(self, after_import: Callable[[], None], log: ImportLog) -> None:
        """Makes what `start()` puts in place, on the main thread of the program.

        Args:
            after_import: Called after each import that is a range of this thread.
            log: Gets what is imported.
        """
        self._after_import = after_import
        self._log = log
        self._thread = threading.get_ident()
        self._local = threading.local()
        self._machinery: Any = importlib._bootstrap
        self._before: Any = None

    def start(self) -> None:
        """Takes the place of the interpreter's function."""
        self._before = getattr(self._machinery, _LOAD)
        setattr(self._machinery, _LOAD, self._load)

    def stop(self) -> None:
        """Gives the place back."""
        setattr(self._machinery, _LOAD, self._before)

    def _load(self, name: str, import_: Any) -> ModuleType:
        """Imports a module as the interpreter does."""
        module: ModuleType
        if getattr(self._local, "is_inside", False):
            module = self._before(name, import_)
            return module
        is_main = threading.get_ident() == self._thread
        self._local.is_inside = True
        self._log.modules.add(name)
        began_ns = perf_counter_ns()
        try:
            # The range first: its stack is that of the line which imports.
            with record_function(IMPORT + name):
                pause_calls()
                try:
                    module = self._before(name, import_)
                    # A host is met by the thread that began to record.
                    if is_main:
                        self._after_import()
                finally:
                    resume_calls()
            return module
        finally:
            spans = self._log.of_main if is_main else self._log.of_others
            spans.append((began_ns, perf_counter_ns()))
            self._local.is_inside = False
