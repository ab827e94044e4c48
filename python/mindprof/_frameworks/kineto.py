"""`KinetoHost`: the torch of this process, recorded by torch's own collector, Kineto.

Kineto sees devices, and works where the observer does not. It collects; what comes after is ours:
its results become a part of the session that runs beside it, which holds what `mindprof` records
itself. There is one Kineto in a process, so that of several recordings at a time one has it.
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
from mindprof._frameworks.call_level import level_outside
from mindprof._frameworks.kineto_config import is_of_all_threads, kineto_activities, kineto_config
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
    observed,
    running_collection,
    tell_torch,
)
from mindprof._settings.activity import DEVICE_NAMES, ProfilerActivity
from mindprof._settings.options import SessionOptions

_IS_LOST = (
    "what torch recorded is lost: torch.profiler was started inside of this recording, which torch "
    "has no room for, or a recording of memory was ended on another thread than it began on."
)


_ENDED_BEFORE = (
    "torch was recorded until the interpreter began to exit: what it ran after that is missing."
)

_TOGGLES_ALL_THREADS = (2, 15)
_CANNOT_BE_TOGGLED = (
    "collection goes on: this torch cannot toggle it for all threads. Record the thread alone, by "
    "mindprof.ExperimentalConfig(profile_all_threads=False), to toggle it."
)


# The threads on which a collection of ours goes on that was ended elsewhere: torch ends one of a
# thread there alone. A forked child leaves it be, since Kineto does not work on there.
_left: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
os.register_at_fork(after_in_child=_left.clear)


class KinetoHost:
    """torch, on the CPU and on its devices.

    Args:
        observer: What records torch while Kineto is taken.
    """

    def __init__(self, observer: PyTorchHost) -> None:
        self._observer = observer
        self._is_prepared = False

    def activities(self) -> set[ProfilerActivity]:
        """Returns the groups of activities that can be recorded here."""
        devices = supported_devices(sys.modules["torch"])
        found = {group for group, name in DEVICE_NAMES.items() if name in devices}
        return {ProfilerActivity.CPU, *found}

    def has_device(self, name: str) -> bool:
        """Returns whether torch can record devices of a kind here."""
        return name in supported_devices(sys.modules["torch"])

    def prepare(self, options: SessionOptions) -> None:
        """Has Kineto get ready, which takes long the first time; what it sees now is dropped."""
        # Whoever has it will be met again at the start, and told of. It is claimed for the time, as
        # what gets it ready may end what others have begun.
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
        """Begins a recording."""
        with changes:
            # Before there is a session: from then on torch's own profiler cannot be told from ours.
            if not _is_busy():
                # Python's calls are followed by one of the two alone, or else each call is there
                # twice.
                session = _core.Session(options.without_stack())
                if self._collect(session, options):
                    return session
                session.stop()
            # Beside a recording by Kineto there is no probe: what it runs would be in that.
            can_observe = not kineto_is_claimed() and observer_works(sys.modules["torch"])
        _warn(IS_BUSY.format(rest=BY_OBSERVER if can_observe else WITHOUT_TORCH))
        return self._observer.start(options) if can_observe else _core.Session(options)

    def join(self, session: _core.Session, options: SessionOptions) -> None:
        """Has a recording that began before torch was there hold what torch runs from now on."""
        with changes:
            # It follows Python's calls already.
            has_kineto = not _is_busy() and self._collect(session, options.without_stack())
        if not has_kineto:
            _warn(IS_BUSY.format(rest=WITHOUT_TORCH))

    def _collect(self, session: _core.Session, options: SessionOptions) -> bool:
        """Has Kineto collect for a session. Returns false if it is taken."""
        own = Collection(weakref.ref(session), options, weakref.ref(threading.current_thread()))
        if not claim_kineto(own):
            return False
        torch = sys.modules["torch"]
        try:
            if not self._is_prepared:
                _prepare(options)
            torch._C._autograd._enable_profiler(
                kineto_config(torch, options), kineto_activities(torch, options)
            )
        except BaseException as error:
            give_kineto_back()
            if not isinstance(error, RuntimeError):
                raise
            return False
        finally:
            self._is_prepared = False
        # A profiler that is let go of while it records does not keep Kineto for good.
        weakref.finalize(session, _let_go, own).atexit = False
        tell_torch(torch, is_profiling=True)
        return True

    def stop(self, session: _core.Session) -> _core.Profile:
        """Ends a recording."""
        # None when the interpreter is about to be gone; it had the collection ended before.
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
        """Has a recording leave out what begins from now on, or take it in again."""
        torch = sys.modules["torch"]
        own = collection_of(session)
        if own is None:
            self._observer.toggle(session, enabled, activities)
        elif is_of_all_threads(own.options) and torch_version(torch) < _TOGGLES_ALL_THREADS:
            # There a collection of all threads that is stopped cannot go on.
            if not enabled:
                _warn(_CANNOT_BE_TOGGLED)
        else:
            groups = torch.profiler.ProfilerActivity
            names = {getattr(groups, group.name) for group in activities}
            torch._C._autograd._toggle_collection_dynamic(enabled, names)
            self._observer.toggle(session, enabled, activities)


def _is_busy() -> bool:
    """Returns whether Kineto cannot be had: torch is recorded already, by whomever."""
    if kineto_is_claimed() or observed:
        return True
    torch = sys.modules["torch"]
    _end_what_was_left(torch)
    # The latter is of this thread alone; torch's own code keeps the former for all of them.
    is_told = getattr(torch.autograd.profiler, "_is_profiler_enabled", False)
    return bool(is_told and not _core.is_profiling()) or torch.autograd._profiler_enabled()


def _leave(own: Collection) -> None:
    """Notes that a collection of ours may go on, on the thread that began it."""
    began_on = own.thread()
    if began_on is not None and began_on is not threading.current_thread():
        _left.add(began_on)


def _end_what_was_left(torch: ModuleType) -> None:
    """Ends a collection of ours that goes on on this thread, and drops it."""
    thread = threading.current_thread()
    if thread in _left:
        _left.discard(thread)
        if torch.autograd._profiler_enabled():
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
        # Before torch 2.15 one that was prepared and never started has to be ended first.
        native._enable_profiler(*wanted)
        native._disable_profiler()
        native._prepare_profiler(*wanted)


def _result(torch: ModuleType) -> Any:
    """Ends what Kineto collects. Returns what it hands over, None if it was ended by others."""
    try:
        result = torch._C._autograd._disable_profiler()
    except RuntimeError:
        return None
    # Of no collection, it is the result that began at no time.
    return result if result.trace_start_ns() else None


def _wait_for_devices(torch: ModuleType, options: SessionOptions) -> None:
    """Waits until what devices were asked for is done, so that it is recorded."""
    for group in options.activities:
        device = getattr(torch, DEVICE_NAMES.get(group, ""), None)
        if device is not None and getattr(device, "is_initialized", lambda: True)():
            device.synchronize()


def _end(torch: ModuleType) -> Any:
    """Ends what Kineto collects for us, and returns what it hands over."""
    result = _result(torch)
    # Where Kineto still runs, on another thread, torch itself says so from now on.
    give_kineto_back()
    return result


# What was ended because the interpreter ends, for those that are stopped still later. No weak
# references: they know nothing any more where modules are being taken down.
_ended: dict[_core.Session, tuple[Collection, Any]] = {}


@atexit.register
def _end_at_exit() -> None:
    """Ends a recording that nobody stopped: torch crashes when it is unloaded while it records.

    Early to be registered, and so late to be called: a program may stop its profilers at its exit.
    """
    own = running_collection()
    torch = sys.modules.get("torch")
    if own is None or torch is None:
        return
    with suppress(RuntimeError):
        # A device that has failed says so again.
        _wait_for_devices(torch, own.options)
    session, result = own.session(), _end(torch)
    if session is not None:
        _ended[session] = own, result


def _let_go(own: Collection) -> None:
    """Ends what Kineto collects for a session that is no more, unless it ended by itself."""
    if not is_collected(own):
        return
    torch = sys.modules["torch"]
    with suppress(RuntimeError):
        torch._C._autograd._disable_profiler()
    give_kineto_back()
    _tell_end(torch)


def _tell_end(torch: ModuleType) -> None:
    """Has torch know that nothing of ours records, if so, and nothing of its own on this thread."""
    if not _core.is_profiling() and not torch.autograd._profiler_enabled():
        tell_torch(torch, is_profiling=False)


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=level_outside())
