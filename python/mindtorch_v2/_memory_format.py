"""Memory formats: the order in which the elements of a copy are stored."""

from __future__ import annotations


class memory_format:
    """A memory format, identified by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
