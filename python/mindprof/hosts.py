"""The interface for other frameworks: record their operators, memory and devices in one profile.

Operators opened here share the scopes of torch and of the embedded runtime, so all of them nest.
While nothing is recorded, `open_operator` returns `None` immediately.

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
    """Records the body, or each call of the decorated function, as an operator.

    Exceptions propagate unchanged. Decorating a generator or a coroutine records only its creation,
    because such a function returns before its body runs. Calling `open_operator` and
    `close_operator` directly is cheaper.

    Args:
        name: The name of the operator.
        inputs: Its inputs: tensors, numbers, and lists of them.
        correlation: The correlation id by which device events refer to it.

    Example:
        >>> with operator("example::add", 1, 2):
        ...     pass
    """
    opened = open_operator(name, inputs, None, correlation)
    try:
        yield
    finally:
        close_operator(opened)
