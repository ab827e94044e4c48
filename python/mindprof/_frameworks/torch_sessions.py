"""Which recordings hear of torch at the time, and by which way.

What the observer hears goes to all recordings that are open, so that beside one that has torch's
operators from Kineto it may not run: that one would have them twice. Of the two ways, the first one
keeps the other out.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from mindprof import _core
from mindprof._settings.options import SessionOptions

IS_BUSY = (
    "torch's operators are recorded for another profiler, in a way that is not for two: this "
    "recording has {rest}. Stop the other one first."
)
BY_OBSERVER = "them by way of the observer, without what devices did"
WITHOUT_TORCH = "nothing of torch"


class Collection(NamedTuple):
    """What Kineto collects at the time, and for whom.

    Args:
        session: Returns the recording that began it, None once that is gone, or before it is there.
        options: What that was asked for.
        thread: Returns the thread that began it, None once that is gone.
    """

    session: Callable[[], _core.Session | None]
    options: SessionOptions
    thread: Callable[[], threading.Thread | None]


#: The recordings that the observer was attached for, each with what is done when it is let go of.
observed: weakref.WeakKeyDictionary[_core.Session, weakref.finalize[..., _core.Session]] = (
    weakref.WeakKeyDictionary()
)

#: Held where a recording begins or ends to hear of torch: what others hear of is looked at, and
#: changed, in one step.
changes = threading.RLock()

# Under one key, or empty: of several threads the one that sets it has Kineto.
_collections: dict[str, Collection] = {}


def claim_kineto(own: Collection) -> bool:
    """Takes Kineto for a recording. Returns false if another one has it."""
    return _collections.setdefault("kineto", own) is own


def give_kineto_back() -> None:
    """Lets others have Kineto."""
    _collections.clear()


def kineto_is_claimed() -> bool:
    """Returns whether a recording of ours has Kineto."""
    return bool(_collections)


def running_collection() -> Collection | None:
    """Returns what Kineto collects at the time, None if it does not for us."""
    return _collections.get("kineto")


def is_collected(own: Collection) -> bool:
    """Returns whether Kineto collects that at the time, and nothing else."""
    return _collections.get("kineto") is own


def collection_of(session: _core.Session) -> Collection | None:
    """Returns what Kineto collects for a recording, None if it does not."""
    collection = _collections.get("kineto")
    return collection if collection and collection.session() is session else None


def tell_torch(torch: ModuleType, is_profiling: bool) -> None:
    """Has torch's own code, such as compiled graphs, name its ranges while something records."""
    name = "_run_on_profiler_start" if is_profiling else "_run_on_profiler_stop"
    tell = getattr(torch.autograd.profiler, name, None)
    if tell is not None:
        tell()


def _forget() -> None:
    """Forgets the recordings of the parent: a forked child has none, and torch believes in none."""
    # A thread that the child does not have may hold it.
    changes._at_fork_reinit()  # type: ignore[attr-defined]
    torch = sys.modules.get("torch")
    if torch is not None and (_collections or observed):
        tell_torch(torch, is_profiling=False)
    give_kineto_back()
    observed.clear()


os.register_at_fork(after_in_child=_forget)
