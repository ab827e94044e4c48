"""Keeps `mindprof` the same package when a program removes and imports it again.

A process has one recorder, and the package holds the state of its recordings. A second copy would
not know about recordings that are running.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

from mindprof import _core


def restore_first_import() -> None:
    """Puts the modules of the first import back. The first import itself is unaffected."""
    package = _core.first_package()
    if package is not None:
        sys.modules.update({module.__name__: module for module in _modules_of(package)})


def _modules_of(package: ModuleType) -> Iterator[ModuleType]:
    """Yields a package and the modules in it that were imported."""
    yield package
    for name, value in list(vars(package).items()):
        if isinstance(value, ModuleType) and value.__name__ == f"{package.__name__}.{name}":
            yield from _modules_of(value)
