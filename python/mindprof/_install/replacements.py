"""`Replacements`: replaces attributes of modules and classes, and undoes it."""

from __future__ import annotations

from typing import Any, NamedTuple


class _Replacement(NamedTuple):
    owner: Any
    name: str
    before: Any
    after: Any


class Replacements:
    """A list of replaced attributes that can be undone together.

    `install()` keeps one per framework, and `mindprof run` one per patch.
    """

    def __init__(self) -> None:
        self._done: list[_Replacement] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Replaces an attribute, if the owner itself defines it.

        Args:
            owner: A module or a class.
            name: The attribute.
            value: The new value.
        """
        if name in vars(owner):
            self._done.append(_Replacement(owner, name, vars(owner)[name], value))
            setattr(owner, name, value)

    def undo(self) -> None:
        """Restores the original values, except where someone else has replaced them since."""
        while self._done:
            owner, name, before, after = self._done.pop()
            if vars(owner).get(name) is after:
                setattr(owner, name, before)
