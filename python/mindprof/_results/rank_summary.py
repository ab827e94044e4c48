"""`RankSummary`: what is kept of the trace of a rank, and the answers from merged summaries."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from mindprof import _core


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
        return RankSummary(_core.merge_ranks([self._bytes, other._bytes]))

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
        import json

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

    def export_html(self, path: str | os.PathLike[str]) -> None:
        """Writes all answers as one page that needs no server and no network.

        Raises:
            OSError: The file cannot be written.
        """
        _core.write_ranks_html(self._bytes, path)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<mindprof.ranks.RankSummary of {len(self)} ranks, {len(self._bytes)} bytes>"
