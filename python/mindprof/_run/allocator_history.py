"""Keeps a memory snapshot of torch's CUDA allocator if a program runs out of memory."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

#: The file in the folder of results.
SNAPSHOT = "snapshot.pickle"

#: The most entries of the history, which is a ring: about 100 MB with stacks of Python.
_MOST_ENTRIES = 100_000


class AllocatorHistory:
    """Records the history of torch's CUDA allocator from the moment at which a program uses CUDA.

    Args:
        folder: The folder of results. A snapshot of an earlier run is removed from it.
        is_wanted: Whether the user asked for memory.
        say: Prints a line for the user.
    """

    def __init__(self, folder: Path, is_wanted: bool, say: Callable[[str], None]) -> None:
        self.path = folder / SNAPSHOT
        self._is_wanted = is_wanted
        self._say = say
        self._process = os.getpid()
        self._is_waiting = False
        self._is_recording = False
        self._is_written = False
        with suppress(OSError):
            self.path.unlink()

    def meet_torch(self) -> None:
        """Starts the recording once CUDA is in use, if torch is imported.

        Starting it at once would initialize CUDA, which takes memory of the device and forbids
        processes that fork.
        """
        torch: Any = sys.modules.get("torch")
        when_used = getattr(getattr(torch, "cuda", None), "_lazy_call", None)
        if when_used is None or self._is_waiting or not self._is_wanted:
            return
        self._is_waiting = True
        with suppress(Exception):
            when_used(self._start)

    def _start(self) -> None:
        # A child that the program forked uses CUDA too, and has no results.
        if os.getpid() != self._process:
            return
        # torch raises what a call of this kind raises as an error of the program.
        with suppress(Exception):
            sys.modules["torch"].cuda.memory._record_memory_history(
                context="alloc", stacks="python", max_entries=_MOST_ENTRIES
            )
            self._is_recording = True

    def keep(self, error: BaseException) -> None:
        """Writes a snapshot if an error that ends the program is an out-of-memory error."""
        if not self._is_recording or self._is_written or os.getpid() != self._process:
            return
        if not _is_out_of_memory(error):
            return
        try:
            sys.modules["torch"].cuda.memory._dump_snapshot(str(self.path))
            self._is_written = True
        except Exception as failure:
            self._say(f"no memory snapshot was written: {failure}")

    def tell(self) -> None:
        """Prints how to read the snapshot, if one was written."""
        if self._is_written:
            self._say(
                "the program ran out of memory. What held it: "
                f"mindprof memory {shlex.quote(str(self.path))}"
            )


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Returns whether an error is one of torch's for too little memory, or was caused by one."""
    kind = getattr(sys.modules.get("torch"), "OutOfMemoryError", None)
    if kind is None:
        # Before torch 2.5.
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        kind = getattr(cuda, "OutOfMemoryError", None)
    seen: set[int] = set()
    while kind is not None and error is not None and id(error) not in seen:
        if isinstance(error, kind):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False
