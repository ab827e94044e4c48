"""Spreads the files of a job over threads, processes or a cluster, and yields their summaries.

Each engine is a `map` that yields results as they come. Every engine gives the same bytes, because
the merged summary does not depend on the order.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mindprof import _core
from mindprof._rank_files import file_system, summarized_bytes

# The bytes of a summary, or the reason why there is none.
Result = tuple["bytes | None", "str | None"]

# The most tasks that a cluster is given at once, and the most of those that carry their file.
_RUNNING = 512
_SENT = 16

# How often the work of a lost worker is given to another one.
_RETRIES = 3


@dataclass(frozen=True)
class Plan:
    """The files to read, and how workers get them."""

    paths: Sequence[str]
    workers: int | None
    sends: bool

    def located(self, path: str) -> str:
        """Returns a path that is valid on workers, whose current folder is another one."""
        return path if "://" in path else os.path.abspath(path)

    def data(self, path: str) -> bytes | None:
        """Returns what is sent to a worker: the bytes of a file, or `None` if it reads the file."""
        return _contents(path) if self.sends else None

    def most_running(self) -> int:
        """Returns how many tasks a cluster is given at once."""
        return _SENT if self.sends else _RUNNING


def _summarized(source: str, data: bytes | None = None) -> Result:
    """Sums up one file on a worker. A file that cannot be read is a result, not a lost worker."""
    try:
        if data is None:
            return summarized_bytes(source), None
        return _core.summarize_rank_bytes(data, source), None
    except (OSError, _core.ProfilerError) as error:
        return None, str(error)


def _lost(path: str, reason: str) -> Result:
    """Returns the result of a file whose workers were lost."""
    return None, f"{path}: the worker that read it was lost: {reason}"


def _contents(path: str) -> bytes | None:
    """Returns the bytes of a file, or `None` if a worker should report why it cannot be read."""
    try:
        if "://" in path:
            files, inner = file_system(path)
            contents: bytes = files.cat_file(inner)
            return contents
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _on_threads(plan: Plan) -> Iterator[tuple[int, Result]]:
    from concurrent.futures import ThreadPoolExecutor, as_completed

    with ThreadPoolExecutor(plan.workers or os.cpu_count(), "mindprof-ranks") as pool:
        futures = {pool.submit(_summarized, path): index for index, path in enumerate(plan.paths)}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _on_processes(plan: Plan) -> Iterator[tuple[int, Result]]:
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # A forked process would inherit threads and locks of this one.
    spawn = get_context("spawn")
    workers = min(plan.workers or os.cpu_count() or 1, len(plan.paths))
    waiting = iter(enumerate(plan.paths))
    while True:
        running: dict[Any, tuple[int, str]] = {}
        try:
            with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
                while True:
                    for index, path in itertools.islice(waiting, workers - len(running)):
                        running[pool.submit(_summarized, path)] = index, path
                    if not running:
                        return
                    for done in wait(running, return_when=FIRST_COMPLETED).done:
                        result = done.result()
                        yield running.pop(done)[0], result
        except BrokenProcessPool:
            # A lost process breaks the pool, and any of the running files may be the reason.
            for index, path in running.values():
                yield index, _summarized_alone(path, spawn)


def _summarized_alone(path: str, spawn: Any) -> Result:
    """Sums up a file in a process of its own."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    try:
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            return pool.submit(_summarized, path).result()
    except BrokenProcessPool:
        return _lost(path, _why_lost())


def _why_lost() -> str:
    """Returns why a process was lost: it ran a script without a guard, or lacks memory."""
    script = getattr(sys.modules["__main__"], "__file__", None)
    try:
        with open(script or "", encoding="utf-8", errors="replace") as file:
            is_guarded = "__main__" in file.read()
    except OSError:
        is_guarded = True
    if is_guarded:
        return "it may need more memory than there is"
    guard = '`if __name__ == "__main__":`'
    return f"each process runs {script} again, which lacks a guard: put its code below {guard}"


def _on_ray(plan: Plan) -> Iterator[tuple[int, Result]]:
    try:
        import ray
    except ImportError as error:
        raise ImportError("install mindprof[ray] to read files on a Ray cluster") from error
    if not ray.is_initialized():
        ray.init(num_cpus=plan.workers, log_to_driver=False)
    # A task has a processor to itself, so that a worker holds one file at a time. Ray runs the task
    # of a lost worker again.
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_summarized)
    waiting = iter(enumerate(plan.paths))
    running: dict[Any, tuple[int, str]] = {}
    while True:
        # Each wait costs the number of running tasks, so that number is bounded.
        for index, path in itertools.islice(waiting, plan.most_running() - len(running)):
            running[task.remote(plan.located(path), plan.data(path))] = index, path
        if not running:
            return
        for done in ray.wait(list(running), num_returns=1)[0]:
            index, path = running.pop(done)
            try:
                result: Result = ray.get(done)
            except ray.exceptions.RayError as error:
                result = _lost(path, type(error).__name__)
            yield index, result


def _on_dask(plan: Plan) -> Iterator[tuple[int, Result]]:
    try:
        from distributed import Client, KilledWorker, as_completed, get_client
    except ImportError as error:
        raise ImportError("install mindprof[dask] to read files on a Dask cluster") from error
    own = None
    try:
        client = get_client()
    except ValueError:
        client = own = Client(n_workers=plan.workers, threads_per_worker=1, dashboard_address=None)
    running: dict[Any, tuple[int, str]] = {}

    def start(count: int) -> list[Any]:
        started = []
        for index, path in itertools.islice(waiting, count):
            future = client.submit(_summarized, plan.located(path), plan.data(path), pure=False)
            running[future] = index, path
            started.append(future)
        return started

    waiting = iter(enumerate(plan.paths))
    try:
        futures = as_completed(start(plan.most_running()))
        for future in futures:
            index, path = running.pop(future)
            try:
                result: Result = future.result()
            except KilledWorker as error:
                result = _lost(path, type(error).__name__)
            futures.update(start(1))
            yield index, result
    finally:
        if own is not None:
            own.close()


ENGINES: dict[str, Callable[[Plan], Iterator[tuple[int, Result]]]] = {
    "threads": _on_threads,
    "processes": _on_processes,
    "ray": _on_ray,
    "dask": _on_dask,
}


def collect(
    results: Iterator[tuple[int, Result]], count: int, progress: bool | None
) -> dict[int, Result]:
    """Collects the results of all files, with a progress bar."""
    is_shown = sys.stderr.isatty() if progress is None else progress
    collected: dict[int, Result] = {}
    for index, result in results:
        collected[index] = result
        if is_shown:
            done = len(collected)
            bar = "=" * (24 * done // count)
            print(f"\rreading ranks [{bar:24}] {done}/{count}", end="", file=sys.stderr, flush=True)
    if is_shown and collected:
        print("\r" + " " * 60, end="\r", file=sys.stderr, flush=True)
    return collected
