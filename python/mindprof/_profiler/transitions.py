"""The table of transitions: which methods a profiler calls between two actions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

from mindprof._profiler.schedule import ProfilerAction

# Keys are the action before and the one after, which is `None` when the profiler stops. Values are
# names of the profiler's methods.
NONE, WARMUP, RECORD, SAVE, DEVICE_STOPPED = ProfilerAction
PREPARE, START, STOP, READY = "prepare_trace", "start_trace", "stop_trace", "_trace_ready"

TRANSITIONS: dict[tuple[ProfilerAction, ProfilerAction | None], tuple[str, ...]] = {
    (NONE, NONE): (),
    (NONE, WARMUP): (PREPARE,),
    (NONE, RECORD): (PREPARE, START),
    (NONE, SAVE): (PREPARE, START),
    (WARMUP, NONE): (START, STOP),
    (WARMUP, WARMUP): (),
    (WARMUP, RECORD): (START,),
    (WARMUP, SAVE): (START,),
    (WARMUP, DEVICE_STOPPED): (START, STOP, READY),
    (WARMUP, None): (START, STOP),
    (RECORD, NONE): (STOP,),
    (RECORD, WARMUP): (STOP,),
    (RECORD, RECORD): (),
    (RECORD, SAVE): (),
    (RECORD, DEVICE_STOPPED): (STOP, READY),
    (RECORD, None): (STOP, READY),
    (SAVE, NONE): (STOP, READY),
    (SAVE, WARMUP): (STOP, READY, PREPARE),
    (SAVE, RECORD): (STOP, READY, PREPARE, START),
    (SAVE, SAVE): (STOP, READY, PREPARE, START),
    (SAVE, None): (STOP, READY),
    (DEVICE_STOPPED, NONE): (),
    (DEVICE_STOPPED, WARMUP): (PREPARE,),
    (DEVICE_STOPPED, RECORD): (PREPARE, START),
    (DEVICE_STOPPED, SAVE): (PREPARE, START),
    (DEVICE_STOPPED, DEVICE_STOPPED): (),
    (DEVICE_STOPPED, None): (),
}

# No sensible schedule has these transitions. The profiler warns and does its best.
INCORRECT = {(WARMUP, NONE), (RECORD, NONE), (RECORD, WARMUP)}

# Only the profiler sets DEVICE_STOPPED, and never after these actions.
UNREACHABLE = [(NONE, DEVICE_STOPPED), (SAVE, DEVICE_STOPPED)]


Steps = list[Callable[[], None]]


def steps(profiler: object, before: ProfilerAction, after: ProfilerAction | None) -> Steps:
    """Returns the calls for a transition, in order. Empty if it is not in the table."""
    found: Steps = [getattr(profiler, name) for name in TRANSITIONS.get((before, after), ())]
    if after is not None and (before, after) in INCORRECT:
        text = f"Incorrect schedule: {before.name} followed by {after.name}"
        found.insert(0, partial(warnings.warn, text, stacklevel=4))
    if after is not None and (before, after) in UNREACHABLE:
        found = [partial(_refuse, before, after)]
    return found


def bind(profiler: object) -> dict[tuple[ProfilerAction, ProfilerAction | None], Steps]:
    """Returns the whole table with bound methods of `profiler` instead of names."""
    return {pair: steps(profiler, *pair) for pair in [*TRANSITIONS, *UNREACHABLE]}


def _refuse(before: ProfilerAction, after: ProfilerAction) -> None:
    raise RuntimeError(
        f"Profiler internal error: {before.name} -> {after.name} should be unreachable"
    )
