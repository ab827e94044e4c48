"""Profiling with stacks keeps nothing of the program alive."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from mindprof import _core
from mindprof.profiler import profile

from tests.python.stack_frames import tensor
from tests.workloads import torch

# The stacks that are expected here end at the line that calls an operator: those of the stand-in
# would go on with its own functions.
pytestmark = pytest.mark.runtime

ALL: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}
References = list[weakref.ref[Any]]


def test_nothing_of_the_program_is_kept_alive() -> None:
    class Thing:
        pass

    def step(thing: Thing) -> list[weakref.ref[Any]]:
        local = Thing()
        x = tensor()
        y = x + x
        append = [local].append
        append(thing)
        function = eval("lambda value: value")
        function(y)
        return [weakref.ref(local), weakref.ref(thing), weakref.ref(function.__code__)]

    references: list[weakref.ref[Any]] = []
    gc.collect()
    live = _core._live_bytes()
    prof = profile(with_stack=True)
    prof.start()
    references += step(Thing())
    gc.collect()
    assert [reference() for reference in references[:2]] == [None, None]
    prof.stop()
    gc.collect()
    assert [reference() for reference in references] == [None] * 3
    assert _core._live_bytes() == live
    assert len(prof.events()) > 0


def test_a_signal_within_stop_leaves_no_hook_for_new_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with profile(with_stack=True):
        tensor() + tensor()
        # As a handler that raises would do it, at the first line of either.
        monkeypatch.setattr(threading, "getprofile", interrupted)
        monkeypatch.setattr(threading, "setprofile", interrupted)
    monkeypatch.undo()
    assert threading.getprofile() is None


class Thing:
    """Something of the program."""


def modules_and_optimizers() -> References:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    loss = model(torch.ones(2, 4)).sum()
    loss.backward()
    optimizer.step()
    return [weakref.ref(model), weakref.ref(optimizer), weakref.ref(model[0])]


def exceptions() -> References:
    def fail(thing: Thing) -> None:
        tensor() + tensor()
        raise ValueError(thing)

    thing = Thing()
    try:
        fail(thing)
    except ValueError:
        return [weakref.ref(thing), weakref.ref(fail)]
    raise AssertionError("it fails")


def generators() -> References:
    def numbers(thing: Thing) -> Generator[Any, None, None]:
        while thing is not None:
            yield tensor() + tensor()

    thing = Thing()
    running = numbers(thing)
    next(running)
    return [weakref.ref(thing), weakref.ref(running)]


def coroutines() -> References:
    class Turn:
        def __await__(self) -> Generator[None, None, None]:
            yield

    async def wait(thing: Thing) -> Thing:
        tensor() + tensor()
        await Turn()
        return thing

    thing = Thing()
    running = wait(thing)
    running.send(None)
    found: References = [weakref.ref(thing), weakref.ref(running)]
    running.close()
    return found


def methods_and_callbacks() -> References:
    class Owner(Thing):
        def key(self, value: int) -> int:
            tensor() + tensor()
            return value

    owner = Owner()
    sorted([2, 1], key=owner.key)
    return [weakref.ref(owner), weakref.ref(Owner)]


def cycles() -> References:
    def loop() -> Any:
        tensor() + tensor()
        return loop

    thing = Thing()
    thing.__dict__["itself"] = (thing, loop())
    return [weakref.ref(thing), weakref.ref(loop)]


PROGRAMS = [modules_and_optimizers, exceptions, generators, coroutines]
PROGRAMS += [methods_and_callbacks, cycles]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_objects_die_though_the_profile_lives_on(
    program: Callable[[], References], tmp_path: Path
) -> None:
    program()
    gc.collect()
    live = _core._live_bytes()
    with profile(**ALL) as prof:
        references = program()
        gc.collect()
        during = [reference() for reference in references]
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)
    assert during == [None] * len(references), "not even while it records"
    assert _core._live_bytes() == live, "no tensor is held"
    # What has been looked at and written holds nothing either, and the profile still answers.
    assert any(event.stack for event in prof.events())
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert _core._live_bytes() == live


def test_tensors_die_at_once_without_a_collection() -> None:
    gc.disable()
    try:
        live = _core._live_bytes()
        with profile(**ALL):
            x = torch.ones(100)
            assert _core._live_bytes() == live + 400
            y = x + x
            del x
            assert _core._live_bytes() == live + 400
            del y
            assert _core._live_bytes() == live
    finally:
        gc.enable()
