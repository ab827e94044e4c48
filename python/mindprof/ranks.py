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
import json
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from mindprof import _core
from mindprof._rank_engines import ENGINES, Plan, collect
from mindprof._rank_files import found_files, summarized_bytes

__all__ = ["Job", "RankSummary", "RankWarning", "merge", "open", "summarize", "summarize_bytes"]

_Engine = Literal["threads", "processes", "ray", "dask"]


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
        results = ENGINES[on](Plan(self.paths, workers, send))
        collected = collect(results, len(self.paths), progress)
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
        paths = found_files(os.fspath(source))
    else:
        paths = [path for one in source for path in found_files(os.fspath(one))]
    return Job(paths)
