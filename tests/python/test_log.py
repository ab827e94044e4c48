"""What the profiler says in the log: to a logger of its own, or on stderr if it is asked to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Without the module of loggers, which the export would then not look for.
PROGRAM = """
import sys
import mindprof
with mindprof.profile() as prof:
    pass
prof.export_chrome_trace("trace.json")
print("logging" in sys.modules)
"""
SHOWN = "import logging; logging.basicConfig(level=logging.INFO)"


def run(folder: Path, before: str = "", **variables: str) -> tuple[str, str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    done = subprocess.run(
        [sys.executable, "-c", before + PROGRAM],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_a_level_shows_what_is_said(tmp_path: Path) -> None:
    _, told = run(tmp_path, SHOWN)
    assert told == "INFO:mindprof:wrote the trace to trace.json\n"


@pytest.mark.parametrize("level", ["info", "INFO"])
def test_the_environment_shows_it_too(level: str, tmp_path: Path) -> None:
    _, told = run(tmp_path, MINDPROF_LOG=level)
    assert told == "mindprof: wrote the trace to trace.json\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (SHOWN, "INFO:mindprof:wrote the trace to trace.json\n"),
        ("import logging; logging.basicConfig()", "INFO:mindprof:wrote the trace to trace.json\n"),
        (
            "import logging; logging.basicConfig(filename='program.log')",
            "mindprof: wrote the trace to trace.json\n",
        ),
        (
            SHOWN + "; logging.root.handlers[0].setLevel(logging.WARNING)",
            "mindprof: wrote the trace to trace.json\n",
        ),
    ],
)
def test_what_the_program_shows_already_is_shown_once(
    before: str, expected: str, tmp_path: Path
) -> None:
    _, told = run(tmp_path, before, MINDPROF_LOG="info")
    assert told == expected


@pytest.mark.parametrize("level", ["", "off", "warning"])
def test_nothing_is_said_unless_somebody_asks(level: str, tmp_path: Path) -> None:
    assert run(tmp_path, MINDPROF_LOG=level) == ("False\n", "")
