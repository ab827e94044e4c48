"""The handle that removes a registered hook."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from types import TracebackType
from typing import Any, TypeVar

_T = TypeVar("_T")
_ids = itertools.count()


class RemovableHandle:
    """A handle to a registered hook, which `remove()` or leaving a `with` block unregisters.

    The handle keeps neither the hook nor its owner alive.

    >>> hooks = OrderedDict()
    >>> with register(hooks, print):
    ...     len(hooks)
    1
    >>> len(hooks)
    0
    """

    def __init__(self, hooks_dict: OrderedDict[int, Any]) -> None:
        self.id = next(_ids)
        self._hooks = weakref.ref(hooks_dict)

    def remove(self) -> None:
        """Unregisters the hook. Further calls have no effect."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


def register(hooks: OrderedDict[int, _T], hook: _T, *, prepend: bool = False) -> RemovableHandle:
    """Adds `hook` to `hooks`, at the end or at the front, and returns its handle."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle
