"""Imports the modules that torch's own profiler imports before it records.

torch loads `torch._inductor` and `torch._dynamo` when a program first needs them, which takes
seconds, for example when the first optimizer is created. torch's profiler loads them before its
window opens, so that no operator or range of the program contains that time.
"""

from __future__ import annotations

import importlib
import sys


def import_late_modules() -> None:
    """Imports the modules if torch is loaded. It has no effect if they are loaded already."""
    torch = sys.modules.get("torch")
    # torch defines the attribute by a function that imports the module.
    try:
        if hasattr(torch, "_inductor"):
            importlib.import_module("torch._inductor.config")
    # A torch without a working compiler can still be recorded.
    except Exception:
        return
