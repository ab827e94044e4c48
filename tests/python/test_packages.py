"""The packages as a whole: what they need to be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mindprof

IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
for name in ("mindprof", "mindtorch_v2"):
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        importlib.import_module(module.name)
"""


def test_every_module_needs_the_standard_library_alone() -> None:
    source = Path(mindprof.__file__).parents[1]
    # Isolated and without site-packages: a tool that happens to be installed must not help.
    isolated = [sys.executable, "-I", "-S", "-c", IMPORT_ALL, str(source)]
    done = subprocess.run(isolated, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
