"""Many ranks, one answer: a small summary of each rank's trace, and what they tell together.

A distributed job leaves one trace per rank. `summarize` turns a trace into a `RankSummary` of a few
tens of kilobytes, `merge` joins summaries in any order with the same result, and a merged summary
answers questions about the job. So any `map` over the files will do:

    from mindprof import ranks

    summary = ranks.open("traces/").summarize()                # threads of this process
    summary = ranks.open("traces/").summarize(on="ray")        # a running Ray cluster
    summary = ranks.merge(pool.map(ranks.summarize, paths))    # any pool
    print(summary)

The engine does the work; this module spreads files and collects results.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from mindprof import _core

__all__ = ["Job", "RankSummary", "RankWarning", "merge", "open", "summarize"]

_Engine = Literal["threads", "processes", "ray", "dask"]

# The bytes of a summary, or the reason why there is none.
_Result = tuple["bytes | None", "str | None"]

_ENDINGS = (".json", ".db", ".ranks", ".part")
_COMPRESSIONS = (".gz", ".zst", ".zstd")

# The most tasks that a Ray cluster is given at once.
_RUNNING = 512

# How often the work of a lost worker is given to another one.
_RETRIES = 3


class RankWarning(UserWarning):
    """Warns that files of a job could not be read. The others are answered."""


class RankSummary:
    """The summary of one rank, or the merged summaries of several.

    It is immutable, small and picklable. Equal summaries have equal bytes, however they were
    merged. Answers are dictionaries whose times are microseconds.
    """

    __slots__ = ("__dict__", "_bytes")

    def __init__(self, data: bytes) -> None:
        _core.count_ranks(data)
        self._bytes = bytes(data)

    @classmethod
    def from_bytes(cls, data: bytes) -> RankSummary:
        """Reads a summary from bytes.

        Args:
            data: The bytes that `to_bytes` returned, or the contents of a file that
                `mindprof summarize` wrote.

        Raises:
            ProfilerError: The bytes are no summary, or are damaged.
        """
        return cls(data)

    def to_bytes(self) -> bytes:
        """Returns the summary as bytes, which `from_bytes` and `mindprof merge` read."""
        return self._bytes

    def __or__(self, other: RankSummary) -> RankSummary:
        if not isinstance(other, RankSummary):
            return NotImplemented
        return merge([self, other])

    def __len__(self) -> int:
        """Returns the number of ranks."""
        return _core.count_ranks(self._bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RankSummary) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __reduce__(self) -> tuple[Callable[[bytes], RankSummary], tuple[bytes]]:
        return RankSummary.from_bytes, (self._bytes,)

    @functools.cached_property
    def _answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(_core.ask_ranks(self._bytes))
        return answer

    def answers(self) -> dict[str, Any]:
        """Returns all answers, as `mindprof ranks --json` prints them."""
        return dict(self._answer)

    def roster(self) -> dict[str, Any]:
        """Returns which ranks there are, and which are missing, repeated or foreign."""
        return dict(self._answer["roster"])

    def steps(self) -> dict[str, Any]:
        """Returns the steps of the job, each with its median duration over all ranks."""
        return dict(self._answer["steps"])

    def findings(self) -> dict[str, Any]:
        """Returns causes of slowness that only several ranks together show, with their prices."""
        return dict(self._answer["findings"])

    def stragglers(self) -> dict[str, Any]:
        """Returns slow ranks and machines, with the cause if one covers most of the difference."""
        return dict(self._answer["stragglers"])

    def slow_steps(self) -> list[dict[str, Any]]:
        """Returns the steps that took longer than usual, and the rank to blame."""
        return list(self._answer["slow_steps"])

    def clocks(self) -> dict[str, Any]:
        """Returns the offset of each rank's clock, with its error."""
        return dict(self._answer["clocks"])

    def collectives(self) -> dict[str, Any]:
        """Returns collectives by group and kind with waits and transfers, and the skew of steps."""
        return dict(self._answer["communication"])

    def temporal(self) -> dict[str, Any]:
        """Returns the use of devices per rank and in all: computing, communication, idle."""
        return dict(self._answer["devices"])

    def kernels(self) -> list[dict[str, Any]]:
        """Returns the kernels of all ranks with percentiles, by decreasing time."""
        return list(self._answer["kernels"])

    def bubbles(self) -> list[dict[str, Any]]:
        """Returns the time in which stages of a pipeline wait for data of others."""
        return list(self._answer["bubbles"])

    def memory(self) -> list[dict[str, Any]]:
        """Returns the peak memory of each rank."""
        return list(self._answer["memory"])

    def differences(self) -> dict[str, Any]:
        """Returns what ranks do differently: operators, counts, shapes, versions."""
        return dict(self._answer["differences"])

    def advice(self) -> list[dict[str, Any]]:
        """Returns the findings of `mindprof advise` about single ranks, by rule."""
        return list(self._answer["advice"])

    def table(self, row_limit: int = 8, width: int | None = 80) -> str:
        """Returns the answers as text, as `mindprof ranks` prints them.

        Args:
            row_limit: The largest number of rows of each table.
            width: The largest width, at least 80, or `None` for no limit.

        Raises:
            ValueError: `row_limit` is less than one.
        """
        if row_limit < 1:
            raise ValueError(f"row_limit must be at least one, got {row_limit}")
        return _core.tell_ranks(self._bytes, row_limit, width)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<mindprof.ranks.RankSummary of {len(self)} ranks, {len(self._bytes)} bytes>"


def summarize(source: str | os.PathLike[str]) -> RankSummary:
    """Sums up the trace of one rank.

    Args:
        source: The path of a trace or of a summary, or a URL, which needs `fsspec`.

    Raises:
        OSError: The file does not exist or cannot be read.
        ProfilerError: The file is neither a trace nor a summary, or has no events.

    Example:
        >>> import mindprof, tempfile
        >>> from mindprof import ranks
        >>> with mindprof.profile() as prof:
        ...     with mindprof.record_function("step"):
        ...         pass
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = prof.export_chrome_trace(f"{folder}/rank3.json")
        ...     summary = ranks.summarize(path)
        >>> summary.roster()["ranks"]
        '3'
    """
    return RankSummary(_summarized_bytes(os.fspath(source)))


def merge(parts: Iterable[RankSummary]) -> RankSummary:
    """Merges summaries. The result does not depend on their order.

    Args:
        parts: Summaries of ranks, or summaries that were merged before.
    """
    return RankSummary(_core.merge_ranks([part.to_bytes() for part in parts]))


class Job:
    """The files of a job, as `open` found them."""

    paths: tuple[str, ...]
    """The paths or URLs of the files."""
    failures: dict[str, str]
    """The files that the last `summarize` could not read, each with the reason."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        self.failures = {}

    def summarize(
        self, *, on: _Engine = "threads", workers: int | None = None, progress: bool | None = None
    ) -> RankSummary:
        """Sums up all files, and merges the summaries. Every engine gives the same bytes.

        Files that cannot be read are named by a `RankWarning` and in `failures`.

        Args:
            on: Where the files are read. `"threads"` and `"processes"` of this machine, or the
                workers of a `"ray"` or `"dask"` cluster, which need mindprof and access to the
                files. A connected cluster is used; otherwise one is started on this machine.
            workers: The number of threads or processes; the number of processors if `None`.
            progress: Whether to show a progress bar on stderr; if `None`, only on a terminal.

        Raises:
            ValueError: There is no such engine.
            ImportError: The engine is not installed.
            ProfilerError: No file could be read.
        """
        if on not in _ENGINES:
            raise ValueError(f"on should be one of: {', '.join(_ENGINES)}, got {on!r}")
        results = _ENGINES[on](self.paths, workers)
        collected = _collect(results, len(self.paths), progress)
        parts = [data for _, (data, _) in sorted(collected.items()) if data is not None]
        reasons = ((index, reason) for index, (_, reason) in sorted(collected.items()))
        self.failures = {self.paths[index]: reason for index, reason in reasons if reason}
        if self.paths and not parts:
            first = next(iter(self.failures.values()))
            raise _core.ProfilerError(f"none of {len(self.paths)} files could be read: {first}")
        if self.failures:
            count, first = len(self.failures), next(iter(self.failures.values()))
            warnings.warn(f"{count} files could not be read: {first}", RankWarning, stacklevel=2)
        return RankSummary(_core.merge_ranks(parts))

    def __len__(self) -> int:
        """Returns the number of files."""
        return len(self.paths)

    def __repr__(self) -> str:
        return f"<mindprof.ranks.Job of {len(self.paths)} files>"


def open(  # noqa: A001
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
) -> Job:
    """Finds the files of a job.

    Args:
        source: A folder, which is searched with the folders in it, a pattern such as
            `"traces/*.json.gz"`, the path of a file, several of these, or URLs of any of these,
            which need `fsspec`.

    Raises:
        FileNotFoundError: Nothing was found.
        ImportError: A URL was given, and `fsspec` is not installed.
    """
    if isinstance(source, (str, os.PathLike)):
        paths = _found(os.fspath(source))
    else:
        paths = [path for one in source for path in _found(os.fspath(one))]
    return Job(paths)


def _found(source: str) -> list[str]:
    if "://" in source:
        found = _found_remotely(source)
    elif os.path.isdir(source):
        walked = (
            os.path.join(folder, name)
            for folder, _, names in os.walk(source)
            for name in names
            if not name.startswith(".")
        )
        found = sorted(path for path in walked if _is_named_like_a_trace(path))
    elif os.path.exists(source):
        found = [source]
    else:
        import glob

        found = sorted(glob.glob(source, recursive=True))
    if not found:
        raise FileNotFoundError(f"{source}: no traces found")
    return found


def _found_remotely(source: str) -> list[str]:
    files, path = _file_system(source)
    if files.isdir(path):
        found = [name for name in files.find(path) if _is_named_like_a_trace(name)]
    elif "*" in path:
        found = files.glob(path)
    else:
        found = [path]
    return sorted(files.unstrip_protocol(name) for name in found)


def _file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError(f"{url}: install fsspec to read from URLs") from error
    files, path = url_to_fs(url)
    return files, path


def _is_named_like_a_trace(path: str) -> bool:
    name = os.path.basename(path).lower()
    for ending in _COMPRESSIONS:
        name = name.removesuffix(ending)
    return name.endswith(_ENDINGS)


def _summarized_bytes(source: str) -> bytes:
    if "://" not in source:
        return _core.summarize_rank(source)
    files, path = _file_system(source)
    return _core.summarize_rank_bytes(files.cat_file(path), source)


def _summarized(source: str) -> _Result:
    """Sums up one file on a worker. A file that cannot be read is a result, not a lost worker."""
    try:
        return _summarized_bytes(source), None
    except (OSError, _core.ProfilerError) as error:
        return None, str(error)


def _on_threads(paths: Sequence[str], workers: int | None) -> Iterator[tuple[int, _Result]]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers or os.cpu_count(), "mindprof-ranks") as pool:
        yield from _as_completed(pool, paths)


def _on_processes(paths: Sequence[str], workers: int | None) -> Iterator[tuple[int, _Result]]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # A forked process would inherit threads and locks of this one.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from _as_completed(pool, paths)


def _as_completed(pool: Any, paths: Sequence[str]) -> Iterator[tuple[int, _Result]]:
    from concurrent.futures import as_completed

    futures = {pool.submit(_summarized, path): index for index, path in enumerate(paths)}
    for future in as_completed(futures):
        yield futures[future], future.result()


def _on_ray(paths: Sequence[str], workers: int | None) -> Iterator[tuple[int, _Result]]:
    try:
        import ray
    except ImportError as error:
        raise ImportError("install mindprof[ray] to read files on a Ray cluster") from error
    if not ray.is_initialized():
        ray.init(num_cpus=workers, log_to_driver=False)
    # Ray runs the task of a lost worker again.
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_summarized)
    waiting = enumerate(paths)
    running: dict[Any, int] = {}
    while True:
        # Each wait costs the number of running tasks, so that number is bounded.
        for index, path in itertools.islice(waiting, _RUNNING - len(running)):
            running[task.remote(path)] = index
        if not running:
            return
        for done in ray.wait(list(running), num_returns=1)[0]:
            yield running.pop(done), ray.get(done)


def _on_dask(paths: Sequence[str], workers: int | None) -> Iterator[tuple[int, _Result]]:
    try:
        from distributed import Client, as_completed, get_client
    except ImportError as error:
        raise ImportError("install mindprof[dask] to read files on a Dask cluster") from error
    own = None
    try:
        client = get_client()
    except ValueError:
        client = own = Client(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    try:
        tasks = (client.submit(_summarized, path, retries=_RETRIES, pure=False) for path in paths)
        futures = {future: index for index, future in enumerate(tasks)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        if own is not None:
            own.close()


_ENGINES: dict[str, Callable[[Sequence[str], int | None], Iterator[tuple[int, _Result]]]] = {
    "threads": _on_threads,
    "processes": _on_processes,
    "ray": _on_ray,
    "dask": _on_dask,
}


def _collect(
    results: Iterator[tuple[int, _Result]], count: int, progress: bool | None
) -> dict[int, _Result]:
    """Collects the results of all files, with a progress bar."""
    is_shown = sys.stderr.isatty() if progress is None else progress
    collected: dict[int, _Result] = {}
    for index, result in results:
        collected[index] = result
        if is_shown:
            done = len(collected)
            bar = "=" * (24 * done // count)
            print(f"\rreading ranks [{bar:24}] {done}/{count}", end="", file=sys.stderr, flush=True)
    if is_shown and collected:
        print("\r" + " " * 60, end="\r", file=sys.stderr, flush=True)
    return collected
