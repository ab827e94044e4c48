"""Tracebacks of imports that fail show the program's lines, and none of mindprof's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MODULES = {
    "missing": "import there_is_no_such_module\n",
    "wrong": "def fail():\n    raise ValueError('wrong')\n\nfail()\n",
    "broken": "a b\n",
    "nested": "import wrong\n",
}

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
if sys.argv[3] == "watched":
    from mindprof._import_watch import ImportWatch
    names = ("missing", "wrong", "broken", "nested", "there_is_no_such_module")
    ImportWatch(names, lambda module: None).start()
exec(f"import {sys.argv[2]}")
"""


def told(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 1
    return done.stderr[done.stderr.index("Traceback") :].split("\nmindprof: ")[0].strip()


@pytest.mark.parametrize("module", MODULES)
def test_a_failed_import_looks_as_without_mindprof(module: str, tmp_path: Path) -> None:
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    arguments = [str(program), str(tmp_path), module]
    plain = told([sys.executable, *arguments, "plain"], tmp_path)
    assert told([sys.executable, *arguments, "watched"], tmp_path) == plain
    run = [sys.executable, "-m", "mindprof", "run", "-q", "-o", str(tmp_path / "out")]
    assert told([*run, *arguments, "plain"], tmp_path) == plain
    assert "mindprof" not in plain
