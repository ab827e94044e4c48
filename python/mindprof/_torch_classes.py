"""Makes our classes subclasses of torch's, so that code written for torch's objects accepts ours.

Each class registers torch's name for it. Once torch is imported, `meet_torch` makes torch's class
its last base: `isinstance` holds for all of our objects, and our own attributes still come first.
This package works without torch and never imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

# After the import of this module, torch has all of the classes.
_TORCH_MODULE = "torch.autograd.profiler"

Class = TypeVar("Class", bound=type)
Join = Callable[[Any], None]


class Joinable:
    """A base for classes that would have none but `object`.

    Python can replace the bases of a class only if it has another one.
    """

    __slots__ = ()


# The classes that have not met torch's yet: the module and name of torch's, and what to do then.
_WAITING: dict[type, tuple[str, str, Join]] = {}

# The classes of torch that ours are subclasses of.
_THEIRS: dict[type, type] = {}


def like_torchs(cls: Class) -> Class:
    """Decorates a class that becomes a subclass of torch's class of the same name."""
    own_bases = cls.__bases__

    def join(theirs: type) -> None:
        # Computed from the original bases, so that two threads that join at once agree.
        cls.__bases__ = (*own_bases, theirs)

    wait_for_torch(cls, "torch.autograd.profiler_util", join)
    return cls


def wait_for_torch(cls: type, module: str, join: Join) -> None:
    """Registers a class.

    Args:
        cls: Our class.
        module: The module of torch that has a class of the same name.
        join: The function to call with torch's class. It may be called twice.
    """
    _WAITING[cls] = (module, cls.__name__, join)


def meet_torch() -> None:
    """Joins the registered classes with torch's, if torch has been imported since the last call."""
    if not _WAITING or not _is_imported():
        return
    for cls, (module, name, join) in list(_WAITING.items()):
        theirs = getattr(sys.modules.get(module), name, None)
        # Older releases lack some names. A stand-in for torch may have our own classes.
        if isinstance(theirs, type) and theirs.__module__.partition(".")[0] == "torch":
            join(theirs)
            _THEIRS[cls] = theirs
        _WAITING.pop(cls, None)


def kinds(cls: type) -> tuple[type, ...]:
    """Returns a class and torch's class of the same name, if that one is known."""
    return (cls, _THEIRS[cls]) if cls in _THEIRS else (cls,)


def _is_imported() -> bool:
    """Returns whether torch's module is there, and no thread is still importing it."""
    module = sys.modules.get(_TORCH_MODULE)
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)
