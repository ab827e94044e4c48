"""`Host`: the protocol between profilers and the framework that runs operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mindprof import _core
from mindprof._settings.activity import ProfilerActivity
from mindprof._settings.options import SessionOptions


class Host(Protocol):
    """A framework whose operators can be recorded.

    Its operators reach the engine as they run, on any thread. Events that become known only at the
    end of a recording, such as those of a device, are attached to the session as separate parts
    before it stops.
    """

    def activities(self) -> set[ProfilerActivity]:
        """Returns the groups of activities that can be recorded."""
        ...

    def has_device(self, name: str) -> bool:
        """Returns whether a kind of device, by torch's name for it, can be recorded."""
        ...

    def prepare(self, options: SessionOptions) -> None:
        """Prepares for a recording, which may never start."""
        ...

    def start(self, options: SessionOptions) -> _core.Session:
        """Starts a recording."""
        ...

    def join(self, session: _core.Session, options: SessionOptions) -> None:
        """Adds this framework's operators to a recording that another framework started."""
        ...

    def toggle(
        self, session: _core.Session, enabled: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Pauses or resumes a recording."""
        ...

    def stop(self, session: _core.Session) -> _core.Profile:
        """Stops a recording, and returns all of its parts as one profile."""
        ...
