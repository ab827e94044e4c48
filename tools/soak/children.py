"""Forked children: some run to an end and report success, others are killed."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable

#: A child that runs longer hangs, and its alarm ends it.
ALARM_SECONDS = 120


def fork(body: Callable[[], None]) -> int:
    """Forks a child that runs `body` and exits without cleanup, and returns its process id."""
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
    """Waits for a child, and checks that it succeeded."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code == 0, f"the child ended with {code}" + (" (it hung)" if code == -14 else "")


def kill_after(child: int, seconds: float) -> bool:
    """Kills a child after a while, and returns whether it was still running."""
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), f"the child ended with {code} before it was killed"
    return code != 0
