"""`Host`: what a profiler needs to know of whatever runs operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mindprof import _core
from mindprof._settings.activity import ProfilerActivity
from mindprof._settings.options import SessionOptions


class Host(Protocol):
    """A runtime whose operators can be recorded.

    Its operators reach the engine as they run, on any thread. What only comes to light when a
    recording ends, such as the work of a device, is handed to the session as parts of their own
    before it is stopped.
    """

    def activities(self) -> set[ProfilerActivity]:
        """Returns the groups of activities that can be recorded here."""
        ...

    def has_device(self, name: str) -> bool:
        """Returns whether devices of a kind, by torch's name for it, work beside the host."""
        ...

    def prepare(self, options: SessionOptions) -> None:
        """Gets ready for a recording that is to begin soon, or never."""
        ...

    def start(self, options: SessionOptions) -> _core.Session:
        """Begins a recording."""
        ...

    def join(self, session: _core.Session, options: SessionOptions) -> None:
        """Has a recording that another host began hold what this one runs from now on."""
        ...

    def toggle(
        self, session: _core.Session, enabled: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Has a recording leave out what begins from now on, or take it in again."""
        ...

    def stop(self, session: _core.Session) -> _core.Profile:
        """Ends a recording that `start` began, and returns all of its parts as one profile."""
        ...
