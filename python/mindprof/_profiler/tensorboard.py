"""`tensorboard_trace_handler`: a callback that writes each trace to a new file in a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Protocol


class Exporter(Protocol):
    """The part of a profiler's interface that the handler needs."""

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> Any:
        """Writes the trace to a file."""


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Exporter], None]:
    """Returns a callback for `on_trace_ready` that writes `dir_name/worker.time.pt.trace.json`.

    Args:
        dir_name: The folder, which is created if it does not exist.
        worker_name: A name for this process; the machine's name and the process id if `None`.
        use_gzip: Compress the file and append `.gz` to its name.
        use_python_export: Accepted, but has no effect; there is one exporter.

    Raises:
        ValueError: The worker's name leads out of the folder.
    """
    worker = worker_name
    if worker and _leads_out(worker):
        raise ValueError(f"worker_name must stay inside dir_name, got {worker!r}")

    def handle(profiler: Exporter) -> None:
        nonlocal worker
        if not os.path.isdir(dir_name):
            try:
                os.makedirs(dir_name, exist_ok=True)
            except Exception as error:
                raise RuntimeError(f"Can't create directory: {dir_name}") from error
        if not worker:
            import socket

            worker = f"{socket.gethostname()}_{os.getpid()}"
        path = _free_path(dir_name, worker, ".pt.trace.json.gz" if use_gzip else ".pt.trace.json")
        profiler.export_chrome_trace(path, use_python_export=use_python_export)

    return handle


def _leads_out(worker: str) -> bool:
    """Returns whether a path with this name would lie outside its folder."""
    place = os.path.normpath(worker)
    return os.path.isabs(place) or place == os.pardir or place.startswith(os.pardir + os.sep)


def _free_path(folder: str, worker: str, suffix: str) -> str:
    """Returns an unused path with the current time, or with the next free nanosecond."""
    nanoseconds = time.time_ns()
    while os.path.exists(path := os.path.join(folder, f"{worker}.{nanoseconds}{suffix}")):
        nanoseconds += 1
    return path
