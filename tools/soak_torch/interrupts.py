"""Interrupts at random moments while profilers start, record and stop.

Each interrupt must arrive in the program, and must leave torch and the interpreter as they were: no
attribute of torch stays replaced, no profile hook stays set, and nothing is being recorded.
"""

from __future__ import annotations

import _thread
import ctypes
import gc
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from types import FrameType
from typing import Any

import torch  # type: ignore[import-not-found]
from mindprof import _core, profile, schedule
from torch.utils.data._utils import worker as loader_worker  # type: ignore[import-not-found]

#: The longest time from the beginning of an attempt to its interrupt.
LONGEST_SECONDS = 6e-3


def stress(count: int, seconds: float) -> str | None:
    """Raises `count` interrupts, or as many as the time allows, and prints the counts.

    Returns:
        The reason for a failure, or `None`.
    """
    torch.set_num_threads(1)
    # Without cyclic garbage collections, whose callbacks cannot raise.
    gc.disable()
    random = Random(33)
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for options in OPTIONS:
        record(model, optimizer, options)
    # Later collections look only at what the attempts create.
    gc.collect()
    gc.freeze()
    before, tally = state(), Counter[str]()
    ignored: list[Any] = []
    sys.unraisablehook = ignored.append
    waker = Waker()
    ways: list[Callable[[float], None]] = [by_timer, waker.by_signal, waker.by_exception]
    end = time.monotonic() + seconds
    while tally["raised"] < count and time.monotonic() < end:
        options, way = random.choice(OPTIONS), random.choice(ways)
        # An interrupt of torch's own `no_grad` leaves gradients off.
        torch.set_grad_enabled(True)
        tally["raised"] += 1
        arrived = interrupt(
            partial(record, model, optimizer, options),
            partial(way, random.random() * LONGEST_SECONDS),
        )
        if not arrived:
            tally["swallowed"] += 1
            print(f"swallowed by {way.__name__} with {options}: {ignored}", flush=True)
        gc.collect()
        after = state()
        if after != before:
            tally["left"] += 1
            changed = [key for key in before if before[key] != after[key]]
            print(f"left by {way.__name__} with {options}: {', '.join(changed)}", flush=True)
            restore(model, optimizer)
            before = state()
        ignored.clear()
    waker.stop()
    gc.unfreeze()
    raised, swallowed, left = (tally[key] for key in ("raised", "swallowed", "left"))
    print(
        f"interrupts {raised:,} raised, {swallowed:,} swallowed, {left:,} left patched", flush=True
    )
    if swallowed or left:
        return f"{swallowed} interrupts were swallowed and {left} left something replaced"
    return None if raised == count else f"only {raised:,} of {count:,} in {seconds:.0f} s"


OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"with_stack": True},
    {"with_stack": True, "record_shapes": True, "profile_memory": True},
    {"record_shapes": True, "profile_memory": True},
    {"with_stack": True, "schedule": schedule(wait=0, warmup=1, active=1)},
)


def record(model: Any, optimizer: Any, options: dict[str, Any]) -> None:
    """Records two steps of a small training, with calls of Python and C functions."""
    with profile(**options) as prof:
        for _ in range(2):
            model(torch.ones(2, 2)).sum().backward()
            optimizer.step()
            sorted([3, 1, 2], key=lambda number: -number)
            prof.step()
    prof.key_averages()


def interrupt(act: Callable[[], None], plan: Callable[[], None]) -> bool:
    """Plans an interrupt, acts, waits for it, and returns whether it arrived."""
    Waker.was_sent = False
    try:
        plan()
        act()
        while not Waker.was_sent:
            pass
        # An exception that another thread raises arrives a moment after it was sent.
        for _ in range(200_000):
            pass
    except KeyboardInterrupt:
        return True
    return False


class Waker:
    """Interrupts the main thread after a while, from another thread.

    A thread of its own, because starting one takes Python code that could be interrupted.
    """

    #: Whether the current interrupt has been sent.
    was_sent = False

    def __init__(self) -> None:
        self._plans: list[tuple[float, Callable[[], Any]] | None] = []
        self._is_planned = threading.Semaphore(0)
        self._main = threading.get_ident()
        signal.signal(signal.SIGALRM, self._raise)
        signal.signal(signal.SIGINT, self._raise)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def by_signal(self, seconds: float) -> None:
        """Simulates Ctrl-C."""
        self._plan(seconds, _thread.interrupt_main)

    def by_exception(self, seconds: float) -> None:
        """Raises an asynchronous exception."""
        self._plan(seconds, self._raise_there)

    def stop(self) -> None:
        """Ends the thread."""
        self._plans.append(None)
        self._is_planned.release()
        self._thread.join()

    def _plan(self, seconds: float, wake: Callable[[], Any]) -> None:
        self._plans.append((seconds, wake))
        self._is_planned.release()

    def _run(self) -> None:
        while True:
            self._is_planned.acquire()
            plan = self._plans.pop()
            if plan is None:
                return
            seconds, wake = plan
            time.sleep(seconds)
            wake()

    def _raise_there(self) -> None:
        raised = ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._main), raised)
        Waker.was_sent = True

    @staticmethod
    def _raise(_signal: int, _frame: FrameType | None) -> None:
        Waker.was_sent = True
        raise KeyboardInterrupt


def by_timer(seconds: float) -> None:
    """Sends a signal to the process."""
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))


def state() -> dict[str, Any]:
    """Returns everything that a recording changes and must restore."""
    return {
        "Optimizer._optimizer_step_code": vars(torch.optim.Optimizer)["_optimizer_step_code"],
        "_RecordFunctionFast": torch._C._profiler._RecordFunctionFast,
        "_is_profiler_enabled": torch.autograd.profiler._is_profiler_enabled,
        "_worker_loop": loader_worker._worker_loop,
        "sys.getprofile": sys.getprofile(),
        "threading.getprofile": threading.getprofile(),
        "is_profiling": _core.is_profiling(),
        "gc.callbacks": len(gc.callbacks),
    }


def restore(model: Any, optimizer: Any) -> None:
    """Makes a recording without interrupts, which repairs what the one before left."""
    record(model, optimizer, OPTIONS[2])
    sys.setprofile(None)
    threading.setprofile(None)
