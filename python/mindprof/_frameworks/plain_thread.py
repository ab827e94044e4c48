"""A thread of its own for what tries torch out.

Modes that a program has entered (fake tensors and other dispatch modes, vmap and its like,
inference, a default device) change what operators do, and torch keeps all of them by thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class PlainThread(Generic[Result]):
    """Runs something once where no mode is entered, for all who ask for its result.

    Where there can be no thread, as at the end of an interpreter, it runs on the calling one.

    Args:
        run: What is run.
    """

    def __init__(self, run: Callable[[], Result]) -> None:
        self._run = run
        self._results: list[Result] = []
        self._errors: list[BaseException] = []
        self._has_run = threading.Event()
        name = "mindprof probe"
        self._thread = threading.Thread(target=self._run_there, name=name, daemon=True)

    def start(self) -> None:
        """Begins. Only one thread may call this, and once."""
        try:
            self._thread.start()
        except RuntimeError:
            self._run_there()

    @property
    def is_done(self) -> bool:
        """Whether there is a result."""
        return bool(self._results or self._errors)

    def result(self) -> Result:
        """Waits for what is run. Returns what it returns, or raises what it raises."""
        if not self.is_done and self._thread.ident is None:
            # A signal handler came in the midst of the start, which it cannot wait for.
            return on_plain_thread(self._run)
        # A forked child may find the event in use by a thread that it does not have.
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
    """Runs something where no mode is entered, and returns or raises what it does."""
    thread = PlainThread(run)
    thread.start()
    return thread.result()
