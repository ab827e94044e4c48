"""Finds, compiles and runs the profiled program as Python itself would."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType

from mindprof._late_modules import import_before_program
from mindprof._own_imports import AT_START, has_own_folder, is_safe


class ProgramError(Exception):
    """The program does not exist or is not Python."""


#: The name of a program that is read from stdin, as for Python itself.
_STDIN = "-"


class Program:
    """A script, a module as `python -m` runs it, or the text on stdin as `python -` runs it."""

    def __init__(self, target: str, is_module: bool, words: Sequence[str]) -> None:
        """Finds the program and compiles it.

        Args:
            target: The path of a script, `-` for stdin, or a module's name.
            is_module: Whether `target` names a module.
            words: The arguments of the program.

        Raises:
            ProgramError: The program cannot be run.
        """
        self.words = list(words)
        #: Our modules that the program's own ones of the same names take the place of.
        self._ours: dict[str, ModuleType] = {}
        if is_module:
            # As Python does, search the current folder for modules first.
            self.folder = str(Path.cwd())
            self.name = target.rpartition(".")[2]
            import_before_program(self.folder)
            self._main, self._code = _module(target, self.folder)
        elif target == _STDIN:
            # As Python does, search the current folder for modules, wherever the program goes.
            self.folder = ""
            self.name = "stdin"
            import_before_program(os.curdir)
            self._main, self._code = _standard_input()
        else:
            path = Path(target).resolve()
            self.folder = str(path if path.is_dir() else path.parent)
            self.name = path.stem
            import_before_program(self.folder)
            self._main, self._code = _script(target)
        self.argument = (is_module and self._main.__file__) or target

    def prepare(self) -> None:
        """Sets up `__main__`, `sys.argv` and `sys.path` for the program."""
        # It stays there after the end, because threads and exit handlers look into it.
        sys.modules["__main__"] = self._main
        sys.argv = [self.argument, *self.words]
        _put_first(self.folder)
        if self.folder:
            self._ours = _hide_shadowed(self.folder)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Imports modules for mindprof during a block, also where the program has its own ones."""
        path = sys.path
        theirs = {name: sys.modules.get(name) for name in self._ours}
        # Last: its source files are still found by their names.
        sys.path = [*(folder for folder in path if folder != self.folder), self.folder]
        sys.modules.update(self._ours)
        try:
            yield
        finally:
            sys.path = path
            for name, module in theirs.items():
                if module is None:
                    sys.modules.pop(name, None)
                else:
                    sys.modules[name] = module

    def run(self) -> None:
        """Runs the program to its end. Its exceptions, also `SystemExit`, propagate."""
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
    # An absolute path, as Python sets it, stays valid if the program changes directory.
    main.__file__ = os.path.abspath(path)
    return main, _compiled(source, main.__file__)


def _standard_input() -> tuple[ModuleType, CodeType]:
    # Python itself may have closed it.
    if sys.stdin is None:
        raise ProgramError("cannot read stdin: it is closed")
    try:
        source = sys.stdin.buffer.read()
    except OSError as error:
        raise ProgramError(f"cannot read stdin: {error.strerror}") from None
    main = ModuleType("__main__")
    main.__file__ = "<stdin>"
    return main, _compiled(source, main.__file__)


def _compiled(source: bytes, path: str) -> CodeType:
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise ProgramError(f"{path} is not valid Python: {error}") from None


def _module(name: str, folder: str) -> tuple[ModuleType, CodeType]:
    _put_first(folder)
    try:
        # This imports the parent package, as Python itself does.
        _, spec, code = runpy._get_module_details(name)  # type: ignore[attr-defined]
    except ImportError as error:
        if error.name is not None and not f"{name}.".startswith(f"{error.name}."):
            # An import inside the module failed: show the program's own traceback.
            raise
        raise ProgramError(f"no module named {name}") from None
    main = ModuleType("__main__")
    main.__file__ = spec.origin
    main.__spec__ = spec
    main.__package__ = spec.parent
    main.__loader__ = spec.loader
    return main, code


def _put_first(folder: str) -> None:
    """Searches the program's folder for modules first, instead of the folder of our own program."""
    if is_safe() or _placed == [folder]:
        return
    if _placed or (has_own_folder() and sys.path[:1] in ([""], [_OWN_FOLDER])):
        del sys.path[0]
    sys.path.insert(0, folder)
    _placed[:] = [folder]


#: The folder that was put first, if any.
_placed: list[str] = []

#: The folder of our own program; `sys.argv` is soon that of another.
_OWN_FOLDER = os.path.dirname(os.path.realpath(sys.argv[0])) if sys.argv else ""


def _hide_shadowed(folder: str) -> dict[str, ModuleType]:
    """Takes out modules that we imported and that the program's folder has too.

    The program would import its own ones without us. Our modules refer to those of the standard
    library already.

    Returns:
        The modules that were taken out, by name.
    """
    try:
        names = {name.partition(".")[0] for name in os.listdir(folder)}
    except OSError:
        return {}
    names -= {"mindprof", "mindtorch_v2", "__main__", *AT_START}
    found = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in names and _is_elsewhere(name, folder):
            found[name] = module
            del sys.modules[name]
    return found


def _is_elsewhere(name: str, folder: str) -> bool:
    """Returns whether a module of the folder takes the place of one that is imported already."""
    top = name.partition(".")[0]
    module = os.path.join(folder, top)
    is_there = os.path.isfile(f"{module}.py") or os.path.isfile(os.path.join(module, "__init__.py"))
    origin = getattr(sys.modules[name], "__file__", None)
    return is_there and not (origin or "").startswith(module)
