"""Recognizes objects of the real torch by their class, without importing torch."""

from __future__ import annotations


def is_of_torch(value: object, class_name: str) -> bool:
    """Returns whether `value` is an instance of torch's class of this name."""
    kind = type(value)
    return kind.__name__ == class_name and kind.__module__.partition(".")[0] == "torch"
