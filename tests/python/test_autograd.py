"""Gradients: leaves, hooks, graphs that are walked twice, saved tensors, the user's functions."""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any

import mindtorch_v2 as torch
import pytest


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor([float(value) for value in values], requires_grad=True)


def gradient(tensor: torch.Tensor) -> Any:
    assert tensor.grad is not None
    return tensor.grad.tolist()


def test_gradients_add_up_until_they_are_cleared() -> None:
    x = leaf(1, 2)
    for _ in range(2):
        (x * x).sum().backward()
    assert gradient(x) == [4, 8]
    x.grad = None
    (x * 3).sum().backward()
    assert gradient(x) == [3, 3]


def test_broadcast_operands_get_gradients_of_their_own_shape() -> None:
    x, row = torch.ones(3, 2, requires_grad=True), leaf(1, 2)
    number = torch.tensor(2.0, requires_grad=True)
    (x * row + number).sum().backward()
    assert gradient(row) == [3, 3]
    assert gradient(number) == 6


def test_a_graph_is_walked_once_unless_it_is_retained() -> None:
    x = leaf(1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert gradient(x) == [4, 8]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    plain = (x + 1).sum()
    plain.backward()
    plain.backward()


def test_a_saved_tensor_that_was_written_to_is_an_error() -> None:
    x = leaf(1, 2)
    y = x * 2
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"is at version 1; expected version 0 instead"):
        z.backward()


def test_writing_through_data_counts_as_no_version() -> None:
    x = leaf(1, 2)
    y = x * 2
    z = (y * y).sum()
    y.data.add_(1)
    z.backward()
    assert gradient(x) == [12, 20]


def test_a_tracked_leaf_is_not_written_to() -> None:
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used"):
        x += 1
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0] = 1.0
    with torch.no_grad():
        x += 1
    assert x.tolist() == [2, 3]
    assert x.is_leaf


def test_writing_in_place_is_part_of_the_graph() -> None:
    x = leaf(1, 2, 3)
    y = x * 2
    y.mul_(3)
    y[0] = 0.0
    y[1:].add_(x[1:])
    y.sum().backward()
    assert gradient(x) == [0, 7, 7]


def test_tracked_elements_can_be_put_into_an_untracked_tensor() -> None:
    x = leaf(1, 2)
    room = torch.zeros(2, 2)
    room[0] = x * 5
    room[1, torch.tensor([0])] = x[1:] * 7
    room.sum().backward()
    assert gradient(x) == [5, 12]


def test_hooks_see_and_change_gradients() -> None:
    x = leaf(1, 2)
    y = x * 2
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    removed = x.register_hook(lambda g: g * 1000)
    removed.remove()
    y.sum().backward()
    assert seen == [[1, 1]]
    assert gradient(x) == [21, 21]


def test_what_a_hook_raises_is_raised() -> None:
    x = leaf(1)

    def hook(_: torch.Tensor) -> torch.Tensor:
        raise KeyError("from the hook")

    x.register_hook(hook)
    with pytest.raises(KeyError, match="from the hook"):
        x.sum().backward()


def test_results_keep_gradients_if_asked() -> None:
    x = leaf(1, 2)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward()
    assert gradient(y) == [3, 3]
    assert y.retains_grad


def test_grad_returns_gradients_and_leaves_leaves_alone() -> None:
    x, y, z = leaf(1, 2), leaf(3, 4), leaf(5)
    middle = x * y
    found = torch.autograd.grad(middle.sum(), [x, middle], retain_graph=True)
    assert [part.tolist() for part in found if part is not None] == [[3, 4], [1, 1]]
    assert x.grad is None
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(middle.sum(), [x, z], retain_graph=True)
    assert torch.autograd.grad(middle.sum(), [z], allow_unused=True) == (None,)


def test_backward_takes_the_gradient_of_many_elements() -> None:
    x = leaf(1, 2)
    y = x * 2
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        y.backward()
    y.backward(torch.tensor([1.0, 10.0]))
    assert gradient(x) == [2, 20]
    with pytest.raises(RuntimeError, match="Mismatch in shape: grad_output"):
        (x * 2).backward(torch.ones(3))


def test_no_grad_is_a_context_and_a_decorator() -> None:
    x = leaf(1)

    @torch.no_grad()
    def double() -> torch.Tensor:
        return x * 2

    assert not double().requires_grad
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
    assert (x * 2).requires_grad
    assert not (x * 2).detach().requires_grad


class Scale(torch.autograd.Function):
    """Multiplies by a number; its gradient is multiplied by one more, to be told apart."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.save_for_backward(x)
        ctx.factor = factor
        assert not (x * 1).requires_grad
        return x * factor

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        assert x.tolist() == [1, 2]
        return gradient * (ctx.factor + 1), None


def test_a_function_of_the_user_brings_its_gradient() -> None:
    x = leaf(1, 2)
    y = Scale.apply(x, 3.0)
    assert y.grad_fn.name() == "ScaleBackward"
    y.sum().backward()
    assert gradient(x) == [4, 4]


def test_a_long_chain_needs_no_deep_stack() -> None:
    x = leaf(1)
    y = x
    for _ in range(50_000):
        y = y + 1
    y.sum().backward()
    assert gradient(x) == [1]


def test_graphs_are_freed_with_their_tensors() -> None:
    class Marker:
        """Something whose end can be seen."""

    marker = Marker()
    end = weakref.ref(marker)
    x = leaf(1, 2)
    y = x * 2

    def hook(_: torch.Tensor, kept: Marker = marker) -> None:
        assert kept is not None

    y.register_hook(hook)
    del marker, y, hook
    gc.collect()
    assert end() is None


@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (torch.ones(3), "hook 'replace' has changed the size of value"),
        (torch.ones(1), "hook 'replace' has changed the size of value"),
        (torch.ones((1, 2, 2)), "hook 'replace' has changed the size of value"),
        (
            torch.ones((2, 2), dtype=torch.float64),
            "hook 'replace' has changed the type of value "
            "(was torch.FloatTensor got torch.DoubleTensor)",
        ),
    ],
)
def test_a_hook_returns_what_it_was_given_in_size_and_type(
    returned: torch.Tensor, message: str, is_leaf: bool
) -> None:
    def replace(_: torch.Tensor) -> torch.Tensor:
        return returned

    x = torch.ones((2, 2), requires_grad=True)
    watched = x if is_leaf else x * 1
    watched.register_hook(replace)
    with pytest.raises(RuntimeError, match=re.escape(message)):
        (watched * watched).sum().backward()
    assert x.grad is None


def test_a_hook_that_returns_no_tensor_is_told_its_type() -> None:
    x = torch.ones((2, 2), requires_grad=True)
    hook: Any = lambda _: 3  # noqa: E731
    x.register_hook(hook)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        (x * x).sum().backward()


def test_hooks_without_a_name_fail_as_unknown() -> None:
    class Callable:
        def __call__(self, _: torch.Tensor) -> torch.Tensor:
            return torch.ones(5)

    x = torch.ones((2, 2), requires_grad=True)
    x.register_hook(Callable())
    with pytest.raises(RuntimeError, match="hook '<unknown>' has changed the size of value"):
        (x * x).sum().backward()
