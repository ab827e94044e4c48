"""Stacks of operators in greenlets, which share one thread: each operator has its own lines."""

from __future__ import annotations

from collections import Counter
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]

greenlet = pytest.importorskip("greenlet")


def innermost(prof: Any, *names: str) -> list[tuple[str, list[str]]]:
    """Returns operators with the functions of this file in their stacks, without the tests."""
    found = []
    for event in prof.events():
        if event.name in names:
            functions = [frame.split(": ")[-1] for frame in event.stack]
            own = [name for name in functions if name.startswith(("task", "inner", "key"))]
            found.append((event.name, own))
    return found


def inner_switch(turns: list[Any]) -> None:
    turns[0].switch()


def task_of_sums(x: torch.Tensor, turns: list[Any]) -> None:
    for _ in range(3):
        x + x
        inner_switch(turns)
        x + x


def inner_product(x: torch.Tensor, turns: list[Any]) -> None:
    inner_switch(turns)
    x * x


def task_of_products(x: torch.Tensor, turns: list[Any]) -> None:
    for _ in range(3):
        inner_product(x, turns)


def finish(tasks: list[Any], *arguments: Any) -> None:
    """Lets greenlets take turns until all have finished; those that start get the arguments."""
    while any(not task.dead for task in tasks):
        for task in tasks:
            if not task.dead:
                task.switch(*(() if task else arguments))


@pytest.mark.parametrize("began_before", [False, True])
def test_operators_have_the_lines_of_their_own_greenlet(began_before: bool) -> None:
    x = torch.ones(2)
    hub = greenlet.getcurrent()
    tasks = [greenlet.greenlet(task) for task in (task_of_sums, task_of_products)]
    if began_before:
        for task in tasks:
            task.switch(x, [hub])
    with mindprof.profile(with_stack=True) as prof:
        finish(tasks, x, [hub])
    wanted = {
        "aten::add": ["task_of_sums"],
        "aten::mul": ["inner_product", "task_of_products"],
    }
    found = innermost(prof, *wanted)
    assert all(functions == wanted[name] for name, functions in found), found
    begun = 1 if began_before else 0
    assert Counter(name for name, _ in found) == {"aten::add": 6 - begun, "aten::mul": 3}
    assert prof.lost_events == 0


def test_a_native_call_that_switches_is_not_the_caller_of_others_operators() -> None:
    x = torch.ones(2)

    def key_that_switches(number: int) -> int:
        inner_switch([hub])
        x + x
        return number

    def task_in_native_call() -> None:
        sorted([2, 1], key=key_that_switches)

    def task_of_products() -> None:
        hub.switch()
        x * x
        hub.switch()
        x * x

    hub = greenlet.getcurrent()
    tasks = [greenlet.greenlet(task) for task in (task_in_native_call, task_of_products)]
    with mindprof.profile(with_stack=True) as prof:
        finish(tasks)
    found = innermost(prof, "aten::add", "aten::mul")
    wanted = {
        "aten::add": ["key_that_switches", "task_in_native_call"],
        "aten::mul": ["task_of_products"],
    }
    assert len(found) == 4
    assert all(functions == wanted[name] for name, functions in found), found


def test_calls_of_a_thread_nest_whatever_greenlets_do() -> None:
    x = torch.ones(2)
    with mindprof.profile(with_stack=True) as prof:
        hub = greenlet.getcurrent()
        tasks = [greenlet.greenlet(task) for task in (task_of_sums, task_of_products)]
        finish(tasks, x, [hub])
    for event in prof.events():
        parent = event.cpu_parent
        if parent is not None:
            assert parent.time_range.start <= event.time_range.start
            assert event.time_range.end <= parent.time_range.end
    parents = {e.cpu_parent.name.split(": ")[-1] for e in prof.events() if e.name == "aten::mul"}
    assert parents == {"inner_product"}


def test_gevent_tasks_have_their_own_lines() -> None:
    gevent = pytest.importorskip("gevent")
    x = torch.ones(2)

    def task_of_sums() -> None:
        for _ in range(3):
            x + x
            gevent.sleep(0)

    def inner_product() -> None:
        gevent.sleep(0)
        x * x

    def task_of_products() -> None:
        for _ in range(3):
            inner_product()

    with mindprof.profile(with_stack=True) as prof:
        tasks = (task_of_sums, task_of_products, task_of_products)
        gevent.joinall([gevent.spawn(task) for task in tasks])
    wanted = {
        "aten::add": ["task_of_sums"],
        "aten::mul": ["inner_product", "task_of_products"],
    }
    found = innermost(prof, *wanted)
    assert all(functions == wanted[name] for name, functions in found), found
    assert len(found) == 9
