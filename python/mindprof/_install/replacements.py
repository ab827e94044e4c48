"""Attributes that were replaced, so that all of it can be undone."""

from __future__ import annotations

from typing import Any, NamedTuple


class _Replacement(NamedTuple):
    owner: Any
    name: str
    before: Any
    after: Any


class Replacements:
    """What was put in the place of what."""

    def __init__(self) -> None:
        self._done: list[_Replacement] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Puts a value in the place of an attribute; one that is not there stays so.

        Args:
            owner: A module or a class.
            name: The attribute.
            value: What to put there.
        """
        if name in vars(owner):
            self._done.append(_Replacement(owner, name, vars(owner)[name], value))
            setattr(owner, name, value)

    def undo(self) -> None:
        """Puts back what was there, except where somebody has put something else since."""
        while self._done:
            owner, name, before, after = self._done.pop()
            if vars(owner).get(name) is after:
                setattr(owner, name, before)
