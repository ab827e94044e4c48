"""Garbage collection: finalizers that record, callbacks, collections at any time."""

from __future__ import annotations

import gc
from typing import Any

import mindtorch_v2 as torch
from mindprof import profile

from soak.accounts import Work, check_some
from soak.rounds import Round


class Node:
    """An object in a reference cycle that opens a range when it is collected."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.itself = self
        self.tensor = torch.ones(3)

    def __del__(self) -> None:
        self.work.nest(1)


def collect_garbage(given: Round) -> None:
    """Records while garbage is created and collected, then drops the results in cycles."""
    random = given.random
    own, dying, called = Work("maker"), Work("dying"), Work("callback")
    prof = profile(with_stack=given.chance(0.3), profile_memory=given.chance(0.3))
    given.watch(prof)
    is_recording = False

    def notice(_phase: str, _facts: dict[str, int]) -> None:
        if is_recording:
            called.operate()

    gc.collect()
    gc.callbacks.append(notice)
    try:
        with prof:
            is_recording = True
            for _ in range(random.randrange(1, 30)):
                given.watch(Node(dying))
                own.nest(2)
                if given.chance(0.3):
                    gc.collect(random.randrange(3))
            gc.collect()
            is_recording = False
    finally:
        gc.callbacks.remove(notice)
    # The creation of the nodes' tensors is not counted.
    check_some(prof, own.put_in + dying.put_in + called.put_in)
    hold_in_circles(given, prof)


def hold_in_circles(given: Round, prof: profile) -> None:
    """Drops events and rows that are part of a reference cycle."""
    events, rows = prof.events(), prof.key_averages()
    circle: list[Any] = [events, rows, prof]
    circle.append(circle)
    given.watch(events, rows)
    if len(events):
        events[0].stack, events[0].cpu_parent, events[-1].kernels
    assert events.key_averages().total_average().count > 0 or not len(events)
