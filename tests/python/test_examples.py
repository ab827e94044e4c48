"""Every example runs, alone in a folder, and writes what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.runtime

EXAMPLES = Path(__file__).parents[2] / "examples"
# What each prints a part of, the files that it writes, and its exit code.
EXPECTED: dict[str, tuple[str, list[str], int]] = {
    "train": ("## forward ##", ["train.trace.json"], 0),
    "slow_step": ("aten::addmm", ["slow_step.json.gz"], 0),
    "memory": ("CPU Mem", ["memory.html", "memory.json.gz"], 0),
    "what_changed": (
        "98 events before, 140 after: the number of events grew by 42.9%, more than 5%",
        ["before.json", "after.json"],
        1,
    ),
    "big_trace": ("out/small.json.gz: ", ["big.json.gz", "small.json.gz"], 0),
    "flame_graph": ("speedscope", ["flames.svg", "calls.speedscope.json"], 0),
    "slow_features": ("loss 0.", [], 0),
    "data_frames": ("self_cpu_time_total", ["frames.json", "events.parquet"], 0),
}


def test_every_example_is_run() -> None:
    # Tests of PyTorch run the one that needs it.
    assert {path.stem for path in EXAMPLES.glob("*.py")} == EXPECTED.keys() | {"pytorch_train"}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_example_runs(name: str, tmp_path: Path) -> None:
    text, files, code = EXPECTED[name]
    run = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == code, run.stderr
    assert text in run.stdout
    for file in files:
        assert (tmp_path / "out" / file).stat().st_size > 100, file


def test_the_slow_program_is_explained(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "mindprof", "run", "--out", "out", EXAMPLES / "slow_features.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    verdict, _, rest = run.stderr.partition("Total ")
    assert "is spent in crowding (slow_features.py:" in " ".join(verdict.split())
    assert "move the Python loop into numpy or torch" in rest
    assert (tmp_path / "out" / "report.html").exists()


def test_the_part_of_a_trace_is_smaller(tmp_path: Path) -> None:
    subprocess.run([sys.executable, EXAMPLES / "big_trace.py"], cwd=tmp_path, check=True)
    big, small = (tmp_path / "out" / f"{name}.json.gz" for name in ("big", "small"))
    assert small.stat().st_size < big.stat().st_size / 2
