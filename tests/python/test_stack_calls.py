"""Stacks in every kind of call: generators, coroutines, recursion, callbacks, finalizers."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.python.stack_frames import calls, record, stacks, tensor, where

# The stacks that are expected here end at the line that calls an operator: those of the stand-in
# would go on with its own functions.
pytestmark = pytest.mark.runtime


def of_python(prof: Any, name: str = "aten::add") -> list[list[str]]:
    """Returns the stacks of operators without functions that are written in C."""
    return [
        [frame for frame in stack if not frame.startswith("<built-in")]
        for stack in stacks(prof, name)
    ]


def test_generators() -> None:
    x = tensor()

    def numbers() -> Generator[Any, None, None]:
        yield x + x
        yield x + x

    def step() -> None:
        for _ in numbers():
            x * x

    prof = record(step)
    (caller,) = where(step, "in numbers()")
    assert stacks(prof) == [[line, caller] for line in where(numbers, "yield")]
    assert stacks(prof, "aten::mul") == [where(step, "x * x")] * 2


def test_a_generator_that_is_thrown_into() -> None:
    x = tensor()

    def numbers() -> Generator[None, None, None]:
        try:
            yield
        except ValueError:
            x + x

    def step() -> None:
        running = numbers()
        next(running)
        with pytest.raises(StopIteration):
            running.throw(ValueError())
        x * x

    prof = record(step)
    (stack,) = stacks(prof)
    assert stack[0] == where(numbers, "x + x")[0]
    assert stack[-1] == where(step, "running.throw")[0]
    assert stacks(prof, "aten::mul") == [where(step, "x * x")]


def test_coroutines() -> None:
    x = tensor()

    async def leaf(n: int) -> None:
        await asyncio.sleep(0)
        for _ in range(n):
            x + x

    async def main() -> None:
        await asyncio.gather(leaf(1), leaf(2))

    prof = record(lambda: asyncio.run(main()))
    found = stacks(prof)
    assert [stack[0] for stack in found] == where(leaf, "x + x") * 3
    (gather,) = where(main, "gather")
    assert all(gather not in stack for stack in found), "they run in tasks of their own"


def test_recursion() -> None:
    x = tensor()

    def down(n: int) -> None:
        if n:
            down(n - 1)
        else:
            x + x

    def step() -> None:
        down(3)

    prof = record(step)
    outer = where(down, "down(n - 1)") * 3 + where(step, "down(3)")
    assert stacks(prof) == [where(down, "x + x") + outer]


def test_callbacks_of_functions_written_in_c() -> None:
    x = tensor()

    def key(value: int) -> int:
        x + x
        return value

    def step() -> None:
        sorted([1], key=key)

    prof = record(step)
    sorting = "<built-in function sorted>"
    assert stacks(prof) == [[*where(key, "x + x"), sorting, *where(step, "sorted")]]


def test_exceptions() -> None:
    x = tensor()

    def fail() -> None:
        raise ValueError

    def step() -> None:
        for _ in range(2):
            with pytest.raises(ValueError):  # noqa: PT011
                fail()
            with pytest.raises(TypeError):
                len(3)  # type: ignore[arg-type]
            x + x

    prof = record(step)
    assert stacks(prof) == [where(step, "x + x")] * 2
    ends = {event.name: event for event in calls(prof)}
    names = [name for name in ends if name.endswith(": fail")]
    assert len(names) == 1


def test_classes_and_methods() -> None:
    x = tensor()

    class Thing:
        def __init__(self) -> None:
            x + x

        def __add__(self, other: int) -> int:
            x + x
            return other

    def step() -> None:
        Thing() + 1

    prof = record(step)
    (caller,) = where(step, "Thing()")
    assert stacks(prof) == [
        [*where(Thing.__init__, "x + x"), caller],
        [*where(Thing.__add__, "x + x"), caller],
    ]


def test_a_generator_within_a_generator() -> None:
    x = tensor()

    def inner() -> Generator[Any, None, None]:
        yield x + x

    def outer() -> Generator[Any, None, None]:
        yield from inner()

    def step() -> None:
        list(outer())

    prof = record(step)
    callers = where(outer, "yield from") + where(step, "list(outer())")
    assert of_python(prof) == [where(inner, "x + x") + callers]


def test_a_generator_is_called_by_whoever_resumes_it() -> None:
    x = tensor()

    def numbers() -> Generator[Any, None, None]:
        while True:
            yield x + x

    def first(running: Iterator[Any]) -> None:
        next(running)

    def second(running: Iterator[Any]) -> None:
        next(running)

    def step() -> None:
        running = numbers()
        first(running)
        second(running)
        thread = threading.Thread(target=first, args=[running])
        thread.start()
        thread.join()

    found = of_python(record(step))
    callers = [where(first, "next"), where(second, "next"), where(first, "next")]
    assert [stack[:2] for stack in found] == [where(numbers, "x + x") + c for c in callers]
    assert found[0][2:] == where(step, "first(running)")
    assert found[2][2].startswith("threading.py(")


def test_a_generator_that_is_closed() -> None:
    x = tensor()

    def numbers() -> Generator[None, None, None]:
        try:
            yield
        finally:
            x + x

    def close() -> None:
        running = numbers()
        next(running)
        running.close()

    def drop() -> None:
        running = numbers()
        next(running)
        del running

    def step() -> None:
        close()
        drop()

    found = of_python(record(step))
    (inside,) = where(numbers, "x + x")
    assert [stack[:2] for stack in found] == [
        [inside, *where(close, "running.close()")],
        [inside, *where(drop, "del running")],
    ]


def test_coroutines_that_wait_for_each_other() -> None:
    x = tensor()

    async def leaf() -> None:
        await asyncio.sleep(0)
        x + x

    async def branch() -> None:
        await leaf()
        x * x

    async def main() -> None:
        await branch()

    prof = record(lambda: asyncio.run(main()))
    (found,) = of_python(prof)
    assert found[:3] == where(leaf, "x + x") + where(branch, "leaf()") + where(main, "branch()")
    (after,) = of_python(prof, "aten::mul")
    assert after[:2] == where(branch, "x * x") + where(main, "branch()")


def test_a_coroutine_without_a_loop() -> None:
    x = tensor()

    class Once:
        def __await__(self) -> Generator[None, None, None]:
            yield
            x + x

    async def main(once: Awaitable[None]) -> None:
        await once

    def step() -> None:
        running = main(Once())
        running.send(None)
        with pytest.raises(StopIteration):
            running.send(None)

    (found,) = of_python(record(step))
    assert found[:2] == where(Once.__await__, "x + x") + where(main, "await once")
    assert found[-1] == where(step, "running.send(None)")[1]


def test_asynchronous_generators() -> None:
    x = tensor()

    async def numbers() -> AsyncGenerator[Any, None]:
        for _ in range(2):
            await asyncio.sleep(0)
            yield x + x

    async def main() -> None:
        async for _ in numbers():
            x * x

    prof = record(lambda: asyncio.run(main()))
    callers = where(numbers, "x + x") + where(main, "async for")
    assert [stack[:2] for stack in of_python(prof)] == [callers] * 2
    assert [stack[0] for stack in of_python(prof, "aten::mul")] == where(main, "x * x") * 2


def test_tasks_that_take_turns_keep_their_own_stacks() -> None:
    x = tensor()

    async def adds(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
            x + x

    async def multiplies(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
            x * x

    async def main() -> None:
        await asyncio.gather(adds(3), multiplies(3))

    prof = record(lambda: asyncio.run(main()))
    for function, name, text in ((adds, "aten::add", "x + x"), (multiplies, "aten::mul", "x * x")):
        other = (multiplies if function is adds else adds).__name__
        found = of_python(prof, name)
        assert [stack[0] for stack in found] == where(function, text) * 3
        assert not any(frame.endswith(f": {other}") for stack in found for frame in stack)


def test_recursion_through_functions_written_in_c() -> None:
    x = tensor()

    def down(n: int) -> int:
        if n == 0:
            x + x
            return 0
        return max(map(down, [n - 1]))

    def step() -> None:
        down(3)

    prof = record(step)
    expected = where(down, "x + x") + where(down, "max(map") * 3 + where(step, "down(3)")
    assert of_python(prof) == [expected]
    (whole,) = stacks(prof)
    assert whole.count("<built-in function max>") == 3


def test_two_functions_that_call_each_other() -> None:
    x = tensor()

    def even(n: int) -> None:
        if n:
            odd(n - 1)
        else:
            x + x

    def odd(n: int) -> None:
        even(n - 1)

    def step() -> None:
        even(4)

    pair = where(odd, "even(n - 1)") + where(even, "odd(n - 1)")
    prof = record(step)
    assert of_python(prof) == [where(even, "x + x") + pair * 2 + where(step, "even(4)")]
    assert sum(event.name.endswith(": odd") for event in calls(prof)) == 2


def test_recursion_that_fails_halfway() -> None:
    x = tensor()

    def down(n: int) -> None:
        if n == 0:
            raise ValueError
        try:
            down(n - 1)
        finally:
            x + x

    def step() -> None:
        with contextlib.suppress(ValueError):
            down(3)
        x * x

    prof = record(step)
    (inside,), (call,) = where(down, "x + x"), where(down, "down(n - 1)")
    caller = where(step, "down(3)")
    assert of_python(prof) == [[inside, *[call] * depth, *caller] for depth in (2, 1, 0)]
    assert of_python(prof, "aten::mul") == [where(step, "x * x")]


def test_callbacks_that_fail_in_functions_written_in_c() -> None:
    x = tensor()

    def fail(_: int) -> int:
        x + x
        raise ValueError

    def step() -> None:
        with contextlib.suppress(ValueError):
            sorted([2, 1], key=fail)
        x * x

    prof = record(step)
    assert of_python(prof) == [where(fail, "x + x") + where(step, "sorted")]
    assert stacks(prof, "aten::mul") == [where(step, "x * x")]


def test_callbacks_by_partial_reduce_and_foreign_functions() -> None:
    x = tensor()

    def key(_: int, value: int = 0) -> int:
        x + x
        return value

    foreign = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(key)

    def step() -> None:
        functools.partial(key, 1)()
        functools.reduce(key, [1, 2])
        foreign(3)

    found = of_python(record(step))
    assert [stack[0] for stack in found] == where(key, "x + x") * 3
    expected = [where(step, text)[0] for text in ("partial", "reduce", "foreign(3)")]
    assert [stack[-1] for stack in found] == expected


def test_finalizers_are_called_by_the_line_that_drops_the_last_reference() -> None:
    x = tensor()

    class Thing:
        def __del__(self) -> None:
            x + x

    def gone(_: Any) -> None:
        x * x

    def step() -> None:
        thing = Thing()
        watch = weakref.ref(thing, gone)
        del thing
        assert watch() is None

    prof = record(step)
    (dropped,) = where(step, "del thing")
    assert of_python(prof) == [[*where(Thing.__del__, "x + x"), dropped]]
    assert of_python(prof, "aten::mul") == [[*where(gone, "x * x"), dropped]]


def test_code_that_is_made_while_it_runs() -> None:
    x = tensor()
    source = "def made():\n    return x + x\n"

    def step() -> None:
        scope: dict[str, Any] = {"x": x}
        exec(compile(source, "made.py", "exec"), scope)
        scope["made"]()

    prof = record(step)
    (stack,) = of_python(prof)
    assert stack[0].endswith("made.py(2): made")
    assert stack[1:] == where(step, 'scope["made"]()')


def test_workers_of_a_pool() -> None:
    x = tensor()

    def work(turns: int) -> None:
        for _ in range(turns):
            x + x

    def step() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, [2, 3]))
        asyncio.run(asyncio.to_thread(work, 1))

    found = of_python(record(step))
    assert [stack[0] for stack in found] == where(work, "x + x") * 6
    assert all(frame != where(step, "pool.map")[0] for stack in found for frame in stack)
