"""Saving, loading and converting the tensors of a module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import mindtorch_v2 as torch
from mindtorch_v2.nn.parameter import Parameter

if TYPE_CHECKING:
    from mindtorch_v2.nn.module import Module


class IncompatibleKeys(NamedTuple):
    """The missing and the unexpected keys that `load_state_dict` found."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


def save(
    module: Module, destination: OrderedDict[str, torch.Tensor], prefix: str, keep_vars: bool
) -> OrderedDict[str, torch.Tensor]:
    """Writes the tensors of `module` and its descendants to `destination`, and returns it."""
    for name, tensor in _persistent(module):
        destination[prefix + name] = tensor if keep_vars else tensor.detach()
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
    return destination


def load(
    module: Module, state_dict: Mapping[str, Any], *, strict: bool, assign: bool
) -> IncompatibleKeys:
    """Loads all tensors that match, and raises one error about all that do not."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    loader = _Loader(state_dict, assign)
    loader.load(module, "")
    errors = loader.errors
    if strict:
        errors = [
            *_listed("Missing", loader.keys.missing_keys),
            *_listed("Unexpected", loader.keys.unexpected_keys),
            *errors,
        ]
    if errors:
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(errors)
        )
    return loader.keys


def target(
    *args: Any, device: Any = None, dtype: torch.dtype | None = None, non_blocking: bool = False
) -> tuple[Any, torch.dtype | None]:
    """Parses the arguments of `Module.to` into a device and a dtype."""
    del non_blocking  # there is one device, so nothing is copied
    for argument in args:
        if isinstance(argument, torch.Tensor):
            device, dtype = argument.device, argument.dtype
        elif isinstance(argument, torch.dtype):
            dtype = argument
        elif argument is not None and not isinstance(argument, bool):
            device = argument
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(
            "nn.Module.to only accepts floating point or complex dtypes, "
            f"but got desired dtype={dtype}"
        )
    return device, dtype


def convert(parameter: Parameter, fn: Callable[[torch.Tensor], torch.Tensor]) -> Parameter:
    """Applies `fn` to the values and the gradient of a parameter, in place if possible."""
    with torch.no_grad():
        values = fn(parameter)
        if values is parameter:
            return parameter
        converted = type(parameter)(values, parameter.requires_grad)
        if parameter.grad is not None:
            converted.grad = fn(parameter.grad)
    return converted


class _Loader:
    """One traversal of a module, with the mismatches found so far."""

    def __init__(self, state_dict: Mapping[str, Any], assign: bool) -> None:
        self.state_dict = state_dict
        self.assign = assign
        self.keys = IncompatibleKeys([], [])
        self.errors: list[str] = []

    def load(self, module: Module, prefix: str) -> None:
        known = set()
        for name, tensor in _persistent(module):
            known.add(name)
            key = prefix + name
            if key in self.state_dict:
                self._put(module, name, tensor, key)
            else:
                self.keys.missing_keys.append(key)
        children = {name: child for name, child in module._modules.items() if child is not None}
        for key in self.state_dict:
            name, _, rest = key[len(prefix) :].partition(".")
            if key.startswith(prefix) and not (name in children if rest else name in known):
                self.keys.unexpected_keys.append(key)
        for name, child in children.items():
            self.load(child, f"{prefix}{name}.")

    def _put(self, module: Module, name: str, tensor: torch.Tensor, key: str) -> None:
        value = self.state_dict[key]
        if not isinstance(value, torch.Tensor):
            self.errors.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received {type(value)}"
            )
        elif tuple(value.shape) != tuple(tensor.shape):
            self.errors.append(
                f"size mismatch for {key}: copying a param with shape {_size(value.shape)} "
                f"from checkpoint, the shape in current model is {_size(tensor.shape)}."
            )
        elif self.assign:
            if isinstance(tensor, Parameter) and not isinstance(value, Parameter):
                value = Parameter(value, requires_grad=tensor.requires_grad)
            setattr(module, name, value)
        else:
            with torch.no_grad():
                tensor.copy_(value)


def _persistent(module: Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield name, parameter
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            yield name, buffer


def _listed(what: str, keys: Sequence[str]) -> Iterator[str]:
    if keys:
        names = ", ".join(f'"{key}"' for key in keys)
        yield f"{what} key(s) in state_dict: {names}. "


def _size(shape: Sequence[int]) -> str:
    return f"torch.Size({list(shape)})"
