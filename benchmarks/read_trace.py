"""Compares how fast `mindprof table` and `json.load` read a large trace, in one run.

The trace is a recorded one, repeated with shifted times and numbers up to the requested size. Every
measurement runs in its own process, so that its peak memory can be measured too.

    python benchmarks/read_trace.py --program target/release/mindprof --megabytes 250 1000

It also reads traces of `--unusual-megabytes` that consist of one unusual kind of event each: copies
with a varying rate, counters, asynchronous events, and events with unique ids. `mindprof table`
drops unknown fields, while `mindprof info` keeps them, as every command does that can write the
trace again.

With `--torch-python`, an interpreter that has torch, a profile of `--torch-events` is recorded too.
torch cannot read traces, so the comparison is between torch's table of events in memory, and
`mindprof table` on the trace that torch writes of the same events, including the start of the
program and the reading.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
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


# Operators on the CPU, so that each is one event, with as many names as a model has.
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
    """A recorded trace, split into constant text and the numbers that a repetition shifts."""

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
        """Returns the events of one repetition, with times and numbers shifted."""
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


def copy_event(index: int, chance: random.Random) -> str:
    """Returns a copy to a device, with arguments that a profile does not model."""
    return (
        f'{{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, '
        f'"tid": 7, "ts": {1000 + index * 3.5}, "dur": 1.25, "args": {{"External id": {index}, '
        f'"device": 0, "context": 1, "stream": 7, "correlation": {index + 1}, '
        f'"bytes": {chance.randrange(1 << 20)}, '
        f'"memory bandwidth (GB/s)": {chance.random() * 10}}}}}'
    )


def counter_event(index: int, chance: random.Random) -> str:
    """Returns one value of a counter."""
    return (
        f'{{"ph": "C", "name": "queue", "pid": 1, "tid": 1, "ts": {1000 + index * 3.5}, '
        f'"args": {{"length": {chance.randrange(1 << 30)}}}}}'
    )


def asynchronous_event(index: int, _chance: random.Random) -> str:
    """Returns the begin or the end of an asynchronous event."""
    return (
        f'{{"ph": "{"be"[index % 2]}", "cat": "net", "name": "get", '
        f'"id": "{0x7F0000000000 + index // 2 * 64:#x}", "pid": 1, "tid": 1, '
        f'"ts": {1000 + index * 3.5}}}'
    )


def marked_event(index: int, chance: random.Random) -> str:
    """Returns an operator with a unique id."""
    return (
        f'{{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, '
        f'"ts": {1000 + index * 3.5}, "dur": 1, "args": {{"External id": {index}, '
        f'"uuid": "{uuid.UUID(int=chance.getrandbits(128))}"}}}}'
    )


UNUSUAL: dict[str, Callable[[int, random.Random], str]] = {
    "copies": copy_event,
    "counters": counter_event,
    "asynchronous events": asynchronous_event,
    "events with ids": marked_event,
}


def make_unusual(event: Callable[[int, random.Random], str], path: Path, size: int) -> None:
    """Writes a trace of about `size` bytes of events of one kind."""
    chance = random.Random(1)
    with path.open("w") as file:
        file.write('{"traceEvents": [\n')
        index = 0
        while file.tell() < size:
            block = range(index, index + 1000)
            file.write(",\n".join(event(each, chance) for each in block) + ",\n")
            index += 1000
        file.write(event(index, chance) + "\n]}")


def measure(command: list[str]) -> tuple[float, int]:
    """Runs a command, and returns its seconds and its peak memory in bytes."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    if status != 0:
        raise SystemExit(f"{command} failed")
    return seconds, usage.ru_maxrss * 1024


def report(name: str, command: list[str], size: int, runs: int) -> float:
    """Prints the median of several runs, and returns the bytes per second."""
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
    """Records a profile with the real torch, and reads the trace that torch writes."""
    recorded = [arguments.torch_python, "-c", RECORD, str(arguments.torch_events), str(trace)]
    told = subprocess.run(recorded, capture_output=True, check=True, text=True).stdout.split()
    events, listed, summed = int(told[0]), float(told[1]), float(told[2])
    print(f"torch's own trace of {events} events, {trace.stat().st_size / 1e6:.0f} MB")
    for name, seconds in (("torch: events()", listed), ("torch: averages and table", summed)):
        print(f"  {name:<28} {seconds:8.2f} s {seconds / events * 1e6:8.2f} us per event")
    command = [arguments.program, "table", str(trace)]
    rate = report("mindprof table", command, trace.stat().st_size, arguments.runs)
    seconds = trace.stat().st_size / rate
    print(f"  {'ratio, of the events alone':<28} {listed / seconds:8.1f}")
    print(f"  {'ratio, of the whole':<28} {(listed + summed) / seconds:8.1f}")


def has_pandas() -> bool:
    """Returns whether this Python has pandas."""
    command = [sys.executable, "-c", PANDAS]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main() -> None:
    """Generates the traces and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="target/release/mindprof")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[250, 1000])
    parser.add_argument("--json-megabytes", type=int, default=250)
    parser.add_argument("--unusual-megabytes", type=int, default=200)
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
        for name, event in UNUSUAL.items():
            make_unusual(event, trace, arguments.unusual_megabytes * 10**6)
            size = trace.stat().st_size
            print(f"{name}, {size / 1e6:.0f} MB")
            for verb in ("table", "info"):
                command = [arguments.program, verb, str(trace)]
                report(f"mindprof {verb}", command, size, arguments.runs)
        if arguments.torch_python:
            compare_with_torch(arguments, trace)


if __name__ == "__main__":
    main()
