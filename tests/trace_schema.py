"""What viewers and torch's own validator need of a Chrome trace."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

LARGEST_EXACT = 2**53 - 1
"""Readers in JavaScript take numbers up to this exactly."""

Event = dict[str, Any]

REQUIRED: dict[str, set[str]] = {
    "X": {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"},
    "i": {"ph", "s", "name", "pid", "tid", "ts"},
    "s": {"ph", "cat", "name", "pid", "tid", "ts", "id"},
    "f": {"ph", "cat", "name", "pid", "tid", "ts", "id", "bp"},
    "M": {"ph", "name", "pid", "tid", "ts", "args"},
}
FACTS = {
    "process_name": "name",
    "process_labels": "labels",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}


def check_file(path: str | Path) -> dict[str, Any]:
    """Checks the trace in a file and returns it."""
    data = Path(path).read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    trace: dict[str, Any] = json.loads(
        text.decode("utf-8"),
        parse_float=Decimal,
        parse_constant=_refuse,
        object_pairs_hook=_unique,
    )
    check(trace)
    return trace


def check(trace: dict[str, Any]) -> None:
    """Checks a trace whose times were read as decimals."""
    _check_top(trace)
    events: list[Event] = trace["traceEvents"]
    for event in events:
        _check_event(event)
    complete = [event for event in events if event["ph"] == "X"]
    _check_nesting(complete)
    _check_tracks(events)
    _check_arrows(events, complete)
    _check_python(complete)
    _check_devices(complete)
    _check_backward(complete)


def nanoseconds(time: Decimal) -> int:
    """Returns a time of a trace: microseconds with exactly three digits after the dot."""
    assert isinstance(time, Decimal), time
    assert time.as_tuple().exponent == -3, time
    return int(time * 1000)


def interval(event: Event) -> tuple[int, int]:
    """Returns when a complete event begins and ends."""
    start = nanoseconds(event["ts"])
    return start, start + nanoseconds(event["dur"])


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), f"a key comes twice in {[key for key, _ in pairs]}"
    return found


def _check_top(trace: dict[str, Any]) -> None:
    assert trace["schemaVersion"] == 1
    assert isinstance(trace["deviceProperties"], list)
    assert trace["displayTimeUnit"] == "ms"
    assert isinstance(trace["baseTimeNanoseconds"], int)
    assert isinstance(trace["traceName"], str)
    assert isinstance(trace["mindprof"]["version"], str)
    assert all(count >= 0 for count in trace["mindprof"]["lost"].values())


def _check_event(event: Event) -> None:
    missing = REQUIRED[event["ph"]] - event.keys()
    assert not missing, (missing, event)
    assert isinstance(event["name"], str)
    assert isinstance(event.get("cat", ""), str)
    assert all(isinstance(event[key], (int, str)) for key in ("pid", "tid"))
    assert nanoseconds(event["ts"]) >= 0
    if event["ph"] == "X":
        assert nanoseconds(event["dur"]) >= 0
    if event["ph"] in "sf":
        assert 0 <= event["id"] <= LARGEST_EXACT
    if event["ph"] == "i":
        assert event["s"] in "gpt"
    if event["ph"] == "M":
        assert FACTS[event["name"]] in event["args"], event
    for key, value in event.get("args", {}).items():
        if event["name"] == "[OutOfMemory]":
            # What was asked for in vain may be any number; viewers read it as a floating-point one.
            assert int(float(value)) == value, (key, value)
        elif key == "Comms Id":
            # A hash of 64 bits, which torch writes as a number too.
            assert 0 <= value < 2**64, value
        else:
            assert not isinstance(value, int) or abs(value) <= LARGEST_EXACT, (key, value)


def _check_nesting(complete: list[Event]) -> None:
    """On every track, children lie within their parents."""
    tracks = defaultdict(list)
    for event in complete:
        tracks[event["pid"], event["tid"]].append(event)
    for events in tracks.values():
        open_ends: list[tuple[int, Event]] = []
        for event in sorted(events, key=lambda event: (interval(event)[0], -interval(event)[1])):
            start, end = interval(event)
            while open_ends and open_ends[-1][0] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1][0], (open_ends[-1][1], event)
            open_ends.append((end, event))


def _check_tracks(events: list[Event]) -> None:
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    for event in events:
        if event["ph"] == "X" and event["cat"] != "Trace":
            assert (event["pid"], event["tid"]) in named, event


def _check_arrows(events: list[Event], complete: list[Event]) -> None:
    """Every arrow has both ends, each within an event, and leads forward in time."""
    starts = {(event["pid"], event["tid"], event["ts"]) for event in complete}
    tails, heads = {}, defaultdict(list)
    for event in events:
        if event["ph"] not in "sf":
            continue
        assert (event["pid"], event["tid"], event["ts"]) in starts, event
        key = (event["cat"], event["name"], event["id"])
        if event["ph"] == "f":
            assert event["bp"] == "e"
            heads[key].append(event)
        else:
            assert key not in tails, event
            tails[key] = event
    assert tails.keys() == heads.keys()


def _check_python(complete: list[Event]) -> None:
    """Every call of a Python function has a number of its own, and its caller one that is there."""
    calls = [event for event in complete if event["cat"] == "python_function"]
    starts = {call["args"]["Python id"]: interval(call)[0] for call in calls}
    assert len(starts) == len(calls)
    for call in calls:
        caller = call["args"].get("Python parent id")
        assert caller is None or starts[caller] <= interval(call)[0], call


def _check_devices(complete: list[Event]) -> None:
    """Nothing runs on a device before the host asked for it."""
    calls = {
        event["args"]["correlation"]: event
        for event in complete
        if event["cat"].endswith(("_runtime", "_driver")) and "correlation" in event["args"]
    }
    for event in complete:
        call = calls.get(event["args"].get("correlation"))
        if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset") and call is not None:
            assert call["ts"] <= event["ts"], (call, event)


def _check_backward(complete: list[Event]) -> None:
    """One sequence number of a forward thread leads to one kind of backward node."""
    nodes = defaultdict(set)
    for event in complete:
        arguments = event["args"]
        if "evaluate_function" in event["name"] and "Sequence number" in arguments:
            key = arguments["Fwd thread id"], arguments["Sequence number"]
            nodes[key].add(event["name"])
    assert all(len(names) == 1 for names in nodes.values()), nodes
