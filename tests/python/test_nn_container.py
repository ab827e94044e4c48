"""`Sequential` and `ModuleList` as lists."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
import pytest
from mindtorch_v2 import nn

loose: Any = nn  # for calls that the types forbid


def kinds(modules: Any) -> list[str]:
    return [type(module).__name__ for module in modules]


def test_a_sequential_runs_its_modules_in_turn() -> None:
    model = nn.Sequential(nn.ReLU(), nn.Flatten(0))
    assert model(torch.tensor([[-1.0, 2.0]])).tolist() == [0.0, 2.0]


def test_a_sequential_is_changed_like_a_list() -> None:
    model = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert len(model) == 3
    assert kinds([model[-1]]) == ["Sigmoid"]
    assert kinds(model[:2]) == ["ReLU", "Tanh"]
    assert kinds([model.pop(0)]) == ["ReLU"]
    assert list(dict(model.named_children())) == ["0", "1"]
    model.insert(1, nn.Flatten())
    assert kinds(model) == ["Tanh", "Flatten", "Sigmoid"]
    model.append(nn.ReLU()).extend([nn.GELU()])
    model[0] = nn.Softmax()
    del model[1:3]
    assert kinds(model) == ["Softmax", "ReLU", "GELU"]
    assert kinds(model + nn.Sequential(nn.Tanh())) == ["Softmax", "ReLU", "GELU", "Tanh"]
    assert len(model * 2) == len(2 * model) == 6
    model *= 2
    model += nn.Sequential(nn.Tanh())
    assert len(model) == 7


def test_a_module_list_is_changed_like_a_list() -> None:
    modules = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    modules.insert(1, nn.Sigmoid())
    modules.append(nn.GELU())
    assert kinds(modules) == ["ReLU", "Sigmoid", "Tanh", "GELU"]
    assert kinds([modules.pop(1)]) == ["Sigmoid"]
    del modules[-1]
    assert kinds(modules) == ["ReLU", "Tanh"]
    assert kinds(modules + nn.ModuleList([nn.GELU()])) == ["ReLU", "Tanh", "GELU"]
    modules += [nn.GELU()]
    assert kinds(modules[1:]) == ["Tanh", "GELU"]
    assert isinstance(modules[1:], nn.ModuleList)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda s: s[5], IndexError, "index 5 is out of range"),
        (lambda s: s + 3, ValueError, "add operator supports only objects of Sequential class"),
        (lambda s: s * 0, ValueError, "Non-positive multiplication factor 0"),
        (lambda s: s * "a", TypeError, "unsupported operand type(s) for *"),
        (lambda s: s.insert(0, 3), AssertionError, "module should be of type"),
        (lambda s: s.insert(9, nn.ReLU()), IndexError, "Index out of range: 9"),
        (lambda s: loose.Sequential(3), TypeError, "int is not a Module subclass"),
        (
            lambda s: loose.ModuleList().extend(3),
            TypeError,
            "ModuleList.extend should be called with an iterable, but got int",
        ),
        (
            lambda s: nn.ModuleList()(1),
            NotImplementedError,
            'Module [ModuleList] is missing the required "forward" function',
        ),
    ],
)
def test_errors_are_those_of_torch(act: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        act(nn.Sequential(nn.ReLU()))
    assert message in str(raised.value)
