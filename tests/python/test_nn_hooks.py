"""Hooks of modules, forward and backward."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
import pytest
from mindtorch_v2 import nn


class Scale(nn.Module):
    def forward(self, x: Any, factor: float = 1.0) -> Any:
        if factor == 0:
            raise ZeroDivisionError
        return x * factor


def test_hooks_run_around_forward_in_the_order_of_registration() -> None:
    module = Scale()
    seen: list[str] = []
    module.register_forward_pre_hook(lambda m, args: seen.append("before"))
    module.register_forward_hook(lambda m, args, output: seen.append("after"))
    module.register_forward_hook(lambda m, args, output: seen.append("first"), prepend=True)
    module(torch.ones(1))
    assert seen == ["before", "first", "after"]


def test_hooks_may_replace_arguments_and_output() -> None:
    module = Scale()
    module.register_forward_pre_hook(lambda m, args: args[0] + 1)
    module.register_forward_hook(lambda m, args, output: output * 10)
    assert module(torch.ones(1), factor=2.0).tolist() == [40.0]


def test_hooks_may_see_and_replace_keywords() -> None:
    module = Scale()
    module.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"factor": kwargs["factor"] + 1}), with_kwargs=True
    )
    module.register_forward_hook(
        lambda m, args, kwargs, output: output + kwargs["factor"], with_kwargs=True
    )
    assert module(torch.ones(1), factor=2.0).tolist() == [6.0]


def test_a_pre_hook_that_returns_something_else_is_refused() -> None:
    module = Scale()
    module.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"forward pre-hook must return None or a tuple"):
        module(torch.ones(1))


def test_some_hooks_are_called_even_when_forward_raises() -> None:
    module = Scale()
    seen: list[Any] = []
    module.register_forward_hook(lambda m, args, output: seen.append("plain"))
    module.register_forward_hook(lambda m, args, output: seen.append(output), always_call=True)
    with pytest.raises(ZeroDivisionError):
        module(torch.ones(1), factor=0)
    assert seen == [None]


def test_hooks_can_be_removed() -> None:
    module = Scale()
    handle = module.register_forward_hook(lambda m, args, output: output * 0)
    with module.register_forward_pre_hook(lambda m, args: args[0] * 0):
        pass
    handle.remove()
    handle.remove()
    assert module(torch.ones(1)).tolist() == [1.0]


def test_a_backward_hook_sees_the_gradients_of_inputs_and_outputs() -> None:
    module = Scale()
    seen: list[Any] = []
    module.register_full_backward_hook(
        lambda m, inputs, outputs: seen.append((inputs[0].tolist(), outputs[0].tolist()))
    )
    x = torch.ones(2, requires_grad=True)
    module(x, factor=3.0).sum().backward()
    assert seen == [([3.0, 3.0], [1.0, 1.0])]
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]


def test_backward_hooks_may_replace_gradients() -> None:
    module = Scale()
    module.register_full_backward_pre_hook(lambda m, outputs: (outputs[0] * 5,))
    module.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0] + 1,))
    x = torch.ones(1, requires_grad=True)
    module(x, factor=3.0).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [16.0]


def test_a_backward_hook_fires_once_though_no_input_asks_for_gradients() -> None:
    layer = nn.Linear(2, 2)
    seen: list[Any] = []
    layer.register_full_backward_hook(lambda m, inputs, outputs: seen.append(inputs))
    output = layer(torch.ones(1, 2)).sum()
    with pytest.warns(UserWarning, match="Full backward hook is firing when gradients"):
        output.backward()
    assert seen == [(None,)]
    assert layer.weight.grad is not None


def test_a_backward_hook_that_returns_too_much_is_refused() -> None:
    module = Scale()
    module.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0], inputs[0]))
    output = module(torch.ones(1, requires_grad=True)).sum()
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        output.backward()
