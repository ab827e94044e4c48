"""Columns of whole numbers as the engine takes them: the bytes of 64-bit integers."""

from __future__ import annotations

from array import array
from typing import Any


def numbers(column: Any) -> bytes:
    """Returns a column as bytes.

    Args:
        column: An array with the buffer protocol, one with `to_numpy` (Arrow, pandas, polars), or
            any sequence of whole numbers.

    Raises:
        TypeError: It holds something else.

    Example:
        >>> numbers([1, 2]) == numbers(array("i", [1, 2])) == array("q", [1, 2]).tobytes()
        True
    """
    if isinstance(column, (str, bytes, bytearray)):
        raise TypeError(f"expected a column of whole numbers, found {column!r}")
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    try:
        view = memoryview(column)
    except TypeError:
        return array("q", column).tobytes()
    if view.ndim != 1:
        raise TypeError(f"expected a column of whole numbers, found one of {view.ndim} dimensions")
    if view.itemsize == 8 and view.format in ("q", "Q", "l", "L"):
        return view.tobytes()
    return array("q", view.tolist()).tobytes()
