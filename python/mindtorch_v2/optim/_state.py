"""Saving and loading the state of optimizers, with parameters identified by number."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

if TYPE_CHECKING:
    from mindtorch_v2.optim.optimizer import Optimizer


def save(optimizer: Optimizer) -> dict[str, Any]:
    """Returns the state and the options of an optimizer, with parameters as numbers."""
    numbers: dict[torch.Tensor, int] = {}
    for parameter in _parameters(optimizer):
        numbers.setdefault(parameter, len(numbers))
    groups = []
    for group in optimizer.param_groups:
        saved = {option: value for option, value in group.items() if option != "params"}
        saved["params"] = [numbers[parameter] for parameter in group["params"]]
        groups.append(saved)
    # State that belongs to no parameter keeps its key.
    state = {numbers.get(key, key): values for key, values in optimizer.state.items()}
    return {"state": state, "param_groups": groups}


def load(optimizer: Optimizer, saved: dict[str, Any]) -> None:
    """Replaces the state and the options of an optimizer with saved ones."""
    groups = copy.deepcopy(saved["param_groups"])
    if len(groups) != len(optimizer.param_groups):
        raise ValueError("loaded state dict has a different number of parameter groups")
    pairs = list(zip(optimizer.param_groups, groups, strict=True))
    if any(len(own["params"]) != len(new["params"]) for own, new in pairs):
        raise ValueError(
            "loaded state dict contains a parameter group "
            "that doesn't match the size of optimizer's group"
        )
    parameters = {
        number: parameter
        for own, new in pairs
        for number, parameter in zip(new["params"], own["params"], strict=True)
    }
    optimizer.state.clear()
    for number, values in saved["state"].items():
        if number not in parameters:
            optimizer.state[number] = values  # belongs to no parameter: nothing to convert
            continue
        parameter = parameters[number]
        optimizer.state[parameter] = {
            name: _fit(name, value, parameter) for name, value in values.items()
        }
    optimizer.param_groups = [_joined(optimizer.defaults, own, new) for own, new in pairs]


def _joined(defaults: dict[str, Any], own: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Returns a loaded group with the parameters of the group that it replaces."""
    names = {"param_names": own["param_names"]} if "param_names" in own else {}
    return {**defaults, **names, **new, "params": own["params"]}


def _parameters(optimizer: Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _fit(name: str, value: Any, parameter: torch.Tensor) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_fit(name, entry, parameter) for entry in value)
    # The step counter keeps its own dtype, whatever that of the parameter.
    if not isinstance(value, torch.Tensor) or name == "step":
        return value
    return value.to(parameter.dtype) if parameter.is_floating_point() else value
