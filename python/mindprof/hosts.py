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

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mindprof._core import (
    RangeHandle,
    TensorInput,
    close_operator,
    is_recording,
    open_operator,
    report_memory,
    wants_inputs,
)
from mindprof._frameworks.registry import Framework, Recording, register, unregister

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


@contextmanager
def operator(name: str, *inputs: Any, correlation: int = 0) -> Iterator[None]:
    """Records the body, or each call of a function that it decorates, as an operator.

    It ends with the body, whose errors are passed on as they are. A function that is a generator or
    a coroutine has returned before its own body runs. A pair of calls costs less.

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
