"""Forks while other threads start profilers and run operators; no child may hang.

A thread that runs an operator after a profiler began or ended takes torch's lock of callbacks. A
child that is forked at that moment would find the lock held by a thread that it does not have.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import ClassVar

import torch  # type: ignore[import-not-found]
from mindprof import profile

#: A child that runs longer hangs. It takes a fraction of a second, but the machine may be busy.
CHILD_SECONDS = 60.0

#: The number of threads that start profilers, and of threads that run operators.
STARTERS, WORKERS = 2, 3

#: The number of callbacks that make copies of the list slow.
IDLE_CALLBACKS = 3000

#: The number of children that are forked before the process waits for them.
FORKS_AT_ONCE = 8


def stress(count: int, seconds: float) -> str | None:
    """Forks `count` times, or until the time is over, and prints the counts.

    Returns:
        The reason for a failure, or `None`.
    """
    torch.set_num_threads(1)
    # Probed before the threads start.
    with profile():
        torch.ones(2)
    add_idle_callbacks()
    crowd = Crowd()
    done = hung = failed = 0
    end = time.monotonic() + seconds
    try:
        while done < count and time.monotonic() < end:
            children = crowd.fork(min(FORKS_AT_ONCE, count - done))
            for status in map(status_of, children):
                done += 1
                hung += status is None
                failed += status not in (None, 0)
            if done % 200 == 0:
                print(f"{done:,} forks so far, {hung:,} hung", file=sys.stderr, flush=True)
    finally:
        crowd.leave()
    print(f"forks {done:,}, {hung:,} hung, {failed:,} failed", flush=True)
    if hung or failed:
        return f"{hung} children hung and {failed} failed"
    return None if done == count else f"only {done:,} of {count:,} forks in {seconds:.0f} s"


class Callback(ctypes.Structure):
    """torch's `RecordFunctionCallback`, field by field."""

    _fields_: ClassVar = [
        ("start", ctypes.c_void_p),
        ("end", ctypes.c_void_p),
        ("sampling_probability", ctypes.c_double),
        ("scopes", ctypes.c_bool * 10),
        ("needs", ctypes.c_bool * 3),
    ]


def add_idle_callbacks() -> None:
    """Adds callbacks that torch never calls, because they want no kind of scope.

    Threads copy the list of callbacks while they hold its lock. With a long list, most forks find
    the lock held.
    """
    libtorch = ctypes.CDLL("libtorch_cpu.so", mode=os.RTLD_NOLOAD)
    add = libtorch._ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE
    add.argtypes, add.restype = [Callback], ctypes.c_uint64
    for _ in range(IDLE_CALLBACKS):
        add(Callback())


class Crowd:
    """Threads that start profilers and run operators while the process forks."""

    def __init__(self) -> None:
        # Set while the threads work, so that the children have the processor for themselves.
        self._is_time = threading.Event()
        self._is_over = False
        works = [self._start_profiler] * STARTERS + [self._run_operators] * WORKERS
        self._threads = [threading.Thread(target=self._repeat, args=(work,)) for work in works]
        for thread in self._threads:
            thread.start()

    def fork(self, count: int) -> list[int]:
        """Forks a number of children while the threads work, and returns their process ids."""
        self._is_time.set()
        children = []
        for _ in range(count):
            # The threads look at their lists of callbacks again while the process forks.
            with profile():
                pass
            children.append(fork_once())
        self._is_time.clear()
        return children

    def leave(self) -> None:
        """Ends the threads."""
        self._is_over = True
        self._is_time.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self._is_over:
            self._is_time.wait()
            work()

    def _start_profiler(self) -> None:
        with profile():
            torch.ones(2)

    def _run_operators(self) -> None:
        # Mostly without Python's lock.
        add_often(torch.ones(2), 300)


@torch.jit.script  # type: ignore[untyped-decorator]
def add_often(x: torch.Tensor, count: int) -> torch.Tensor:
    """Adds a number again and again."""
    for _ in range(count):
        x = x + 1
    return x


def fork_once() -> int:
    """Forks a child that runs operators and records some, and returns its process id."""
    child = os.fork()
    if child == 0:
        be_child()
    return child


def status_of(child: int) -> int | None:
    """Waits for a child, and returns its exit status, or `None` if it hung and was killed."""
    descriptor = os.pidfd_open(child)
    try:
        ready, _, _ = select.select([descriptor], [], [], CHILD_SECONDS)
    finally:
        os.close(descriptor)
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if ready else None


def be_child() -> None:
    """Runs operators, and records some, then exits without cleanup."""
    status = 1
    try:
        x = torch.ones(2)
        torch.add(x, x)
        with profile() as prof:
            torch.add(x, x)
        torch.add(x, x)
        status = 0 if [row.key for row in prof.key_averages()] == ["aten::add"] else 3
    finally:
        os._exit(status)
