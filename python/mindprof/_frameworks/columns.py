"""Converts columns of integers to the engine's form: the bytes of signed 64-bit integers."""

from __future__ import annotations

import sys
from array import array
from typing import Any

#: The largest signed 64-bit integer.
_MOST = (1 << 63) - 1


def numbers(column: Any, argument: str) -> bytes:
    """Returns a column as bytes.

    Args:
        column: An array with the buffer protocol, one with `to_numpy` (Arrow, pandas, polars), or
            any sequence of integers.
        argument: The name of the argument, for error messages.

    Raises:
        TypeError: The column does not hold integers.
        ValueError: A number does not fit into a signed 64-bit integer.

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
    # Not a buffer, or an array of objects or dates, whose items may still be integers.
    except (TypeError, ValueError):
        return _items(column, argument)
    if view.ndim != 1:
        raise _no_column(argument, f"one of {view.ndim} dimensions")
    if view.itemsize == 8 and view.format in ("q", "l"):
        return view.tobytes()
    if view.itemsize == 8 and view.format in ("Q", "L"):
        return _unsigned(view, argument)
    try:
        return _items(view.tolist(), argument)
    # The byte order is not native, but the array itself can read its items.
    except NotImplementedError:
        return _items(column, argument)


def _unsigned(view: memoryview, argument: str) -> bytes:
    """Returns a column of unsigned integers, all of which must fit into signed ones."""
    found = view.tobytes()
    # `isascii` checks quickly that the highest bit of each number, the sign, is zero.
    highest = found[7::8] if sys.byteorder == "little" else found[::8]
    if not highest.isascii():
        raise _too_large(argument, next(number for number in view.tolist() if number > _MOST))
    return found


def _items(column: Any, argument: str) -> bytes:
    """Converts a column item by item."""
    try:
        return array("q", column).tobytes()
    except OverflowError:
        wide = (item for item in column if not -_MOST <= item <= _MOST)
        raise _too_large(argument, next(wide, column)) from None
    except TypeError as error:
        raise _no_column(argument, f"{type(column).__name__} ({error})") from None


def _too_large(argument: str, found: Any) -> ValueError:
    return ValueError(f"argument '{argument}': expected numbers from 0 to {_MOST}, found {found}")


def _no_column(argument: str, found: str) -> TypeError:
    return TypeError(f"argument '{argument}': expected a column of integers, found {found}")
