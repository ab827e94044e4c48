"""A file whose reader can be ended in the middle of reading."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_SECONDS = 120.0


class HeldFile:
    """A file whose reader waits in the middle of reading, so that a test can end it there.

    It is a pipe at first. `release` puts the file in its place, for whoever reads it next.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept = path.with_suffix(".kept")
        path.rename(self._kept)
        os.mkfifo(path)
        self._pipe: int | None = None

    def wait_for_reader(self) -> int:
        """Waits until a process reads the file, and returns its id."""
        self._pipe = _polled(self._opened)
        return _polled(lambda: _reader_of(self.path))

    def kill_reader(self) -> int:
        """Kills the process that reads the file, and returns its id."""
        reader = self.wait_for_reader()
        os.kill(reader, signal.SIGKILL)
        # Until it is gone, it would be taken for the next reader.
        _polled(lambda: None if _reader_of(self.path) == reader else reader)
        self.close()
        return reader

    def release(self) -> None:
        """Puts the file in the place of the pipe."""
        os.replace(self._kept, self.path)

    def finish(self) -> None:
        """Hands the contents to the reader that still waits, if it was not ended.

        Contents that are larger than a pipe would be cut.
        """
        assert self._pipe is not None
        with contextlib.suppress(BrokenPipeError):
            os.write(self._pipe, self.path.read_bytes())
        self.close()

    def close(self) -> None:
        """Ends the pipe of a reader that still waits."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _opened(self) -> int | None:
        try:
            return os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return None  # Nobody reads it yet.
            raise


def _polled(look: Callable[[], int | None]) -> int:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        found = look()
        if found is not None:
            return found
        time.sleep(0.02)
    raise TimeoutError("nobody reads the file")


def _reader_of(path: Path) -> int | None:
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            opened = [os.readlink(one) for one in (process / "fd").iterdir()]
        except OSError:
            continue
        if str(path) in opened:
            return int(process.name)
    return None
