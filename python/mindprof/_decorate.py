"""`record_function` as a decorator: a range around each call of a function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from mindprof._core import record_function

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def decorate(
    decorator: record_function, function: Callable[Parameters, Result]
) -> Callable[Parameters, Result]:
    """Returns `function` with a range of the decorator's name around each call.

    Each call opens a range of its own, so that a function may call itself.
    """

    @functools.wraps(function)
    def recorded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with record_function(decorator.name, decorator.args):
            return function(*args, **kwargs)

    return recorded
