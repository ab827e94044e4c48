"""What a profiler has to do on the way from one action to the next, as a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

from mindprof._profiler.schedule import ProfilerAction

# By the action before and the one after (None: the profiler stops): methods of the profiler, by
# name.
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

# No sensible schedule has these: the user is told, and then it is done as well as it can be.
INCORRECT = {(WARMUP, NONE), (RECORD, NONE), (RECORD, WARMUP)}

# The profiler itself decides when a device has stopped, and never between these.
UNREACHABLE = [(NONE, DEVICE_STOPPED), (SAVE, DEVICE_STOPPED)]


Steps = list[Callable[[], None]]


def steps(profiler: object, before: ProfilerAction, after: ProfilerAction | None) -> Steps:
    """Returns what `profiler` has to do, in order; nothing for a pair that is not in the table."""
    found: Steps = [getattr(profiler, name) for name in TRANSITIONS.get((before, after), ())]
    if after is not None and (before, after) in INCORRECT:
        text = f"Incorrect schedule: {before.name} followed by {after.name}"
        found.insert(0, partial(warnings.warn, text, stacklevel=4))
    if after is not None and (before, after) in UNREACHABLE:
        found = [partial(_refuse, before, after)]
    return found


def bind(profiler: object) -> dict[tuple[ProfilerAction, ProfilerAction | None], Steps]:
    """Returns the whole table, with the methods of `profiler` in place of their names."""
    return {pair: steps(profiler, *pair) for pair in [*TRANSITIONS, *UNREACHABLE]}


def _refuse(before: ProfilerAction, after: ProfilerAction) -> None:
    raise RuntimeError(
        f"Profiler internal error: {before.name} -> {after.name} should be unreachable"
    )
