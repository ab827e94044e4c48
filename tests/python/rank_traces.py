"""The traces of a made-up job: steps that compute and then meet the others. One rank is slow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RANKS, STEPS, SLOW = 6, 6, 4


def trace(rank: int) -> dict[str, Any]:
    """Returns the trace of one rank."""
    events: list[dict[str, Any]] = []

    def add(category: str, name: str, track: int, begin: float, end: float, **more: Any) -> None:
        process = 0 if category == "kernel" else 100
        found = {"ph": "X", "cat": category, "name": name, "pid": process, "tid": track}
        events.append({**found, "ts": begin, "dur": end - begin, "args": more})

    for step in range(STEPS):
        begin, work = 1e6 + 1600.0 * step, 1500.0 if rank == SLOW else 1000.0
        add("user_annotation", f"ProfilerStep#{step}", 1, begin, begin + 1600)
        add("kernel", "gemm", 7, begin, begin + work)
        group = {"Process Group Name": "0", "Process Group Ranks": str([*range(RANKS)])}
        told = {"Collective name": "allreduce", "Seq": step, "Group size": RANKS, **group}
        add("kernel", "ncclDevKernel_AllReduce", 20, begin + work, begin + 1600, **told)
    return {"distributedInfo": {"rank": rank, "world_size": RANKS}, "traceEvents": events}


def write_job(folder: Path) -> None:
    """Writes the traces of all ranks."""
    for rank in range(RANKS):
        (folder / f"trace{rank}.json").write_text(json.dumps(trace(rank)))
