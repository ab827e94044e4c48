"""The frames of stacks, as tests look at them."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from mindprof.profiler import profile

from tests.workloads import torch


def tensor() -> Any:
    """Returns what operators are called with."""
    return torch.ones((2, 2))


def record(action: Callable[[], Any], **flags: Any) -> profile:
    """Profiles a call with stacks."""
    with profile(with_stack=True, **flags) as prof:
        action()
    return prof


def stacks(prof: profile, name: str = "aten::add") -> list[list[str]]:
    """Returns the stacks of the operators of this name, without what called the test."""
    found = [event.stack or [] for event in prof.events() if event.name == name]
    return [list(own(stack)) for stack in found]


def own(stack: list[str]) -> Iterator[str]:
    """Walks the frames inside of `record`."""
    for frame in stack:
        if frame.endswith(": record"):
            return
        yield re.sub(r" object at 0x[0-9a-f]+", " object", frame)


def where(function: Callable[..., Any], text: str) -> list[str]:
    """Returns the frames of a function at those of its lines that have this text."""
    code = inspect.unwrap(function).__code__
    lines, first = inspect.getsourcelines(function)
    numbers = [number for number, line in enumerate(lines, first) if text in line]
    assert numbers, f"{text} is in a line of {code.co_name}"
    return [at(code.co_filename, number, code.co_name) for number in numbers]


def at(file: str, number: int, function: str) -> str:
    """Returns a frame as stacks show it."""
    return f"{shown_file(file)}({number}): {function}"


def shown_file(file: str) -> str:
    """Returns how a file is called in stacks: without the folder it was found in."""
    roots = sorted((os.path.abspath(root) + os.sep for root in sys.path), reverse=True)
    path = os.path.abspath(file)
    return next((path.removeprefix(root) for root in roots if path.startswith(root)), path)


def calls(prof: profile) -> list[Any]:
    """Returns the calls of Python functions."""
    return [event for event in prof.events() if event.is_python_function]
