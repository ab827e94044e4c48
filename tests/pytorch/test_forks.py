"""Forks of a process whose other threads start profilers and run operators."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch  # type: ignore[import-not-found]
from mindprof import _core, profile

TOOLS = Path(__file__).parents[2] / "tools"


def stress(*words: str) -> str:
    """Runs a stress script to its end, and returns its output."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    command = [sys.executable, "-W", "ignore", "-m", "soak_torch", *words]
    done = subprocess.run(
        command, cwd=TOOLS, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_child_never_waits_for_torchs_lock_of_callbacks() -> None:
    # Without the lock, one child in four hangs.
    assert stress("forks", "--count", "40") == "forks 40, 0 hung, 0 failed\n"


def test_the_lock_of_callbacks_is_found_in_this_torch() -> None:
    with profile():
        torch.ones(2)
    assert _core.torch_forks_are_safe()
