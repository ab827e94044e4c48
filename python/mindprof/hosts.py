"""The door for frameworks that are not torch: their operators, memory and devices in one profile.

What is opened here goes into the scopes that the embedded runtime and torch's operators are
written to, so that all of them nest. While nothing records, `open_operator` returns None at once.

    >>> import mindprof
    >>> from mindprof import hosts
    >>> tensor = hosts.TensorInput((2, 3), "float32")
    >>> with mindprof.profile(record_shapes=True) as prof:
    ...     operator = hosts.open_operator("example::add", (tensor, 1))
    ...     hosts.close_operator(operator)
    >>> [(event.name, event.input_shapes) for event in prof.events()]
    [('example::add', [[2, 3], []])]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mindprof._core import (
    RangeHandle,
    close_operator,
    is_recording,
    open_operator,
    report_memory,
    wants_inputs,
)
from mindprof._hosts.frameworks import Framework, Recording, register, unregister

__all__ = [
    "Framework",
    "RangeHandle",
    "Recording",
    "TensorInput",
    "close_operator",
    "is_recording",
    "open_operator",
    "operator",
    "register",
    "report_memory",
    "unregister",
    "wants_inputs",
]


class TensorInput:
    """A tensor among the inputs of an operator, for frameworks whose own tensors tell less.

    Args:
        shape: Its sizes.
        dtype: The type of its elements, by torch's or numpy's name.
        strides: How many elements lie between neighbours, by dimension; dense if None.

    Raises:
        ValueError: There are more or fewer strides than sizes.
    """

    __slots__ = ("dtype", "shape", "stride")

    def __init__(
        self, shape: Sequence[int], dtype: str, strides: Sequence[int] | None = None
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.stride = _dense(self.shape) if strides is None else tuple(strides)
        if len(self.stride) != len(self.shape):
            raise ValueError(
                f"expected a stride for each of {len(self.shape)} dimensions, "
                f"found {len(self.stride)}"
            )


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides of a tensor whose last dimension lies innermost, without gaps."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@contextmanager
def operator(name: str, *inputs: Any, correlation: int = 0) -> Iterator[None]:
    """Records the body as an operator. A pair of calls costs less.

    Args:
        name: Its name, as rows show it.
        inputs: What it is given: tensors, numbers, and lists of them.
        correlation: The number by which events of devices name it.

    Example:
        >>> with operator("example::add", 1, 2):
        ...     pass
    """
    opened = open_operator(name, inputs, None, correlation)
    try:
        yield
    finally:
        close_operator(opened)
