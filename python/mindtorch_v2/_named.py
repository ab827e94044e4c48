"""`Size`, the type of tensor shapes."""

from __future__ import annotations

from mindprof._core import look_up_sizes


class Size(tuple[int, ...]):
    """The sizes of a tensor, a tuple with a method that counts elements.

    >>> Size((2, 3)).numel()
    6
    """

    def numel(self) -> int:
        """Returns the number of elements of a tensor with these sizes."""
        count = 1
        for size in self:
            count *= size
        return count

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


# Done at import rather than at first use, when another thread may be about to fork.
look_up_sizes()
