"""Exceptions everywhere: in ranges, operators, callbacks, schedules, and misuse of profilers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import mindtorch_v2 as torch
from mindprof import ProfilerAction, profile

from soak.accounts import Work, check_some, names_in
from soak.rounds import Round


class UserError(Exception):
    """The exception of user code, raised only here."""


def fail(*_: Any) -> Any:
    """A user callback that raises."""
    raise UserError


def fail_everywhere(given: Round) -> None:
    """Fails in several ways in random order, and checks that the next recording is sound."""
    for attempt in given.random.choices(ATTEMPTS, k=given.random.randrange(1, 8)):
        attempt(given)
        record_soundly(given)


def record_soundly(given: Round) -> None:
    """Checks that the next recording is a sound one."""
    work = Work("sound")
    prof = profile()
    given.watch(prof)
    with prof:
        work.mix(given.random, 2)
    check_some(prof, work.put_in)
    assert names_in(prof).total() == work.put_in.total()


def fail_in_ranges(given: Round) -> None:
    """Raises through ranges and through the profiler."""
    work = Work("range that fails")

    def descend(depth: int) -> None:
        with work.range(f"{work.name} {depth}"):
            work.operate()
            descend(depth - 1) if depth else fail()

    prof = profile(with_stack=given.chance(0.5))
    given.watch(prof)
    with suppress(UserError), prof:
        descend(given.random.randrange(30))
    check_some(prof, work.put_in)


def fail_in_operators(given: Round) -> None:
    """Calls operators with arguments that they reject."""
    work = Work("operator that fails")
    prof = profile(record_shapes=given.chance(0.5), profile_memory=given.chance(0.5))
    given.watch(prof)
    with prof:
        for _ in range(given.random.randrange(1, 20)):
            with suppress(RuntimeError), work.range("refused"):
                torch.ones((2, 3)) @ torch.ones((2, 3))
            with suppress(RuntimeError, IndexError), work.range("refused too"):
                torch.ones(3).sum(dim=7)
    check_some(prof, work.put_in)


def fail_in_callbacks(given: Round) -> None:
    """Uses callbacks that raise on start and on stop."""
    prof = profile(on_trace_ready=fail, custom_trace_id_callback=fail)
    given.watch(prof)
    with suppress(UserError):
        prof.start()
    prof.set_custom_trace_id_callback(None)
    work = Work("callback that fails")
    with suppress(UserError), prof:
        work.operate(3)
    check_some(prof, work.put_in)


def fail_in_schedules(given: Round) -> None:
    """Uses a schedule that raises or returns nonsense."""
    bad = given.random.randrange(1, 5)
    answer: Callable[[], Any] = given.random.choice([fail, lambda: "record", lambda: None])

    def plan(step: int) -> Any:
        return ProfilerAction.RECORD if step < bad else answer()

    prof = profile(schedule=plan)
    given.watch(prof)
    with suppress(UserError, AttributeError, RuntimeError, TypeError, ValueError, KeyError), prof:
        for _ in range(bad + 2):
            prof.step()


def misuse(given: Round) -> None:
    """Calls methods in the wrong state."""
    prof = profile(with_stack=given.chance(0.3))
    given.watch(prof)
    path = str(given.folder / "misuse.json")
    calls: list[Callable[[], Any]] = [
        *(prof.start, prof.start, prof.stop, prof.stop, prof.step, prof.events),
        *(prof.key_averages, prof.prepare_trace, prof.start_trace, prof.stop_trace),
        lambda: prof.export_chrome_trace(path),
        lambda: prof.export_stacks(path),
        lambda: prof.export_chrome_trace(str(given.folder)),
        lambda: prof.export_chrome_trace("/proc/no/such/folder/trace.json"),
        lambda: prof.add_metadata_json("key", "{"),
    ]
    for call in given.random.choices(calls, k=20):
        with suppress(AssertionError, AttributeError, OSError, RuntimeError):
            call()
    with suppress(AssertionError):
        prof.stop()


def enter_twice(given: Round) -> None:
    """Enters an open range and leaves a closed one."""
    work = Work("twice")
    prof = profile()
    given.watch(prof)
    with prof:
        opened = work.open("entered twice")
        with suppress(RuntimeError, AssertionError):
            opened.__enter__()
        for _ in range(3):
            with suppress(RuntimeError, AssertionError, AttributeError):
                opened.__exit__(None, None, None)
    prof.events()


def drop(given: Round) -> None:
    """Drops a profiler while it records."""
    prof = profile(with_stack=given.chance(0.5))
    given.watch(prof)
    prof.start()
    Work("dropped").mix(given.random, 2)


ATTEMPTS = [fail_in_ranges, fail_in_operators, fail_in_callbacks, fail_in_schedules]
ATTEMPTS += [misuse, enter_twice, drop]
