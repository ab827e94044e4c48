"""The memory timeline of a recording: every change of every block, with categories.

The classes follow those of `torch.profiler._memory_profiler`; the engine computes the timeline.
"""

from __future__ import annotations

import enum
import functools

from mindprof import _core


class Category(enum.Enum):
    """The purpose of a block of memory. An unknown purpose is `None`."""

    INPUT = enum.auto()
    TEMPORARY = enum.auto()
    ACTIVATION = enum.auto()
    GRADIENT = enum.auto()
    AUTOGRAD_DETAIL = enum.auto()
    PARAMETER = enum.auto()
    OPTIMIZER_STATE = enum.auto()


class Action(enum.Enum):
    """A change of a block of memory."""

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
    """The category of each version of each block."""

    def __init__(self, recording: _core.Profile) -> None:
        self._recording = recording

    def get(self, key: int, version: int) -> Category | None:
        """Returns the category of a version of a block, or `None` if it is unknown.

        Args:
            key: The id of the block in the timeline.
            version: The number of earlier writes to the block.
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
    """The memory timeline of the recording process, on all devices.

    `profile.mem_tl` holds it after `export_memory_timeline`.

    Args:
        recording: A finished recording.
    """

    def __init__(self, recording: _core.Profile) -> None:
        self._recording = recording
        self.categories = Categories(recording)

    @functools.cached_property
    def timeline(self) -> tuple[tuple[int, Action, tuple[int, int], int], ...]:
        """All changes as (time in nanoseconds, action, (block, version), bytes), in time order.

        Blocks that existed before the recording have the time -1.
        """
        changes = self._recording.memory_changes(process=self._recording.own_process())
        return tuple(
            (time, Action(action), (key, version), numbytes)
            for time, action, key, version, numbytes, _, _ in changes
        )
