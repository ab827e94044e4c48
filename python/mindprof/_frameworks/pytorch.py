"""`PyTorchHost`: torch, recorded by an observer that its operators call."""

from __future__ import annotations

import sys
import warnings
import weakref
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
    observed,
    tell_torch,
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
                self._observe(session, options)
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
        _add(session)
        # Before there is an object in torch's slot, which some of these functions cannot handle.
        torch_names.replace(torch)
        if not session.observe_torch(memory):
            warnings.warn(_MEMORY_IS_TAKEN, stacklevel=level_outside())
        fast_ranges.replace(torch)
        if memory and options.record_shapes:
            # Memory categories are derived from operators and their inputs.
            optimizer_watch.replace(torch)
        tell_torch(torch, is_profiling=True)

    def stop(self, session: _core.Session) -> _core.Profile:
        """Stops a recording."""
        with changes:
            profile = session.stop()
            end = observed.pop(session, None)
            if end is not None:
                end.detach()
            if not _core.is_profiling():
                _leave()
        return profile


def _add(session: _core.Session) -> None:
    """Adds a session to those of the observer, with a finalizer in case it is never stopped."""
    end = weakref.finalize(session, _let_go)
    end.atexit = False
    observed[session] = end


def _let_go() -> None:
    """Restores torch, if the dropped recording was the last one."""
    # A finalizer may run anywhere, so it must not wait for the lock. The thread that holds it is
    # starting or stopping a recording, and leaves torch in the right state.
    if not changes.acquire(blocking=False):
        return
    try:
        # `is_profiling` would still count the session that is being dropped.
        if not list(observed) and not kineto_is_claimed():
            _leave()
    finally:
        changes.release()


def _leave() -> None:
    """Restores the parts of torch that were replaced."""
    torch = sys.modules.get("torch")
    if torch is None:
        # The interpreter is shutting down and has removed most modules.
        return
    fast_ranges.restore(torch)
    optimizer_watch.restore(torch)
    torch_names.restore()
    if not torch_names.runs_own_profiler(torch):
        tell_torch(torch, is_profiling=False)
