"""The soak in its short form: rounds of a fixed seed, and every activity at least once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
ACTIVITIES = [
    *("budgets", "coroutines", "exports", "failures", "forks", "garbage", "interrupts"),
    *("kills", "names", "schedules", "tensors", "threads", "tools", "windows"),
]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "soak", *words]
    return subprocess.run(
        command, cwd=TOOLS, capture_output=True, text=True, timeout=600, check=False
    )


def test_rounds_of_everything_hold() -> None:
    done = run("--seed", "1", "--rounds", "25")
    assert done.returncode == 0, done.stderr
    assert "seed 1: 25 rounds held" in done.stdout
    assert "memory: " in done.stdout


@pytest.mark.parametrize("activity", ACTIVITIES)
def test_an_activity_alone_holds(activity: str) -> None:
    done = run("--seed", "2", "--rounds", "2", "--only", activity)
    assert done.returncode == 0, done.stderr
    assert f"2 rounds held ({activity} 2)" in done.stdout


def test_an_activity_that_is_not_there_is_refused() -> None:
    done = run("--only", "nothing")
    assert done.returncode == 2
    assert done.stderr.endswith(f"expected some of: {', '.join(ACTIVITIES)}\n")
