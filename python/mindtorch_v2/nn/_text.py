"""The printed form of modules: their options in parentheses, and each child on its own line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mindtorch_v2.nn.module import Module


def describe(module: Module) -> str:
    """Formats a module: one line if it has no children, otherwise an indented tree."""
    children = ((name, repr(child)) for name, child in module._modules.items())
    return assemble(module, (f"({name}): {text}" for name, text in children))


def describe_list(module: Module) -> str:
    """Formats a numbered container, in which equal neighbors share a line.

    ```text
    ModuleList(
      (0-2): 3 x ReLU()
      (3): Tanh()
    )
    ```
    """
    runs: list[tuple[int, int, str]] = []
    for index, child in enumerate(module._modules.values()):
        text = repr(child)
        if runs and runs[-1][2] == text:
            runs[-1] = (runs[-1][0], index, text)
        else:
            runs.append((index, index, text))
    return assemble(module, (_numbered(*run) for run in runs))


def assemble(module: Module, entries: Iterable[str]) -> str:
    """Joins the name of a module, its `extra_repr` and the texts of its children."""
    extra = module.extra_repr()
    lines = [line for entry in entries for line in entry.split("\n")]
    if not lines and "\n" not in extra:
        return f"{type(module).__name__}({extra})"
    body = "\n  ".join([*(extra.split("\n") if extra else ()), *lines])
    return f"{type(module).__name__}(\n  {body}\n)"


def _numbered(first: int, last: int, text: str) -> str:
    if first == last:
        return f"({first}): {text}"
    return f"({first}-{last}): {last - first + 1} x {text}"
