"""Checks the first screen of `mindprof run`: it names what makes a slow script slow.

The scripts and their culprits are in `tests/slow_scripts`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[1] / "slow_scripts"
PACKAGE = SCRIPTS.parents[1] / "python"
LINES, COLUMNS = 25, 80


def culprits() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("culprits", SCRIPTS / "culprits.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Any] = module.CULPRITS
    return found


def screen(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mindprof", "run", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    start = done.stderr.index("mindprof: ")
    return done.stderr[start:]


def test_every_script_has_a_culprit() -> None:
    scripts = {path.stem for path in SCRIPTS.glob("*.py")} - {"culprits"}
    assert scripts == culprits().keys()


@pytest.mark.parametrize("name", culprits())
def test_the_first_screen_names_the_culprit(tmp_path: Path, name: str) -> None:
    text = screen(tmp_path, str(SCRIPTS / f"{name}.py"))
    lines = text.splitlines()
    assert len(lines) <= LINES, text
    # The last line is a command, which is not broken.
    assert all(len(line) <= COLUMNS for line in lines[:-1]), text
    culprit = culprits()[name]
    joined = " ".join(text.split())
    for word in (culprit.function, *culprit.words):
        assert word in joined, text
    assert lines[-1].startswith("next: "), text
    summary = json.loads((tmp_path / f"mindprof-{name}" / "summary.json").read_text())
    steps = summary["steps"]
    for step in steps["steps"]:
        assert sum(step["split"].values()) == pytest.approx(step["duration_us"])
    assert summary["functions"]["paths"]


CHILDREN = """
import multiprocessing
import subprocess
import sys
import torch
from torch.utils.data import DataLoader


def work():
    torch.ones(2).sum()


if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    for _ in DataLoader(torch.arange(8), num_workers=1):
        pass
"""


SPAWNED = """
import multiprocessing
import torch


def rank(number):
    torch.ones(2).sum()


def alone():
    torch.ones(2).sum()


if __name__ == "__main__":
    torch.multiprocessing.spawn(rank, nprocs=2)
    child = multiprocessing.get_context("spawn").Process(target=alone)
    child.start()
    child.join()
"""


def test_spawned_processes_are_named_by_the_function_that_they_run(tmp_path: Path) -> None:
    (tmp_path / "spawned.py").write_text(SPAWNED)
    text = screen(tmp_path, "spawned.py")
    assert "2 processes that run rank" in text
    assert "a process that runs alone" in text


def test_processes_that_are_not_recorded_are_named(tmp_path: Path) -> None:
    (tmp_path / "children.py").write_text(CHILDREN)
    text = screen(tmp_path, "children.py")
    (line,) = (line for line in text.splitlines() if line.startswith("not recorded: "))
    assert "a process that runs work" in line
    assert Path(sys.executable).name in line
    # The worker of the data loader is recorded.
    assert line.count("a process") == 2
    assert "Process" not in line
