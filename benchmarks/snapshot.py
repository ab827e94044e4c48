"""Measures `mindprof memory` on a large memory snapshot, beside Python's pickle.

The snapshot is made up to torch's schema: training steps whose allocations are made at many places,
each with its own list of frames, as torch writes them. A part of the blocks stays. Python only
loads the pickle, and computes nothing. Every measurement runs in its own process, so that its peak
memory can be measured too.

    python benchmarks/snapshot.py --program target/release/mindprof --megabytes 500

`--keep FILE` writes the snapshot there, and uses it if it is there already.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FIRST_US = 1_787_000_000_000_000
ADDRESS = 140_000_000_000_000
PLACES = 4_000
DEPTH = 40
#: Bytes of the file for one allocation with its release, about.
BYTES_PER_ALLOCATION = 458
LOAD = "import pickle, sys; print(len(pickle.load(open(sys.argv[1], 'rb'))['segments']))"

Record = dict[str, Any]


def frames() -> list[Record]:
    """Returns the distinct frames: a few of the program, most of libraries."""
    library = "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/part{}.py"
    own = "/home/me/project/model{}.py"
    return [
        {
            "name": f"function_{number}",
            "filename": (own if number % 10 == 0 else library).format(number % 97),
            "line": number % 2_000 + 1,
        }
        for number in range(PLACES)
    ]


def stack(found: list[Record], place: int) -> list[Record]:
    """Returns a list of frames of its own: torch shares frames, but not lists of them."""
    inner = [found[(place * 31 + level * (level + 7)) % PLACES] for level in range(DEPTH // 4)]
    return inner + [found[(place % 50 * 13 + level) % PLACES] for level in range(DEPTH * 3 // 4)]


def entry(action: str, address: int, size: int, moment: int, called: list[Record]) -> Record:
    """Returns an entry of the history."""
    return {
        "action": action,
        "addr": address,
        "size": size,
        "stream": 0,
        "time_us": FIRST_US + moment,
        "compile_context": "N/A",
        "user_metadata": "",
        "frames": called,
    }


def snapshot(allocations: int) -> Record:
    """Makes a snapshot with this many allocations, one of a thousand of which stays."""
    found = frames()
    trace: list[Record] = []
    blocks: list[Record] = []
    end = ADDRESS
    open_blocks: list[tuple[int, int]] = []
    for number in range(allocations):
        size = 512 * (1 + number * 7919 % 4_000)
        called = stack(found, number % 9_973)
        moment = number * 12
        trace.append(entry("alloc", end, size, moment, called))
        if number % 1_000 == 0:
            state = {"address": end, "size": size, "requested_size": size}
            blocks.append({**state, "state": "active_allocated", "frames": called})
        else:
            open_blocks.append((end, size))
            blocks.append(
                {"address": end, "size": size, "requested_size": size, "state": "inactive"}
            )
        end += size
        if len(open_blocks) > 500:
            address, freed = open_blocks.pop(0)
            trace.append(entry("free_requested", address, freed, moment + 4, []))
            trace.append(entry("free_completed", address, freed, moment + 5, []))
    for address, freed in open_blocks:
        trace.append(entry("free_completed", address, freed, allocations * 12, []))
    segment = {
        "device": 0,
        "address": ADDRESS,
        "total_size": end - ADDRESS,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }
    return {"segments": [segment], "device_traces": [trace], "allocator_settings": {}}


def write(path: Path, megabytes: int) -> None:
    """Writes a snapshot of about this size."""
    with path.open("wb") as file:
        pickle.dump(snapshot(megabytes * 1_000_000 // BYTES_PER_ALLOCATION), file)


def measure(command: list[str]) -> tuple[float, float, int]:
    """Runs a command. Returns its seconds, those of processors, and its peak memory in bytes."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}")
    elapsed = time.perf_counter() - begin
    return elapsed, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def main() -> None:
    """Writes the snapshot and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="target/release/mindprof")
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.keep or Path(folder) / "snapshot.pickle"
        if not path.exists():
            # In a process of its own: the memory of this one counts for those that it starts.
            writer = multiprocessing.Process(target=write, args=(path, arguments.megabytes))
            writer.start()
            writer.join()
        size = path.stat().st_size
        print(f"{size / 1e6:.0f} MB")
        loaded = measure([sys.executable, "-c", LOAD, str(path)])
        elapsed, work, peak = loaded
        print(f"{'pickle.load':12} {elapsed:6.2f} s, CPU {work:6.2f} s {peak / 1e6:7.0f} MB")
        elapsed, work, peak = measure([arguments.program, "memory", str(path)])
        ratio = f"{work / loaded[1]:.2f} of the CPU time of pickle.load"
        share = f"{peak / size:.2f} of the file"
        times = f"{elapsed:6.2f} s, CPU {work:6.2f} s"
        print(f"{'memory':12} {times} {peak / 1e6:7.0f} MB, {share}, {ratio}")


if __name__ == "__main__":
    main()
