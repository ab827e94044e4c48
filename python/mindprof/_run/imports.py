"""Imports as one range each: the calls inside of them are no part of what a program does.

To import a large framework takes millions of calls, which would fill the recording before the
program's first line of its own, and take several times as long.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from mindprof._core import pause_calls, record_function, resume_calls

#: How the ranges of imports begin.
IMPORT = "import "

#: The function that the interpreter calls for a module that is not there yet.
_LOAD = "_find_and_load"


class Imports:
    """Has imports on the thread that this is made on be ranges, in which calls are not followed."""

    def __init__(self, after_import: Callable[[], None], imported: set[str]) -> None:
        """Makes what `start()` puts in place.

        Args:
            after_import: Called after each import that is a range.
            imported: Gets the names of the modules that have ranges.
        """
        self._after_import = after_import
        self._imported = imported
        self._thread = threading.get_ident()
        self._is_inside = False
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
        if self._is_inside or threading.get_ident() != self._thread:
            module: ModuleType = self._before(name, import_)
            return module
        self._is_inside = True
        self._imported.add(name)
        try:
            # The range first: its stack is that of the line which imports.
            with record_function(IMPORT + name):
                pause_calls()
                try:
                    module = self._before(name, import_)
                    self._after_import()
                finally:
                    resume_calls()
            return module
        finally:
            self._is_inside = False
