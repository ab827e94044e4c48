"""The context of an activity: randomness, a folder, and the objects that must not outlive it."""

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
        """Makes the round fail if one of these objects outlives it."""
        self.watched += [weakref.ref(each) for each in objects]

    def chance(self, share: float) -> bool:
        """Returns True with this probability."""
        return self.random.random() < share


Activity = Callable[[Round], None]

#: The flags of a recording that can be written in every format.
ALL_FLAGS: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}
