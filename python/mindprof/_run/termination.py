"""Turns deadly signals into exceptions, so that a program that is told to end leaves results."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

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
    if threading.current_thread() is not threading.main_thread():
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
    if threading.current_thread() is threading.main_thread():
        for number in _DEADLY:
            if signal.getsignal(number) is _exit:
                signal.signal(number, signal.SIG_DFL)


@contextmanager
def patience(say: Callable[[str], None]) -> Iterator[None]:
    """Protects a block from signals: only a second Ctrl-C interrupts it.

    Args:
        say: Prints a line for the user.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_DEADLY)}

    def warn(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        signal.signal(signal.SIGINT, signal.default_int_handler)
        say("writing results; press Ctrl-C again to exit without them")

    def go_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        say("writing results before the program ends")

    signal.signal(signal.SIGINT, warn)
    for number in _DEADLY:
        # Handlers of the program and ignored signals stay as they are.
        if before[number] is _exit:
            signal.signal(number, go_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
