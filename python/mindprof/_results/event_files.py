"""`EventFiles`: the exports of event lists.

The engine writes the files of an unchanged recording; this module writes those of lists that were
changed or created by hand.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from mindprof import _core
from mindprof._results.lazy_list import Entry
from mindprof._results.metrics import STACK_METRICS, check_metric, of_any_device
from mindprof._results.recorded_files import RecordedFiles
from mindprof._results.recorded_list import RecordedList


class EventFiles(RecordedFiles, RecordedList[Entry]):
    """The exports of an event list."""

    def _recorded(self, _doing: str, /) -> _core.Events:
        source = self._untouched()
        if not isinstance(source, _core.Events):
            raise ValueError(
                "the event list is not an unchanged recording: export from the profiler, "
                "or load the trace again"
            )
        return source

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events that have a trace name as a JSON array of trace events.

        Args:
            path: The file to write.
        """
        source = self._untouched()
        if isinstance(source, _core.Events):
            source.write_event_list(path)
        else:
            write_trace(self, path, self._use_device or "cuda")

    def supported_export_stacks_metrics(self) -> list[str]:
        """Returns the metrics that `export_stacks` accepts."""
        return list(STACK_METRICS)

    def export_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        """Writes one line per event with a stack: the frames, outermost first, and the value.

        Args:
            path: The file to write.
            metric: The metric to write; see `supported_export_stacks_metrics()`.

        Raises:
            ValueError: The metric does not exist.
        """
        check_metric(metric)
        source = self._untouched()
        if isinstance(source, _core.Events):
            source.write_folded(path, metric)
        else:
            write_stacks(self, path, of_any_device(metric))

    def export_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the columns of `to_arrow()` as a Parquet file with one row per event.

        Args:
            path: The file to write.

        Raises:
            ValueError: The list was changed or created by hand.
        """
        self._recorded("exporting as Parquet").write_parquet(path)


def write_stacks(events: Iterable[Any], path: str | os.PathLike[str], attribute: str) -> None:
    """Writes a line per event with a stack: the frames, outermost first, and the value."""
    blanks = str.maketrans(dict.fromkeys(" ;\t\n", "_"))
    with open(path, "w", encoding="utf-8") as file:
        for event in events:
            weight = int(getattr(event, attribute))
            if event.stack and weight > 0:
                frames = ";".join(frame.translate(blanks) for frame in reversed(event.stack))
                file.write(f"{frames} {weight}\n")


def write_trace(events: Iterable[Any], path: str | os.PathLike[str], device: str) -> None:
    """Writes the events with a trace name as a JSON array, with a flow event for each kernel."""
    import json

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
