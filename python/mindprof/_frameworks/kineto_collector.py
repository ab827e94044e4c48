"""One collection by Kineto, torch's own collector: preparing, starting, ending and losing it.

A process has one Kineto, so only one of several simultaneous recordings can use it. `KinetoHost`
has it record torch as a whole, `DeviceHost` only the devices.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

from mindprof import _core
from mindprof._frameworks import torch_names
from mindprof._frameworks.call_level import level_outside
from mindprof._frameworks.device_records import (
    RecordsOfCollection,
    activities_that_hold_kineto,
    can_be_alone,
    refuse,
)
from mindprof._frameworks.kineto_config import kineto_activities, kineto_config, records_all_threads
from mindprof._frameworks.kineto_results import check_results
from mindprof._frameworks.torch_backend import torch_version
from mindprof._frameworks.torch_sessions import (
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

_TOGGLES_ALL_THREADS = (2, 15)
_CANNOT_BE_TOGGLED = (
    "collection continues: this torch cannot toggle it for all threads. To toggle it, record only "
    "the current thread with mindprof.ExperimentalConfig(profile_all_threads=False)."
)

_CANNOT_BE_RESUMED = (
    "device events are not recorded after the pause: something else in this process uses CUPTI now."
)

_DEVICE_FAILED = "device events may be missing: waiting for the device failed: {error}"

_ENDED_BEFORE = (
    "torch was recorded until the interpreter began to exit: its later events are missing."
)

# The activities that Kineto was prepared for last. Others than the ones of a recording may be
# prepared before it starts.
_prepared: set[Any] = set()

# Threads with a collection of ours that was stopped on another thread: torch can stop the
# collection of a single thread only there. A forked child ignores them, because Kineto does not
# work in it.
_left: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
os.register_at_fork(after_in_child=_left.clear)

# What has torch's profilers wait while we start CUPTI or detach it. It stays, because any thread
# may use one at any time.
_watches: list[_core.InterposedFunction] = []

# Set while Kineto may be prepared or collecting for us.
_may_be_ours = threading.Event()

# The sessions whose devices another profiler has got, and what they wanted to collect.
_without_devices: weakref.WeakKeyDictionary[_core.Session, SessionOptions] = (
    weakref.WeakKeyDictionary()
)

# Collections that were stopped at exit, for profilers that stop even later. The references are
# strong, because weak ones do not work while modules are being torn down.
_ended: dict[_core.Session, tuple[Collection, Any]] = {}


def devices_are_out_of_reach() -> bool:
    """Returns whether CUDA does not work because this process was forked from one that uses it.

    Preparing Kineto may hang then.
    """
    is_so = getattr(sys.modules["torch"]._C, "_cuda_isInBadFork", None)
    return is_so is not None and bool(is_so())


def kineto_is_busy() -> bool:
    """Returns whether Kineto is in use already, by us or by someone else."""
    if kineto_is_claimed():
        return True
    torch = sys.modules["torch"]
    _end_what_was_left(torch)
    # torch answers for this thread only; the flag covers all threads.
    is_told = getattr(torch.autograd.profiler, "_is_profiler_enabled", False)
    if (is_told and not _core.is_profiling()) or torch_names.runs_own_profiler(torch):
        return True
    return _others_use_kineto()


def _others_use_kineto() -> bool:
    """Returns whether Kineto is prepared or collecting for others, also on another thread."""
    return not _may_be_ours.is_set() and _core.kineto_is_active()


def prepare_collection(options: SessionOptions, takes_records: bool = False) -> bool:
    """Prepares Kineto, which is slow the first time, and returns whether that worked.

    If Kineto is in use, it does nothing, and a later start warns. Kineto is claimed meanwhile,
    because preparing it may stop a collection of someone else.

    Args:
        options: The options of the collection.
        takes_records: Whether records will be taken from CUPTI, if possible.
    """
    if kineto_is_busy() or not claim_kineto(
        Collection(lambda: None, options, lambda: None, RecordsOfCollection())
    ):
        return False
    try:
        with changes:
            _prepare(options, _wanted(options, takes_records))
    except RuntimeError:
        return False
    finally:
        give_kineto_back()
    return True


class _SessionOfCollection:
    """A reference to the session of a collection, which may start before the session."""

    def __init__(self) -> None:
        self.session: Callable[[], _core.Session | None] = lambda: None

    def __call__(self) -> _core.Session | None:
        return self.session()


def start_collection(
    options: SessionOptions, is_prepared: bool, takes_records: bool = False
) -> Collection | None:
    """Starts Kineto, and returns `None` if it is in use. `give_collection` follows.

    Args:
        options: The options of the collection.
        is_prepared: Whether Kineto was prepared for these options.
        takes_records: Whether records are taken from CUPTI, if possible.
    """
    thread = weakref.ref(threading.current_thread())
    own = Collection(_SessionOfCollection(), options, thread, RecordsOfCollection())
    if not claim_kineto(own):
        return None
    torch = sys.modules["torch"]
    try:
        _start(torch, own, is_prepared, takes_records)
    except BaseException as error:
        # A signal handler may have raised after Kineto was started.
        has_started = own.records.has_started
        is_refused = isinstance(error, RuntimeError) and not has_started
        if has_started or (not is_refused and torch_names.runs_own_profiler(torch)):
            with suppress(RuntimeError):
                torch._C._autograd._disable_profiler()
        _release(own)
        if not is_refused:
            raise
        return None
    return own


def _start(torch: ModuleType, own: Collection, is_prepared: bool, takes_records: bool) -> None:
    """Starts Kineto. It records nothing if we have CUPTI record."""
    options, records = own.options, own.records
    wanted = kineto_activities(torch, options)
    if takes_records and can_be_alone(options):
        if not _watches:
            _watches.extend(torch_names.watched(torch, changes, _give_way))
        if _others_use_kineto():
            raise RuntimeError("another profiler has begun to use Kineto")
        try:
            _enable(torch, own, activities_that_hold_kineto(), is_prepared)
        except RuntimeError as error:
            # Kineto is in use, or does not know this kind of device: then the next start works.
            _enable(torch, own, wanted, is_prepared=False)
            refuse(str(error))
        else:
            if records.begin_alone(options):
                return
            records.has_started = False
            torch._C._autograd._disable_profiler()
            _enable(torch, own, wanted, is_prepared=False)
    else:
        _enable(torch, own, wanted, is_prepared)
    if takes_records:
        records.begin(options)


def _enable(torch: ModuleType, own: Collection, activities: set[Any], is_prepared: bool) -> None:
    """Starts Kineto for some activities, for which it may be prepared already."""
    if not is_prepared or _prepared != activities:
        _prepare(own.options, activities)
    torch._C._autograd._enable_profiler(kineto_config(torch, own.options), activities)
    own.records.has_started = True
    _prepared.clear()


def _wanted(options: SessionOptions, takes_records: bool) -> set[Any]:
    """Returns the activities that Kineto is to be prepared for."""
    if takes_records and can_be_alone(options):
        return activities_that_hold_kineto()
    return kineto_activities(sys.modules["torch"], options)


def give_collection(own: Collection, session: _core.Session) -> None:
    """Makes a running collection that of a session, which gets the results."""
    # A profiler that is dropped while it records must not block Kineto forever. This makes no call
    # of Python, which the session would record.
    reference = weakref.ref(session, partial(_let_go, own))
    own.session.session = reference  # type: ignore[attr-defined]


class Collected(NamedTuple):
    """A collection that has ended.

    Args:
        options: The options of the collection.
        result: What torch returned, or `None` if it was lost.
        records: The records that were taken from CUPTI, or `None` if the result has them.
        release: Releases Kineto once the records were read. CUPTI owns the names in them.
        failure: The error of a device that has failed.
    """

    options: SessionOptions
    result: Any
    records: _core.DeviceRecords | None
    release: Callable[[], None]
    failure: Exception | None = None

    def tell_failure(self) -> None:
        """Warns if a device has failed."""
        if self.failure is not None:
            first_line = str(self.failure).partition("\n")[0]
            text = _DEVICE_FAILED.format(error=first_line)
            warnings.warn(text, stacklevel=level_outside())


def end_collection(
    session: _core.Session, close: Callable[[], object] = lambda: None
) -> Collected | None:
    """Ends the collection of a session. Returns `None` if it has none.

    Kineto is released at once, or by the caller if there are records to read.

    Args:
        session: The session.
        close: Called when the devices have finished, while Kineto still runs.
    """
    if session in _ended:
        own, result = _ended.pop(session)
        warnings.warn(_ENDED_BEFORE, stacklevel=level_outside())
        close()
        return Collected(own.options, result, own.records.end(), lambda: None)
    if session in _without_devices:
        close()
        return _nothing_collected(session)
    # `None` during interpreter shutdown, after the collection was stopped at exit.
    torch = sys.modules.get("torch")
    found = None if torch is None else collection_of(session)
    if torch is None or found is None:
        return None
    failure = _wait_for_devices(torch, found)
    with changes:
        close()
        if session in _without_devices:
            return _nothing_collected(session)
        found.records.stop()
        result, records = _end(torch, found)
    if result is None:
        _leave(found)
    if result is None or records is None:
        give_kineto_back()
        return Collected(found.options, result, records, lambda: None, failure)
    return Collected(found.options, result, records, partial(_release, found), failure)


def _nothing_collected(session: _core.Session) -> Collected:
    """Returns what is left to a session whose devices another profiler has got."""
    return Collected(_without_devices.pop(session), None, None, lambda: None)


def toggle_collection(
    own: Collection, enabled: bool, activities: Iterable[ProfilerActivity]
) -> bool:
    """Pauses or resumes a collection. If this torch cannot, warns and returns false."""
    torch = sys.modules["torch"]
    if own.records.are_alone:
        if not enabled:
            own.records.pause()
        elif not own.records.resume():
            warnings.warn(_CANNOT_BE_RESUMED, stacklevel=level_outside())
            return False
        return True
    if records_all_threads(own.options) and torch_version(torch) < _TOGGLES_ALL_THREADS:
        if not enabled:
            warnings.warn(_CANNOT_BE_TOGGLED, stacklevel=level_outside())
        return False
    groups = torch.profiler.ProfilerActivity
    names = {getattr(groups, group.name) for group in activities}
    own.records.pause()
    torch._C._autograd._toggle_collection_dynamic(enabled, names)
    if enabled:
        own.records.resume()
    return True


def _wait_for_devices(torch: ModuleType, own: Collection) -> Exception | None:
    """Synchronizes the devices, so that all launched work is recorded.

    Returns the error of a device that has failed. While a graph is captured, nothing may wait, and
    nothing is done.
    """
    try:
        for group in own.options.activities:
            device = getattr(torch, DEVICE_NAMES.get(group, ""), None)
            if device is not None and getattr(device, "is_initialized", lambda: True)():
                if getattr(device, "is_current_stream_capturing", lambda: False)():
                    own.records.stays_attached = True
                    continue
                if group is ProfilerActivity.CUDA:
                    _wait_for_cuda(torch)
                else:
                    device.synchronize()
    except RuntimeError as error:
        own.records.stays_attached = True
        return error
    return None


def _wait_for_cuda(torch: ModuleType) -> None:
    """Synchronizes all CUDA devices in use here if torch tells them, else the current one."""
    is_used = getattr(torch._C, "_cuda_hasPrimaryContext", None)
    if is_used is None:
        torch.cuda.synchronize()
        return
    for number in range(torch.cuda.device_count()):
        if is_used(number):
            torch.cuda.synchronize(number)


def tell_end() -> None:
    """Notifies torch of the end of recording, if neither we nor torch's profiler record."""
    torch = sys.modules.get("torch")
    if torch is None or _core.is_profiling() or torch_names.runs_own_profiler(torch):
        return
    tell_torch(torch, is_profiling=False)


def _leave(own: Collection) -> None:
    """Remembers that a collection may still run on the thread that started it."""
    _may_be_ours.set()
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


def _prepare(options: SessionOptions, activities: set[Any]) -> None:
    torch: Any = sys.modules["torch"]
    check_results(torch)
    native = torch._C._autograd
    wanted = kineto_config(torch, options), activities
    _may_be_ours.set()
    try:
        native._prepare_profiler(*wanted)
    except RuntimeError:
        # Before torch 2.15, a prepared collection that never started must be stopped first.
        native._enable_profiler(*wanted)
        native._disable_profiler()
        native._prepare_profiler(*wanted)
    _prepared.clear()
    _prepared.update(activities)


def _result(torch: ModuleType) -> Any:
    """Stops Kineto, and returns its results, or `None` if someone else stopped it before."""
    try:
        result = torch._C._autograd._disable_profiler()
    except RuntimeError:
        return None
    finally:
        _may_be_ours.clear()
    # The result of no collection has no start time.
    return result if result.trace_start_ns() else None


def _end(torch: ModuleType, own: Collection) -> tuple[Any, _core.DeviceRecords | None]:
    """Stops Kineto, and returns its results and the records."""
    result = _result(torch)
    # Another recording may start as soon as Kineto is released.
    return result, own.records.end()


def _give_way() -> None:
    """Ends a collection of ours alone, because a profiler of torch is about to begin.

    Kineto would cancel it otherwise, and crash at its end if that profiler is on another thread.
    """
    own = running_collection()
    if own is None or not own.records.are_alone or own.records.has_ended:
        return
    session = own.session()
    if session is not None:
        _without_devices[session] = own.options
    own.records.give_way()
    _end(sys.modules["torch"], own)
    give_kineto_back()


def _release(own: Collection) -> None:
    try:
        with changes:
            own.records.stays_attached |= _core.kineto_is_active()
            own.records.detach()
    finally:
        give_kineto_back()


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
    _wait_for_devices(torch, own)
    own.records.stop()
    session, (result, _) = own.session(), _end(torch, own)
    give_kineto_back()
    if session is not None:
        _ended[session] = own, result


def drop_collection(own: Collection) -> None:
    """Stops a collection whose session could not start."""
    _let_go(own)


def _let_go(own: Collection, _session: object = None) -> None:
    """Stops the collection of a session that was dropped, unless it has stopped already."""
    if not is_collected(own):
        return
    torch = sys.modules["torch"]
    # A signal handler may have raised after Kineto was stopped.
    if not own.records.has_ended:
        with suppress(RuntimeError):
            torch._C._autograd._disable_profiler()
    _release(own)
    tell_end()
