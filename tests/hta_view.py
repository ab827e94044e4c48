"""Traces as HolisticTraceAnalysis sees them, to compare its figures with ours.

HTA rounds times to whole microseconds, inwards, and leaves out what was launched in the last step.
"""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

TRACES = Path(__file__).parents[2] / "shared" / "traces"

# The traces of HTA's own tests. The figures in hta_figures.json are those of HTA 0.5.0.
FIGURES = [
    "hta-amd-mi250",
    "hta-critical-alexnet",
    "hta-critical-simple-add",
    "hta-diff-control",
    "hta-diff-test",
    "hta-event-sync",
    "hta-event-sync-streams",
    "hta-mtia-inference",
    "hta-nccl",
    "hta-queue",
    "hta-sampled-rank0",
    "hta-sampled-rank1",
    "hta-triton",
]

DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events"}


def expected_figures(name: str) -> Any:
    """Returns what HTA finds in a trace."""
    return json.loads(Path(__file__).with_name("hta_figures.json").read_text())[name]


def hta_view(path: Path, output: Path) -> Path:
    """Writes the events of a trace that HTA counts, with the times that it gives them."""
    with gzip.open(path) as file:
        trace = json.load(file)
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    if any(event["ts"] != int(event["ts"]) for event in events):
        events = [rounded(event) for event in events]
    trace["traceEvents"] = without_last_step(events)
    output.write_text(json.dumps(trace))
    return output


def rounded(event: dict[str, Any]) -> dict[str, Any]:
    """Returns an event that starts and ends at whole microseconds."""
    start, end = math.ceil(event["ts"]), math.floor(event["ts"] + event["dur"])
    # HTA gives work within a microsecond a negative duration; a trace has no such thing.
    return event | {"ts": start, "dur": max(end - start, 0)}


def without_last_step(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the events without the last of several steps."""
    steps = [event for event in events if event["name"].startswith("ProfilerStep")]
    if len({step["name"] for step in steps}) < 2:
        return events
    last = max(step["ts"] for step in steps if step["cat"] == "user_annotation")
    before = [event for event in events if event["ts"] < last]
    launched = {
        event["args"].get("correlation")
        for event in before
        if event.get("cat") not in DEVICE_CATEGORIES and "args" in event
    }
    on_cpu = [event for event in before if event.get("cat") not in DEVICE_CATEGORIES]
    on_device = [event for event in events if event.get("cat") in DEVICE_CATEGORIES]
    return on_cpu + [event for event in on_device if event["args"].get("correlation") in launched]
