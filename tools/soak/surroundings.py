"""Checks that a round leaves nothing behind: threads, open files, hooks, tensors, objects."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from dataclasses import dataclass, fields
from pathlib import Path

from mindprof import _core

from soak.rounds import Round
from soak.traces import parts_in

#: Joined threads stay in the list of the system for a moment.
PATIENCE_SECONDS = 10.0


@dataclass(frozen=True)
class Surroundings:
    """The state of the process that a round must restore."""

    threads: int
    system_threads: int
    open_files: int
    children: int
    live_tensor_bytes: int
    hooks: tuple[object, ...]
    is_profiling: bool
    is_collecting_garbage: bool

    @staticmethod
    def look() -> Surroundings:
        """Returns the current state, after a garbage collection."""
        gc.collect()
        return Surroundings(
            threads=threading.active_count(),
            system_threads=entries("/proc/self/task"),
            open_files=entries("/proc/self/fd"),
            children=children(),
            live_tensor_bytes=_core._live_bytes(),
            hooks=(sys.getprofile(), sys.gettrace(), threading.getprofile(), threading.gettrace()),
            is_profiling=_core.is_profiling(),
            is_collecting_garbage=gc.isenabled(),
        )


def entries(folder: str) -> int:
    """Returns the number of entries in a folder, or 0 if it does not exist."""
    try:
        return len(os.listdir(folder))
    except FileNotFoundError:
        return 0


def children() -> int:
    """Returns 1 if the process has children that were not waited for, and 0 otherwise."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return 0
    return 1


def check_after(done: Round, before: Surroundings) -> None:
    """Checks that a round restored the state of the process and left no objects or files.

    Args:
        done: The round.
        before: The state before the round.

    Raises:
        AssertionError: If something remains.
    """
    patience = time.monotonic() + PATIENCE_SECONDS
    while found := differences(before, Surroundings.look()):
        assert time.monotonic() < patience, "; ".join(found)
        time.sleep(0.01)
    alive = [str(type(each)) for reference in done.watched if (each := reference()) is not None]
    assert not alive, f"kept alive: {alive}"
    parts = parts_in(done.folder)
    assert not parts, f"parts of files stay: {parts}"


def differences(before: Surroundings, after: Surroundings) -> list[str]:
    """Returns descriptions of the differences between two states."""
    found = []
    for field in fields(before):
        old, new = getattr(before, field.name), getattr(after, field.name)
        # Threads of a pool may end at any time.
        is_same = new <= old if field.name == "system_threads" else new == old
        if not is_same:
            found.append(f"{field.name}: {old} before the round, {new} after it")
    return found


def resident_bytes() -> int:
    """Returns the resident memory of the process, or 0 if the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except FileNotFoundError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
