"""`SharedReplacement`: an attribute of torch that is replaced while any recording needs it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from mindprof import _core


class SharedReplacement:
    """Makes replacements of one attribute, and shares them between recordings.

    A recording holds the object that `hold` returns. The engine restores the attribute when the
    last holder drops it, without running Python code, which a signal handler could interrupt.
    """

    def __init__(self) -> None:
        self._current: Callable[[], _core.Replacement | None] = lambda: None

    def hold(
        self,
        owner: object,
        name: str,
        make: Callable[[], Any],
        *,
        theirs: Any = None,
        stays: Callable[[], bool] | None = None,
    ) -> _core.Replacement:
        """Replaces the attribute unless it is replaced already.

        Args:
            owner: The module or class.
            name: The name of the attribute.
            make: Returns our value.
            theirs: The value to restore; the current one if `None`.
            stays: A function of the engine or of torch that returns whether the attribute is not
                to be restored.
        """
        found = self._current()
        if found is None or not found.is_in_place:
            found = _core.Replacement(owner, name, make(), theirs, stays)
            self._current = weakref.ref(found)
        return found

    @property
    def is_in_place(self) -> bool:
        """Whether the attribute holds our value."""
        found = self._current()
        return found is not None and found.is_in_place

    def undo(self) -> None:
        """Restores the attribute now, even if a recording holds it."""
        found = self._current()
        if found is not None:
            found.undo()
