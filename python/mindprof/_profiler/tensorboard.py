"""A callback that writes each finished trace into a folder, under a name of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Protocol


class Exporter(Protocol):
    """What the handler needs of a profiler."""

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
        dir_name: The folder; it is made if it is not there.
        worker_name: What tells this process from others that write there; host and process id if
            None.
        use_gzip: Compress the file and put `.gz` to its name.
        use_python_export: Accepted; there is one exporter.

    Raises:
        ValueError: Files of that worker would not lie in the folder.
    """
    worker = worker_name
    if worker and _leads_out(worker):
        raise ValueError(f"expected a worker_name of a file inside dir_name, found {worker!r}")

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
    """Returns whether a worker's name leads out of the folder that it is put behind."""
    place = os.path.normpath(worker)
    return os.path.isabs(place) or place == os.pardir or place.startswith(os.pardir + os.sep)


def _free_path(folder: str, worker: str, suffix: str) -> str:
    """Returns a name that no file has: for now, or for the next free nanosecond."""
    nanoseconds = time.time_ns()
    while os.path.exists(path := os.path.join(folder, f"{worker}.{nanoseconds}{suffix}")):
        nanoseconds += 1
    return path
