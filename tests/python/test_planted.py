"""Checks what is concluded from the traces of training runs with a planted cause of slowness.

The traces are large and lie outside of the project, in `../shared/planted`.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import mindprof
import pytest

PLANTED = Path(__file__).parents[3] / "shared" / "planted"
TRACES = sorted(PLANTED.glob("*/*.trace.json.gz"))


class Nested:
    """The operators of a trace with what is around them, found by times alone."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.own_time: dict[int, float] = {}
        self.function: dict[int, str | None] = {}
        self.node: dict[int, dict[str, Any] | None] = {}
        by_thread = defaultdict(list)
        for event in events:
            by_thread[event["tid"]].append(event)
        for thread in by_thread.values():
            self.add(sorted(thread, key=lambda event: (event["ts"], -event["dur"])))

    def add(self, events: list[dict[str, Any]]) -> None:
        around: list[dict[str, Any]] = []
        for event in events:
            while around and around[-1]["ts"] + around[-1]["dur"] <= event["ts"]:
                around.pop()
            if event["cat"] == "cpu_op":
                functions = (outer["name"] for outer in reversed(around) if is_own(outer))
                self.function[id(event)] = next(functions, None)
                nodes = (outer for outer in [*around, event] if is_node(outer))
                self.node[id(event)] = next(nodes, None)
                self.own_time[id(event)] = event["dur"]
                operators = (outer for outer in reversed(around) if outer["cat"] == "cpu_op")
                parent = next(operators, None)
                if parent is not None:
                    self.own_time[id(parent)] -= event["dur"]
            around.append(event)


def is_own(event: dict[str, Any]) -> bool:
    file: str = event["name"].partition("(")[0]
    return file.endswith("train.py") and event["cat"] == "python_function"


def is_node(event: dict[str, Any]) -> bool:
    name: str = event["name"]
    return name.startswith("autograd::engine") and event["cat"] == "cpu_op"


def backward_times(path: Path) -> dict[str, float]:
    """Sums up the backward time by the function that called the forward operator."""
    trace = json.loads(gzip.decompress(path.read_bytes()))
    kinds = ("cpu_op", "python_function")
    events = [event for event in trace["traceEvents"] if event.get("cat") in kinds]
    nested = Nested(events)
    operators = [event for event in events if event["cat"] == "cpu_op"]
    makers: dict[int, dict[str, Any]] = {}
    for event in sorted(operators, key=lambda event: event["ts"]):
        sequence = event["args"].get("Sequence number")
        if sequence is not None and nested.node[id(event)] is None:
            makers.setdefault(sequence, event)
    times: dict[str, float] = defaultdict(float)
    for event in operators:
        node = nested.node[id(event)]
        maker = makers.get(node["args"].get("Sequence number")) if node else None
        function = nested.function[id(maker)] if maker else None
        if function:
            times[Path(function).name] += nested.own_time[id(event)]
    return times


@pytest.mark.skipif(not TRACES, reason="the planted traces are not beside the project")
@pytest.mark.filterwarnings("ignore::mindprof.RepairWarning")
@pytest.mark.parametrize("path", TRACES, ids=lambda path: f"{path.parent.name}-{path.name[:-14]}")
def test_backward_time_counts_at_the_function_of_its_forward_operator(path: Path) -> None:
    expected = backward_times(path)
    profile = mindprof.load(path)
    found = {
        f"{row['file']}({row['line']}): {row['function']}": row["own"]["backward_us"]
        for row in profile.functions()
    }
    agreed = sum(min(time, found.get(name, 0.0)) for name, time in expected.items())
    assert agreed >= 0.95 * sum(expected.values()) > 0
