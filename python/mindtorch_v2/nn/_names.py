"""Rules for the names and values of a module's members, and the lookup of dotted names."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

from mindtorch_v2._typename import typename

if TYPE_CHECKING:
    from mindtorch_v2.nn.module import Module


def check(owner: Module, kind: str, name: str, members: Container[str]) -> None:
    """Raises torch's exception unless `name` can be registered with `owner`."""
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if name not in members and hasattr(owner, name):
        raise KeyError(f"attribute '{name}' already exists")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" * (kind == "module")))
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def allow(name: str, value: Any, kind: str, expected: str, allowed: type) -> None:
    """Raises `TypeError` unless `value` is `None` or an `allowed` replacement for a member."""
    if value is not None and not isinstance(value, allowed):
        raise TypeError(
            f"cannot assign '{typename(value)}' as {kind} '{name}' ({expected} or None expected)"
        )


def submodule(root: Module, path: str) -> Module:
    """Returns the module at a dotted path below `root`."""
    from mindtorch_v2.nn.module import Module

    module = root
    for name in path.split(".") if path else ():
        found = member(module, name)
        if not isinstance(found, Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        module = found
    return module


def member(root: Module, path: str) -> Any:
    """Returns the attribute at a dotted path below `root`."""
    owner_path, _, name = path.rpartition(".")
    owner = submodule(root, owner_path)
    if not hasattr(owner, name):
        raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
    return getattr(owner, name)
