"""`mindprof run` of a script for the real torch, which is imported while the recording runs."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

SCRIPT = """
import torch

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("words", "steps"), [([], 4), (["--wait", "1", "--active", "2", "--repeat", "1"], 2)]
)
def test_a_script_is_recorded_without_a_change(
    tmp_path: Path, words: list[str], steps: int
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-m", "mindprof", "run", *words, "-o", "out", "train.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with gzip.open(tmp_path / "out/trace.json.gz", "rt") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    names = Counter(event["name"] for event in events)
    assert names["aten::addmm"] == steps
    assert names["autograd::engine::evaluate_function: AddmmBackward0"] == steps
    assert names["Optimizer.step#SGD.step"] == steps
    # The inside of the import is left out.
    assert names["import torch"] == (not words)
    assert len(events) < 5_000
    assert "aten::addmm" in done.stderr
    assert "train.py(8)" in (tmp_path / "out/stacks.folded").read_text()


def test_workers_of_a_data_loader_are_recorded(tmp_path: Path) -> None:
    program = tmp_path / "loading.py"
    program.write_text(
        "import torch\n"
        "from torch.utils.data import DataLoader\n"
        "def load(rows):\n"
        "    return torch.full((2,), 1.0).cosh()\n"
        "list(DataLoader(range(8), num_workers=2, collate_fn=load))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "mindprof", "run", "-q", "-o", "out", program.name]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    with gzip.open(tmp_path / "out/trace.json.gz", "rt") as file:
        names = Counter(event["name"] for event in json.load(file)["traceEvents"])
    assert names["aten::cosh"] == 8


def test_loader_workers_that_begin_before_the_window_are_in_it(tmp_path: Path) -> None:
    program = tmp_path / "load.py"
    program.write_text(
        "import torch\n"
        "from torch.utils.data import DataLoader\n"
        "def load(rows):\n"
        "    return torch.full((2, 4), 1.0).cosh()\n"
        "model = torch.nn.Linear(4, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for x in DataLoader(range(64), num_workers=2, prefetch_factor=1, collate_fn=load):\n"
        "    model(x).sum().backward()\n"
        "    optimizer.step()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = ["--wait", "2", "--active", "20", "--no-stacks", "-q", "-o", "out"]
    command = [sys.executable, "-m", "mindprof", "run", *words, program.name]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    with gzip.open(tmp_path / "out/trace.json.gz", "rt") as file:
        names = Counter(event["name"] for event in json.load(file)["traceEvents"])
    assert names["aten::addmm"] == 20
    assert names["aten::cosh"] >= 10
