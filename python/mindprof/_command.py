"""The program `mindprof` as it comes with the package."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence

from mindprof import _core


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit code; `mindprof --help` says what it can do.

    Args:
        arguments: What follows the program's name; that of the process if None.

    Example:
        >>> main(["verify", "missing.json"])
        2
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["run"]:
        # Here and not above: other commands need no profiler.
        from mindprof._run.command import run

        return run(arguments[1:])
    # The engine writes to the same places, beside Python's buffers.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    if threading.current_thread() is not threading.main_thread():
        return _core.run_command(["mindprof", *arguments])
    # While Python waits for the engine it cannot act upon Ctrl-C: the system is to do it.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return _core.run_command(["mindprof", *arguments])
    finally:
        signal.signal(signal.SIGINT, before)
