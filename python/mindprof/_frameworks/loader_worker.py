"""The worker's side of recording data loader workers; `loader_workers` is the parent's side.

A worker waits for its next batch and for messages of its parent at the same time, on one thread.
No other thread runs in it, and recorded memory is that of the thread that loads data.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from mindprof import _core
from mindprof._frameworks.host import Host
from mindprof._settings.options import SessionOptions

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_MODULE = "torch.utils.data._utils.worker"

# The share of the budget that each worker of a run has. The end of a run waits until every worker
# has written its recording and the parent has read it.
_BUDGET_PARTS = 16

# The position of the queue of batches among the arguments of torch's loop.
_QUEUE = 2


class Plan(NamedTuple):
    """The instructions for a new worker, which the parent creates.

    Args:
        folder: The folder with the parent's socket, where workers also write their traces.
        recordings: The parent's current recordings by number.
        paused: The numbers of the paused ones.
    """

    folder: str
    recordings: dict[int, SessionOptions]
    paused: frozenset[int]


def address(folder: str) -> str:
    """Returns the path of the parent's socket in a folder."""
    return os.path.join(folder, "parent")


def trace_name(number: int, process: int) -> str:
    """Returns the file name of a worker's trace."""
    return f"{number}.{process}.json"


def is_trace(name: str, number: int) -> bool:
    """Returns whether a file name is that of a worker's trace of a recording."""
    return name.startswith(f"{number}.") and name.endswith(".json")


class Loop:
    """A wrapper around torch's worker loop that records for the parent.

    The parent puts it in the place of torch's function while a profiler is open.

    Args:
        theirs: torch's loop.
        plan: Creates the plan for a new worker, in the parent.
    """

    def __init__(self, theirs: Callable[..., None], plan: Callable[[], Plan | None]) -> None:
        functools.update_wrapper(self, theirs)
        self.theirs = theirs
        self._plan = plan

    def __reduce__(self) -> Any:
        # A spawned worker receives the plan with its arguments.
        return _spawned_loop, (self._plan(),)

    def __call__(self, *arguments: Any, **options: Any) -> None:
        """Runs torch's loop, and records while the parent does."""
        plan = self._plan()
        worker = _connected(plan) if plan is not None else None
        if worker is None or not _is_queue(arguments):
            self.theirs(*arguments, **options)
            return
        queue = _Queue(arguments[_QUEUE], worker)
        try:
            self.theirs(*arguments[:_QUEUE], queue, *arguments[_QUEUE + 1 :], **options)
        finally:
            worker.end()


def _spawned_loop(plan: Plan | None) -> Loop:
    from importlib import import_module

    return Loop(import_module(_MODULE)._worker_loop, lambda: plan)


def _is_queue(arguments: tuple[Any, ...]) -> bool:
    queue = arguments[_QUEUE] if len(arguments) > _QUEUE else None
    return hasattr(queue, "_reader") and hasattr(queue, "get")


class _Queue:
    """A wrapper around the queue of batches that also handles messages of the parent."""

    def __init__(self, queue: Any, worker: _Worker) -> None:
        self._queue = queue
        self._worker = worker

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Returns the next batch from the queue, after handling messages of the parent."""
        from multiprocessing.connection import wait

        self._worker.learn_name()
        while self._worker.parent is not None:
            ready = wait([self._queue._reader, self._worker.parent], timeout)
            if self._worker.parent not in ready:
                break
            self._worker.obey()
        return self._queue.get(block, timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


def _connected(plan: Plan) -> _Worker | None:
    """Connects to the parent, and returns `None` if it no longer listens."""
    import socket
    from multiprocessing.connection import Connection

    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address(plan.folder))
    except OSError:
        connection.close()
        return None
    return _Worker(plan, Connection(connection.detach()))


class _Worker:
    """The recordings of this worker process, which follow those of the parent."""

    def __init__(self, plan: Plan, parent: Connection) -> None:
        self.parent: Connection | None = parent
        self._folder = plan.folder
        # The name of the process in traces, because all workers run the same program.
        self._name: str | None = None
        self._sessions: dict[int, tuple[Host, _core.Session]] = {}
        for number, options in plan.recordings.items():
            self._start(number, options)
            if number in plan.paused:
                self._toggle(number, enabled=False)

    def learn_name(self) -> None:
        """Asks torch for the number of this worker, which is known while the loop runs."""
        if self._name is None:
            info = sys.modules[_MODULE].get_worker_info()
            self._name = None if info is None else f"DataLoader worker {info.id}"

    def obey(self) -> None:
        """Handles one message of the parent."""
        assert self.parent is not None
        try:
            word, number, *rest = self.parent.recv()
            if word == "start":
                self._start(number, *rest)
            elif word in ("pause", "resume"):
                self._toggle(number, enabled=word == "resume")
            elif word == "give up":
                self._sessions.pop(number, None)
            else:
                self._stop(number)
                self.parent.send(number)
        except (EOFError, OSError):
            # The parent no longer records, so nobody would read a trace.
            self._sessions.clear()
            self.parent = None

    def end(self) -> None:
        """Writes the traces when the worker ends before its parent asks for them."""
        if self.parent is not None:
            # torch terminates workers that take more than a few seconds; this one is finishing.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            # Without the folder, the parent has ended: it counts this worker as missing.
            with suppress(FileNotFoundError):
                for number in list(self._sessions):
                    self._stop(number)
            self.parent.close()

    def _start(self, number: int, options: SessionOptions) -> None:
        from mindprof._frameworks.present import present_host

        # The plan and a message may both announce the same recording.
        if number not in self._sessions:
            host = present_host()
            if options.keeps_last:
                options = options.with_budget(options.budget_bytes // _BUDGET_PARTS)
            self._sessions[number] = host, host.start(options)

    def _toggle(self, number: int, enabled: bool) -> None:
        if number in self._sessions:
            host, session = self._sessions[number]
            host.toggle(session, enabled, host.activities())

    def _stop(self, number: int) -> None:
        found = self._sessions.pop(number, None)
        if found is None:
            return
        host, session = found
        if self._name is not None:
            session.name_thread(os.getpid(), self._name)
        profile = host.stop(session)
        path = os.path.join(self._folder, trace_name(number, os.getpid()))
        _core.write_chrome_trace(profile, path, metadata=(), activity_types=None)
