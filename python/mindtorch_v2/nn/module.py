"""`Module`: what layers and models are made of.

It owns parameters, buffers and child modules, and walks, calls, converts and prints them. What a
registered name may be is in `_names.py`, saving and loading in `_state.py`, calling with hooks in
`_hooks.py`, the printed form in `_text.py`.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import mindtorch_v2 as torch
from mindprof import _core
from mindtorch_v2._gradient import clear_gradient
from mindtorch_v2._typename import typename
from mindtorch_v2.nn import _hooks, _names, _state, _text
from mindtorch_v2.nn.parameter import Parameter
from mindtorch_v2.utils.hooks import RemovableHandle, register

if TYPE_CHECKING:
    from typing_extensions import Self

_T = TypeVar("_T")


def _missing_forward(self: Module, *_input: Any) -> None:
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Module:
    """The base of all layers and models.

    Assigning a `Parameter` or a `Module` to an attribute registers it: it is then walked, saved,
    converted and printed with its owner. Subclasses call `super().__init__()` first and define
    `forward`.

    Example:
        >>> from mindtorch_v2 import nn
        >>> class Model(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = nn.Linear(4, 2)
        ...     def forward(self, x):
        ...         return self.layer(x).relu()
        >>> model = Model()
        >>> model
        Model(
          (layer): Linear(in_features=4, out_features=2, bias=True)
        )
        >>> [name for name, _ in model.named_parameters()]
        ['layer.weight', 'layer.bias']
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, torch.Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]
    _forward_hooks: OrderedDict[int, _hooks.ForwardHook]
    _forward_pre_hooks: OrderedDict[int, _hooks.ForwardPreHook]
    _backward_hooks: OrderedDict[int, _hooks.BackwardHook]
    _backward_pre_hooks: OrderedDict[int, _hooks.BackwardPreHook]

    forward: Callable[..., Any] = _missing_forward

    def __init__(self) -> None:
        # Straight into the dictionary: `__setattr__` looks these up.
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _modules={},
            _forward_hooks=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _backward_pre_hooks=OrderedDict(),
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs `forward`, with the hooks around it."""
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
        ):
            return _hooks.call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # Tensors that are no parameters do not say how they are copied: `memo` says it for them.
        for value in (*self._buffers.values(), *self.__dict__.values()):
            if isinstance(value, torch.Tensor):
                memo.setdefault(id(value), value.detach().clone())
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied

    # Registering

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter, which can then be reached as the attribute `name`.

        Args:
            name: Its name, without a dot.
            param: The parameter, or None for one that this module goes without.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _names.check(self, "parameter", name, self._parameters)
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
            name: Its name, without a dot.
            tensor: The buffer, or None for one that this module goes without.
            persistent: Whether it is part of the `state_dict`.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _names.check(self, "buffer", name, self._buffers)
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
        """Adds a child, which can then be reached as the attribute `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _names.check(self, "module", name, self._modules)
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Does what `add_module` does."""
        self.add_module(name, module)

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in fields:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, but=self._parameters)
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in fields:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, but=self._modules)
            self._modules[name] = value
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
        # Called only for what is no plain attribute.
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

    # Walking

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yields this module and all below it with their dotted names, each module once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yields this module and all below it, each once."""
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
            prefix: What all names begin with.
            recurse: Whether those of the modules below are yielded too.
            remove_duplicate: Whether a parameter with two names is yielded under the first only.
        """
        members = self._members(lambda module: module._parameters, prefix, recurse)
        yield from _once(members, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields the parameters, each once: what an optimizer is given."""
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
        """Returns the module with the dotted name `target`; this one for an empty name."""
        return _names.submodule(self, target)

    def get_parameter(self, target: str) -> Parameter:
        """Returns the parameter with the dotted name `target`."""
        found = _names.member(self, target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{target.rpartition('.')[2]}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> torch.Tensor:
        """Returns the buffer with the dotted name `target`."""
        found = _names.member(self, target)
        path, _, name = target.rpartition(".")
        if name not in self.get_submodule(path)._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        buffer: torch.Tensor = found
        return buffer

    def _members(
        self, members: Callable[[Module], Mapping[str, _T]], prefix: str, recurse: bool
    ) -> Iterator[tuple[str, _T]]:
        owners = self.named_modules(prefix=prefix) if recurse else iter([(prefix, self)])
        for path, owner in owners:
            for name, member in members(owner).items():
                yield f"{path}.{name}" if path else name, member

    # Changing all at once

    def train(self, mode: bool = True) -> Self:
        """Puts this module and all below it into training mode, or out of it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        """Puts this module and all below it into evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Says for all parameters whether they ask for gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters: drops them, or fills them with zeros."""
        for parameter in self.parameters():
            clear_gradient(parameter, set_to_none)

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Calls `fn` on all modules below this one, children first, and then on this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Converts parameters and buffers in place: `to(dtype)`, `to(device)`, `to(device, dtype)`.

        A dtype changes floating point tensors only. A parameter whose dtype changes is a new
        object, so optimizers are made after it.
        """
        device, dtype = _state.target(*args, **kwargs)

        def convert(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(device, dtype if tensor.is_floating_point() else tensor.dtype)

        return self._apply(convert)

    def cpu(self) -> Self:
        """Moves parameters and buffers to the CPU, where they are."""
        return self.to("cpu")

    def float(self) -> Self:
        """Converts floating point parameters and buffers to float32."""
        return self.to(torch.float32)

    def double(self) -> Self:
        """Converts floating point parameters and buffers to float64."""
        return self.to(torch.float64)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor]) -> Self:
        converted: dict[Parameter, Parameter] = {}  # what two modules share they share again
        for module in self.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    if parameter not in converted:
                        converted[parameter] = _state.convert(parameter, fn)
                    module._parameters[name] = converted[parameter]
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = fn(buffer)
        return self

    # Saving and loading

    def state_dict(
        self,
        *,
        destination: OrderedDict[str, torch.Tensor] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> OrderedDict[str, torch.Tensor]:
        """Returns parameters and persistent buffers by their dotted names.

        The tensors share their memory with the module.

        Args:
            destination: The dictionary to fill, instead of a new one.
            prefix: What all names begin with.
            keep_vars: Give the parameters themselves, not detached from the graph.
        """
        return _state.save(
            self, OrderedDict() if destination is None else destination, prefix, keep_vars
        )

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _state.IncompatibleKeys:
        """Copies values from a `state_dict` into parameters and buffers.

        Args:
            state_dict: Tensors by their dotted names.
            strict: Whether its names must be exactly this module's.
            assign: Take over the tensors themselves instead of copying their values.

        Returns:
            The names that were missing and those that were not expected.

        Raises:
            RuntimeError: Names or shapes do not fit; the message lists them all.
        """
        return _state.load(self, state_dict, strict=strict, assign=assign)

    # Hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Registers `hook(module, args)`, called before `forward`, which may replace its arguments.

        Args:
            hook: The function. What it returns, unless None, is what `forward` is given.
            prepend: Call it before the hooks that are there.
            with_kwargs: Call `hook(module, args, kwargs)`; a result is then `(args, kwargs)`.
        """
        entry = _hooks.ForwardPreHook(hook, with_kwargs)
        return register(self._forward_pre_hooks, entry, prepend=prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Registers `hook(module, args, output)`, called after `forward`, which may replace it.

        Args:
            hook: The function. What it returns, unless None, takes the place of the output.
            prepend: Call it before the hooks that are there.
            with_kwargs: Call `hook(module, args, kwargs, output)`.
            always_call: Call it also when `forward` raised; the output is then None.
        """
        entry = _hooks.ForwardHook(hook, with_kwargs, always_call)
        return register(self._forward_hooks, entry, prepend=prepend)

    def register_full_backward_pre_hook(
        self, hook: _hooks.BackwardPreHook, prepend: bool = False
    ) -> RemovableHandle:
        """Registers `hook(module, grad_output)`, called as gradients reach it.

        What it returns, unless None, takes the place of `grad_output`.
        """
        return register(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(
        self, hook: _hooks.BackwardHook, prepend: bool = False
    ) -> RemovableHandle:
        """Registers `hook(module, grad_input, grad_output)`, called as gradients leave it.

        What it returns, unless None, takes the place of `grad_input`.
        """
        return register(self._backward_hooks, hook, prepend=prepend)

    # Printing

    def extra_repr(self) -> str:
        """Returns what stands in the parentheses when the module is printed."""
        return ""

    def __repr__(self) -> str:
        return _text.describe(self)


def _once(members: Any, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
    seen = set()
    for name, member in members:
        if member is not None and member not in seen:
            if remove_duplicate:
                seen.add(member)
            yield name, member


# A profile tells calls of modules by the modules' names.
_core.name_module_calls(Module.__call__)
