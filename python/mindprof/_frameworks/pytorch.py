"""`PyTorchHost`: the torch of this process, whose operators an observer of ours hears of."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Iterable

from mindprof import _core
from mindprof._frameworks import fast_ranges, optimizer_watch
from mindprof._frameworks.call_level import level_outside
from mindprof._frameworks.torch_backend import memory_is_told
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
    "memory is not recorded: torch.profiler is running on this thread and has torch's reports of "
    "memory to itself. Start this profiler first, or use profile_memory=False."
)


class PyTorchHost:
    """torch, on the CPU.

    Its operators write into the recorder by the observer, and those of `mindtorch_v2`, where both
    are in use, by themselves, so that a session holds everything there is.
    """

    def activities(self) -> set[ProfilerActivity]:
        """Returns the groups of activities that can be recorded here."""
        return {ProfilerActivity.CPU}

    def has_device(self, name: str) -> bool:  # noqa: ARG002
        """Returns that none is recorded."""
        return False

    def prepare(self, options: SessionOptions) -> None:
        """Does nothing: the observer was made when it was chosen."""

    def start(self, options: SessionOptions) -> _core.Session:
        """Begins a recording."""
        with changes:
            if not kineto_is_claimed():
                session = _core.Session(options, hears_torch=True)
                self._observe(session, options)
                return session
        warnings.warn(IS_BUSY.format(rest=WITHOUT_TORCH), stacklevel=level_outside())
        return _core.Session(options)

    def join(self, session: _core.Session, options: SessionOptions) -> None:
        """Has a recording that began before torch was there hold what torch runs from now on."""
        with changes:
            self._observe(session, options)

    def toggle(
        self, session: _core.Session, enabled: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Has a recording leave out what begins from now on, or take it in again."""
        if ProfilerActivity.CPU in activities:
            session.resume() if enabled else session.pause()

    def _observe(self, session: _core.Session, options: SessionOptions) -> None:
        torch = sys.modules["torch"]
        memory = options.profile_memory and memory_is_told(torch)
        _add(session)
        if not session.observe_torch(memory):
            warnings.warn(_MEMORY_IS_TAKEN, stacklevel=level_outside())
        fast_ranges.replace(torch)
        if memory and options.record_shapes:
            # What memory is for is concluded from operators and what they were given.
            optimizer_watch.replace(torch)
        tell_torch(torch, is_profiling=True)

    def stop(self, session: _core.Session) -> _core.Profile:
        """Ends a recording."""
        with changes:
            profile = session.stop()
            end = observed.pop(session, None)
            if end is not None:
                end.detach()
            if not _core.is_profiling():
                _leave()
        return profile


def _add(session: _core.Session) -> None:
    """Notes that the observer was attached for a recording, which may be let go of unended."""
    end = weakref.finalize(session, _let_go)
    end.atexit = False
    observed[session] = end


def _let_go() -> None:
    """Leaves torch as it was, if that recording was the last one."""
    # It may be called anywhere, also where waiting would be for ever: who begins or ends at this
    # very moment leaves torch as it is to be.
    if not changes.acquire(blocking=False):
        return
    try:
        # The engine still has a recording whose object is about to go.
        if not list(observed) and not kineto_is_claimed():
            _leave()
    finally:
        changes.release()


def _leave() -> None:
    """Puts back what stood in torch's places."""
    torch = sys.modules.get("torch")
    if torch is None:
        # The interpreter is about to be gone, and most of its modules are.
        return
    fast_ranges.restore(torch)
    optimizer_watch.restore(torch)
    if not torch.autograd._profiler_enabled():
        tell_torch(torch, is_profiling=False)
