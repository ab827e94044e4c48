"""Sizes, which are a tuple that knows how many elements they hold."""

from __future__ import annotations

from mindprof._core import look_up_sizes


class Size(tuple[int, ...]):
    """The sizes of a tensor.

    >>> Size((2, 3)).numel()
    6
    """

    def numel(self) -> int:
        """Returns the number of elements that a tensor with these sizes has."""
        count = 1
        for size in self:
            count *= size
        return count

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


# Here and not at first use, when another thread may be about to fork.
look_up_sizes()
