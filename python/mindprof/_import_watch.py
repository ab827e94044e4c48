"""Word of modules when they are imported, for what has to be done to a framework that comes late.

One finder stands before the others while someone watches. It finds nothing itself: it lends the
module a loader that calls back, and takes it away again.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

Callback = Callable[[ModuleType], None]


class ImportWatch:
    """Calls back when one of the named modules has been imported, on the thread that imports it."""

    def __init__(self, names: Iterable[str], after_import: Callback) -> None:
        self.names = frozenset(names)
        self.after_import = after_import

    def start(self) -> None:
        """Watches imports from now on; a second time changes nothing."""
        with _LOCK:
            _FINDER.watches = (*(watch for watch in _FINDER.watches if watch is not self), self)
            if _FINDER not in sys.meta_path:
                sys.meta_path.insert(0, _FINDER)

    def stop(self) -> None:
        """Watches no longer; a second time changes nothing."""
        with _LOCK:
            _FINDER.watches = tuple(watch for watch in _FINDER.watches if watch is not self)
            if not _FINDER.watches and _FINDER in sys.meta_path:
                sys.meta_path.remove(_FINDER)


class _Finder:
    """Has the modules that are watched loaded by a loader that tells.

    The watches are replaced as a whole, so that an import reads them without a lock, which a fork
    might leave locked in the child.
    """

    def __init__(self) -> None:
        self.watches: tuple[ImportWatch, ...] = ()

    def watching(self, name: str) -> list[ImportWatch]:
        """Returns who watches a module."""
        return [watch for watch in self.watches if name in watch.names]

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> Any:
        """Returns what the other finders find, None for a module that nobody watches."""
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
    """Loads as another loader does, puts that one in its place, and calls back."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> ModuleType | None:
        """Makes the module as the other does."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module as the other does."""
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
