"""Signals that end a program as exceptions, so that one that is told to end leaves its results."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: What a shell says of a program that ended by a signal is this more than the signal's number.
SIGNALLED = 128

#: Those that end a program: a terminal that is closed, and a plain `kill`.
_DEADLY = (signal.SIGHUP, signal.SIGTERM) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)

_forking = threading.local()


class Terminated(SystemExit):
    """The end of a program by a signal."""


def exit_on_termination() -> None:
    """Has SIGTERM and SIGHUP raise `Terminated`, unless the program's surroundings see to them.

    Children that the program forks end by them as they would have alone.
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
    """Has signals do again what they do to any program."""
    if threading.current_thread() is threading.main_thread():
        for number in _DEADLY:
            if signal.getsignal(number) is _exit:
                signal.signal(number, signal.SIG_DFL)


@contextmanager
def patience(say: Callable[[str], None]) -> Iterator[None]:
    """Lets nothing but a second Ctrl-C interrupt what is done inside.

    Args:
        say: Tells the user what the first one does.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_DEADLY)}

    def warn(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        signal.signal(signal.SIGINT, signal.default_int_handler)
        say("the results are being written; Ctrl-C once more ends without them")

    def go_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        say("the results are being written, and the program ends after that")

    signal.signal(signal.SIGINT, warn)
    for number in _DEADLY:
        # What surroundings ignore, or the program sees to, stays so.
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
    # One that comes while the child still has our handler would be lost.
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _DEADLY)


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _let_through_as_alone() -> None:
    end_as_alone()
    _let_through()
