"""Compares how fast torch and mindprof write the same events as JSON, gzipped JSON and Perfetto.

In each round torch records some training steps in its own process and writes them; mindprof reads
that trace and writes the same events again right after. Prints medians over the rounds and their
ratios. Run it with `make bench-write`; `TORCH_PYTHON` names an interpreter with torch.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

SUFFIXES = (".json", ".json.gz", ".pftrace")
REPEATS = 3
"""How often mindprof writes in a round; torch can write a recording only once."""


Times = tuple[float, float]
"""Wall-clock seconds, and CPU seconds, which other load affects less."""


def times(action: Callable[[], Any]) -> Times:
    """Returns the times of `action`."""
    started = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - started[0], time.process_time() - started[1]


def medians(measured: Iterable[Sequence[float]]) -> Times:
    """Returns the medians of wall-clock and CPU seconds."""
    wall, processor = zip(*measured, strict=True)
    return median(wall), median(processor)


def record(steps: int, everything: bool) -> Any:
    """Records training steps of a small transformer with torch."""
    torch: Any = importlib.import_module("torch")
    model = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), num_layers=4
    )
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    inputs = torch.randn(4, 16, 32)
    flags = ("record_shapes", "profile_memory", "with_stack") if everything else ()
    options: dict[str, Any] = dict.fromkeys(flags, True)
    if everything:
        options["experimental_config"] = torch._C._profiler._ExperimentalConfig(verbose=True)
    with torch.profiler.profile(**options) as profiler:
        for _ in range(steps):
            optimizer.zero_grad()
            model(inputs).sum().backward()
            optimizer.step()
    return profiler


def measure_torch(folder: str, steps: int, everything: bool) -> dict[str, Times]:
    """Records and writes with torch in this process, with one recording for each file."""
    found = {}
    for suffix in SUFFIXES[:2]:
        profiler = record(steps, everything)
        path = os.path.join(folder, f"torch{suffix}")
        found[suffix] = times(partial(profiler.export_chrome_trace, path))
    return found


def run_torch(python: str, folder: str, steps: int, everything: bool) -> dict[str, Times]:
    """Measures torch in a fresh process."""
    command = [python, __file__, "--folder", folder, "--steps", str(steps)]
    command += ["--everything"] if everything else []
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found: dict[str, Times] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure_ours(folder: str) -> tuple[int, dict[str, Times]]:
    """Writes the events of torch's trace with mindprof. Returns their number and the times."""
    core: Any = importlib.import_module("mindprof._core")
    profile = core.Profile.read(os.path.join(folder, "torch.json"))
    found = {}
    for suffix in SUFFIXES:
        path = os.path.join(folder, f"ours{suffix}")
        write = partial(core.write_chrome_trace, profile, path, metadata=[], activity_types=None)
        found[suffix] = medians(times(write) for _ in range(REPEATS))
    return len(profile), found


def shown(measured: Times) -> str:
    """Formats both times in milliseconds."""
    return f"{measured[0] * 1e3:>9.1f} ms{measured[1] * 1e3:>9.1f} ms"


def validated(python: str, path: Path) -> str:
    """Returns the verdict of torch's own validator on a trace."""
    code = (
        "import sys; from torch.profiler._trace_validator import validate_trace\n"
        "print(*validate_trace(sys.argv[1]))"
    )
    done = subprocess.run([python, "-c", code, path], capture_output=True, check=True, text=True)
    return done.stdout.strip()


def compare(python: str, steps: int, rounds: int, everything: bool) -> None:
    """Prints one line per format."""
    with contextlib.ExitStack() as stack:
        theirs, ours = [], []
        for _ in range(rounds):
            # A new folder each time, since replacing a file would measure the disk.
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            theirs.append(run_torch(python, folder, steps, everything))
            events, found = measure_ours(folder)
            ours.append(found)
        files = {path.name: path.stat().st_size / 1e6 for path in Path(folder).iterdir()}
        flags = "shapes, memory and stacks" if everything else "no options"
        print(f"\n{events:,} events, {flags}; medians of {rounds} rounds")
        print(f"{'':10}{'torch':>9}{'processor':>13}{'size':>12}", end="")
        print(f"{'mindprof':>14}{'processor':>12}{'size':>12}{'times':>8}{'processor':>12}")
        for suffix in SUFFIXES:
            mine = medians(found[suffix] for found in ours)
            other = medians(found.get(suffix, (0, 0)) for found in theirs)
            line = f"{suffix:10}{shown(other)}{files.get(f'torch{suffix}', 0):>9.2f} MB"
            line += f"{shown(mine)}{files[f'ours{suffix}']:>9.2f} MB"
            print(f"{line}{other[0] / mine[0]:>8.1f}{other[1] / mine[1]:>12.1f}")
        print(f"torch's validator of our trace: {validated(python, Path(folder, 'ours.json'))}")


def main() -> None:
    """Measures torch in this process, or starts processes that do and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", default=os.environ.get("TORCH_PYTHON", sys.executable))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--everything", action="store_true", help="compare recordings with all options only"
    )
    parser.add_argument("--folder", help="record with torch in this process and write there")
    arguments = parser.parse_args()
    if arguments.folder:
        found = measure_torch(arguments.folder, arguments.steps, arguments.everything)
        print(json.dumps(found))
        return
    for everything in (True,) if arguments.everything else (False, True):
        compare(arguments.torch_python, arguments.steps, arguments.rounds, everything)


if __name__ == "__main__":
    main()
