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
    operators_are_claimed,
    torch_told,
)
from mindprof._settings.activity import ProfilerActivity
from mindprof._settings.options import SessionOptions

_MEMORY_IS_TAKEN = (
    "memory is not recorded: torch.profiler is running on this thread, or has left its callbacks "
    "there, and receives all of torch's memory reports. Start this profiler first, or use "
    "profile_memory=False."
)

_MEMORY_HAS_GAPS = (
    "memory was not recorded while torch.profiler ran on the same thread, which happened {times}: "
    "it receives all of torch's memory reports. To record it, let mindprof replace torch.profiler: "
    "call mindprof.install(), or omit --no-install under mindprof run."
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
            if not operators_are_claimed():
                # Before the session starts, which would record these calls too.
                held = _replaced(options)
                session = _core.Session(options, hears_torch=True)
                try:
                    _observe(session, options, held)
                # A traceback would keep the session alive, and with it the recording.
                except BaseException:
                    held.clear()
                    session.stop()
                    raise
                return session
        warnings.warn(IS_BUSY.format(rest=WITHOUT_TORCH), stacklevel=level_outside())
        return _core.Session(options)

    def join(self, session: _core.Session, options: SessionOptions) -> None:
        """Adds torch's operators to a recording that started before torch was imported."""
        with changes:
            _observe(session, options, _replaced(options))

    def toggle(
        self, session: _core.Session, enabled: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Pauses or resumes a recording."""
        if ProfilerActivity.CPU in activities:
            session.resume() if enabled else session.pause()

    def stop(self, session: _core.Session) -> _core.Profile:
        """Stops a recording."""
        with changes:
            gaps = session.memory_gaps()
            profile = session.stop()
        if gaps:
            times = "once" if gaps == 1 else f"{gaps} times"
            warnings.warn(_MEMORY_HAS_GAPS.format(times=times), stacklevel=level_outside())
        return profile


def _replaced(options: SessionOptions) -> list[object]:
    """Replaces the parts of torch that a recording needs, while the result is held."""
    torch = sys.modules["torch"]
    # The names come first: some of torch's functions cannot handle an object of ours in its slot.
    ranges = fast_ranges.replaced(torch, kineto_is_claimed)
    held: list[object] = [*torch_names.replaced(torch), *ranges]
    if options.profile_memory and options.record_shapes and reports_memory(torch):
        # Memory categories are derived from operators and their inputs.
        held += optimizer_watch.replaced(torch)
    return [*held, *torch_told(torch)]


def _observe(session: _core.Session, options: SessionOptions, held: list[object]) -> None:
    """Lets the observer report to a session, which restores torch when it ends or is dropped."""
    memory = options.profile_memory and reports_memory(sys.modules["torch"])
    session.hold(held)
    if not session.observe_torch(memory):
        warnings.warn(_MEMORY_IS_TAKEN, stacklevel=level_outside())
