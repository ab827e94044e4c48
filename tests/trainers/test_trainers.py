"""Trainers with their own profiler callbacks, unchanged, by `mindprof run` and by `install()`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mindprof
import pytest

SCRIPTS = Path(__file__).parent / "scripts"

#: By script: operators that two steps of training have, and how often.
RECORDED = {
    "hugging_face.py": {"aten::embedding": 4, "aten::native_layer_norm": 6},
    "lightning_trainer.py": {"aten::addmm": 4, "[pl][profile]run_training_batch": 2},
}

INSTALL = """
import mindprof, runpy, sys
mindprof.install()
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["HF_HUB_OFFLINE"] = "1"
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def check_own_trace(folder: Path, script: str, done: subprocess.CompletedProcess[str]) -> None:
    """Checks that the trainer's profiler was ours, and what it recorded of the two active steps."""
    assert done.returncode == 0, done.stderr
    assert "profiler: mindprof" in done.stdout.splitlines()
    (trace,) = (folder / "own").glob("*.pt.trace.json")
    counts = {row.key: row.count for row in mindprof.load(trace).key_averages()}
    expected = RECORDED[script]
    assert {name: counts.get(name) for name in expected} == expected


@pytest.mark.parametrize("script", RECORDED)
def test_a_trainer_runs_unchanged_after_install(tmp_path: Path, script: str) -> None:
    (tmp_path / "install.py").write_text(INSTALL)
    done = run(tmp_path, "install.py", str(SCRIPTS / script), "own")
    check_own_trace(tmp_path, script, done)


@pytest.mark.parametrize("options", [["--no-stacks"], ["--memory"]], ids=["plain", "memory"])
@pytest.mark.parametrize("script", RECORDED)
def test_a_trainer_runs_unchanged_under_run(
    tmp_path: Path, script: str, options: list[str]
) -> None:
    words = ["-m", "mindprof", "run", "-q", "-o", "out", *options]
    done = run(tmp_path, *words, str(SCRIPTS / script), "own")
    check_own_trace(tmp_path, script, done)
    trace = mindprof.load(tmp_path / "out" / "trace.json.gz")
    counts = {row.key: row.count for row in trace.key_averages()}
    # The run has all six steps, the trainer's profiler two of them.
    name, expected = next(iter(RECORDED[script].items()))
    assert counts[name] == 3 * expected
