"""Marks for Intel's profilers, as in a torch that is built without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def _fail() -> NoReturn:
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def is_available() -> bool:
    """Returns whether marks can be made: they cannot."""
    return False


def range_push(msg: str) -> None:  # noqa: ARG001
    """Would open a range.

    Args:
        msg: Its name.

    Raises:
        RuntimeError: Always.
    """
    _fail()


def range_pop() -> None:
    """Would close a range.

    Raises:
        RuntimeError: Always.
    """
    _fail()


def mark(msg: str) -> None:  # noqa: ARG001
    """Would make a mark.

    Args:
        msg: Its name.

    Raises:
        RuntimeError: Always.
    """
    _fail()


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Would open a range around the body.

    Args:
        msg: Its name, a template.
        args: What to put into the template.
        kwargs: What to put into the template by name.

    Raises:
        RuntimeError: Always.
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
