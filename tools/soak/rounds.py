"""What an activity is given: chance, a folder of its own, and a way to say what must die."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any


@dataclass
class Round:
    """One round of a run."""

    random: Random
    folder: Path
    watched: list[weakref.ref[Any]] = field(default_factory=list)

    def watch(self, *objects: Any) -> None:
        """Has the round fail if one of these objects is still there after it."""
        self.watched += [weakref.ref(each) for each in objects]

    def chance(self, share: float) -> bool:
        """Returns True in this share of all cases."""
        return self.random.random() < share


Activity = Callable[[Round], None]

#: What the most formats need of a recording.
ALL_FLAGS: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}
