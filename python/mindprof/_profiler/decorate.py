"""`record_function` as a decorator, and ranges that end with a future."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, ParamSpec, TypeVar

from mindprof._core import record_function

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def decorate(decorator: record_function, function: Callable[Parameters, Result]) -> Any:
    """Returns a function that records each call of `function` as a range.

    Each call opens its own range, so recursion works. A generator or coroutine has one range, from
    its first step to its last.
    """
    import inspect

    if inspect.isasyncgenfunction(function):
        return _around_async_generator(decorator, function)
    if inspect.iscoroutinefunction(function):
        return _around_coroutine(decorator, function)
    if inspect.isgeneratorfunction(function):
        return _around_generator(decorator, function)

    @functools.wraps(function)
    def recorded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with record_function(decorator.name, decorator.args):
            return function(*args, **kwargs)

    return recorded


def _around_generator(decorator: record_function, function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with record_function(decorator.name, decorator.args):
            return (yield from function(*args, **kwargs))

    return recorded


def _around_coroutine(decorator: record_function, function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        with record_function(decorator.name, decorator.args):
            return await function(*args, **kwargs)

    return recorded


def _around_async_generator(decorator: record_function, function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    async def recorded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with record_function(decorator.name, decorator.args):
            inner = function(*args, **kwargs)
            step = inner.__anext__()
            # The equivalent of `yield from`: forwards sent values and thrown exceptions until the
            # inner generator ends.
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                try:
                    step = inner.asend((yield item))
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:
                    step = inner.athrow(error)

    return recorded


def end_with_future(entered: record_function, future: Any) -> Any:
    """Ends a range when a future is done, and returns a future with the same result.

    Args:
        entered: A range that has been entered.
        future: A future with `then`, like torch's, or with `add_done_callback`, like Python's.
    """
    if hasattr(future, "then"):

        def end_and_pass_on(done: Any) -> Any:
            entered._end()
            return done.value()

        return future.then(end_and_pass_on)
    from concurrent.futures import Future

    ended: Future[Any] = Future()

    def end(done: Any) -> None:
        entered._end()
        if error := done.exception():
            ended.set_exception(error)
        else:
            ended.set_result(done.result())

    future.add_done_callback(end)
    return ended
