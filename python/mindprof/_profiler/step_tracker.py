"""`KinetoStepTracker`: the step count of a program of which several parts count steps.

If torch is loaded, profilers count in torch's own tracker, because its optimizers and Kineto's
daemon do so too.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from typing import Any, ClassVar


class KinetoStepTracker:
    """Counts steps for each requester. The program's step is the highest count.

    Example:
        >>> KinetoStepTracker.init_step_count("doc")
        >>> before = KinetoStepTracker.current_step()
        >>> KinetoStepTracker.increment_step("doc") - before
        1
        >>> KinetoStepTracker.erase_step_count("doc")
        True
    """

    _current_step: ClassVar[int] = 0
    _step_dict: ClassVar[defaultdict[str, int]] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Adds `requester` with the current step as its count."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Removes `requester`, and returns whether it was known."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Counts one step of `requester`, and returns the program's step."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        step = max(cls._step_dict.values())
        if step > cls._current_step + 1:
            warnings.warn(
                "Profiler step count has increased more than 1 - "
                f"current_step = {cls._current_step} step dict =  {cls._step_dict}",
                stacklevel=2,
            )
        cls._current_step = max(step, cls._current_step)
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """Returns the program's step."""
        return cls._current_step


def program_step_tracker() -> type[KinetoStepTracker]:
    """Returns the tracker of the program's steps: torch's if torch is loaded, else ours."""
    torchs: Any = sys.modules.get("torch.autograd.profiler")
    found: type[KinetoStepTracker] = getattr(torchs, "KinetoStepTracker", KinetoStepTracker)
    return found
