"""Signals at random moments: handlers that record, collect garbage, or raise."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random
from types import FrameType
from typing import Any

from mindprof import profile

from soak.accounts import Work, check_exact, total
from soak.rounds import Round


class InterruptError(Exception):
    """The exception that a signal handler raises."""


@contextmanager
def signals(handler: Any, seconds: float, again: float) -> Iterator[None]:
    """Sends alarm signals to the process, the first after some seconds."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def interrupt(given: Round) -> None:
    """Records while signals arrive."""
    (raise_amid if given.chance(0.5) else record_amid)(given)


def record_amid(given: Round) -> None:
    """Uses handlers that record; their events are counted like all others."""
    random = given.random
    own, beside = Work("interrupted"), list[Work]()
    is_recording, chance = False, Random(0)
    prof = profile(record_shapes=given.chance(0.5))
    given.watch(prof)

    def handle(_signal: int, _frame: FrameType | None) -> None:
        if is_recording:
            # A work of its own, because a signal may arrive while another is handled.
            work = Work("handler")
            beside.append(work)
            work.nest(2)
        # A separate generator: the number of signals must not change the rest of the round.
        if chance.random() < 0.1:
            gc.collect()

    with signals(handle, 1e-4, random.uniform(1e-4, 2e-3)), prof:
        is_recording = True
        own.mix(random, 200)
        is_recording = False
    check_exact(prof, own.put_in + total(beside))


def raise_amid(given: Round) -> None:
    """Uses a handler that raises anywhere in the program, even inside the profiler."""
    random = given.random

    def handle(_signal: int, _frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise InterruptError

    def act() -> None:
        prof = profile(with_stack=random.random() < 0.3)
        given.watch(prof)
        with prof:
            Work("cut short").mix(random, 20)
        prof.key_averages().table()
        prof.export_chrome_trace(given.folder / "cut short.json")

    # Python would print exceptions in finalizers, where they cannot propagate.
    noticed, sys.unraisablehook = sys.unraisablehook, lambda _: None
    for _ in range(5):
        with suppress(InterruptError), signals(handle, random.uniform(1e-5, 2e-2), 0):
            act()
        gc.collect()
    sys.unraisablehook = noticed
    work = Work("after")
    prof = profile()
    given.watch(prof)
    with prof:
        work.mix(random, 3)
    check_exact(prof, work.put_in)
