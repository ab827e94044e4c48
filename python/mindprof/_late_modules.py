"""Imports of rarely used modules, deferred until first use or the first fork.

A child that is forked while another thread imports a module deadlocks when it imports the same one.
Therefore every fork imports all of these modules first. Starting and stopping a profiler needs none
of them.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

NAMES = ("dataclasses", "inspect", "json", "socket")

#: What `mindprof run` needs, too.
NAMES_OF_RUN = (*NAMES, "ctypes", "logging", "multiprocessing.connection", "shutil", "tempfile")


def import_before_forks() -> None:
    """Registers a hook that imports the modules before every fork, on systems that fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_import)


def import_before_program(folder: str) -> None:
    """Imports the modules if a program's folder has modules that may take their place.

    Args:
        folder: The folder, which is not on the path yet.
    """
    try:
        entries = os.listdir(folder)
    except OSError:
        return
    if any(_is_of_library(folder, entry) for entry in entries):
        for name in NAMES_OF_RUN:
            import_module(name)


def _is_of_library(folder: str, entry: str) -> bool:
    """Returns whether an entry of a folder is a module with a name of the standard library."""
    name, _, kind = entry.partition(".")
    if name not in sys.stdlib_module_names:
        return False
    is_package = not kind and os.path.exists(os.path.join(folder, entry, "__init__.py"))
    return is_package or kind.endswith(("py", "pyc", "so", "pyd"))


def _import() -> None:
    for name in NAMES:
        import_module(name)
