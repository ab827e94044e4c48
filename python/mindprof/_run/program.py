"""The program that is profiled: found, compiled, and run as if it had been started by itself."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType


class ProgramError(Exception):
    """There is no such program, or it is none."""


class Program:
    """A script, or a module as `python -m` runs it."""

    def __init__(self, target: str, is_module: bool, words: Sequence[str]) -> None:
        """Finds the program and compiles it.

        Args:
            target: The path of a script, or a module's name.
            is_module: Whether it is a module's name.
            words: The arguments that the program gets.

        Raises:
            ProgramError: It cannot be run.
        """
        self.words = list(words)
        if is_module:
            # As Python does: modules are looked for where one stands first.
            self.folder = str(Path.cwd())
            self.name = target.rpartition(".")[2]
            self._main, self._code = _module(target, self.folder)
        else:
            path = Path(target).resolve()
            self.folder = str(path if path.is_dir() else path.parent)
            self.name = path.stem
            self._main, self._code = _script(target)
        self.argument = (is_module and self._main.__file__) or target

    def prepare(self) -> None:
        """Makes the process that of the program."""
        # Kept after the end, because threads and functions called at exit look into it.
        sys.modules["__main__"] = self._main
        sys.argv = [self.argument, *self.words]
        _put_first(self.folder)

    def run(self) -> None:
        """Runs it to its end. What it raises, `SystemExit` too, comes out as it is."""
        exec(self._code, self._main.__dict__)


def _script(target: str) -> tuple[ModuleType, CodeType]:
    path = Path(target)
    if path.is_dir():
        path /= "__main__.py"
    try:
        source = path.read_bytes()
    except OSError as error:
        raise ProgramError(f"cannot read {path}: {error.strerror}") from None
    main = ModuleType("__main__")
    # As Python names it, there and in tracebacks, wherever the program goes from here.
    main.__file__ = os.path.abspath(path)
    return main, _compiled(source, main.__file__)


def _compiled(source: bytes, path: str) -> CodeType:
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise ProgramError(f"{path} is no Python: {error}") from None


def _module(name: str, folder: str) -> tuple[ModuleType, CodeType]:
    _put_first(folder)
    try:
        # Its package is imported on the way, as by Python itself.
        _, spec, code = runpy._get_module_details(name)  # type: ignore[attr-defined]
    except ImportError as error:
        if error.name is not None and not f"{name}.".startswith(f"{error.name}."):
            # What it imports itself is missing: that is for the program's own traceback.
            raise
        raise ProgramError(f"there is no module {name}: {error}") from None
    main = ModuleType("__main__")
    main.__file__ = spec.origin
    main.__spec__ = spec
    main.__package__ = spec.parent
    main.__loader__ = spec.loader
    return main, code


def _put_first(folder: str) -> None:
    """Has modules looked for in the program's folder, in place of where our own program is."""
    own = ("", str(Path.cwd()), str(Path(sys.argv[0]).resolve().parent))
    if sys.path and sys.path[0] in own:
        del sys.path[0]
    sys.path.insert(0, folder)
