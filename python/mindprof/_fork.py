"""Lets a process fork while something records: the parent records on, the child records nothing."""

from __future__ import annotations

import os

from mindprof import _core


def register() -> None:
    """Sets the hooks, on systems that can fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_core.before_fork,
            after_in_parent=_core.after_fork_in_parent,
            after_in_child=_core.after_fork_in_child,
        )
