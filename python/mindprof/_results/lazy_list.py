"""`LazyList`: a list whose items are created from a source when they are first read.

It starts with empty storage and a source. Reading creates items from the front, in batches, and
stores them as ordinary items. Changing the list creates all items and drops the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from itertools import chain
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Entry = TypeVar("Entry", default=Any)
else:
    from typing import TypeVar

    Entry = TypeVar("Entry")
"""The type of the items: events or rows."""

PORTION = 4096
"""The number of items that an iteration creates at a time."""


class LazyList(list[Entry]):
    """A list that may have a source of items.

    It is a subclass of `list`, so that programs can treat it as one. Subclasses implement `_make`.
    """

    _source: Sized | None = None
    _filled = 0

    def _make(self, begin: int, end: int) -> list[Entry]:
        """Creates the items from `begin` to `end` from the source."""
        raise NotImplementedError

    def _total(self) -> int:
        """Returns the number of items in the source."""
        return 0 if self._source is None else len(self._source)

    def _fill(self, end: int | None = None) -> None:
        """Creates the items up to `end`, or all if it is `None`."""
        if self._source is None:
            return
        total = self._total()
        end = total if end is None else min(end, total)
        if self._filled < end:
            super().extend(self._make(self._filled, end))
            self._filled = end

    def _own(self) -> None:
        """Turns the list into an ordinary one, because it is about to change."""
        self._fill()
        self._source = None

    def __len__(self) -> int:
        return super().__len__() if self._source is None else self._total()

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Entry: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Entry]: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> Any:
        if self._source is not None:
            if isinstance(index, slice) or int(index) < 0:
                self._fill()
            else:
                self._fill(int(index) + 1)
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Entry]:
        if self._source is None or self._filled == self._total():
            return super().__iter__()
        return chain.from_iterable(self._portions())

    def _portions(self) -> Iterator[Iterable[Entry]]:
        begin = 0
        while self._source is not None and begin < self._total():
            self._fill(begin + PORTION)
            portion = super().__getitem__(slice(begin, begin + PORTION))
            begin += len(portion)
            yield portion
        if begin < super().__len__():
            yield super().__getitem__(slice(begin, None))

    def __eq__(self, other: object) -> bool:
        return list(self) == (list(other) if isinstance(other, LazyList) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __radd__(self, other: list[Any]) -> list[Any]:
        return [*other, *self]


def _after(prepare: Callable[[LazyList[Any]], None], name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def call(self: LazyList[Any], *args: Any, **kwargs: Any) -> Any:
        prepare(self)
        return method(self, *args, **kwargs)

    call.__name__ = name
    call.__qualname__ = f"LazyList.{name}"
    call.__doc__ = method.__doc__
    return call


_READING = (
    "__contains__ __reversed__ __add__ __mul__ __rmul__ __lt__ __le__ __gt__ __ge__ __repr__ "
    "index count copy"
)
_CHANGING = (
    "__setitem__ __delitem__ __iadd__ __imul__ append extend insert pop remove clear reverse sort"
)
for _name in _READING.split():
    setattr(LazyList, _name, _after(LazyList._fill, _name))
for _name in _CHANGING.split():
    setattr(LazyList, _name, _after(LazyList._own, _name))
