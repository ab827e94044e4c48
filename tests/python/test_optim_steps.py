"""Optimizers against what torch did: values, state, and the operators of a step."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import mindtorch_v2 as torch
import pytest

from tests.python.host_fixtures import cases, optimizer_cases
from tests.python.host_fixtures.compare import RECORDED, near, operators, recorded_step

NAMES = [*optimizer_cases.OPTIMIZERS, *optimizer_cases.SEARCHERS]

# What runs in the place of operators of torch that the host has not got, as docs/compat.md says.
STAND_INS: dict[str, dict[str, tuple[str, ...]]] = {
    "Adafactor": {
        "aten::square_": ("aten::square",),
    },
    "Muon": {
        "aten::linalg_vector_norm": ("aten::to", "aten::linalg_vector_norm", "aten::to"),
        "aten::lerp": ("aten::clone", "aten::lerp_"),
        "aten::addmm": (
            *("aten::to", "aten::to", "aten::matmul"),
            *("aten::mul_", "aten::to", "aten::add_", "aten::to"),
        ),
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_state_after_twenty_steps_are_those_of_torch(name: str) -> None:
    expected = RECORDED["optimizers"][name]
    found = optimizer_cases.run_optimizer(torch, name)
    assert found["parameters"] == near(expected["parameters"], 1e-5)
    assert found["state"] == near(expected["state"])


@pytest.mark.parametrize("name", NAMES)
def test_options_and_text_are_those_of_torch(name: str) -> None:
    expected = RECORDED["optimizers"][name]
    found = optimizer_cases.run_optimizer(torch, name)
    assert found["options"] == expected["options"]
    assert list(found["options"]) == list(expected["options"])
    assert found["text"] == expected["text"]


@pytest.mark.parametrize("name", NAMES)
def test_a_step_runs_the_operators_of_torch(name: str) -> None:
    params = optimizer_cases.params_of(torch, name)
    optimizer = optimizer_cases.make(torch, name, params)
    found: list[list[str]] = []
    for step in range(3):
        run = optimizer_cases.prepare(torch, name, params, optimizer, step)
        found.append(operators(run))
    known = recorded_step(name, "first"), recorded_step(name, "later")
    stand_ins = STAND_INS.get(name.split()[0])
    if stand_ins is not None:
        closed = {*stand_ins, *(line for lines in stand_ins.values() for line in lines)}
        expected = [replaced(without_inner(lines, closed), stand_ins) for lines in known]
        assert [without_inner(found[0], closed), without_inner(found[2], closed)] == expected
    else:
        assert (found[0], found[2]) == known


def replaced(lines: list[str], stand_ins: dict[str, tuple[str, ...]]) -> list[str]:
    """Returns the lines with those in the place of others that run here."""
    return [
        line[: len(line) - len(line.lstrip())] + name
        for line in lines
        for name in stand_ins.get(line.strip(), (line.strip(),))
    ]


def without_inner(lines: list[str], closed: Collection[str]) -> list[str]:
    """Leaves out what some operators show inside of them, as here they do not."""
    kept: list[str] = []
    hidden_below: int | None = None
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if hidden_below is not None and depth > hidden_below:
            continue
        hidden_below = depth if line.strip() in closed else None
        kept.append(line)
    return kept


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad_clears_in_a_scope_of_its_own(set_to_none: bool) -> None:
    params = cases.parameters(torch)
    optimizer = torch.optim.SGD(params)
    cases.set_gradients(torch, params, 0)
    found = operators(lambda: optimizer.zero_grad(set_to_none))
    assert found == recorded_step("SGD", "none" if set_to_none else "zeros")
    if set_to_none:
        assert all(param.grad is None for param in params)
    else:
        assert all(param.grad.sum().item() == 0 for param in params)


def test_a_training_loop_follows_that_of_torch() -> None:
    assert cases.run_training(torch) == near(RECORDED["training"])


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_optimizer_goes_on_where_the_saved_one_was(name: str) -> None:
    params = optimizer_cases.params_of(torch, name)
    optimizer = optimizer_cases.make(torch, name, params)
    for step in range(optimizer_cases.STEPS):
        if step == 2:
            saved = optimizer.state_dict()
            optimizer = optimizer_cases.make(torch, name, params)
            optimizer.load_state_dict(saved)
        optimizer_cases.prepare(torch, name, params, optimizer, step)()
    expected: Any = RECORDED["optimizers"][name]["parameters"]
    assert [param.tolist() for param in params] == near(expected, 1e-5)
