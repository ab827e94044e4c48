"""`DeviceHost`: torch's operators by the observer, and its devices by CUPTI or Kineto.

Only the device's work and the calls that launched it are recorded, which costs a fraction of what
it costs to have Kineto record operators too. The results become a part of the session when it
stops. Its runtime calls have the system's number of their thread, so an operator is found to own
the kernels that were launched on its thread while it ran.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from mindprof import _core
from mindprof._frameworks.call_level import level_outside
from mindprof._frameworks.kineto import KinetoHost
from mindprof._frameworks.kineto_collector import (
    devices_are_out_of_reach,
    drop_collection,
    end_collection,
    give_collection,
    kineto_is_busy,
    prepare_collection,
    start_collection,
    tell_end,
    toggle_collection,
)
from mindprof._frameworks.pytorch import PyTorchHost
from mindprof._frameworks.torch_sessions import Collection, changes, collection_of
from mindprof._settings.activity import ProfilerActivity
from mindprof._settings.options import SessionOptions

_WITHOUT_DEVICES = (
    "device events are recorded exclusively by another profiler: this recording has none. Stop the "
    "other profiler first, or remove this one under mindprof run."
)

_DEVICES_ARE_LOST = (
    "device events are lost: torch.profiler was started inside this recording, which torch does "
    "not support."
)


class DeviceHost:
    """torch on the CPU, recorded by the observer, and its devices, by CUPTI or Kineto.

    Args:
        observer: Records the operators.
        kineto: Records devices alone, if the user does not select the CPU.
    """

    def __init__(self, observer: PyTorchHost, kineto: KinetoHost) -> None:
        self._observer = observer
        self._kineto = kineto
        self._is_prepared = False

    def activities(self) -> set[ProfilerActivity]:
        """Returns the groups of activities that can be recorded."""
        return self._kineto.activities()

    def has_device(self, name: str) -> bool:
        """Returns whether torch can record a kind of device."""
        return self._kineto.has_device(name)

    def prepare(self, options: SessionOptions) -> None:
        """Prepares Kineto, which is slow the first time. Events before the start are dropped."""
        if devices_are_out_of_reach():
            return
        if ProfilerActivity.CPU in options.activities:
            is_prepared = prepare_collection(options.for_devices(), takes_records=True)
            self._is_prepared = is_prepared or self._is_prepared
        else:
            self._kineto.prepare(options)

    def start(self, options: SessionOptions) -> _core.Session:
        """Starts a recording."""
        if devices_are_out_of_reach():
            return self._start_without_devices(options)
        if ProfilerActivity.CPU not in options.activities:
            return self._kineto.start(options)
        with changes:
            # Kineto comes first: the session would record the calls that start it.
            own = self._collect(options)
            if own is None:
                # Before there is a session, because a warning may be an error.
                _warn(_WITHOUT_DEVICES)
                return self._observer.start(options)
            try:
                session = self._observer.start(options)
            except BaseException:
                drop_collection(own)
                raise
            give_collection(own, session)
            return session

    def _start_without_devices(self, options: SessionOptions) -> _core.Session:
        """Starts a recording that has no devices; one of devices alone records nothing."""
        if ProfilerActivity.CPU in options.activities:
            return self._observer.start(options)
        session = _core.Session(options.without_stack())
        session.pause()
        return session

    def join(self, session: _core.Session, options: SessionOptions) -> None:
        """Adds torch's operators to a recording that started before torch was imported."""
        if ProfilerActivity.CPU not in options.activities:
            self._kineto.join(session, options)
            return
        with changes:
            own = self._collect(options)
            if own is not None:
                give_collection(own, session)
            self._observer.join(session, options)
        if own is None:
            _warn(_WITHOUT_DEVICES)

    def _collect(self, options: SessionOptions) -> Collection | None:
        """Starts Kineto for the devices, and returns `None` if it is in use."""
        is_prepared, self._is_prepared = self._is_prepared, False
        if kineto_is_busy():
            return None
        return start_collection(options.for_devices(), is_prepared, takes_records=True)

    def stop(self, session: _core.Session) -> _core.Profile:
        """Stops a recording."""
        collected = end_collection(session, lambda: self._observer.stop(session))
        if collected is None:
            return self._observer.stop(session)
        try:
            if collected.result is not None and collected.records is not None:
                profile = session.stop_with_records(collected.records)
            else:
                profile = session.stop_with_devices(collected.result)
        finally:
            collected.release()
            tell_end()
        collected.tell_failure()
        if collected.result is None:
            _warn(_DEVICES_ARE_LOST)
        return profile

    def toggle(
        self, session: _core.Session, enabled: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Pauses or resumes a recording."""
        groups = set(activities)
        self._observer.toggle(session, enabled, groups)
        devices = groups - {ProfilerActivity.CPU}
        own = collection_of(session)
        if devices and own is not None:
            toggle_collection(own, enabled, devices)


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=level_outside())
