"""`PlainThread`: runs probes of torch on a separate thread.

Modes that a program has entered (fake tensors and other dispatch modes, function transforms,
inference mode, a default device) change the behaviour of operators. All of them are thread-local in
torch, so a new thread has none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class PlainThread(Generic[Result]):
    """Runs a function once, on a thread without modes, and shares the result.

    If no thread can be started, as during interpreter shutdown, the calling thread runs it.

    Args:
        run: The function.
    """

    def __init__(self, run: Callable[[], Result]) -> None:
        self._run = run
        self._results: list[Result] = []
        self._errors: list[BaseException] = []
        self._has_run = threading.Event()
        name = "mindprof probe"
        self._thread = threading.Thread(target=self._run_there, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread. It must be called only once."""
        try:
            self._thread.start()
        except RuntimeError:
            self._run_there()

    @property
    def is_done(self) -> bool:
        """Whether the function has returned or raised."""
        return bool(self._results or self._errors)

    def result(self) -> Result:
        """Waits for the function, and returns its result or raises its exception."""
        if not self.is_done and self._thread.ident is None:
            # A signal handler interrupted `start`, and cannot wait for it.
            return on_plain_thread(self._run)
        # Checked first, because in a forked child the event may be locked by a missing thread.
        if not self.is_done:
            self._has_run.wait()
        if self._errors:
            raise self._errors[0]
        return self._results[0]

    def _run_there(self) -> None:
        try:
            self._results.append(self._run())
        except BaseException as error:
            self._errors.append(error)
        self._has_run.set()


def on_plain_thread(run: Callable[[], Result]) -> Result:
    """Runs a function on a thread without modes, and returns its result."""
    thread = PlainThread(run)
    thread.start()
    return thread.result()
