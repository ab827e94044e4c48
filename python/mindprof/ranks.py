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

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Literal

from mindprof import _core
from mindprof._rank_engines import ENGINES, Plan, collect
from mindprof._rank_files import found_files, summarized_bytes
from mindprof._results.rank_summary import RankSummary

__all__ = ["Job", "RankSummary", "RankWarning", "merge", "open", "summarize", "summarize_bytes"]

_Engine = Literal["threads", "processes", "ray", "dask"]


class RankWarning(UserWarning):
    """Warns that files of a job could not be read. The others are answered."""


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
    return RankSummary(summarized_bytes(os.fspath(source)))


def summarize_bytes(data: bytes, name: str) -> RankSummary:
    """Sums up the bytes of a trace or of a summary, such as those that a data engine has read.

    Args:
        data: The contents of the file, which may be compressed.
        name: The name of the file, which may tell the rank.

    Raises:
        ProfilerError: The bytes are neither a trace nor a summary, or have no events.
    """
    return RankSummary(_core.summarize_rank_bytes(data, name))


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
        self,
        *,
        on: _Engine = "threads",
        workers: int | None = None,
        progress: bool | None = None,
        send: bool = False,
    ) -> RankSummary:
        """Sums up all files, and merges the summaries. Every engine gives the same bytes.

        Files that cannot be read are named by a `RankWarning` and in `failures`.

        Args:
            on: Where the files are read. `"threads"` and `"processes"` of this machine, or the
                workers of a `"ray"` or `"dask"` cluster, which need mindprof and access to the
                files. A connected cluster is used; otherwise one is started on this machine.
            workers: The number of threads or processes; the number of processors if `None`.
            progress: Whether to show a progress bar on stderr; if `None`, only on a terminal.
            send: Read the files here and send their bytes to the workers of a cluster, which then
                need no access to them.

        Raises:
            ValueError: There is no such engine.
            ImportError: The engine is not installed.
            ProfilerError: No file could be read.
        """
        if on not in ENGINES:
            raise ValueError(f"on should be one of: {', '.join(ENGINES)}, got {on!r}")
        return RankSummary(
            _core.merge_ranks(self._read(Plan(self.paths, workers, send), on, progress))
        )

    def export_trace(
        self, path: str | os.PathLike[str], *, ranks: Iterable[int] | None = None
    ) -> None:
        """Writes one trace of several ranks, with all times on the clock of the first rank.

        Viewers such as Perfetto show the ranks below each other. All events are in memory at once,
        so large jobs need a choice of ranks.

        Args:
            path: The file, whose name tells the format: `.pftrace`, `.json`, `.json.gz`, or `.tar`
                for an archive that Perfetto opens, with the events of one rank in memory at a time.
            ranks: The ranks to write; all if `None`.

        Raises:
            ValueError: A file is a URL, or a rank has no trace.
            ProfilerError: No file could be read, or a file is a summary, which has no events.
        """
        paths, parts = self._local_parts()
        chosen = None if ranks is None else sorted(set(ranks))
        _core.write_ranks_trace(paths, parts, chosen, path)

    def export_parquet(self, folder: str | os.PathLike[str]) -> list[str]:
        """Writes the events of each rank as Parquet, partitioned by rank.

        DuckDB, polars and Spark read the folders `rank=0`, `rank=1` … as one table with a column
        `rank`. The events of one rank are in memory at a time.

        Args:
            folder: The folder for `rank=0/part.parquet` and so on, which is made if it is missing.

        Returns:
            The paths of the files.

        Raises:
            ValueError: A file is a URL.
            ProfilerError: No file could be read, a file is a summary, or does not tell its rank.
        """
        paths, parts = self._local_parts()
        return [os.fspath(path) for path in _core.write_ranks_parquet(paths, parts, folder)]

    def _local_parts(self) -> tuple[list[str], list[bytes]]:
        """Returns the files that can be read, and their summaries."""
        for path in self.paths:
            if "://" in path:
                raise ValueError(f"{path}: copy the file to this machine to export its events")
        parts = self._read(Plan(self.paths, None, False), "threads", None)
        return [path for path in self.paths if path not in self.failures], parts

    def _read(self, plan: Plan, on: _Engine, progress: bool | None) -> list[bytes]:
        """Returns the summaries of the files that can be read, in order."""
        collected = collect(ENGINES[on](plan), len(self.paths), progress)
        parts = [data for _, (data, _) in sorted(collected.items()) if data is not None]
        reasons = ((index, reason) for index, (_, reason) in sorted(collected.items()))
        self.failures = {self.paths[index]: reason for index, reason in reasons if reason}
        if self.paths and not parts:
            first = next(iter(self.failures.values()))
            raise _core.ProfilerError(f"none of {len(self.paths)} files could be read: {first}")
        if self.failures:
            count, first = len(self.failures), next(iter(self.failures.values()))
            warnings.warn(f"{count} files could not be read: {first}", RankWarning, stacklevel=3)
        return parts

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
        FileNotFoundError: Nothing was found, or no file was named.
        ImportError: A URL was given, and `fsspec` is not installed.
    """
    if isinstance(source, (str, os.PathLike)):
        paths = found_files(os.fspath(source))
    else:
        sources = [os.fspath(one) for one in source]
        if not sources:
            raise FileNotFoundError("no traces were named: pass a folder, a pattern or files")
        paths = [path for one in sources for path in found_files(one)]
    return Job(paths)
