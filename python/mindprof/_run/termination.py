"""SIGTERM as an exception, so that a program that is told to end leaves its results."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

#: What a shell says of a program that ended by a signal is this more than the signal's number.
SIGNALLED = 128

_forking = threading.local()


def exit_on_termination() -> bool:
    """Has SIGTERM raise `SystemExit`; returns False where the program's surroundings see to it.

    Children that the program forks end by it as they would have alone.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return False
    signal.signal(signal.SIGTERM, _exit)
    os.register_at_fork(
        before=_hold_back, after_in_parent=_let_through, after_in_child=_let_through_as_alone
    )
    return True


def _exit(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    sys.exit(SIGNALLED + number)


def _hold_back() -> None:
    # One that comes while the child still has our handler would be lost.
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _let_through_as_alone() -> None:
    if signal.getsignal(signal.SIGTERM) is _exit:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _let_through()
