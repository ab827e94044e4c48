"""`ImportWatch`: callbacks after the import of modules, to patch frameworks that are imported late.

One finder precedes all others on `sys.meta_path` while a watch is active. It finds no modules
itself: it wraps the loader that another finder returns, and the wrapper removes itself again. The
traceback of a failed import shows none of these functions.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, TypeVar

Callback = Callable[[ModuleType], None]
Function = TypeVar("Function", bound=Callable[..., Any])


def hidden_in_tracebacks(function: Function) -> Function:
    """Hides a function that is called during imports from the tracebacks of failed imports.

    The interpreter removes the frames of its own import functions from such tracebacks, and
    recognises them by the name of their file.
    """
    machinery: Any = importlib._bootstrap
    file = machinery._call_with_frames_removed.__code__.co_filename
    code: Any = function
    code.__code__ = code.__code__.replace(co_filename=file)
    return function


class ImportWatch:
    """Calls back after the import of any of the named modules, on the importing thread.

    Args:
        names: The full names of the modules.
        after_import: The callback, which is called with the module.
    """

    def __init__(self, names: Iterable[str], after_import: Callback) -> None:
        self.names = frozenset(names)
        self.after_import = after_import

    def start(self) -> None:
        """Starts watching. A second call has no effect."""
        with _LOCK:
            _FINDER.watches = (*(watch for watch in _FINDER.watches if watch is not self), self)
            if _FINDER not in sys.meta_path:
                sys.meta_path.insert(0, _FINDER)

    def stop(self) -> None:
        """Stops watching. A second call has no effect."""
        with _LOCK:
            _FINDER.watches = tuple(watch for watch in _FINDER.watches if watch is not self)
            if not _FINDER.watches and _FINDER in sys.meta_path:
                sys.meta_path.remove(_FINDER)


class _Finder:
    """A finder that wraps the loaders of watched modules.

    The tuple of watches is replaced as a whole, so that imports read it without a lock, which a
    fork could leave locked in the child.
    """

    def __init__(self) -> None:
        self.watches: tuple[ImportWatch, ...] = ()

    def watching(self, name: str) -> list[ImportWatch]:
        """Returns the watches for a module."""
        return [watch for watch in self.watches if name in watch.names]

    @hidden_in_tracebacks
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> Any:
        """Returns the spec that the other finders find, or `None` if nobody watches the module."""
        if not self.watching(name):
            return None
        for finder in list(sys.meta_path):
            find_spec = None if finder is self else getattr(finder, "find_spec", None)
            spec = find_spec and find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader:
    """A loader that delegates to another one, restores it on the module, and calls back."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    @hidden_in_tracebacks
    def create_module(self, spec: Any) -> ModuleType | None:
        """Creates the module with the wrapped loader."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    @hidden_in_tracebacks
    def exec_module(self, module: ModuleType) -> None:
        """Runs the module with the wrapped loader, then calls the watches back."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        for watch in _FINDER.watching(module.__name__):
            watch.after_import(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


_LOCK = threading.Lock()
_FINDER: Any = _Finder()
