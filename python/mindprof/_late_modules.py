"""Imports of rarely used modules, deferred until first use or the first fork.

A child that is forked while another thread imports a module deadlocks when it imports the same one.
Therefore every fork imports all of these modules first. Starting and stopping a profiler needs none
of them.
"""

from __future__ import annotations

import os
from importlib import import_module

NAMES = ("dataclasses", "inspect", "json", "socket")


def import_before_forks() -> None:
    """Registers a hook that imports the modules before every fork, on systems that fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_import)


def _import() -> None:
    for name in NAMES:
        import_module(name)
