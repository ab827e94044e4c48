"""The memory timeline of a recording: what happened to which block when, and what it was for."""

from __future__ import annotations

import enum
import functools

from mindprof import _core


class Category(enum.Enum):
    """What memory is for. Memory of which nothing is known has none."""

    INPUT = enum.auto()
    TEMPORARY = enum.auto()
    ACTIVATION = enum.auto()
    GRADIENT = enum.auto()
    AUTOGRAD_DETAIL = enum.auto()
    PARAMETER = enum.auto()
    OPTIMIZER_STATE = enum.auto()


class Action(enum.Enum):
    """What happens to a block of memory."""

    PREEXISTING = enum.auto()
    CREATE = enum.auto()
    INCREMENT_VERSION = enum.auto()
    DESTROY = enum.auto()


# The order in which files list the categories.
_IN_FILES: tuple[Category | None, ...] = (
    Category.PARAMETER,
    Category.OPTIMIZER_STATE,
    Category.INPUT,
    Category.TEMPORARY,
    Category.ACTIVATION,
    Category.GRADIENT,
    Category.AUTOGRAD_DETAIL,
    None,
)


class Categories:
    """What each version of each block was for."""

    def __init__(self, recording: _core.Profile) -> None:
        self._recording = recording

    def get(self, key: int, version: int) -> Category | None:
        """Returns what a version of a block was for; None if nothing is known.

        Args:
            key: The number of the block, as the timeline gives it.
            version: How often it had been written to.
        """
        return self._known.get((key, version))

    @functools.cached_property
    def _known(self) -> dict[tuple[int, int], Category | None]:
        known: dict[tuple[int, int], Category | None] = {}
        for _, action, key, version, _, before, after in self._recording.memory_changes():
            known[key, version] = _IN_FILES[before]
            if action == Action.INCREMENT_VERSION.value:
                known[key, version + 1] = _IN_FILES[after]
        return known


class MemoryProfileTimeline:
    """The memory timeline of a recording's own process, on all devices.

    Args:
        recording: What was recorded.
    """

    def __init__(self, recording: _core.Profile) -> None:
        self._recording = recording
        self.categories = Categories(recording)

    @functools.cached_property
    def timeline(self) -> tuple[tuple[int, Action, tuple[int, int], int], ...]:
        """Each change as (time in nanoseconds, action, (block, version), bytes), in time order.

        What was there before the recording has the time -1.
        """
        changes = self._recording.memory_changes(process=self._recording.own_process())
        return tuple(
            (time, Action(action), (key, version), numbytes)
            for time, action, key, version, numbytes, _, _ in changes
        )
