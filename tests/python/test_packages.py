"""The packages as a whole: what they need to be imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import mindprof
import pytest

IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
for name in ("mindprof", "mindtorch_v2"):
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        importlib.import_module(module.name)
"""


@pytest.mark.runtime
def test_every_module_needs_the_standard_library_alone() -> None:
    source = Path(mindprof.__file__).parents[1]
    # Isolated and without site-packages: a tool that happens to be installed must not help.
    isolated = [sys.executable, "-I", "-S", "-c", IMPORT_ALL, str(source)]
    done = subprocess.run(isolated, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_module_that_was_built_for_other_interpreters_is_refused() -> None:
    """As a free-threaded interpreter refuses it: with an error that names no cause."""
    source = Path(mindprof.__file__).parents[1]
    pretend = """
import sys
class Refusal:
    def find_spec(name, *_):
        if name == "mindprof._core":
            raise SystemError("init function of _core returned uninitialized object")
sys.meta_path.insert(0, Refusal)
"""
    command = [sys.executable, "-I", "-S", "-c", pretend + IMPORT_ALL, str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    told = "ImportError: mindprof was built for Python with the GIL, and this interpreter is"
    assert f"{told} free-threaded\nhint: " in done.stderr


@pytest.mark.runtime
@pytest.mark.parametrize("is_enabled", [True, False])
def test_an_interpreter_without_its_lock_is_refused(is_enabled: bool) -> None:
    """As one without it says of itself: there the modules are not loaded."""
    source = Path(mindprof.__file__).parents[1]
    pretend = f"import sys; sys._is_gil_enabled = lambda: {is_enabled}\n"
    command = [sys.executable, "-I", "-S", "-c", pretend + IMPORT_ALL, str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    if is_enabled:
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 1
        told = "ImportError: mindprof needs the GIL, which is disabled in this interpreter\nhint: "
        assert told in done.stderr


# The families of modules in `python/mindprof`, and which others each may import at run time.
# ARCHITECTURE.md has the same table in words.
FAMILIES: dict[str, set[str]] = {
    "_settings": set(),
    "_results": set(),
    "_frameworks": {"_settings", "_results"},
    "_profiler": {"_settings", "_results", "_frameworks"},
    "_install": {"_settings", "_results", "_profiler", "_frameworks"},
    "_run": {"_settings", "_results", "_frameworks", "_profiler", "_install"},
}


def imported_families(path: Path) -> set[str]:
    """Returns the families that a module imports from, wherever in the file it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            package, *inner = name.split(".")
            if package == "mindprof" and inner and inner[0] in FAMILIES:
                found.add(inner[0])
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_imports_only_those_below_it(family: str) -> None:
    folder = Path(mindprof.__file__).parent / family
    modules = list(folder.rglob("*.py"))
    assert modules
    wrong = {
        str(path.relative_to(folder.parent)): sorted(above)
        for path in modules
        if (above := imported_families(path) - {family} - FAMILIES[family])
    }
    assert wrong == {}


def test_every_folder_is_a_family() -> None:
    folders = {path.parent.name for path in Path(mindprof.__file__).parent.glob("*/__init__.py")}
    assert folders == FAMILIES.keys()
