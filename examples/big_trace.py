"""Shrinks a trace that is too big to open: keeps two steps, and drops short events.

Run `python examples/big_trace.py`. It records a trace of 20 steps, cuts it down with `mindprof
slim`, and prints the sizes of both files in `out/`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, schedule


def main() -> None:
    """Writes a trace of 20 steps and a slim copy of it."""
    model = torch.nn.Linear(32, 32)
    # A schedule marks the steps in the trace.
    steps = schedule(wait=0, warmup=1, active=20, repeat=1)
    with profile(schedule=steps, with_stack=True) as prof:
        for _ in range(21):
            model(torch.ones((8, 32))).sum().backward()
            prof.step()
    prof.export_chrome_trace("out/big.json.gz")

    slim = [sys.executable, "-m", "mindprof", "slim", "out/big.json.gz", "out/small.json.gz"]
    subprocess.run([*slim, "--steps", "3..4", "--min-duration", "1us"], check=True)
    for name in ("out/big.json.gz", "out/small.json.gz"):
        print(f"{name}: {Path(name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
