"""Measures commands on a large database of an Ascend profiler, beside the same sums in SQL.

The database is made up to the documented schema: steps of a model that is served with graphs, so
that one call launches many kernels, or with `--eager` one call each. Kernels have shapes and types,
and `--counters` rows of hardware counters, which `kernel_details.csv` has as columns. Every
measurement runs in its own process, so that its peak memory can be measured too.

    python benchmarks/ascend.py --program target/release/mindprof --kernels 2800000

`--keep FILE` writes the database there, and uses it if it is there already.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SCHEMA = """
CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE ENUM_API_TYPE (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER,
    name INTEGER, sequenceNumber INTEGER, fwdThreadId INTEGER, inputDtypes INTEGER,
    inputShapes INTEGER, callchainId INTEGER, type INTEGER);
CREATE TABLE CONNECTION_IDS (id INTEGER, connectionId INTEGER);
CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER,
    connectionId INTEGER PRIMARY KEY, name INTEGER);
CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER,
    globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, contextId INTEGER,
    streamId INTEGER, taskId INTEGER, modelId INTEGER);
CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockNum INTEGER,
    mixBlockNum INTEGER, taskType INTEGER, opType INTEGER, inputFormats INTEGER,
    inputDataTypes INTEGER, inputShapes INTEGER, outputFormats INTEGER, outputDataTypes INTEGER,
    outputShapes INTEGER, attrInfo INTEGER, opState INTEGER, hf32Eligible INTEGER);
CREATE TABLE TASK_PMU_INFO (globalTaskId INTEGER, name INTEGER, value REAL);
CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER);
CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER);
INSERT INTO RANK_DEVICE_MAP VALUES (0, 0);
INSERT INTO ENUM_API_TYPE VALUES (10000, 'node'), (20000, 'acl'), (50001, 'op'), (50002, 'queue');
"""
FIRST_NS = 1_787_000_000_000_000_000
KINDS = 240
KERNELS_PER_STEP = 2_000
THREAD = 4242 << 32 | 4242
# What a script would do instead: the time and count of each kernel by name.
SQL_SUMS = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
rows = database.execute(
    "SELECT s.value, count(*), sum(t.endNs - t.startNs) FROM TASK t"
    " JOIN COMPUTE_TASK_INFO c ON c.globalTaskId = t.globalTaskId"
    " JOIN STRING_IDS s ON s.id = c.name GROUP BY c.name").fetchall()
print(len(rows))
"""


def texts() -> list[str]:
    """Returns the texts of the database; their positions are their ids."""
    names = [f"aclnnKind{kind}_MatMulCommon_MatMulV{kind % 7}" for kind in range(KINDS)]
    shapes = [f'"{kind % 64 + 1},4096;4096,{128 * (kind % 9 + 1)}"' for kind in range(KINDS)]
    others = ["AI_CORE", "MatMulV2", "FORMAT_ND;FORMAT_ND", "DT_BF16;DT_BF16", "launch", "aten::mm"]
    counters = [f"aic_counter_{number}" for number in range(32)]
    return names + shapes + others + counters


def kernel_starts(kernels: int) -> Iterator[tuple[int, int, int]]:
    """Yields number, start and duration of every kernel."""
    now = FIRST_NS
    for number in range(kernels):
        duration = 2_000 + number * 7919 % 40_000
        yield number, now, duration
        now += duration + (50_000 if number % KERNELS_PER_STEP == 0 else 300)


def write_tables(database: sqlite3.Connection, kernels: int, counters: int, per_call: int) -> None:
    """Fills all tables."""
    add = database.executemany
    words = texts()
    core, kind, forms, types, launch, operator = range(2 * KINDS, 2 * KINDS + 6)
    add("INSERT INTO STRING_IDS VALUES (?, ?)", enumerate(words))
    starts = list(kernel_starts(kernels))
    task = "INSERT INTO TASK VALUES (?, ?, 0, ?, ?, 0, ?, 4294967295, ?, ?, 4294967295)"
    add(
        task,
        (
            (
                start,
                start + duration,
                number // per_call,
                number,
                core,
                2 + number % 3,
                number % 65536,
            )
            for number, start, duration in starts
        ),
    )
    info = "INSERT INTO COMPUTE_TASK_INFO VALUES (?,?,24,0,?,?,?,?,?,?,?,?,NULL,NULL,NULL)"
    add(
        info,
        (
            (
                n % KINDS,
                n,
                core,
                kind,
                forms,
                types,
                KINDS + n % KINDS,
                forms,
                types,
                KINDS + n % KINDS,
            )
            for n in range(kernels)
        ),
    )
    calls = starts[::per_call]
    call = "INSERT INTO CANN_API VALUES (?, ?, 10000, ?, ?, ?)"
    at = [(index, start - 40_000) for index, (_, start, _) in enumerate(calls)]
    add(call, ((start, start + 6_000, THREAD, index, launch) for index, start in at))
    api = "INSERT INTO PYTORCH_API VALUES (?, ?, ?, ?, ?, -1, 0, ?, ?, NULL, 50001)"
    add(
        api,
        (
            (str(start - 1_000), str(start + 7_000), THREAD, index, operator, types, KINDS)
            for index, start in at
        ),
    )
    add("INSERT INTO CONNECTION_IDS VALUES (?, ?)", ((index, index) for index, _ in at))
    steps = starts[::KERNELS_PER_STEP]
    ends = [start for _, start, _ in steps[1:]] + [starts[-1][1] + 50_000]
    bounds = enumerate(zip(steps, ends, strict=True))
    rows = ((index, step[1] - 45_000, end - 45_001) for index, (step, end) in bounds)
    add("INSERT INTO STEP_TIME VALUES (?, ?, ?)", rows)
    # Rows of a task follow each other.
    database.execute("CREATE TEMP TABLE COUNTERS (id INTEGER)")
    numbers = ((operator + 1 + number % 32,) for number in range(counters))
    add("INSERT INTO COUNTERS VALUES (?)", numbers)
    database.execute(
        "INSERT INTO TASK_PMU_INFO"
        " SELECT globalTaskId, id, (globalTaskId * 37 + id * 101) % 1000 / 1000.0"
        " FROM COMPUTE_TASK_INFO CROSS JOIN COUNTERS"
    )


def write_database(path: Path, arguments: argparse.Namespace) -> None:
    """Writes the database."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.executescript(SCHEMA)
    per_call = 1 if arguments.eager else 1_000
    write_tables(database, arguments.kernels, arguments.counters, per_call)
    database.commit()
    database.close()


def measure(command: list[str]) -> tuple[float, float, int]:
    """Runs a command. Returns its seconds, those of processors, and its peak memory in bytes."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}")
    elapsed = time.perf_counter() - begin
    return elapsed, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def main() -> None:
    """Writes the database and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="target/release/mindprof")
    parser.add_argument("--kernels", type=int, default=2_800_000)
    parser.add_argument("--counters", type=int, default=25)
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.keep or Path(folder) / "ascend_pytorch_profiler_0.db"
        if not path.exists():
            # In a process of its own: the memory of this one counts for those that it starts.
            writer = multiprocessing.Process(target=write_database, args=(path, arguments))
            writer.start()
            writer.join()
        size = path.stat().st_size
        print(f"{arguments.kernels} kernels, {size / 1e6:.0f} MB")
        sums = measure([sys.executable, "-c", SQL_SUMS, str(path)])
        elapsed, work, peak = sums
        print(f"{'SQL sums':10} {elapsed:6.2f} s, CPU {work:6.2f} s {peak / 1e6:7.0f} MB")
        for command in ("table", "steps", "advise"):
            elapsed, work, peak = measure([arguments.program, command, str(path)])
            share = f"{peak / size:.2f} of the database"
            ratio = f"{work / sums[1]:.2f} of the sums' CPU time"
            times = f"{elapsed:6.2f} s, CPU {work:6.2f} s"
            print(f"{command:10} {times} {peak / 1e6:7.0f} MB, {share}, {ratio}")


if __name__ == "__main__":
    main()
