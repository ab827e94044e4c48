"""The members of a module: registration and traversal of parameters, buffers and children.

`_names.py` defines the rules for registered names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import mindtorch_v2 as torch
from mindtorch_v2._typename import typename
from mindtorch_v2.nn import _names
from mindtorch_v2.nn.parameter import Parameter

if TYPE_CHECKING:
    from mindtorch_v2.nn.module import Module

_T = TypeVar("_T")


class Members:
    """The part of `Module` that stores and finds members; `Module` itself calls and converts."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, torch.Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]

    # Registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter, which becomes available as the attribute `name`.

        Args:
            name: The name, without a dot.
            param: The parameter, or `None` if the module does not use it.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _names.check(cast("Module", self), "parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        self._parameters[name] = param

    def register_buffer(
        self, name: str, tensor: torch.Tensor | None, persistent: bool = True
    ) -> None:
        """Adds a tensor that is part of the module's state but is not trained.

        Args:
            name: The name, without a dot.
            tensor: The buffer, or `None` if the module does not use it.
            persistent: Whether it is part of the `state_dict`.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _names.check(cast("Module", self), "buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, torch.Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child, which becomes available as the attribute `name`."""
        if module is not None and not isinstance(module, Members):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _names.check(cast("Module", self), "module", name, self._modules)
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Adds a child; an alias of `add_module`."""
        self.add_module(name, module)

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in fields:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, but=self._parameters)
            self.register_parameter(name, value)
        elif isinstance(value, Members):
            if "_modules" not in fields:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, but=self._modules)
            self._modules[name] = cast("Module", value)
        elif name in fields.get("_parameters", ()):
            _names.allow(name, value, "parameter", "torch.nn.Parameter", type(None))
            self._parameters[name] = value
        elif name in fields.get("_modules", ()):
            _names.allow(name, value, "child module", "torch.nn.Module", type(None))
            self._modules[name] = value
        elif name in fields.get("_buffers", ()):
            _names.allow(name, value, "buffer", "torch.nn.Buffer, torch.Tensor", torch.Tensor)
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        # Called only if normal attribute lookup fails.
        fields = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            members = fields.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        if name in self._parameters or name in self._buffers or name in self._modules:
            self._forget(name)
        elif name in self.__dict__:
            object.__delattr__(self, name)
        else:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        names = {*object.__dir__(self), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[:1].isdigit())

    def _forget(self, name: str, but: Mapping[str, Any] | None = None) -> None:
        for members in (self.__dict__, self._parameters, self._buffers, self._modules):
            if members is not but:
                members.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    # Traversal

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yields this module and its descendants with their dotted names, each module once."""
        memo = set() if memo is None else memo
        own = cast("Module", self)
        if own in memo:
            return
        if remove_duplicate:
            memo.add(own)
        yield prefix, own
        for name, child in self._modules.items():
            if child is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yields this module and its descendants, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yields the direct children with their names, each once."""
        yield from _once(self._modules.items())

    def children(self) -> Iterator[Module]:
        """Yields the direct children, each once."""
        for _, child in self.named_children():
            yield child

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yields the parameters with their dotted names.

        Args:
            prefix: The prefix of all names.
            recurse: Whether to include the parameters of descendants.
            remove_duplicate: Whether a parameter with two names is yielded only under the first.
        """
        members = self._members(lambda module: module._parameters, prefix, recurse)
        yield from _once(members, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields the parameters, each once, as optimizers take them."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Yields the buffers with their dotted names, as `named_parameters` does."""
        members = self._members(lambda module: module._buffers, prefix, recurse)
        yield from _once(members, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[torch.Tensor]:
        """Yields the buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """Returns the module with the dotted name `target`, or this one if the name is empty."""
        return _names.submodule(cast("Module", self), target)

    def get_parameter(self, target: str) -> Parameter:
        """Returns the parameter with the dotted name `target`."""
        found = _names.member(cast("Module", self), target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{target.rpartition('.')[2]}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> torch.Tensor:
        """Returns the buffer with the dotted name `target`."""
        found = _names.member(cast("Module", self), target)
        path, _, name = target.rpartition(".")
        if name not in self.get_submodule(path)._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        buffer: torch.Tensor = found
        return buffer

    def _members(
        self, members: Callable[[Module], Mapping[str, _T]], prefix: str, recurse: bool
    ) -> Iterator[tuple[str, _T]]:
        owners = (
            self.named_modules(prefix=prefix) if recurse else iter([(prefix, cast("Module", self))])
        )
        for path, owner in owners:
            for name, member in members(owner).items():
                yield f"{path}.{name}" if path else name, member


def _once(members: Any, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
    seen = set()
    for name, member in members:
        if member is not None and member not in seen:
            if remove_duplicate:
                seen.add(member)
            yield name, member
