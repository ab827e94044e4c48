"""The soak in its short form: rounds of a fixed seed, and every activity at least once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.runtime

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
    done = run("--seed", "6845", "--rounds", "10")
    assert done.returncode == 0, done.stderr
    assert "seed 6845: 10 rounds held" in done.stdout
    assert "memory: " in done.stdout
    missing = [name for name in ACTIVITIES if f"{name} " not in done.stdout]
    assert missing == []


def test_an_activity_that_is_not_there_is_refused() -> None:
    done = run("--only", "nothing")
    assert done.returncode == 2
    assert done.stderr.endswith(f"expected some of: {', '.join(ACTIVITIES)}\n")
