"""The files of lists of events that were made by hand. Those of a recording are the engine's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any


def write_stacks(events: Iterable[Any], path: str | os.PathLike[str], attribute: str) -> None:
    """Writes a line per event that has callers: these, outermost first, and the event's weight."""
    blanks = str.maketrans(dict.fromkeys(" ;\t\n", "_"))
    with open(path, "w", encoding="utf-8") as file:
        for event in events:
            weight = int(getattr(event, attribute))
            if event.stack and weight > 0:
                frames = ";".join(frame.translate(blanks) for frame in reversed(event.stack))
                file.write(f"{frames} {weight}\n")


def write_trace(events: Iterable[Any], path: str | os.PathLike[str], device: str) -> None:
    """Writes the events that have a trace name as a JSON array, with an arrow for each kernel."""
    entries: list[dict[str, Any]] = []
    number = 0
    for event in events:
        if event.trace_name is None:
            continue
        thread: Any = event.thread
        if event.is_remote:
            thread = f" node_id:{event.node_id}, thread_id:{event.thread} "
        begin = event.time_range.start
        place = {"tid": thread, "pid": "CPU functions"}
        name = {"name": event.trace_name}
        times = {"ph": "X", "ts": begin, "dur": event.time_range.elapsed_us()}
        entries.append({**name, **times, **place, "args": {}})
        for _ in event.kernels:
            tail = {"id": number, "cat": f"cpu_to_{device}", "args": {}}
            entries.append({**name, "ph": "s", "ts": begin, **place, **tail})
            number += 1
    with open(path, "w", encoding="utf-8") as file:
        json.dump(entries, file)
