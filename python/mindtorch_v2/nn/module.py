"""`Module`: the base class of layers and models.

This file calls, converts and prints modules. Registration and traversal of members are in
`_members.py`, saving and loading in `_state.py`, calls with hooks in `_hooks.py`, and the printed
form in `_text.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mindprof import _core
from mindprof._core import note_module

import mindtorch_v2 as torch
from mindtorch_v2._gradient import clear_gradient
from mindtorch_v2.nn import _hooks, _state, _text
from mindtorch_v2.nn._members import Members
from mindtorch_v2.nn.parameter import Parameter
from mindtorch_v2.utils.hooks import RemovableHandle, register

if TYPE_CHECKING:
    from typing_extensions import Self


def _missing_forward(self: Module, *_input: Any) -> None:
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Module(Members):
    """The base class of all layers and models.

    Assigning a `Parameter` or a `Module` to an attribute registers it, so that it is traversed,
    saved, converted and printed together with its owner. Subclasses call `super().__init__()` first
    and define `forward`.

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
    _forward_hooks: OrderedDict[int, _hooks.ForwardHook]
    _forward_pre_hooks: OrderedDict[int, _hooks.ForwardPreHook]
    _backward_hooks: OrderedDict[int, _hooks.BackwardHook]
    _backward_pre_hooks: OrderedDict[int, _hooks.BackwardPreHook]

    forward: Callable[..., Any] = _missing_forward

    def __init__(self) -> None:
        # Written to the dictionary directly, because `__setattr__` looks these up.
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
        """Runs `forward` together with its hooks."""
        note_module(self)
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
        ):
            return _hooks.call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    # Changes to the whole tree

    def train(self, mode: bool = True) -> Self:
        """Sets training mode for this module and its descendants, or leaves it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        """Sets evaluation mode for this module and its descendants."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether the parameters require gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters, by dropping them or filling them with zeros."""
        for parameter in self.parameters():
            clear_gradient(parameter, set_to_none)

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Calls `fn` with every descendant, children first, and then with this module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Converts parameters and buffers in place: `to(dtype)`, `to(device)`, `to(device, dtype)`.

        A dtype only applies to floating-point tensors. A parameter whose dtype changes becomes a
        new object, so create optimizers afterwards.
        """
        device, dtype = _state.target(*args, **kwargs)

        def convert(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(device, dtype if tensor.is_floating_point() else tensor.dtype)

        return self._apply(convert)

    def cpu(self) -> Self:
        """Moves parameters and buffers to the CPU, where they already are."""
        return self.to("cpu")

    def float(self) -> Self:
        """Converts floating-point parameters and buffers to float32."""
        return self.to(torch.float32)

    def bfloat16(self) -> Self:
        """Converts floating-point parameters and buffers to bfloat16."""
        return self.to(torch.bfloat16)

    def double(self) -> Self:
        """Converts floating-point parameters and buffers to float64."""
        return self.to(torch.float64)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor]) -> Self:
        converted: dict[Parameter, Parameter] = {}  # keeps shared parameters shared
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
        """Returns the parameters and persistent buffers by their dotted names.

        The tensors share memory with the module.

        Args:
            destination: The dictionary to fill, instead of a new one.
            prefix: The prefix of all names.
            keep_vars: Whether to return the parameters themselves, attached to the graph.
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
            strict: Whether the names must match this module's exactly.
            assign: Whether to adopt the tensors themselves instead of copying their values.

        Returns:
            The names that were missing and those that were unexpected.

        Raises:
            RuntimeError: If names or shapes do not match; the message lists all of them.
        """
        return _state.load(self, state_dict, strict=strict, assign=assign)

    # Hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Registers `hook(module, args)`, called before `forward`, which may replace its arguments.

        Args:
            hook: The function. A result other than `None` replaces the arguments of `forward`.
            prepend: Whether to call it before the existing hooks.
            with_kwargs: Whether to call `hook(module, args, kwargs)`, which returns `(args,
                kwargs)`.
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
        """Registers `hook(module, args, output)`, called after `forward`.

        Args:
            hook: The function. A result other than `None` replaces the output.
            prepend: Whether to call it before the existing hooks.
            with_kwargs: Whether to call `hook(module, args, kwargs, output)`.
            always_call: Whether to call it even if `forward` raised; the output is then `None`.
        """
        entry = _hooks.ForwardHook(hook, with_kwargs, always_call)
        return register(self._forward_hooks, entry, prepend=prepend)

    def register_full_backward_pre_hook(
        self, hook: _hooks.BackwardPreHook, prepend: bool = False
    ) -> RemovableHandle:
        """Registers `hook(module, grad_output)`, called when gradients reach the module.

        A result other than `None` replaces `grad_output`.
        """
        return register(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(
        self, hook: _hooks.BackwardHook, prepend: bool = False
    ) -> RemovableHandle:
        """Registers `hook(module, grad_input, grad_output)`, called when gradients leave it.

        A result other than `None` replaces `grad_input`.
        """
        return register(self._backward_hooks, hook, prepend=prepend)

    # Printing

    def extra_repr(self) -> str:
        """Returns the text between the parentheses of the printed form."""
        return ""

    def __repr__(self) -> str:
        return _text.describe(self)


# Profiles label calls of modules with the names of the modules.
_core.name_module_calls(Module.__call__)
