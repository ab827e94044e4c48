"""Optimizers against what torch did: values, state, and the operators of a step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
import pytest

from tests.python.host_fixtures import cases
from tests.python.host_fixtures.compare import RECORDED, near, operators

NAMES = list(cases.OPTIMIZERS)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_state_after_five_steps_are_those_of_torch(name: str) -> None:
    expected = RECORDED["optimizers"][name]
    found = cases.run_optimizer(torch, name)
    assert found["parameters"] == near(expected["parameters"])
    assert found["state"] == near(expected["state"])


@pytest.mark.parametrize("name", NAMES)
def test_options_and_text_are_those_of_torch(name: str) -> None:
    expected = RECORDED["optimizers"][name]
    found = cases.run_optimizer(torch, name)
    assert found["options"] == expected["options"]
    assert list(found["options"]) == list(expected["options"])
    assert found["text"] == expected["text"]


@pytest.mark.parametrize("name", NAMES)
def test_a_step_runs_the_operators_of_torch(name: str, tmp_path: Path) -> None:
    params = cases.parameters(torch)
    optimizer = cases.OPTIMIZERS[name](torch.optim, params)
    found: list[list[str]] = []
    for step in range(3):
        cases.set_gradients(torch, params, step)
        found.append(operators(optimizer.step, tmp_path / f"{step}.json"))
    assert found[0] == RECORDED["steps"][name]["first"]
    assert found[2] == RECORDED["steps"][name]["later"]


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad_clears_in_a_scope_of_its_own(set_to_none: bool, tmp_path: Path) -> None:
    params = cases.parameters(torch)
    optimizer = torch.optim.SGD(params)
    cases.set_gradients(torch, params, 0)
    found = operators(lambda: optimizer.zero_grad(set_to_none), tmp_path / "trace.json")
    assert found == RECORDED["steps"]["SGD"]["none" if set_to_none else "zeros"]
    if set_to_none:
        assert all(param.grad is None for param in params)
    else:
        assert all(param.grad.sum().item() == 0 for param in params)


def test_a_training_loop_follows_that_of_torch() -> None:
    assert cases.run_training(torch) == near(RECORDED["training"])


@pytest.mark.parametrize("name", ["SGD momentum", "Adam amsgrad", "RMSprop centered", "Adagrad"])
def test_a_loaded_optimizer_goes_on_where_the_saved_one_was(name: str) -> None:
    params = cases.parameters(torch)
    make = cases.OPTIMIZERS[name]
    optimizer = make(torch.optim, params)
    for step in range(cases.STEPS):
        if step == 2:
            saved = optimizer.state_dict()
            optimizer = make(torch.optim, params)
            optimizer.load_state_dict(saved)
        cases.set_gradients(torch, params, step)
        optimizer.step()
    expected: Any = RECORDED["optimizers"][name]["parameters"]
    assert [param.tolist() for param in params] == near(expected)
