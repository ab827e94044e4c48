"""The ranks of a job under `mindprof run`: each leaves a summary, and rank 0 tells about all.

The summaries are files in the folder that all ranks share, the one of `--out`. Rank 0 waits for
those of the others for a bounded time, and names the ranks that left none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mindprof import _core
from mindprof._results.rank_summary import RankSummary

#: The name of a rank's summary in its folder.
_PART = "summary.ranks"

#: How long rank 0 waits for the others, in seconds. Ranks of a job end at nearly the same time.
_PATIENCE = 20.0

_PAUSE = 0.1


class JobRanks:
    """The summaries of the ranks that share a folder."""

    def __init__(self, folder: Path, rank: int, world_size: int) -> None:
        self.folder = folder
        self.rank = rank
        self.world_size = world_size

    def begin(self) -> None:
        """Removes the summaries of an earlier run, which would be taken for those of this one."""
        ranks = range(self.world_size) if self.rank == 0 else [self.rank]
        for rank in ranks:
            with suppress(OSError):
                self._part(rank).unlink()

    def leave(self, trace: Path) -> None:
        """Writes the summary of this rank, all at once."""
        data = _core.summarize_rank(os.fspath(trace))
        unfinished = self._part(self.rank).with_suffix(".tmp")
        unfinished.write_bytes(data)
        os.replace(unfinished, self._part(self.rank))

    def tell(self, say: Callable[[str], None], show: Callable[[str], None], *, waits: bool) -> None:
        """Prints the answers about all ranks, and names those that left no summary.

        Args:
            say: Prints a line.
            show: Prints a text.
            waits: Whether to wait for ranks that have not ended yet.
        """
        parts: dict[int, bytes] = {}
        end = time.monotonic() + (_PATIENCE if waits else 0)
        while True:
            for rank in range(self.world_size):
                if rank not in parts:
                    with suppress(OSError):
                        parts[rank] = self._part(rank).read_bytes()
            if len(parts) == self.world_size or time.monotonic() >= end:
                break
            time.sleep(_PAUSE)
        missing = [str(rank) for rank in range(self.world_size) if rank not in parts]
        if missing:
            ranks = "rank" if len(missing) == 1 else "ranks"
            say(f"{ranks} {', '.join(missing)} left no summary: the job is told without")
        if len(parts) < 2:
            return
        merged = RankSummary(_core.merge_ranks([parts[rank] for rank in sorted(parts)]))
        path = self.folder / "job.ranks"
        path.write_bytes(merged.to_bytes())
        show(merged.table().rstrip("\n"))
        say(f"all ranks: mindprof ranks {path} --html job.html")

    def _part(self, rank: int) -> Path:
        return self.folder / f"rank{rank}" / _PART
