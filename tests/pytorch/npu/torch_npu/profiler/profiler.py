"""Classes of the shape of torch_npu's."""

from __future__ import annotations

from enum import Enum
from typing import Any


class ProfilerActivity(Enum):
    """torch_npu binds such a class in C++."""

    CPU = 0
    NPU = 1


class ProfilerAction(Enum):
    """What to do in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class schedule:
    """A schedule, whose optional warm-up comes last."""

    def __init__(self, wait: int, active: int, warmup: int = 0, repeat: int = 0) -> None:
        self.wait, self.active, self.warmup, self.repeat = wait, active, warmup, repeat

    def __call__(self, step: int) -> ProfilerAction:
        """Returns the action for a step."""
        length = self.wait + self.active + self.warmup
        cycle, place = divmod(step, length)
        if (self.repeat and cycle >= self.repeat) or place < self.wait:
            return ProfilerAction.NONE
        if place < self.wait + self.warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD


class _ExperimentalConfig:
    """Options of msprof."""


class profile:
    """The profiler that stays where torch's collector does not reach the NPU."""

    def __init__(self, **_options: Any) -> None: ...


def tensorboard_trace_handler(*_arguments: Any) -> None:
    """Writes the folders of msprof."""


def analyse(*_arguments: Any) -> None:
    """Analyses a folder of msprof."""
