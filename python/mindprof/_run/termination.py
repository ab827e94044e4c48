"""Turns deadly signals into exceptions, so that a program that is told to end leaves results."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

from mindprof import _core

#: The exit status of a program that a signal ended is this plus the signal's number.
SIGNALLED = 128

#: The signals that end a program: a closed terminal, and a plain `kill`.
_DEADLY = (signal.SIGHUP, signal.SIGTERM) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)

_forking = threading.local()


class Terminated(SystemExit):
    """The end of a program by a signal."""


def exit_on_termination() -> None:
    """Makes SIGTERM and SIGHUP raise `Terminated`, unless they are already handled or ignored.

    Children that the program forks die of these signals as they would without the profiler.
    """
    if not _is_main_thread():
        return
    for number in _DEADLY:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _exit)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_hold_back, after_in_parent=_let_through, after_in_child=_let_through_as_alone
        )


def end_as_alone() -> None:
    """Restores the default effect of the signals."""
    if _is_main_thread():
        for number in _DEADLY:
            if signal.getsignal(number) is _exit:
                signal.signal(number, signal.SIG_DFL)


class Patience:
    """Protects the writing of results from signals: their Python handlers run afterwards.

    A handler of the program may raise, which would end the writing half done. Only a second Ctrl-C
    does that. Nothing happens on other threads, where Python runs no handlers.

    Args:
        say: Prints a line for the user.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._process = os.getpid()
        self._before: dict[int, Any] = {}
        self._arrived: list[tuple[int, FrameType | None]] = []

    def begin(self) -> None:
        """Replaces the handlers. It can be called again if it was interrupted."""
        if os.getpid() != self._process or not _is_main_thread():
            return
        for number in signal.valid_signals():
            handler = signal.getsignal(number)
            # Ignored signals, and handlers that are not in Python, stay as they are.
            if number in self._before or not callable(handler):
                continue
            self._before[number] = handler
            signal.signal(number, self._warn if number == signal.SIGINT else self._note)

    def end(self) -> list[Callable[[], None]]:
        """Restores the handlers, and returns calls of those whose signals have arrived.

        The default handlers of Ctrl-C and of a termination are left out: the program has ended, and
        its results are written.
        """
        late: list[Callable[[], None]] = [
            partial(self._handle, handler, number, frame)
            for number, frame in self._arrived
            if (handler := self._before[number]) not in (signal.default_int_handler, _exit)
        ]
        self._restore()
        return late

    @contextmanager
    def around(self) -> Iterator[None]:
        """Protects a block in the middle of the program. Afterwards all handlers are called."""
        self._before, self._arrived = {}, []
        interrupts = _core.complete(self.begin)
        try:
            yield
        finally:
            before, arrived = self._before, self._arrived
            self._restore()
            for number, frame in arrived:
                self._handle(before[number], number, frame)
            for interrupt in interrupts:
                raise interrupt

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, handler: Callable[..., Any], number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        self._say(f"{name} arrived while results were written: its handler is called now")
        handler(number, frame)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._arrived.append((number, frame))
        if number in _DEADLY:
            self._tell("writing results before the program ends")

    def _warn(self, number: int, frame: FrameType | None) -> None:
        self._arrived.append((number, frame))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._tell("writing results; press Ctrl-C again to write the trace alone")

    def _tell(self, text: str) -> None:
        # The signal may have interrupted another line on its way to the terminal.
        with suppress(RuntimeError):
            self._say(text)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _exit(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise Terminated(SIGNALLED + number)


def _hold_back() -> None:
    # A signal that arrives while the child still has our handler would be lost.
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _DEADLY)


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _let_through_as_alone() -> None:
    end_as_alone()
    _let_through()
