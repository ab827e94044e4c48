"""How fast `mindprof table` reads a large trace, beside `json.load` on the same file, in one run.

The trace is a recorded one, repeated with shifted times and numbers until it has the size that was
asked for. Every measurement is a process of its own, so that its peak of memory is its own too.

    python benchmarks/read_trace.py --program target/release/mindprof --megabytes 250 1000

With `--torch-python`, an interpreter that has torch, a profile of as many events as `--torch-events`
says is recorded there too. torch reads no traces, so what is compared is what it does with the
events that it has in memory when someone asks for the table, with what `mindprof table` does with
the trace that torch then wrote of the same events, start of the program and reading included.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOLDENS = Path(__file__).parents[1] / "tests" / "goldens"
WINDOW = re.compile(rb'\{\s*"ph": "X",\s*"cat": "Trace"')
NUMBERS = re.compile(
    rb'"(ts|External id|correlation|Python id|Python parent id|Sequence number|id)": '
    rb"(\d+)(?:\.(\d{3}))?"
)
JSON_LOAD = "import json, sys; print(len(json.load(open(sys.argv[1], 'rb'))['traceEvents']))"
PANDAS = "import pandas; "
TO_FRAME = (
    "import json, pandas, sys; "
    "print(len(pandas.DataFrame(json.load(open(sys.argv[1], 'rb'))['traceEvents'])))"
)


# Operators without a device, so that each is one event, under as many names as a model has.
RECORD = """
import sys, time, torch
from torch.profiler import ProfilerActivity, profile
wanted, path = int(sys.argv[1]), sys.argv[2]
x = torch.ones(4)
def work():
    return x.add(x), x.mul(x), x.neg(), x.sum(), x.relu(), x.view(2, 2), x.exp(), x.clone()
with profile(activities=[ProfilerActivity.CPU]) as warm:
    work()
each = len(warm.events())
with profile(activities=[ProfilerActivity.CPU]) as prof:
    for _ in range(wanted // each):
        work()
started = time.perf_counter()
events = prof.events()
listed = time.perf_counter()
prof.key_averages().table()
done = time.perf_counter()
prof.export_chrome_trace(path)
print(len(events), listed - started, done - listed)
"""


class Golden:
    """A recorded trace in pieces: what stays, and the numbers that a repetition shifts."""

    def __init__(self, path: Path) -> None:
        text = gzip.decompress(path.read_bytes())
        begin = text.index(b"[", text.index(b'"traceEvents"')) + 1
        window = WINDOW.search(text)
        assert window is not None
        self.head, self.tail = text[:begin], text[window.start() :]
        events = text[begin : window.start()]
        self.pieces: list[bytes] = []
        self.numbers: list[tuple[bool, int]] = []
        last = 0
        for match in NUMBERS.finditer(events):
            is_time = match[3] is not None
            self.pieces.append(events[last : match.start(2)])
            self.numbers.append((is_time, int(match[2] + (match[3] or b""))))
            last = match.end()
        self.pieces.append(events[last:])
        times = [number for is_time, number in self.numbers if is_time]
        self.span_ns = max(times) - min(times) + 1_000_000
        self.count = 1 + max(number for is_time, number in self.numbers if not is_time)

    def shifted(self, copy: int) -> bytes:
        """Returns the events of the repetition with this number."""
        parts = []
        for piece, (is_time, number) in zip(self.pieces, self.numbers, strict=False):
            parts.append(piece)
            if is_time:
                moved = number + copy * self.span_ns
                parts.append(b"%d.%03d" % (moved // 1000, moved % 1000))
            else:
                parts.append(b"%d" % (number + copy * self.count))
        parts.append(self.pieces[-1])
        return b"".join(parts)


def make_trace(golden: Path, path: Path, size: int) -> None:
    """Writes a trace of about `size` bytes."""
    pieces = Golden(golden)
    with path.open("wb") as file:
        file.write(pieces.head)
        copy = 0
        while file.tell() < size:
            file.write(pieces.shifted(copy))
            copy += 1
        file.write(pieces.tail)


def measure(command: list[str]) -> tuple[float, int]:
    """Runs a command and returns its seconds and its peak of memory in bytes."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    if status != 0:
        raise SystemExit(f"{command} failed")
    return seconds, usage.ru_maxrss * 1024


def report(name: str, command: list[str], size: int, runs: int) -> float:
    """Prints the median of some runs and returns the bytes per second."""
    measured = [measure(command) for _ in range(runs)]
    seconds = statistics.median(seconds for seconds, _ in measured)
    peak = max(peak for _, peak in measured)
    rate = size / seconds
    print(
        f"  {name:<28} {seconds:8.2f} s {rate / 1e6:8.0f} MB/s"
        f"   peak {peak / 1e6:7.0f} MB = {peak / size:.2f} of the file"
    )
    return rate


def compare_with_torch(arguments: argparse.Namespace, trace: Path) -> None:
    """Records a profile with the real torch and reads the trace that it writes of it."""
    recorded = [arguments.torch_python, "-c", RECORD, str(arguments.torch_events), str(trace)]
    told = subprocess.run(recorded, capture_output=True, check=True, text=True).stdout.split()
    events, listed, summed = int(told[0]), float(told[1]), float(told[2])
    print(f"torch's own trace of {events} events, {trace.stat().st_size / 1e6:.0f} MB")
    print(f"  {'torch: events()':<28} {listed:8.2f} s {listed / events * 1e6:8.2f} us per event")
    print(f"  {'torch: averages and table':<28} {summed:8.2f} s {summed / events * 1e6:8.2f} us per event")
    command = [arguments.program, "table", str(trace)]
    rate = report("mindprof table", command, trace.stat().st_size, arguments.runs)
    seconds = trace.stat().st_size / rate
    print(f"  {'ratio, of the events alone':<28} {listed / seconds:8.1f}")
    print(f"  {'ratio, of the whole':<28} {(listed + summed) / seconds:8.1f}")


def has_pandas() -> bool:
    """Returns whether this Python can make data frames."""
    command = [sys.executable, "-c", PANDAS]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main() -> None:
    """Makes the traces and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="target/release/mindprof")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[250, 1000])
    parser.add_argument("--json-megabytes", type=int, default=250)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--torch-python", help="an interpreter with the real torch")
    parser.add_argument("--torch-events", type=int, default=200_000)
    parser.add_argument(
        "--goldens", nargs="+", default=["h200-torch2.11/gpt-full", "cpu-torch2.15/gpt-plain"]
    )
    arguments = parser.parse_args()
    # Pages of the file are the system's; only what a process holds itself counts.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        for golden in arguments.goldens:
            for megabytes in arguments.megabytes:
                make_trace(GOLDENS / f"{golden}.trace.json.gz", trace, megabytes * 10**6)
                size = trace.stat().st_size
                print(f"{golden}, {size / 1e6:.0f} MB")
                command = [arguments.program, "table", str(trace)]
                rate = report("mindprof table", command, size, arguments.runs)
                if megabytes <= arguments.json_megabytes:
                    frame = has_pandas()
                    script = TO_FRAME if frame else JSON_LOAD
                    name = "json.load and pandas" if frame else "json.load alone"
                    other = report(name, [sys.executable, "-c", script, str(trace)], size, 1)
                    print(f"  {'ratio':<28} {rate / other:8.1f}")
        if arguments.torch_python:
            compare_with_torch(arguments, trace)


if __name__ == "__main__":
    main()
