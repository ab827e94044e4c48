"""Interrupts while profilers start and stop: they arrive, and torch is left as it was."""

from __future__ import annotations

import gc
import linecache
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from mindprof import _core, profile
from mindprof._frameworks import torch_sessions
from mindprof._frameworks.loader_workers import WORKERS
from torch.utils.data._utils import worker as loader_worker  # type: ignore[import-not-found]

from tests.pytorch.test_forks import stress

PACKAGE = os.path.dirname(mindprof.__file__)

MEMORY: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}


def state() -> dict[str, Any]:
    """Everything that a recording changes and must restore."""
    return {
        "_optimizer_step_code": vars(torch.optim.Optimizer)["_optimizer_step_code"],
        "_RecordFunctionFast": torch._C._profiler._RecordFunctionFast,
        "_is_profiler_enabled": torch.autograd.profiler._is_profiler_enabled,
        "_worker_loop": loader_worker._worker_loop,
        "sys.getprofile": sys.getprofile(),
        "threading._profile_hook": threading._profile_hook,
        "is_profiling": _core.is_profiling(),
        "is_observing": _core.is_observing_torch(),
        "locks": [is_free(lock) for lock in (torch_sessions.changes, WORKERS._lock)],
    }


def is_free(lock: Any) -> bool:
    """Whether another thread can take a lock."""
    found: list[bool] = []

    def take() -> None:
        found.append(lock.acquire(blocking=False))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return found[0]


@pytest.fixture
def before() -> Iterator[dict[str, Any]]:
    """The state before the first recording of a test, which the test must restore."""
    with profile(**MEMORY):
        pass
    found = state()
    yield found
    sys.settrace(None)
    assert state() == found


def is_interrupted_at(number: int, options: dict[str, Any]) -> bool:
    """Records, raises an interrupt at a line of the package, and returns whether it came so far."""
    lines = 0
    entered = set()

    def is_safe(frame: FrameType) -> bool:
        """Whether no signal handler runs here: where a `with` statement ends, or `try` begins."""
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        # Not the frame itself, which would keep its variables alive.
        place = id(frame), frame.f_lineno
        is_seen = place in entered
        entered.add(place)
        return text == "try:" or (is_seen and text.startswith("with "))

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event in ("call", "line") and not is_safe(frame):
            lines += 1
            if lines == number:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        with profile(**options):
            pass
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("options", [{}, MEMORY], ids=["plain", "memory"])
def test_an_interrupt_at_any_line_leaves_nothing_replaced(
    before: dict[str, Any], options: dict[str, Any]
) -> None:
    number = 1
    while is_interrupted_at(number, options):
        after = state()
        assert after == before, f"interrupted at line {number}"
        number += 1
    assert number > 100


def test_a_traceback_that_is_kept_does_not_keep_the_recording(before: dict[str, Any]) -> None:
    class Interrupted(profile):
        def _open_step(self, at_start: bool = False) -> None:  # noqa: ARG002
            raise KeyboardInterrupt

    prof = Interrupted(**MEMORY)
    with pytest.raises(KeyboardInterrupt):
        prof.start()
    prof.stop_trace()
    assert state()["is_profiling"] is False
    del prof
    gc.collect()
    assert state() == before


def test_a_dropped_profiler_restores_torch(before: dict[str, Any]) -> None:
    first, second = profile(**MEMORY), profile(**MEMORY)
    first.start()
    second.start()
    during = state()
    assert during["_optimizer_step_code"] is not before["_optimizer_step_code"]
    assert during["_is_profiler_enabled"] is True
    del first
    gc.collect()
    assert state() == during
    del second
    gc.collect()
    assert state() == before


def test_a_wrapper_of_another_tool_is_left_alone() -> None:
    ranges, theirs = torch._C._profiler, torch._C._profiler._RecordFunctionFast

    class Other:
        pass

    try:
        with profile():
            ranges._RecordFunctionFast = Other
        assert ranges._RecordFunctionFast is Other
    finally:
        ranges._RecordFunctionFast = theirs


def test_interrupts_at_random_moments_arrive_and_leave_nothing() -> None:
    said = stress("interrupts", "--count", "150")
    assert said == "interrupts 150 raised, 0 swallowed, 0 left patched\n"
