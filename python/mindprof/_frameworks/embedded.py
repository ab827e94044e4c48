"""`EmbeddedHost`: `mindtorch_v2`, the runtime inside of the engine."""

from __future__ import annotations

from collections.abc import Iterable

from mindprof import _core
from mindprof._settings.activity import ProfilerActivity
from mindprof._settings.options import SessionOptions


class EmbeddedHost:
    """The runtime that comes with the package. It works on the CPU alone, without a device.

    Its operators write into the recorder themselves, so a session holds everything there is.
    """

    def activities(self) -> set[ProfilerActivity]:
        """Returns the groups of activities that can be recorded here."""
        return {ProfilerActivity.CPU}

    def has_device(self, name: str) -> bool:  # noqa: ARG002
        """Returns that there is none."""
        return False

    def prepare(self, options: SessionOptions) -> None:
        """Does nothing: the engine is ready at once."""

    def start(self, options: SessionOptions) -> _core.Session:
        """Begins a recording."""
        return _core.Session(options)

    def join(self, session: _core.Session, options: SessionOptions) -> None:
        """Does nothing: every session holds these operators."""

    def toggle(
        self, session: _core.Session, enabled: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Has a recording leave out what begins from now on, or take it in again."""
        if ProfilerActivity.CPU in activities:
            session.resume() if enabled else session.pause()

    def stop(self, session: _core.Session) -> _core.Profile:
        """Ends a recording."""
        return session.stop()
