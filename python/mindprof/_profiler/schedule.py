"""The actions of a profiler, and schedules, which choose the action of each step."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import Enum

from mindprof._settings.torch_objects import is_of_torch


class ProfilerAction(Enum):
    """The action of a profiler during one step.

    Schedules return the first four. The profiler itself sets `DEVICE_STOPPED` for the rest of a
    cycle in which a device stopped early. A member equals torch's member of the same name.
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4

    def __eq__(self, other: object) -> bool:
        return other is self or (is_of_torch(other, "ProfilerAction") and self.name == other.name)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        # By name, like torch's members. The method of `Enum` would appear in recorded stacks.
        return hash(self._name_)


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
    """Returns a schedule that repeats a cycle of waiting, warming up and recording.

    Args:
        wait: The number of idle steps at the start of a cycle.
        warmup: The number of steps before recording whose events are discarded.
        active: The number of recorded steps in a cycle.
        repeat: The number of cycles; unlimited if zero.
        skip_first: The number of steps before the first cycle.
        skip_first_wait: If not zero, the first cycle has no idle steps.

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
    # Shifts the first cycle as if its idle steps had passed before the first step.
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
    """The default schedule: records every step."""
    return ProfilerAction.RECORD


def checked(action: ProfilerAction) -> ProfilerAction:
    """Checks the action that a schedule returned, and converts torch's class to ours.

    Raises:
        ValueError: Schedules must not return the action.
    """
    if is_of_torch(action, "ProfilerAction"):
        action = ProfilerAction[action.name]
    if action == ProfilerAction.DEVICE_STOPPED:
        raise ValueError(
            "ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be "
            "returned by a user-provided schedule"
        )
    return action
