"""Calls of modules that have hooks.

```text
forward pre-hooks -> [entry] -> forward -> [exit] -> forward hooks        forward
                        |                     |
backward hooks    <- [entry] <---------- [exit]  <- backward pre-hooks    backward
```

If there are backward hooks, inputs and outputs pass through identity nodes of the graph; `entry`
and `exit` are the places where the hooks see gradients.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import mindtorch_v2 as torch

if TYPE_CHECKING:
    from mindtorch_v2.nn.module import Module

Gradients: TypeAlias = "tuple[Any, ...]"  # tensors, or None for missing gradients
BackwardHook: TypeAlias = "Callable[[Module, Gradients, Gradients], Any]"
BackwardPreHook: TypeAlias = "Callable[[Module, Gradients], Any]"


class ForwardPreHook(NamedTuple):
    """A function to call before `forward`, with its options."""

    function: Callable[..., Any]
    with_kwargs: bool


class ForwardHook(NamedTuple):
    """A function to call after `forward`, with its options."""

    function: Callable[..., Any]
    with_kwargs: bool
    always_call: bool


def call(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs the `forward` of a module together with all its hooks."""
    called: set[int] = set()
    try:
        args, kwargs = _before(module, args, kwargs)
        backward = _BackwardHooks(module) if _wants_gradients(module) else None
        if backward is not None:
            args = backward.watch_inputs(args)
        output = module.forward(*args, **kwargs)
        for identifier, hook in list(module._forward_hooks.items()):
            called.add(identifier)
            replacement = _after(module, hook, args, kwargs, output)
            output = output if replacement is None else replacement
        return output if backward is None else backward.watch_outputs(output)
    except Exception:
        for identifier, hook in list(module._forward_hooks.items()):
            if hook.always_call and identifier not in called:
                _after(module, hook, args, kwargs, None)
        raise


def _before(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for hook in list(module._forward_pre_hooks.values()):
        if hook.with_kwargs:
            result = hook.function(module, args, kwargs)
            if result is None:
                continue
            if not isinstance(result, tuple) or len(result) != 2:
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {result}."
                )
            args, kwargs = result
        else:
            result = hook.function(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)
    return args, kwargs


def _after(
    module: Module, hook: ForwardHook, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
) -> Any:
    if hook.with_kwargs:
        return hook.function(module, args, kwargs, output)
    return hook.function(module, args, output)


def _wants_gradients(module: Module) -> bool:
    return bool(module._backward_hooks or module._backward_pre_hooks)


class _BackwardHooks:
    """The backward hooks of one call of a module, and the gradients that they wait for."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.grad_output: Gradients | None = None
        self.input_count = 0
        self.inputs_watched = False

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Passes the tensors in `args` through a node that sees the module's last gradients."""
        self.input_count = len(args)
        places = [i for i, value in enumerate(args) if isinstance(value, torch.Tensor)]
        tensors = [args[i] for i in places]
        if not torch.is_grad_enabled() or not any(tensor.requires_grad for tensor in tensors):
            return args
        self.inputs_watched = True
        watched = _pass_through(tensors, self._at_inputs(len(args), places))
        return _replaced(args, places, watched)

    def watch_outputs(self, output: Any) -> Any:
        """Passes the tensors in `output` through a node that sees the module's first gradients."""
        single = isinstance(output, torch.Tensor)
        outputs = (output,) if single else output
        if not isinstance(outputs, tuple):
            return output
        places = [i for i, value in enumerate(outputs) if isinstance(value, torch.Tensor)]
        tensors = [outputs[i] for i in places]
        if not torch.is_grad_enabled() or not any(tensor.requires_grad for tensor in tensors):
            return output
        watched = _pass_through(tensors, self._at_outputs(len(outputs), places))
        outputs = _replaced(outputs, places, watched)
        return outputs[0] if single else outputs

    def _at_outputs(self, width: int, places: list[int]) -> Callable[[Gradients], Gradients]:
        def run(gradients: Gradients) -> Gradients:
            grad_output = _replaced((None,) * width, places, gradients)
            for pre_hook in list(self.module._backward_pre_hooks.values()):
                grad_output = _checked(pre_hook(self.module, grad_output), grad_output, "output")
            self.grad_output = grad_output
            if not self.inputs_watched and self.module._backward_hooks:
                warnings.warn(_NO_INPUT_ASKS, stacklevel=2)
                self._finish((None,) * self.input_count)
            return tuple(grad_output[i] for i in places)

        return run

    def _at_inputs(self, width: int, places: list[int]) -> Callable[[Gradients], Gradients]:
        def run(gradients: Gradients) -> Gradients:
            grad_input = self._finish(_replaced((None,) * width, places, gradients))
            return tuple(grad_input[i] for i in places)

        return run

    def _finish(self, grad_input: Gradients) -> Gradients:
        for hook in list(self.module._backward_hooks.values()):
            result = hook(self.module, grad_input, self.grad_output or ())
            grad_input = _checked(result, grad_input, "input")
        return grad_input


class BackwardHookFunction(torch.autograd.Function):
    """An identity node that shows gradients to a function."""

    @staticmethod
    def forward(ctx: Any, see: Callable[[Gradients], Gradients], *tensors: torch.Tensor) -> Any:
        """Passes the tensors through."""
        ctx.see = see
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        """Passes on the gradients that the function returns."""
        return (None, *ctx.see(gradients))


def _pass_through(
    tensors: list[torch.Tensor], see: Callable[[Gradients], Gradients]
) -> tuple[torch.Tensor, ...]:
    watched = BackwardHookFunction.apply(see, *tensors)
    return watched if isinstance(watched, tuple) else (watched,)


def _replaced(values: tuple[Any, ...], places: list[int], news: Any) -> tuple[Any, ...]:
    replaced = list(values)
    for place, new in zip(places, news, strict=True):
        replaced[place] = new
    return tuple(replaced)


def _checked(result: Any, before: Gradients, side: str) -> Gradients:
    if result is None:
        return before
    after = result if isinstance(result, tuple) else (result,)
    if len(after) != len(before):
        raise RuntimeError(
            f"Backward hook returned an invalid number of grad_{side}, "
            f"got {len(after)}, but expected {len(before)}"
        )
    return after


_NO_INPUT_ASKS = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since "
    "no inputs require gradients. See https://docs.pytorch.org/docs/main/generated/"
    "torch.nn.Module.html#torch.nn.Module.register_full_backward_hook for more details."
)
