"""`PyTorchHost`: torch, recorded by an observer that its operators call."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

from mindprof import _core
from mindprof._frameworks import fast_ranges, optimizer_watch, torch_names
from mindprof._frameworks.call_level import level_outside
from mindprof._frameworks.torch_backend import reports_memory
from mindprof._frameworks.torch_sessions import (
    IS_BUSY,
    WITHOUT_TORCH,
    changes,
    kineto_is_claimed,
    torch_told,
)
from mindprof._settings.activity import ProfilerActivity
from mindprof._settings.options import SessionOptions

_MEMORY_IS_TAKEN = (
    "memory is not recorded: torch.profiler is running on this thread, or has left its callbacks "
    "there, and receives all of torch's memory reports. Start this profiler first, or use "
    "profile_memory=False."
)


class PyTorchHost:
    """torch on the CPU, recorded by the observer.

    The observer writes torch's operators into the recorder. If the embedded runtime is in use too,
    its operators write there themselves, so a session holds both.
    """

    def activities(self) -> set[ProfilerActivity]:
        """Returns the groups of activities that can be recorded."""
        return {ProfilerActivity.CPU}

    def has_device(self, name: str) -> bool:  # noqa: ARG002
        """Returns false, because the observer records no devices."""
        return False

    def prepare(self, options: SessionOptions) -> None:
        """Does nothing, because the observer was created when it was chosen."""

    def start(self, options: SessionOptions) -> _core.Session:
        """Starts a recording."""
        with changes:
            if not kineto_is_claimed():
                session = _core.Session(options, hears_torch=True)
                try:
                    self._observe(session, options)
                # A traceback would keep the session alive, and with it the recording.
                except BaseException:
                    session.stop()
                    raise
                return session
        warnings.warn(IS_BUSY.format(rest=WITHOUT_TORCH), stacklevel=level_outside())
        return _core.Session(options)

    def join(self, session: _core.Session, options: SessionOptions) -> None:
        """Adds torch's operators to a recording that started before torch was imported."""
        with changes:
            self._observe(session, options)

    def toggle(
        self, session: _core.Session, enabled: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Pauses or resumes a recording."""
        if ProfilerActivity.CPU in activities:
            session.resume() if enabled else session.pause()

    def _observe(self, session: _core.Session, options: SessionOptions) -> None:
        torch = sys.modules["torch"]
        memory = options.profile_memory and reports_memory(torch)
        # The session restores these parts of torch when it ends or is dropped. The names come
        # first: some of torch's functions cannot handle an object of ours in its slot.
        session.hold(torch_names.replaced(torch))
        session.hold(fast_ranges.replaced(torch))
        if memory and options.record_shapes:
            # Memory categories are derived from operators and their inputs.
            session.hold(optimizer_watch.replaced(torch))
        session.hold(torch_told(torch))
        if not session.observe_torch(memory):
            warnings.warn(_MEMORY_IS_TAKEN, stacklevel=level_outside())

    def stop(self, session: _core.Session) -> _core.Profile:
        """Stops a recording."""
        with changes:
            return session.stop()
