"""ITT annotations for Intel's profilers: unavailable, as in a torch built without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def _fail() -> NoReturn:
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def is_available() -> bool:
    """Returns `False`: ITT is not available."""
    return False


def range_push(msg: str) -> None:  # noqa: ARG001
    """Fails; with ITT, it would open a range.

    Args:
        msg: The name of the range.

    Raises:
        RuntimeError: Always.
    """
    _fail()


def range_pop() -> None:
    """Fails; with ITT, it would close a range.

    Raises:
        RuntimeError: Always.
    """
    _fail()


def mark(msg: str) -> None:  # noqa: ARG001
    """Fails; with ITT, it would add a mark.

    Args:
        msg: The name of the mark.

    Raises:
        RuntimeError: Always.
    """
    _fail()


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Fails; with ITT, it would open a range around the body.

    Args:
        msg: The name of the range, as a format string.
        args: Positional values for the format string.
        kwargs: Named values for the format string.

    Raises:
        RuntimeError: Always.
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
