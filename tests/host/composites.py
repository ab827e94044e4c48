"""Operators made of others, on inputs of one to five dimensions, for torch and for the runtime.

A case is given the module that it calls torch, the input, and what makes parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.python.host_fixtures.cases import values

SIZES = (2, 3, 2, 2, 4)
# What gradients are where the backward of an operator does not take what its forward took.
REFUSED = "refused"
# How the elements of the input lie, and the dimensions it has then.
LAYOUTS = {"contiguous": range(1, 6), "transposed": range(2, 5), "expanded": range(2, 4)}
WHERE = [f"{layout} {rank}" for layout, ranks in LAYOUTS.items() for rank in ranks]

Leaf = Callable[..., Any]
Case = Callable[[Any, Any, Leaf], Any]


def _functional(name: str, *arguments: Any, **options: Any) -> Case:
    return lambda torch, x, leaf: getattr(torch.nn.functional, name)(x, *arguments, **options)


def _method(name: str, *arguments: Any, **options: Any) -> Case:
    return lambda torch, x, leaf: getattr(x, name)(*arguments, **options)


def _linear(torch: Any, x: Any, leaf: Leaf) -> Any:
    return torch.nn.functional.linear(x, leaf((3, 4)), leaf((3,)))


def _vector_linear(torch: Any, x: Any, leaf: Leaf) -> Any:
    return torch.nn.functional.linear(x, leaf((4,)), leaf(()))


def _norm(torch: Any, x: Any, leaf: Leaf) -> Any:
    return torch.nn.functional.layer_norm(x, (4,), leaf((4,)), leaf((4,)))


def _embedding(torch: Any, x: Any, leaf: Leaf) -> Any:
    places = (x.detach() > 0).long()
    return torch.nn.functional.embedding(places, leaf((2, 3)))


def _attention(torch: Any, x: Any, leaf: Leaf) -> Any:
    sizes = tuple(x.shape)
    return torch.nn.functional.scaled_dot_product_attention(x, leaf(sizes), leaf(sizes))


def _classes(x: Any) -> Any:
    # The classes are the second dimension, or the only one.
    dimension = 1 if x.dim() > 1 else 0
    return x.detach().argmin(dim=dimension)


CASES: dict[str, Case] = {
    "linear": _linear,
    "linear without bias": lambda torch, x, leaf: torch.nn.functional.linear(x, leaf((3, 4))),
    "linear with one bias": lambda torch, x, leaf: torch.nn.functional.linear(
        x, leaf((3, 4)), leaf(())
    ),
    "linear with a row of biases": lambda torch, x, leaf: torch.nn.functional.linear(
        x, leaf((3, 4)), leaf((1, 3))
    ),
    "linear by a vector": _vector_linear,
    "linear, then added to": lambda torch, x, leaf: _linear(torch, x, leaf).add_(leaf((3,))),
    "matmul by a vector": lambda torch, x, leaf: x @ leaf((4,)),
    "matmul by a matrix": lambda torch, x, leaf: x @ leaf((4, 3)),
    "matmul by matrices": lambda torch, x, leaf: x @ leaf((2, 4, 3)),
    "matmul of a vector": lambda torch, x, leaf: leaf((4,)) @ x.transpose(-1, -2),
    "matmul of a matrix": lambda torch, x, leaf: leaf((3, 4)) @ x.transpose(-1, -2),
    "matmul, then added to": lambda torch, x, leaf: (x @ leaf((4, 3))).add_(leaf((3,))),
    "matmul, then multiplied": lambda torch, x, leaf: (x @ leaf((4, 3))).mul_(leaf((3,))),
    "reshape, then added to": lambda torch, x, leaf: (x * 2).reshape(-1, 2).add_(leaf((2,))),
    "flatten, then divided": lambda torch, x, leaf: (x * 2).flatten().div_(leaf(()) + 3),
    "contiguous, then a part set": lambda torch, x, leaf: _set_part((x * 2).contiguous(), leaf),
    "a part of what is not tracked set": lambda torch, x, leaf: _set_part(
        torch.zeros(tuple(x.shape)), leaf
    ),
    "softmax": _functional("softmax", dim=-1),
    "softmax over the first": _functional("softmax", dim=0),
    "log_softmax": _functional("log_softmax", dim=-1),
    "layer_norm": _norm,
    "gelu": _functional("gelu"),
    "gelu tanh": _functional("gelu", approximate="tanh"),
    "dropout of nothing": _functional("dropout", p=0.0),
    "dropout while evaluating": _functional("dropout", p=0.5, training=False),
    "embedding": _embedding,
    "attention": _attention,
    "mse_loss": lambda torch, x, leaf: torch.nn.functional.mse_loss(x, leaf(tuple(x.shape))),
    "mse_loss of each": lambda torch, x, leaf: torch.nn.functional.mse_loss(
        x, leaf(tuple(x.shape)), reduction="none"
    ),
    "smooth_l1_loss": lambda torch, x, leaf: torch.nn.functional.smooth_l1_loss(
        x, leaf(tuple(x.shape)), beta=0.5
    ),
    "smooth_l1_loss of each": lambda torch, x, leaf: torch.nn.functional.smooth_l1_loss(
        x, leaf(tuple(x.shape)), reduction="none"
    ),
    "huber_loss": lambda torch, x, leaf: torch.nn.functional.huber_loss(
        x, leaf(tuple(x.shape)), delta=0.5
    ),
    "huber_loss, summed": lambda torch, x, leaf: torch.nn.functional.huber_loss(
        x, leaf(tuple(x.shape)), reduction="sum"
    ),
    "cross_entropy": lambda torch, x, leaf: torch.nn.functional.cross_entropy(x, _classes(x)),
    "nll_loss": lambda torch, x, leaf: torch.nn.functional.nll_loss(x, _classes(x)),
    "mean": _method("mean"),
    "mean over the last": _method("mean", dim=-1, keepdim=True),
    "var": _method("var", dim=-1),
    "std": _method("std", dim=-1),
    "std of all": _method("std"),
    "norm": _method("norm"),
    "norm of order 3": _method("norm", 3, dim=-1),
    "norm of the largest": _method("norm", float("inf"), dim=0, keepdim=True),
    "prod": _method("prod"),
    "prod over the last": _method("prod", dim=-1, keepdim=True),
    "prod of what has zeros": lambda torch, x, leaf: (x * (x > -0.5)).prod(-1),
    "median": _method("median"),
    "median over the first": lambda torch, x, leaf: (x * 1).median(0)[0],
    "median over the last": lambda torch, x, leaf: x.median(-1, True)[0],
    "roll": _method("roll", 3),
    "roll over two": _method("roll", (-1, 2), (0, -1)),
    "diag": _method("diag", 1),
    "diag below": _method("diag", -1),
    "meshgrid": lambda torch, x, leaf: torch.stack(
        torch.meshgrid(x.flatten()[:3], leaf((2,)), indexing="xy")
    ),
    "masked_select": lambda torch, x, leaf: x.masked_select(x > 0),
    "flip": _method("flip", 0, -1),
    "gather": lambda torch, x, leaf: x.gather(-1, (x.detach() > 0).long()),
    "max over the last": lambda torch, x, leaf: x.max(dim=-1)[0],
    "clamp": _method("clamp", -0.5, 0.5),
    "abs": _method("abs"),
    "where": lambda torch, x, leaf: torch.where(x > 0, x, leaf((4,))),
    "stack": lambda torch, x, leaf: torch.stack([x, leaf(tuple(x.shape))]),
    "cat": lambda torch, x, leaf: torch.cat([x, leaf(tuple(x.shape))], -1),
    "split": lambda torch, x, leaf: x.split(2, -1)[1] * leaf(()),
    "masked_fill": lambda torch, x, leaf: (x * 2).masked_fill(x > 0, 1.5),
    "a mask set": lambda torch, x, leaf: _set_mask(x * 2),
    "rows by number": lambda torch, x, leaf: x[torch.tensor([0, 1, 1])],
    "max_pool2d": _functional("max_pool2d", 2),
    "avg_pool2d": _functional("avg_pool2d", 2),
    "avg_pool2d beyond the edge": _functional("avg_pool2d", 2, 1, 1, True),
    "avg_pool2d of what is inside": _functional("avg_pool2d", 2, 2, 1, True, False),
    "avg_pool2d by another number": _functional("avg_pool2d", 2, divisor_override=3),
    "adaptive_avg_pool2d": _functional("adaptive_avg_pool2d", (1, 2)),
    "conv2d": lambda torch, x, leaf: torch.nn.functional.conv2d(
        x, leaf((2, x.shape[-3] if x.dim() > 2 else 1, 2, 2)), leaf((2,))
    ),
    "batch_norm": lambda torch, x, leaf: torch.nn.functional.batch_norm(
        x, None, None, training=True
    ),
}


def _set_part(target: Any, leaf: Leaf) -> Any:
    target[..., 1:3] = leaf((2,))
    return target


def _set_mask(target: Any) -> Any:
    target[target > 0.5] = 0.25
    return target


def run(torch: Any, name: str, where: str, tracked: bool) -> dict[str, Any]:
    """Runs a case; returns its output and, if tracked, the gradients of all that went in.

    What raises says so instead; the tests of expressions compare errors.
    """
    leaves: list[Any] = []

    def leaf(sizes: tuple[int, ...]) -> Any:
        made = values(torch, sizes, 50 + len(leaves))
        leaves.append(made.requires_grad_(tracked))
        return made

    layout, rank = where.split()
    try:
        output = CASES[name](torch, _input(layout, int(rank), leaf), leaf)
    except (IndexError, RuntimeError, ValueError):
        return {"raises": True}
    found = {"shape": list(output.shape), "output": _rounded(output)}
    if tracked and output.requires_grad:
        found["gradients"] = _gradients(torch, output, leaves)
    return found


def _gradients(torch: Any, output: Any, leaves: list[Any]) -> Any:
    try:
        (output * values(torch, tuple(output.shape), 90)).sum().backward()
    except RuntimeError:
        return REFUSED
    return [None if made.grad is None else _rounded(made.grad) for made in leaves]


def _input(layout: str, rank: int, leaf: Leaf) -> Any:
    sizes = SIZES[-rank:]
    if layout == "contiguous":
        return leaf(sizes)
    if layout == "expanded":
        return leaf(sizes[-1:]).expand(*sizes)
    return leaf((*sizes[:-2], sizes[-1], sizes[-2])).transpose(-1, -2)


def _rounded(tensor: Any) -> list[float]:
    return [round(value, 5) for value in tensor.detach().reshape(-1).tolist()]
