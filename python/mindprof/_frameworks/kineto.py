"""`KinetoHost`: torch, recorded by its own collector, Kineto.

Kineto works if the observer does not, and records devices that run without the CPU's operators. Its
results become a part of our session, which runs at the same time and holds everything else that
mindprof records.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

from mindprof import _core
from mindprof._frameworks import torch_names
from mindprof._frameworks.call_level import level_outside
from mindprof._frameworks.kineto_collector import (
    end_collection,
    give_collection,
    kineto_is_busy,
    prepare_collection,
    start_collection,
    tell_end,
    toggle_collection,
)
from mindprof._frameworks.pytorch import PyTorchHost
from mindprof._frameworks.torch_backend import observer_works, supported_devices
from mindprof._frameworks.torch_sessions import (
    BY_OBSERVER,
    IS_BUSY,
    WITHOUT_TORCH,
    changes,
    collection_of,
    operators_are_claimed,
    tell_torch,
)
from mindprof._settings.activity import DEVICE_NAMES, ProfilerActivity
from mindprof._settings.options import SessionOptions

_IS_LOST = (
    "torch's events are lost: torch.profiler was started inside this recording, which torch does "
    "not support, or a recording of memory was stopped on another thread than it was started on."
)


_RECORDS_ALL = (
    "only= has no effect on torch's own collector, which records torch here because the observer "
    "cannot be used: remove only=, or see mindprof's log for the reason."
)


class KinetoHost:
    """torch on the CPU and on its devices, recorded by Kineto.

    Args:
        observer: Records torch while Kineto is in use.
    """

    def __init__(self, observer: PyTorchHost) -> None:
        self._observer = observer
        self._is_prepared = False

    def activities(self) -> set[ProfilerActivity]:
        """Returns the groups of activities that can be recorded."""
        devices = supported_devices(sys.modules["torch"])
        found = {group for group, name in DEVICE_NAMES.items() if name in devices}
        return {ProfilerActivity.CPU, *found}

    def has_device(self, name: str) -> bool:
        """Returns whether torch can record a kind of device."""
        return name in supported_devices(sys.modules["torch"])

    def prepare(self, options: SessionOptions) -> None:
        """Prepares Kineto, which is slow the first time. Events before the start are dropped."""
        self._is_prepared = prepare_collection(options) or self._is_prepared

    def start(self, options: SessionOptions) -> _core.Session:
        """Starts a recording.

        Raises:
            RuntimeError: Only some operators are wanted.
        """
        if options.only:
            raise RuntimeError(_RECORDS_ALL)
        with changes:
            # Checked before there is a session, after which torch's own profiler and ours look
            # the same.
            if not _is_busy(options):
                # Kineto records the Python calls, so the session must not record them too.
                session = _core.Session(options.without_stack())
                if ProfilerActivity.CPU not in options.activities:
                    # The observer may run for another recording and reports to all of them.
                    session.pause()
                if self._collect(session, options):
                    return session
                session.stop()
            # During a recording by Kineto there is no probe, which that would record.
            can_observe = not operators_are_claimed() and observer_works(sys.modules["torch"])
        _warn(IS_BUSY.format(rest=BY_OBSERVER if can_observe else WITHOUT_TORCH))
        return self._observer.start(options) if can_observe else _core.Session(options)

    def join(self, session: _core.Session, options: SessionOptions) -> None:
        """Adds torch's operators to a recording that started before torch was imported."""
        if options.only:
            _warn(_RECORDS_ALL)
            return
        with changes:
            # The session records Python calls already.
            has_kineto = not _is_busy(options) and self._collect(session, options.without_stack())
        if not has_kineto:
            _warn(IS_BUSY.format(rest=WITHOUT_TORCH))

    def _collect(self, session: _core.Session, options: SessionOptions) -> bool:
        """Starts Kineto for a session, and returns false if it is in use."""
        torch = sys.modules["torch"]
        session.hold(torch_names.replaced(torch))
        is_prepared, self._is_prepared = self._is_prepared, False
        own = start_collection(options, is_prepared)
        if own is None:
            return False
        give_collection(own, session)
        tell_torch(torch, is_profiling=True)
        return True

    def stop(self, session: _core.Session) -> _core.Profile:
        """Stops a recording."""
        collected = end_collection(session)
        if collected is None:
            return self._observer.stop(session)
        try:
            profile = session.stop_with(collected.result, collected.options.with_stack)
        finally:
            collected.release()
            tell_end()
        collected.tell_failure()
        if collected.result is None:
            _warn(_IS_LOST)
        return profile

    def toggle(
        self, session: _core.Session, enabled: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Pauses or resumes a recording."""
        own = collection_of(session)
        if own is None or toggle_collection(own, enabled, activities):
            self._observer.toggle(session, enabled, activities)


def _is_busy(options: SessionOptions) -> bool:
    """Returns whether what a recording needs is recorded already, by us or by someone else."""
    has_operators = ProfilerActivity.CPU in options.activities
    return (has_operators and _core.is_observing_torch()) or kineto_is_busy()


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=level_outside())
