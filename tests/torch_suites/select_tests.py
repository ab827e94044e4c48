"""Finds the tests of a torch checkout that use a profiler, by reading their files.

Every test in the folder `profiler` is one. In other files it is a test whose own text names a
profiler, or which calls a function of its file that does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

#: A file that names a profiler.
FILE = re.compile(r"torch\.profiler|autograd\.profiler|autograd import profiler|ProfilerActivity")
#: A test that names a profiler. Profiling executors of TorchScript are something else.
TEST = re.compile(r"profiler|\bprofile\(|ProfilerActivity|record_function|emit_(nvtx|itt)|kineto")
OWN_FOLDER = "profiler"


def files_with_profilers(tests: Path) -> list[str]:
    """Returns the test files that name a profiler or lie in its folder, relative to `tests`."""
    found = []
    for path in sorted(tests.rglob("test_*.py")):
        relative = path.relative_to(tests)
        if relative.parts[0] == OWN_FOLDER or FILE.search(path.read_text(errors="replace")):
            found.append(str(relative))
    return found


def selected_names(tests: Path, file: str) -> dict[str, bool]:
    """Returns every test function of a file, and whether it uses a profiler."""
    source = (tests / file).read_text()
    lines = source.splitlines()
    texts = [
        (one.name, "\n".join(lines[one.lineno - 1 : one.end_lineno]))
        for one in functions_of(ast.parse(source))
    ]
    everything = Path(file).parts[0] == OWN_FOLDER
    helpers = {name for name, text in texts if not name.startswith("test") and TEST.search(text)}
    calls = re.compile(rf"\b({'|'.join(map(re.escape, sorted(helpers)))})\(") if helpers else None
    names: dict[str, bool] = {}
    for name, text in texts:
        if name.startswith("test"):
            uses = everything or bool(TEST.search(text) or (calls and calls.search(text)))
            names[name] = names.get(name, False) or uses
    return names


def functions_of(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yields the functions of a module and of its classes, but not those inside functions."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        for child in ast.iter_child_nodes(waiting.pop()):
            if isinstance(child, ast.FunctionDef):
                yield child
            elif isinstance(child, (ast.ClassDef, ast.If, ast.Try, ast.With)):
                waiting.append(child)
