"""What optimizers keep: saved by number, loaded for parameters."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

if TYPE_CHECKING:
    from mindtorch_v2.optim.optimizer import Optimizer


def save(optimizer: Optimizer) -> dict[str, Any]:
    """Returns an optimizer's state and options, with parameters by their number."""
    numbers: dict[torch.Tensor, int] = {}
    for parameter in _parameters(optimizer):
        numbers.setdefault(parameter, len(numbers))
    groups = []
    for group in optimizer.param_groups:
        saved = {option: value for option, value in group.items() if option != "params"}
        saved["params"] = [numbers[parameter] for parameter in group["params"]]
        groups.append(saved)
    # What belongs to no parameter keeps its key.
    state = {numbers.get(key, key): values for key, values in optimizer.state.items()}
    return {"state": state, "param_groups": groups}


def load(optimizer: Optimizer, saved: dict[str, Any]) -> None:
    """Puts saved state and options in the place of an optimizer's own."""
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
            optimizer.state[number] = values  # of no parameter, so that there is nothing to fit
            continue
        parameter = parameters[number]
        optimizer.state[parameter] = {
            name: _fit(name, value, parameter) for name, value in values.items()
        }
    optimizer.param_groups = [_joined(optimizer.defaults, own, new) for own, new in pairs]


def _joined(defaults: dict[str, Any], own: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Returns a loaded group with the parameters of the group whose place it takes."""
    names = {"param_names": own["param_names"]} if "param_names" in own else {}
    return {**defaults, **names, **new, "params": own["params"]}


def _parameters(optimizer: Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _fit(name: str, value: Any, parameter: torch.Tensor) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_fit(name, entry, parameter) for entry in value)
    # A counter of steps keeps its own type, whatever the parameter is made of.
    if not isinstance(value, torch.Tensor) or name == "step":
        return value
    return value.to(parameter.dtype) if parameter.is_floating_point() else value
