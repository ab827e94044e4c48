"""Compares the time from `stop()` to the first row of torch.profiler and mindprof.

Each measurement runs in its own process: it records the same operators (`x + x` on 4x4, with a
named range around every hundred), stops, and requests the averages, the same averages again, those
by shape and by stack, and every event. `--everything` also records shapes, memory and stacks, and
exports the stacks. Run it with `make bench-torch`, which creates an environment with torch unless
`TORCH_PYTHON` names an interpreter that has it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

SIZES = (10_000, 100_000, 300_000, 1_000_000)
TORCH_LIMIT = 300_000
"""The most events for torch, which needs minutes and gigabytes for more."""


def resident_bytes() -> int:
    """Returns the resident memory of the process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Returns the milliseconds that `action` took, and its result."""
    started = time.perf_counter_ns()
    result = action()
    return (time.perf_counter_ns() - started) / 1e6, result


def all_flags(host: str) -> dict[str, Any]:
    """Returns the arguments of a profiler that records everything."""
    flags: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    if host == "torch":
        # Without it torch's stacks stay empty.
        config: Any = importlib.import_module("torch._C._profiler")._ExperimentalConfig
        flags["experimental_config"] = config(verbose=True)
    return flags


def measure(host: str, events: int, *, everything: bool) -> dict[str, float]:
    """Records and reads the results in this process. Returns milliseconds and bytes by name."""
    torch: Any = importlib.import_module(host)
    profiler: Any = importlib.import_module(f"{host}.profiler")
    x = torch.ones((4, 4))
    profile = profiler.profile(**(all_flags(host) if everything else {}))
    before = resident_bytes()
    profile.start()
    for op in range(events - events // 101):
        if op % 100 == 0:
            step = profiler.record_function("step")
            step.__enter__()
        _ = x + x
        if op % 100 == 99:
            step.__exit__(None, None, None)
    found: dict[str, float] = {}
    found["stop"], _ = timed(profile.stop)
    found["first key_averages"], rows = timed(lambda: list(profile.key_averages()))
    found["bytes per event"] = (resident_bytes() - before) / events
    found["rows"] = len(rows)
    found["again"], _ = timed(lambda: list(profile.key_averages()))
    by_shape = {"group_by_input_shape": True}
    found["by shape"], _ = timed(lambda: list(profile.key_averages(**by_shape)))
    found["by stack"], _ = timed(lambda: list(profile.key_averages(group_by_stack_n=5)))
    all_events = profile.events()
    if everything:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/stacks.txt"
            metric = "self_cpu_time_total"
            found["export_stacks"], _ = timed(lambda: all_events.export_stacks(path, metric))
            found["bytes of stacks"] = os.path.getsize(path)
    found["first event"], _ = timed(lambda: all_events[0])
    found["all events"], count = timed(lambda: sum(1 for _ in all_events))
    found["events"] = count
    found["table"], _ = timed(lambda: profile.key_averages().table())
    return found


def run(python: str, host: str, events: int, everything: bool) -> dict[str, float]:
    """Measures in a fresh process."""
    command = [python, __file__, "--measure", host, "--events", str(events)]
    command += ["--everything"] if everything else []
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(torch_python: str, everything: bool) -> None:
    """Prints one block per number of events."""
    for events in SIZES:
        # Before and after the run of torch, since the speed of a shared machine drifts.
        runs = [run(sys.executable, "mindtorch_v2", events, everything) for _ in range(3)]
        theirs = run(torch_python, "torch", events, everything) if events <= TORCH_LIMIT else {}
        runs += [run(sys.executable, "mindtorch_v2", events, everything) for _ in range(4)]
        ours = {name: min(found[name] for found in runs) for name in runs[0]}
        print(f"\n{events:,} events{', with shapes, memory and stacks' if everything else ''}")
        ours["stop + first key_averages"] = ours["stop"] + ours["first key_averages"]
        if theirs:
            theirs["stop + first key_averages"] = theirs["stop"] + theirs["first key_averages"]
        print(f"{'':28}{'mindprof':>14}{'torch':>14}{'times':>10}")
        for name, value in ours.items():
            unit = "" if name in ("rows", "events") or name.startswith("bytes") else " ms"
            line = f"{name:28}{value:>11.3f}{unit:3}"
            if name in theirs:
                ratio = theirs[name] / value if value else float("inf")
                line += f"{theirs[name]:>11.1f}{unit:3}{ratio:>10.0f}"
            print(line)
        walk = ours["all events"] * 1e3 / ours["events"]
        print(f"walking: {walk:.3f} us per event", flush=True)


def main() -> None:
    """Measures in this process, or starts processes that do and compares them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", default=os.environ.get("TORCH_PYTHON", sys.executable))
    parser.add_argument(
        "--everything", action="store_true", help="record shapes, memory and stacks too"
    )
    parser.add_argument(
        "--measure", help="the package to measure in this process: torch or mindtorch_v2"
    )
    parser.add_argument("--events", type=int, default=SIZES[0])
    arguments = parser.parse_args()
    if arguments.measure:
        found = measure(arguments.measure, arguments.events, everything=arguments.everything)
        print(json.dumps(found))
    else:
        compare(arguments.torch_python, arguments.everything)


if __name__ == "__main__":
    main()
