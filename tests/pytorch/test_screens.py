"""Checks the first screen of `mindprof run`: it names what makes a slow script slow.

The scripts and their culprits are in `tests/slow_scripts`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from itertools import takewhile
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
    # On a busy machine, lines before the screen tell which stage the end of the run has reached.
    said = re.sub(r"^mindprof: the program has ended: .*\n", "", done.stderr, flags=re.M)
    return said[said.index("mindprof: ") :]


def verdict(text: str) -> str:
    """Returns the first sentence of a screen, which ends before the source line."""
    lines = iter(text.splitlines())
    return " ".join(line for line in takewhile(lambda line: line and line[0] != " ", lines))


def command(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mindprof", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    assert culprit.function in verdict(text), text
    joined = " ".join(text.split())
    for word in culprit.words:
        assert word in joined, text
    assert lines[-1].startswith("next: "), text
    summary = json.loads((tmp_path / f"mindprof-{name}" / "summary.json").read_text())
    steps = summary["steps"]
    for step in steps["steps"]:
        assert sum(step["split"].values()) == pytest.approx(step["duration_us"])
    assert summary["functions"]["paths"]


@pytest.mark.parametrize("name", ["frozen_teacher", "parameter_optimizer"])
def test_shares_agree_with_the_table_and_with_the_functions(tmp_path: Path, name: str) -> None:
    text = screen(tmp_path, str(SCRIPTS / f"{name}.py"))
    found = re.match(r"mindprof: (\d+) % of the time is spent in ([\w.<>]+) \(", verdict(text))
    assert found is not None, text
    share, function = int(found[1]), found[2]
    (row,) = re.findall(rf"^ *(\d+) %  *(\d+) %  +{re.escape(function)} \(", text, re.M)
    assert str(share) in row, text
    trace = f"mindprof-{name}/trace.json.gz"
    answer = json.loads(command(tmp_path, "functions", trace, "--json"))
    (row,) = (row for row in answer["functions"] if row["function"] == function)
    shares = [100 * row[part]["cpu_us"] / answer["total"]["cpu_us"] for part in ("own", "total")]
    # The screen leaves out the profiler's own cost, which the list of functions contains. It does
    # not tell a cost below 2 %.
    cost = re.search(r"own\s+cost\s+\((\d+)\s+%\)", text)
    error = 1 + (int(cost[1]) if cost else 2)
    assert any(abs(share - part) <= error for part in shares), (text, shares)


def test_memory_that_grows_is_told_with_its_line(tmp_path: Path) -> None:
    screen(tmp_path, str(SCRIPTS / "kept_graphs.py"))
    text = command(tmp_path, "memory", "mindprof-kept_graphs/trace.json.gz")
    lines = text.splitlines()
    assert all(len(line) <= COLUMNS for line in lines), text
    growth = next(at for at, line in enumerate(lines) if line.startswith("grows by "))
    assert lines[growth].endswith(" steps, allocated in:"), text
    assert "kept_graphs.py(10): remember" in "".join(lines[growth + 1 : growth + 4]), text
    # Of each stack, only the frames of the script are shown.
    holders = lines[lines.index("held at the peak:") :]
    assert not any("torch/nn/" in line for line in holders), text
    (device,) = json.loads(
        command(tmp_path, "memory", "mindprof-kept_graphs/trace.json.gz", "--json")
    )
    assert device["growth"]["bytes_per_step"] >= 2**20


def test_the_flame_graph_leaves_out_threads_that_wait(tmp_path: Path) -> None:
    screen(tmp_path, str(SCRIPTS / "slow_workers.py"))
    folder = tmp_path / "mindprof-slow_workers"
    picture = (folder / "flamegraph.svg").read_text()
    assert "that other threads waited" in picture
    stacks = (folder / "stacks.folded").read_text().splitlines()
    waits = re.compile(r"threading\.py\(\d+\):_wait \d+$")
    assert stacks
    assert not [line for line in stacks if "main_thread" not in line and waits.search(line)]


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
