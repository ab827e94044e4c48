"""Forked children: those that do something and say whether it held, and those that are killed."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable

#: A child that lives longer hangs; its alarm ends it.
ALARM_SECONDS = 120


def fork(body: Callable[[], None]) -> int:
    """Starts a child that does `body` and leaves without a word, and returns its number."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(ALARM_SECONDS)
        body()
        status = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def succeed(child: int) -> None:
    """Waits for a child, which must have done all without a failure."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code == 0, f"the child ended with {code}" + (" (it hung)" if code == -14 else "")


def kill_after(child: int, seconds: float) -> bool:
    """Kills a child after a while, and returns whether it was still there."""
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), f"the child ended with {code} before it was killed"
    return code != 0
