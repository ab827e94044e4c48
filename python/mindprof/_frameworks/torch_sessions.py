"""The current recordings of torch, through the observer or through Kineto.

The observer reports to all open recordings. It must not run while Kineto records operators, which
would then be recorded twice: whichever of the two starts first excludes the other. Kineto may
record devices beside the observer.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from mindprof import _core
from mindprof._frameworks import fast_ranges, optimizer_watch, torch_names
from mindprof._frameworks.device_records import RecordsOfCollection
from mindprof._frameworks.shared_replacement import SharedReplacement
from mindprof._settings.activity import ProfilerActivity
from mindprof._settings.options import SessionOptions

IS_BUSY = (
    "torch's operators are recorded exclusively by another profiler: this recording has {rest}. "
    "Stop the other profiler first, or remove this one under mindprof run."
)
BY_OBSERVER = "them through the observer, without device events"
WITHOUT_TORCH = "no operators of torch"


class Collection(NamedTuple):
    """A collection that Kineto runs for one of our recordings.

    Args:
        session: Returns the session, or `None` before it exists and after it is gone.
        options: The options of the recording.
        thread: Returns the thread that started the collection, or `None` after it is gone.
        records: The records that are taken from CUPTI.
    """

    session: Callable[[], _core.Session | None]
    options: SessionOptions
    thread: Callable[[], threading.Thread | None]
    records: RecordsOfCollection


#: Held while a recording of torch starts or stops, so that checking for others and changing the
#: state happen atomically.
changes = threading.RLock()

# Has at most one key. `setdefault` is atomic, so one of several threads gets Kineto.
_collections: dict[str, Collection] = {}


def claim_kineto(own: Collection) -> bool:
    """Claims Kineto for a collection, and returns false if another one has it."""
    return _collections.setdefault("kineto", own) is own


def give_kineto_back() -> None:
    """Releases Kineto."""
    _collections.clear()


def kineto_is_claimed() -> bool:
    """Returns whether one of our recordings has claimed Kineto."""
    return bool(_collections)


def operators_are_claimed() -> bool:
    """Returns whether Kineto records torch's operators for us, and not only devices."""
    collection = _collections.get("kineto")
    return collection is not None and ProfilerActivity.CPU in collection.options.activities


def running_collection() -> Collection | None:
    """Returns the current collection, or `None` if Kineto does not run for us."""
    return _collections.get("kineto")


def is_collected(own: Collection) -> bool:
    """Returns whether a collection is the current one."""
    return _collections.get("kineto") is own


def collection_of(session: _core.Session) -> Collection | None:
    """Returns the current collection if it is that of a session, else `None`."""
    collection = _collections.get("kineto")
    return collection if collection and collection.session() is session else None


def tell_torch(torch: ModuleType, is_profiling: bool) -> None:
    """Notifies torch's own code, such as compiled graphs, whether to record its ranges."""
    name = "_run_on_profiler_start" if is_profiling else "_run_on_profiler_stop"
    tell = getattr(torch.autograd.profiler, name, None)
    if tell is not None:
        tell()


_FLAG = "_is_profiler_enabled"
_told = SharedReplacement()


def torch_told(torch: ModuleType) -> list[_core.Replacement]:
    """Notifies torch's own code as `tell_torch` does, while the result is held.

    Unlike a call, this cannot be interrupted. torch's own profiler sets the same flag, and keeps it
    if it is still running at the end. Empty if this torch has no flag.
    """
    profiler = torch.autograd.profiler
    if _FLAG not in vars(profiler):
        return []
    stays = torch_names.own_question(torch)
    return [_told.hold(profiler, _FLAG, lambda: True, stays=stays)]


def _forget() -> None:
    """Forgets the parent's recordings in a forked child, and notifies torch that none runs."""
    # A thread that the child does not have may hold the lock.
    changes._at_fork_reinit()  # type: ignore[attr-defined]
    torch = sys.modules.get("torch")
    if torch is not None and _collections:
        tell_torch(torch, is_profiling=False)
    give_kineto_back()
    for replacement in (_told, fast_ranges.REPLACEMENT, optimizer_watch.REPLACEMENT):
        replacement.undo()


os.register_at_fork(after_in_child=_forget)
