"""The parent's side of recording data loader workers; `loader_worker` is the worker's side.

A worker that starts while a profiler is open connects to its parent through a socket. Until it ends
it records whenever the parent does, for later profilers too. At the end of each recording it writes
a trace file, which the parent reads when its own recording stops.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mindprof._frameworks import loader_worker
from mindprof._frameworks.call_level import level_outside
from mindprof._frameworks.shared_replacement import SharedReplacement
from mindprof._settings.options import SessionOptions

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from socket import socket

_MODULE = "torch.utils.data._utils.worker"
_LOOP = "_worker_loop"

# A worker answers between two batches. The parent warns about one that takes longer.
_PATIENCE_SECONDS = 5.0

_LOST = (
    "{count} of {all} data loader workers died or did not deliver their traces in time: their "
    "events are missing"
)


class Handover(NamedTuple):
    """The recordings of all workers.

    Args:
        traces: The workers' traces.
        missing: The number of workers without a trace.
    """

    traces: list[bytes]
    missing: int


class _Recording(NamedTuple):
    """A recording that workers take part in.

    Args:
        options: The options of the recording.
        profiler: The profiler, which may be dropped without stopping the recording.
    """

    options: SessionOptions
    profiler: weakref.ref[Any]


class LoaderWorkers:
    """The workers of this process, and their recordings.

    Only one thread at a time talks to them, because an answer that another thread reads is lost.
    """

    def __init__(self) -> None:
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._listen, after_in_child=self._begin_child)

    def _forget(self) -> None:
        # A child needs its own lock, because nobody there would release its parent's.
        self._lock = threading.RLock()
        self._profilers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._numbers = itertools.count()
        self._folder: str | None = None
        self._listener: socket | None = None
        self._workers: list[Connection] = []
        # By number, in the order of their starts.
        self._recordings: dict[int, _Recording] = {}
        self._paused: set[int] = set()
        # The number of workers that take part in each recording.
        self._expected: dict[int, int] = {}
        self._loop = SharedReplacement()
        # The parent's plan, if this process is a forked child.
        self._told: loader_worker.Plan | None = None

    def _begin_child(self) -> None:
        told = self._plan()
        for connection in (self._listener, *self._workers):
            if connection is not None:
                connection.close()
        self._forget()
        self._told = told

    def open(self, profiler: object) -> None:
        """Makes new workers connect until `close()`."""
        with self._lock:
            self._profilers.add(profiler)
            self._wrap_loop(profiler)

    def meet_torch(self) -> None:
        """Makes the workers connect of a torch that was imported while a profiler is open."""
        with self._lock:
            for profiler in list(self._profilers):
                self._wrap_loop(profiler)

    def _wrap_loop(self, profiler: Any) -> None:
        """Replaces torch's function until the last profiler is closed or dropped."""
        module = sys.modules.get(_MODULE)
        found = getattr(module, _LOOP, None)
        if found is not None and hasattr(os, "fork"):
            # A forked child inherits the wrapper of its parent.
            theirs = found.theirs if isinstance(found, loader_worker.Loop) else found
            make = partial(loader_worker.Loop, theirs, self.plan)
            profiler._held_loop = self._loop.hold(module, _LOOP, make, theirs=theirs)

    def close(self, profiler: Any) -> None:
        """Makes new workers run without connecting, unless another profiler is open.

        Live workers stay connected, for later profilers.
        """
        with self._lock:
            self._profilers.discard(profiler)
            profiler._held_loop = None
            if self._profilers:
                return
            if self._listener is not None and not self._live_workers():
                self._hang_up()

    def _end_process(self) -> None:
        """Removes the folder at exit, even if a profiler was not stopped."""
        if self._listener is not None:
            self._hang_up()

    def _hang_up(self) -> None:
        import shutil

        for worker in self._workers:
            worker.close()
        assert self._listener is not None
        assert self._folder is not None
        self._listener.close()
        self._listener, self._workers = None, []
        shutil.rmtree(self._folder, ignore_errors=True)

    def plan(self) -> loader_worker.Plan | None:
        """Returns the plan for a new worker, or `None` if it should not connect."""
        self._listen()
        return self._plan() or self._told

    def _plan(self) -> loader_worker.Plan | None:
        if not self._profilers or self._folder is None or self._listener is None:
            return None
        # Copied, because this runs without the lock, like `_listen()`.
        recordings = list(self._recordings.items())
        wanted = {
            number: options for number, (options, profiler) in recordings if profiler() is not None
        }
        return loader_worker.Plan(self._folder, wanted, frozenset(self._paused))

    def _listen(self) -> None:
        """Creates the socket when the first child of an open profiler is about to start."""
        # Checked without the lock, which a thread that waits for workers holds: a fork must not
        # wait for it.
        if not self._profilers or not self._loop.is_in_place or self._listener is not None:
            return
        import socket
        import tempfile

        with self._lock:
            if self._listener is not None:
                return
            self._folder = tempfile.mkdtemp(prefix="mindprof-")
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(loader_worker.address(self._folder))
            listener.listen(128)
            listener.setblocking(False)
            self._listener = listener
            atexit.register(self._end_process)

    def start(self, profiler: object, options: SessionOptions) -> int:
        """Starts a recording in all workers, including those that connect later.

        Args:
            profiler: The profiler. If it is dropped, the recording is abandoned.
            options: The options of the recording.

        Returns:
            The number of the recording.
        """
        with self._lock:
            self._give_up_abandoned()
            number = next(self._numbers)
            self._recordings[number] = _Recording(options, weakref.ref(profiler))
            # The count includes workers that have connected since.
            self._expected[number] = self._tell(("start", number, options))
            return number

    def _give_up_abandoned(self) -> None:
        """Abandons the recordings of profilers that were dropped.

        This happens at the next start, because a profiler may be dropped at any time on any thread.
        """
        abandoned = [
            number for number, found in self._recordings.items() if found.profiler() is None
        ]
        for number in abandoned:
            self._tell(("give up", number))
            self._remove(number)

    def toggle(self, number: int, enabled: bool) -> None:
        """Pauses or resumes a recording in all workers."""
        with self._lock:
            (self._paused.discard if enabled else self._paused.add)(number)
            self._tell(("resume" if enabled else "pause", number))

    def stop(self, number: int, take: Callable[[Handover], None]) -> None:
        """Stops a recording in all workers.

        Args:
            number: The number of the recording.
            take: Receives the traces, even if a signal interrupts the wait for them.
        """
        with self._lock:
            if self._listener is None:
                take(self._end(number, []))
                return
            try:
                self._tell(("stop", number))
                self._await_answers(number)
            finally:
                take(self._end(number, self._traces(number)))

    def _end(self, number: int, traces: list[bytes]) -> Handover:
        expected = self._remove(number)
        missing = max(expected - len(traces), 0)
        if missing:
            text = _LOST.format(count=missing, all=expected)
            warnings.warn(text, stacklevel=level_outside())
        return Handover(traces, missing)

    def _remove(self, number: int) -> int:
        """Removes a recording, and returns the number of its workers."""
        self._recordings.pop(number, None)
        self._paused.discard(number)
        return self._expected.pop(number, 0)

    def _tell(self, message: Any) -> int:
        """Sends a message to every live worker, and returns their number."""
        if self._listener is None:
            return 0
        self._accept()
        self._workers = [worker for worker in self._workers if _is_sent(worker, message)]
        return len(self._workers)

    def _live_workers(self) -> list[Connection]:
        """Returns the live workers, and drops answers that came too late."""
        self._accept()
        ended = [worker for worker in self._workers if not _is_alive(worker)]
        for worker in ended:
            worker.close()
        self._workers = [worker for worker in self._workers if worker not in ended]
        return self._workers

    def _accept(self) -> None:
        from multiprocessing.connection import Connection

        assert self._listener is not None
        while True:
            try:
                accepted, _ = self._listener.accept()
            except BlockingIOError:
                return
            accepted.setblocking(True)
            self._workers.append(Connection(accepted.detach()))
            for number in self._expected:
                self._expected[number] += 1

    def _await_answers(self, number: int) -> None:
        """Waits until all workers have answered or ended, or the timeout has passed."""
        import time
        from multiprocessing.connection import wait

        until = time.monotonic() + _PATIENCE_SECONDS
        waiting = list(self._workers)
        while waiting and (left := until - time.monotonic()) > 0:
            ready = wait(waiting, left)
            done = [worker for worker in waiting if worker in ready and _is_done(worker, number)]
            waiting = [worker for worker in waiting if worker not in done]

    def _traces(self, number: int) -> list[bytes]:
        assert self._folder is not None
        traces = []
        for name in sorted(os.listdir(self._folder)):
            path = os.path.join(self._folder, name)
            if loader_worker.is_trace(name, number):
                with open(path, "rb") as file:
                    traces.append(file.read())
                os.unlink(path)
        return traces


def _is_sent(worker: Connection, message: Any) -> bool:
    try:
        worker.send(message)
    except OSError:
        worker.close()
        return False
    return True


def _is_alive(worker: Connection) -> bool:
    try:
        while worker.poll():
            worker.recv()
    except (EOFError, OSError):
        return False
    return True


def _is_done(worker: Connection, number: int) -> bool:
    try:
        return bool(worker.recv() == number)
    except (EOFError, OSError):
        # The worker wrote its trace before it ended.
        return True


WORKERS = LoaderWorkers()
