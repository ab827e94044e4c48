"""Modules that are imported when they are needed, because most programs never need them.

A child that is forked while another thread imports a module waits for that thread for ever when it
imports the same one. So all of them are there before a fork; a recording starts and stops without.
"""

from __future__ import annotations

import os
from importlib import import_module

NAMES = ("dataclasses", "inspect", "json", "socket")


def import_before_forks() -> None:
    """Has every fork of this process find the modules imported, where there are forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_import)


def _import() -> None:
    for name in NAMES:
        import_module(name)
