"""A worker of a data loader: records when its parent does. `loader_workers` is the parent's side.

The worker waits for its next batch and for its parent's word at once, on its own thread, so that
nothing runs beside the program and memory is that of the thread that loads.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mindprof import _core
from mindprof._frameworks.host import Host
from mindprof._settings.options import SessionOptions

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_MODULE = "torch.utils.data._utils.worker"

# Where among the arguments of torch's loop the queue of batches is.
_QUEUE = 2


class Plan(NamedTuple):
    """What a worker is told when it begins.

    Args:
        folder: Where the parent listens, and where traces are left.
        recordings: What the parent records at the time, by number.
        paused: Which of these leave out what begins now.
    """

    folder: str
    recordings: dict[int, SessionOptions]
    paused: frozenset[int]


def address(folder: str) -> str:
    """Returns where the parent of a folder listens."""
    return os.path.join(folder, "parent")


def trace_name(number: int, process: int) -> str:
    """Returns what the trace of a worker is called."""
    return f"{number}.{process}.json"


def is_trace(name: str, number: int) -> bool:
    """Returns whether a file is a worker's trace of a recording."""
    return name.startswith(f"{number}.") and name.endswith(".json")


class Loop:
    """What a worker runs in place of torch's own loop, which runs inside of it.

    Args:
        theirs: torch's loop.
        plan: Makes what a worker is told, in the parent.
    """

    def __init__(self, theirs: Callable[..., None], plan: Callable[[], Plan | None]) -> None:
        self.theirs = theirs
        self._plan = plan

    def __reduce__(self) -> Any:
        # A worker that is not forked gets what it needs with its arguments.
        return _spawned_loop, (self._plan(),)

    def __call__(self, *arguments: Any, **options: Any) -> None:
        """Runs torch's loop, and records meanwhile what the parent does."""
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
    """The queue of batches, at which the parent's word is heard too."""

    def __init__(self, queue: Any, worker: _Worker) -> None:
        self._queue = queue
        self._worker = worker

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Returns the next batch, as the queue does; what the parent says comes first."""
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
    """Returns a worker that has called its parent; None if that does not answer any more."""
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
    """What records in this process for its parent."""

    def __init__(self, plan: Plan, parent: Connection) -> None:
        self.parent: Connection | None = parent
        self._folder = plan.folder
        # What the process is called in traces: all have one program's name.
        self._name: str | None = None
        self._sessions: dict[int, tuple[Host, _core.Session]] = {}
        for number, options in plan.recordings.items():
            self._start(number, options)
            if number in plan.paused:
                self._toggle(number, enabled=False)

    def learn_name(self) -> None:
        """Asks torch which worker this is, which it knows while its loop runs."""
        if self._name is None:
            info = sys.modules[_MODULE].get_worker_info()
            self._name = None if info is None else f"DataLoader worker {info.id}"

    def obey(self) -> None:
        """Does what the parent says."""
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
            # The parent records no more, and nobody would read a trace.
            self._sessions.clear()
            self.parent = None

    def end(self) -> None:
        """Leaves what is recorded until now: the worker ends before its parent asked for it."""
        if self.parent is not None:
            # torch ends workers that take more than a few seconds: this one is about to end.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for number in list(self._sessions):
                self._stop(number)
            self.parent.close()

    def _start(self, number: int, options: SessionOptions) -> None:
        from mindprof._frameworks.present import present_host

        # It may have begun already, told of by the plan and then by word.
        if number not in self._sessions:
            host = present_host()
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
