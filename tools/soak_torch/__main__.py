"""Chooses a stress by its name and runs it."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from importlib import import_module

#: The stresses, with the number of events that each one counts by default.
STRESSES = {"interrupts": 5000, "forks": 2000, "threads": 16384}


def main() -> int:
    """Runs the stress that the command line names, and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m soak_torch", description=__doc__)
    parser.add_argument("stress", choices=[*STRESSES, "all"])
    parser.add_argument("--count", type=int, help="how many events to count")
    parser.add_argument("--seconds", type=float, default=3600.0, help="the limit; default: 3600")
    found = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print(f"skipped: {sys.executable} has no torch")
        return 0
    if found.stress == "all":
        # A process each, because they change signal handlers and torch's callbacks.
        command = [sys.executable, "-W", "ignore", "-m", "soak_torch"]
        return max(subprocess.run([*command, name]).returncode for name in STRESSES)
    stress = import_module(f"soak_torch.{found.stress}").stress
    failure = stress(found.count or STRESSES[found.stress], found.seconds)
    if failure is not None:
        print(f"{found.stress}: {failure}", file=sys.stderr)
    return int(failure is not None)


if __name__ == "__main__":
    sys.exit(main())
