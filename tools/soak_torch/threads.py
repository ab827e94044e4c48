"""Trains on thousands of short threads while a profiler records, and checks every backward node.

Half of the threads run their backward pass themselves; the others hand their loss to the main
thread, which runs it after they have exited. Each backward node must name the thread of its forward
operator, and each must have an arrow in the trace, unless the recording says that events were lost.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import mindprof
import torch  # type: ignore[import-not-found]

#: How many threads run at the same time, and how many are in one recording.
BATCH = 32
PER_RECORDING = 512

#: The forward operators, and the nodes of their backward pass.
NODES = {"aten::mul": "MulBackward0", "aten::sum": "SumBackward0"}


def train(losses: list[torch.Tensor], is_handed_over: bool) -> None:
    """Runs a forward pass, and its backward pass unless the main thread is to do that."""
    weight = torch.ones(4, requires_grad=True)
    loss = (weight * 2).sum()
    if is_handed_over:
        losses.append(loss)
    else:
        loss.backward()


def record(threads: int) -> mindprof.profile:
    """Records short threads, batch by batch, and the backward passes of those that are gone."""
    with mindprof.profile(activities=[mindprof.ProfilerActivity.CPU]) as prof:
        for _ in range(threads // BATCH):
            losses: list[torch.Tensor] = []
            batch = [
                threading.Thread(target=train, args=(losses, index % 2 == 0))
                for index in range(BATCH)
            ]
            for thread in batch:
                thread.start()
            for thread in batch:
                thread.join()
            for loss in losses:
                loss.backward()
        # The main thread is older than all of them.
        train([], False)
    return prof


def check(prof: mindprof.profile) -> tuple[int, int]:
    """Returns how many backward nodes there are, and how many name a wrong forward thread."""
    forward = {
        (event.thread, event.sequence_nr): NODES[event.name]
        for event in prof.events()
        if event.name in NODES and event.sequence_nr >= 0
    }
    nodes = [event for event in prof.events() if event.name in NODES.values()]
    wrong = [
        node for node in nodes if forward.get((node.fwd_thread, node.sequence_nr)) != node.name
    ]
    return len(nodes), len(wrong)


def arrows(prof: mindprof.profile) -> int:
    """Returns how many arrows from forward operators to backward nodes a trace has."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    ends = Counter(event["ph"] for event in events if event.get("cat") == "fwdbwd")
    assert ends["s"] == ends["f"], ends
    return ends["f"]


def stress(count: int, seconds: float) -> str | None:
    """Trains on `count` threads, or until the time is over, and prints the counts.

    Returns:
        The reason for a failure, or `None`.
    """
    threads = nodes = wrong = missing = lost = 0
    end = time.monotonic() + seconds
    while threads < count and time.monotonic() < end:
        prof = record(PER_RECORDING)
        here, wrong_here = check(prof)
        threads += PER_RECORDING
        nodes += here
        wrong += wrong_here
        # Each node stands in a range of the engine, which has the arrow.
        missing += 2 * (PER_RECORDING + 1) - min(here, arrows(prof))
        lost += prof.lost_events
    print(
        f"threads {threads:,}, backward nodes {nodes:,}: {wrong:,} wrong, {missing:,} missing, "
        f"{lost:,} lost",
        flush=True,
    )
    if wrong or missing > lost or not nodes:
        return f"{wrong} backward nodes are wrong and {missing} are missing"
    return None
