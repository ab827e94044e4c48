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
from typing import ClassVar

import torch  # type: ignore[import-not-found]
from mindprof import profile

#: A child that runs longer hangs. It takes a fraction of a second, but the machine may be busy.
CHILD_SECONDS = 60.0

#: The number of threads that start profilers, and of threads that run operators.
STARTERS, WORKERS = 2, 3

#: The number of callbacks that make copies of the list slow.
IDLE_CALLBACKS = 5000


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
    stop = threading.Event()
    targets = [start_profilers] * STARTERS + [run_operators] * WORKERS
    threads = [threading.Thread(target=target, args=(stop,)) for target in targets]
    for thread in threads:
        thread.start()
    done = hung = failed = 0
    end = time.monotonic() + seconds
    try:
        while done < count and time.monotonic() < end:
            # The threads look at their lists of callbacks again while the process forks.
            with profile():
                pass
            status = fork_once()
            done += 1
            hung += status is None
            failed += status not in (None, 0)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
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


def start_profilers(stop: threading.Event) -> None:
    """Starts and stops profilers until told to stop."""
    while not stop.is_set():
        with profile():
            torch.ones(2)


def run_operators(stop: threading.Event) -> None:
    """Runs operators until told to stop, mostly without Python's lock."""
    x = torch.ones(2)
    while not stop.is_set():
        add_often(x, 2000)


@torch.jit.script  # type: ignore[untyped-decorator]
def add_often(x: torch.Tensor, count: int) -> torch.Tensor:
    """Adds a number again and again."""
    for _ in range(count):
        x = x + 1
    return x


def fork_once() -> int | None:
    """Forks a child that runs operators and records some, and returns its exit status.

    Returns:
        `None` if the child hung and was killed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        be_child()
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
