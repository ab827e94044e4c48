"""Section 8: which operators have floating-point operations, and how many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from host import profile, torch


def ones(*sizes: int) -> Any:
    return torch.ones(sizes)


def conv2d(*sizes: tuple[int, ...], **options: Any) -> Any:
    x, weight = (torch.ones(size) for size in sizes)
    return torch.nn.functional.conv2d(x, weight, **options)


COUNTED: dict[str, tuple[str, int, Callable[[], Any]]] = {
    "mm": ("aten::mm", 120, lambda: ones(3, 4) @ ones(4, 5)),
    "addmm": (
        "aten::addmm",
        120,
        lambda: torch.nn.functional.linear(ones(3, 4), ones(5, 4), ones(5)),
    ),
    "bmm": ("aten::bmm", 240, lambda: ones(2, 3, 4) @ ones(2, 4, 5)),
    "mul": ("aten::mul", 12, lambda: ones(3, 4) * ones(3, 4)),
    "mul, broadcast": ("aten::mul", 3, lambda: ones(3, 1) * ones(1, 4)),
    "mul, of a number": ("aten::mul", 1, lambda: torch.tensor(2.0) * ones(5)),
    "add": ("aten::add", 12, lambda: ones(3, 4) + ones(3, 4)),
    "add, broadcast": ("aten::add", 3, lambda: ones(3, 1) + ones(1, 4)),
    "nothing to multiply": ("aten::mm", 0, lambda: ones(0, 4) @ ones(4, 5)),
    "conv2d": ("aten::conv2d", 15552, lambda: conv2d((2, 3, 8, 8), (4, 3, 3, 3))),
    "conv2d with stride and padding": (
        "aten::conv2d",
        2 * 2 * 4 * 4 * 3 * 3 * 4 * 6,
        lambda: conv2d((2, 4, 8, 8), (6, 4, 3, 3), stride=2, padding=1),
    ),
}

NOT_COUNTED: dict[str, Callable[[], Any]] = {
    "aten::sub": lambda: ones(3, 4) - ones(3, 4),
    "aten::div": lambda: ones(3, 4) / ones(3, 4),
    "aten::sum": lambda: ones(3, 4).sum(),
    "aten::relu": lambda: ones(3, 4).relu(),
    "aten::mul_": lambda: ones(3, 4).mul_(2),
    "aten::add_": lambda: ones(3, 4).add_(2),
    "aten::matmul": lambda: ones(3, 4) @ ones(4, 5),
    "aten::linear": lambda: torch.nn.functional.linear(ones(3, 4), ones(5, 4), ones(5)),
}


def rows(action: Callable[[], Any], **options: Any) -> dict[str, Any]:
    with profile(**options) as prof:
        action()
    return {row.key: row for row in prof.key_averages()}


@pytest.mark.parametrize("case", COUNTED)
def test_the_formula(case: str) -> None:
    name, flops, action = COUNTED[case]
    assert rows(action, with_flops=True)[name].flops == flops


@pytest.mark.parametrize("name", NOT_COUNTED)
def test_no_formula(name: str) -> None:
    assert rows(NOT_COUNTED[name], with_flops=True)[name].flops == 0


def test_nothing_is_counted_unless_it_is_asked_for() -> None:
    action = COUNTED["mm"][2]
    assert rows(action, record_shapes=True)["aten::mm"].flops == 0


def test_flops_are_events_and_rows_and_a_column() -> None:
    with profile(with_flops=True) as prof:
        for _ in range(3):
            ones(30, 40) @ ones(40, 50)
    counts = [event.flops for event in prof.events() if event.name == "aten::mm"]
    assert counts == [120_000] * 3
    table = prof.key_averages().table()
    line = next(line for line in table.splitlines() if " aten::mm " in line)
    assert "Total KFLOPs" in table
    assert line.split()[-1] == "360.000"
    assert "--" in table
