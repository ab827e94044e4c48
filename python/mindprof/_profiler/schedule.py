"""When to do what: the actions of a profiler and the schedules that choose among them by step."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import Enum

from mindprof._settings.torch_objects import is_of_torch


class ProfilerAction(Enum):
    """What a profiler does during one step.

    A schedule returns the first four; `DEVICE_STOPPED` is the profiler's own, for the rest of a
    cycle in which a device stopped early. torch's own actions equal those of the same names.
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4

    def __eq__(self, other: object) -> bool:
        return other is self or (is_of_torch(other, "ProfilerAction") and self.name == other.name)  # type: ignore[attr-defined]

    # By the name, in torch too.
    __hash__ = Enum.__hash__


Schedule = Callable[[int], ProfilerAction]


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Schedule:
    """Returns a schedule of cycles: wait, warm up, record.

    Args:
        wait: Steps of a cycle in which nothing happens.
        warmup: Steps of a cycle before recording, whose events are thrown away.
        active: Steps of a cycle that are recorded.
        repeat: How many cycles there are; without end if zero.
        skip_first: Steps before the first cycle.
        skip_first_wait: If not zero, the first cycle does not wait.

    Raises:
        AssertionError: A number is negative, or `active` is zero.

    Example:
        >>> cycle = schedule(wait=1, warmup=1, active=2, repeat=1)
        >>> [cycle(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} "
            f"(need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0), "
            f"skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )
    length = wait + warmup + active
    # As if the wait of the first cycle lay before the first step.
    shift = wait if skip_first_wait != 0 else 0

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        cycle, place = divmod(step - skip_first + shift, length)
        if (repeat > 0 and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place >= length - 1 else ProfilerAction.RECORD

    return action


def always_record(_step: int) -> ProfilerAction:
    """Is the schedule of a profiler without one."""
    return ProfilerAction.RECORD


def checked(action: ProfilerAction) -> ProfilerAction:
    """Returns what a schedule said; one of torch's speaks of actions by the same names.

    Raises:
        ValueError: It is not for schedules to say.
    """
    if is_of_torch(action, "ProfilerAction"):
        action = ProfilerAction[action.name]
    if action == ProfilerAction.DEVICE_STOPPED:
        raise ValueError(
            "ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be "
            "returned by a user-provided schedule"
        )
    return action
