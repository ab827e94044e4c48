"""Columns of whole numbers as the engine takes them: the bytes of 64-bit integers."""

from __future__ import annotations

from array import array
from typing import Any


def numbers(column: Any, argument: str) -> bytes:
    """Returns a column as bytes.

    Args:
        column: An array with the buffer protocol, one with `to_numpy` (Arrow, pandas, polars), or
            any sequence of whole numbers.
        argument: What the caller calls it, for errors.

    Raises:
        TypeError: It holds something else.
        ValueError: A number has more than 64 bits.

    Example:
        >>> numbers([1, 2], "a") == numbers(array("i", [1, 2]), "b") == array("q", [1, 2]).tobytes()
        True
    """
    if isinstance(column, (str, bytes, bytearray)):
        raise _no_column(argument, repr(column))
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    try:
        view = memoryview(column)
    # What is no buffer, and arrays of objects and of dates, whose items may be numbers still.
    except (TypeError, ValueError):
        return _items(column, argument)
    if view.ndim != 1:
        raise _no_column(argument, f"one of {view.ndim} dimensions")
    if view.itemsize == 8 and view.format in ("q", "Q", "l", "L"):
        return view.tobytes()
    try:
        return _items(view.tolist(), argument)
    # Numbers in the order of another machine: the array itself knows how to read them.
    except NotImplementedError:
        return _items(column, argument)


def _items(column: Any, argument: str) -> bytes:
    """Returns a column that has to be taken number by number."""
    try:
        return array("q", column).tobytes()
    except OverflowError:
        wide = (item for item in column if not -(1 << 63) <= item < 1 << 63)
        raise ValueError(
            f"argument '{argument}': expected numbers of 64 bits, found {next(wide, column)}"
        ) from None
    except TypeError as error:
        raise _no_column(argument, f"{type(column).__name__} ({error})") from None


def _no_column(argument: str, found: str) -> TypeError:
    return TypeError(f"argument '{argument}': expected a column of whole numbers, found {found}")
