"""The `mindprof` program that the package installs.

`mindprof run` is Python, and so is the way of `mindprof ranks` to other processes. The engine
implements everything else.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence

from mindprof import _core


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit code. `mindprof --help` lists the commands.

    Args:
        arguments: The arguments after the program's name; those of the process if `None`.

    Example:
        >>> main(["verify", "missing.json"])
        2
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["run"]:
        # Imported here because the other commands need no profiler.
        from mindprof._run.command import run

        return run(arguments[1:])
    if arguments[:1] == ["ranks"]:
        from mindprof import _rank_command

        if _rank_command.asks_for_engine(arguments[1:]):
            return _rank_command.run(arguments[1:])
    # The engine writes to the same streams, but not through Python's buffers.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    if threading.current_thread() is not threading.main_thread():
        return _core.run_command(["mindprof", *arguments])
    # Python cannot handle Ctrl-C while it waits for the engine, so the default action applies.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return _core.run_command(["mindprof", *arguments])
    finally:
        signal.signal(signal.SIGINT, before)
