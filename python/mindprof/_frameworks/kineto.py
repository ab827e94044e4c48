"""`KinetoHost`: torch, recorded by its own collector, Kineto.

Kineto records devices, and works if the observer does not. Its results become a part of our
session, which runs at the same time and holds everything else that mindprof records. A process has
one Kineto, so only one of several simultaneous recordings can use it.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Iterable
from contextlib import suppress
from types import ModuleType
from typing import Any

from mindprof import _core
from mindprof._frameworks import torch_names
from mindprof._frameworks.call_level import level_outside
from mindprof._frameworks.kineto_config import kineto_activities, kineto_config, records_all_threads
from mindprof._frameworks.kineto_results import check_results
from mindprof._frameworks.pytorch import PyTorchHost
from mindprof._frameworks.torch_backend import observer_works, supported_devices, torch_version
from mindprof._frameworks.torch_sessions import (
    BY_OBSERVER,
    IS_BUSY,
    WITHOUT_TORCH,
    Collection,
    changes,
    claim_kineto,
    collection_of,
    give_kineto_back,
    is_collected,
    kineto_is_claimed,
    running_collection,
    tell_torch,
)
from mindprof._settings.activity import DEVICE_NAMES, ProfilerActivity
from mindprof._settings.options import SessionOptions

_IS_LOST = (
    "torch's events are lost: torch.profiler was started inside this recording, which torch does "
    "not support, or a recording of memory was stopped on another thread than it was started on."
)


_ENDED_BEFORE = (
    "torch was recorded until the interpreter began to exit: its later events are missing."
)

_TOGGLES_ALL_THREADS = (2, 15)
_CANNOT_BE_TOGGLED = (
    "collection continues: this torch cannot toggle it for all threads. To toggle it, record only "
    "the current thread with mindprof.ExperimentalConfig(profile_all_threads=False)."
)


# Threads with a collection of ours that was stopped on another thread: torch can stop the
# collection of a single thread only there. A forked child ignores them, because Kineto does not
# work in it.
_left: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
os.register_at_fork(after_in_child=_left.clear)


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
        # If Kineto is in use, `start` warns. It is claimed meanwhile, because preparing it may
        # stop a collection of someone else.
        if _is_busy() or not claim_kineto(Collection(lambda: None, options, lambda: None)):
            return
        try:
            _prepare(options)
        except RuntimeError:
            return
        finally:
            give_kineto_back()
        self._is_prepared = True

    def start(self, options: SessionOptions) -> _core.Session:
        """Starts a recording."""
        with changes:
            # Checked before there is a session, after which torch's own profiler and ours look
            # the same.
            if not _is_busy():
                # Kineto records the Python calls, so the session must not record them too.
                session = _core.Session(options.without_stack())
                if self._collect(session, options):
                    return session
                session.stop()
            # During a recording by Kineto there is no probe, which that would record.
            can_observe = not kineto_is_claimed() and observer_works(sys.modules["torch"])
        _warn(IS_BUSY.format(rest=BY_OBSERVER if can_observe else WITHOUT_TORCH))
        return self._observer.start(options) if can_observe else _core.Session(options)

    def join(self, session: _core.Session, options: SessionOptions) -> None:
        """Adds torch's operators to a recording that started before torch was imported."""
        with changes:
            # The session records Python calls already.
            has_kineto = not _is_busy() and self._collect(session, options.without_stack())
        if not has_kineto:
            _warn(IS_BUSY.format(rest=WITHOUT_TORCH))

    def _collect(self, session: _core.Session, options: SessionOptions) -> bool:
        """Starts Kineto for a session, and returns false if it is in use."""
        own = Collection(weakref.ref(session), options, weakref.ref(threading.current_thread()))
        if not claim_kineto(own):
            return False
        torch = sys.modules["torch"]
        session.hold(torch_names.replaced(torch))
        try:
            if not self._is_prepared:
                _prepare(options)
            torch._C._autograd._enable_profiler(
                kineto_config(torch, options), kineto_activities(torch, options)
            )
            # A profiler that is dropped while it records must not block Kineto forever.
            weakref.finalize(session, _let_go, own).atexit = False
        except BaseException as error:
            is_refused = isinstance(error, RuntimeError)
            # A signal handler may have raised after Kineto was started.
            if not is_refused and torch_names.runs_own_profiler(torch):
                with suppress(RuntimeError):
                    torch._C._autograd._disable_profiler()
            give_kineto_back()
            if not is_refused:
                raise
            return False
        finally:
            self._is_prepared = False
        tell_torch(torch, is_profiling=True)
        return True

    def stop(self, session: _core.Session) -> _core.Profile:
        """Stops a recording."""
        # `None` during interpreter shutdown, after the collection was stopped at exit.
        torch = sys.modules.get("torch")
        if session in _ended:
            own, result = _ended.pop(session)
            _warn(_ENDED_BEFORE)
        elif torch is not None and (found := collection_of(session)) is not None:
            own = found
            _wait_for_devices(torch, own.options)
            result = _end(torch)
        else:
            return self._observer.stop(session)
        if result is None:
            _leave(own)
        try:
            profile = session.stop_with(result, own.options.with_stack)
        finally:
            if torch is not None:
                _tell_end(torch)
        if result is None:
            _warn(_IS_LOST)
        return profile

    def toggle(
        self, session: _core.Session, enabled: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Pauses or resumes a recording."""
        torch = sys.modules["torch"]
        own = collection_of(session)
        if own is None:
            self._observer.toggle(session, enabled, activities)
        elif records_all_threads(own.options) and torch_version(torch) < _TOGGLES_ALL_THREADS:
            # This torch cannot resume a collection of all threads.
            if not enabled:
                _warn(_CANNOT_BE_TOGGLED)
        else:
            groups = torch.profiler.ProfilerActivity
            names = {getattr(groups, group.name) for group in activities}
            torch._C._autograd._toggle_collection_dynamic(enabled, names)
            self._observer.toggle(session, enabled, activities)


def _is_busy() -> bool:
    """Returns whether torch is being recorded already, by us or by someone else."""
    if kineto_is_claimed() or _core.is_observing_torch():
        return True
    torch = sys.modules["torch"]
    _end_what_was_left(torch)
    # torch answers for this thread only; the flag covers all threads.
    is_told = getattr(torch.autograd.profiler, "_is_profiler_enabled", False)
    return bool(is_told and not _core.is_profiling()) or torch_names.runs_own_profiler(torch)


def _leave(own: Collection) -> None:
    """Remembers that a collection may still run on the thread that started it."""
    began_on = own.thread()
    if began_on is not None and began_on is not threading.current_thread():
        _left.add(began_on)


def _end_what_was_left(torch: ModuleType) -> None:
    """Stops a collection of ours that still runs on this thread, and drops its results."""
    thread = threading.current_thread()
    if thread in _left:
        _left.discard(thread)
        if torch_names.runs_own_profiler(torch):
            with suppress(RuntimeError):
                torch._C._autograd._disable_profiler()


def _prepare(options: SessionOptions) -> None:
    torch: Any = sys.modules["torch"]
    check_results(torch)
    native = torch._C._autograd
    wanted = kineto_config(torch, options), kineto_activities(torch, options)
    try:
        native._prepare_profiler(*wanted)
    except RuntimeError:
        # Before torch 2.15, a prepared collection that never started must be stopped first.
        native._enable_profiler(*wanted)
        native._disable_profiler()
        native._prepare_profiler(*wanted)


def _result(torch: ModuleType) -> Any:
    """Stops Kineto, and returns its results, or `None` if someone else stopped it before."""
    try:
        result = torch._C._autograd._disable_profiler()
    except RuntimeError:
        return None
    # The result of no collection has no start time.
    return result if result.trace_start_ns() else None


def _wait_for_devices(torch: ModuleType, options: SessionOptions) -> None:
    """Synchronizes the devices, so that all launched work is recorded."""
    for group in options.activities:
        device = getattr(torch, DEVICE_NAMES.get(group, ""), None)
        if device is not None and getattr(device, "is_initialized", lambda: True)():
            device.synchronize()


def _end(torch: ModuleType) -> Any:
    """Stops and releases Kineto, and returns its results."""
    result = _result(torch)
    # If Kineto still runs on another thread, torch itself reports that from now on.
    give_kineto_back()
    return result


# Collections that were stopped at exit, for profilers that stop even later. The references are
# strong, because weak ones do not work while modules are being torn down.
_ended: dict[_core.Session, tuple[Collection, Any]] = {}


@atexit.register
def _end_at_exit() -> None:
    """Stops a recording at exit, because torch crashes if it is unloaded while it records.

    It is registered early and thus called late, after exit handlers of the program that may stop
    its profilers.
    """
    own = running_collection()
    torch = sys.modules.get("torch")
    if own is None or torch is None:
        return
    with suppress(RuntimeError):
        # A device that has failed raises again.
        _wait_for_devices(torch, own.options)
    session, result = own.session(), _end(torch)
    if session is not None:
        _ended[session] = own, result


def _let_go(own: Collection) -> None:
    """Stops the collection of a session that was dropped, unless it has stopped already."""
    if not is_collected(own):
        return
    torch = sys.modules["torch"]
    with suppress(RuntimeError):
        torch._C._autograd._disable_profiler()
    give_kineto_back()
    _tell_end(torch)


def _tell_end(torch: ModuleType) -> None:
    """Notifies torch of the end of recording, if neither we nor torch's profiler record."""
    if not _core.is_profiling() and not torch_names.runs_own_profiler(torch):
        tell_torch(torch, is_profiling=False)


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=level_outside())
