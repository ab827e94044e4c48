"""Watches the process that runs the rounds, so that a crash or a hang is reported with its round.

The worker prints a line when a round begins; its stderr is passed through.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

from soak.arguments import HOME, Arguments, environment

#: A round that takes longer hangs; most take a fraction of a second.
ROUND_SECONDS = 300.0
#: Makes the C library release freed memory. By default it has a heap for each of many threads, and
#: keeps up to 64 MiB in each, which looks like a leak over thousands of rounds.
TIDY_HEAPS = {"MALLOC_ARENA_MAX": "2", "MALLOC_TRIM_THRESHOLD_": str(128 << 10)}


def supervise(arguments: Arguments) -> int:
    """Runs the rounds in a separate process, and returns the exit status of the run."""
    print(f"seed {arguments.seed}: {arguments.repetition(arguments.first, 1)}", flush=True)
    command = [sys.executable, "-W", "ignore", "-X", "faulthandler", "-m", "soak", "worker"]
    worker = subprocess.Popen(
        [*command, *arguments.command()],
        cwd=HOME,
        env={**environment(), **TIDY_HEAPS},
        stdout=subprocess.PIPE,
        text=True,
    )
    watch = Watch(worker)
    try:
        assert worker.stdout is not None
        for line in worker.stdout:
            watch.hear(line.rstrip("\n"))
    finally:
        watch.end()
        if worker.poll() is None and watch.is_interrupted():
            worker.kill()
        status = worker.wait()
    return report(arguments, watch, status)


class Watch:
    """Follows the current round, shows it, and aborts a worker that hangs."""

    def __init__(self, worker: subprocess.Popen[str]) -> None:
        self.worker = worker
        self.round = -1
        self.activities = ""
        self.summary: list[str] = []
        self.hangs = False
        self._begun = time.monotonic()
        self._timer = self._start_timer()

    def hear(self, line: str) -> None:
        """Handles a line of the worker: the beginning of a round, or text to print."""
        kind, _, rest = line.partition(" ")
        if kind != "round":
            self.clear()
            print(line, flush=True)
            return
        self._timer.cancel()
        number, _, self.activities = rest.partition(" ")
        self.round = int(number)
        self._timer = self._start_timer()
        if sys.stderr.isatty():
            seconds = time.monotonic() - self._begun
            text = f"{seconds:6.0f} s  round {self.round}  {self.activities}"
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Erases the progress line."""
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Stops watching."""
        self._timer.cancel()
        self.clear()

    def is_interrupted(self) -> bool:
        """Returns whether the loop over the worker's lines was left by an exception."""
        return sys.exc_info()[0] is not None

    def _start_timer(self) -> threading.Timer:
        timer = threading.Timer(ROUND_SECONDS, self._end_worker)
        timer.daemon = True
        timer.start()
        return timer

    def _end_worker(self) -> None:
        self.hangs = True
        # Makes faulthandler print the stacks of all threads.
        self.worker.send_signal(signal.SIGABRT)


def report(arguments: Arguments, watch: Watch, status: int) -> int:
    """Prints how the run ended and how to reproduce a failure, and returns the exit status."""
    if status == 0:
        return 0
    if watch.hangs:
        cause = f"hung for {ROUND_SECONDS:.0f} seconds"
    elif status < 0:
        cause = f"was ended by {signal.Signals(-status).name}"
    else:
        cause = "failed"
    where = f"seed {arguments.seed}, round {watch.round} ({watch.activities})"
    so_far = watch.round - arguments.first + 1
    print(f"{where} {cause}", file=sys.stderr)
    print(f"this round again: {arguments.repetition(watch.round, 1)}", file=sys.stderr)
    print(f"all rounds up to it: {arguments.repetition(arguments.first, so_far)}", file=sys.stderr)
    return 1
