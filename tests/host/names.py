"""What everyday programs do with tensors and layers, for torch and for the embedded host.

Every case returns tensors; with `x` and `y` as leaves, their gradients are compared too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Case = Callable[[Any, Any, Any], Any]


def spread(torch: Any, *sizes: int, seed: int = 0) -> Any:
    """Returns values that differ from each other, the same in both hosts."""
    count = 1
    for size in sizes:
        count *= size
    values = [((index * 37 + seed * 11 + 5) % 101 - 50) / 25 for index in range(count)]
    return torch.tensor(values).reshape(sizes)


CASES: dict[str, Case] = {
    "softmax": lambda torch, x, _: torch.softmax(x, 1),
    "log_softmax": lambda torch, x, _: torch.log_softmax(x, 0),
    "sort": lambda torch, x, _: torch.sort(x, 1),
    "sort descending": lambda torch, x, _: x.sort(0, descending=True),
    "argsort": lambda torch, x, _: torch.argsort(x, 1),
    "topk": lambda torch, x, _: torch.topk(x, 2),
    "topk smallest": lambda torch, x, _: x.topk(1, 0, largest=False),
    "cumsum": lambda torch, x, _: torch.cumsum(x, 0),
    "cumsum of integers": lambda torch, x, _: torch.cumsum(torch.tensor([True, True]), 0),
    "flip": lambda torch, x, _: torch.flip(x, [0, 1]),
    "gather": lambda torch, x, _: torch.gather(x, 1, torch.tensor([[0, 1], [2, 2], [3, 0]])),
    "scatter": lambda torch, x, y: x.scatter(1, torch.tensor([[0, 1, 2, 3]] * 3), y),
    "scatter a number": lambda torch, x, _: x.scatter(1, torch.tensor([[0], [1], [2]]), 2.0),
    "scatter_add": lambda torch, x, y: x.scatter_add(0, torch.tensor([[0, 1, 2, 0]] * 3), y),
    "where": lambda torch, x, y: torch.where(x > 0, x, y),
    "clamp": lambda torch, x, _: torch.clamp(x, -0.5, 0.5),
    "outer": lambda torch, x, y: torch.outer(x[0], y[1]),
    "einsum of matrices": lambda torch, x, y: torch.einsum("ij,kj->ik", x, y),
    "einsum to a sum": lambda torch, x, y: torch.einsum("ij,ij->", x, y),
    "einsum with a batch": lambda torch, x, y: torch.einsum(
        "bij,bjk->bik", x.reshape(3, 2, 2), y.reshape(3, 2, 2)
    ),
    "einsum of three": lambda torch, x, y: torch.einsum("ij,kj,i->k", x, y, x[:, 0]),
    "einsum with an ellipsis": lambda torch, x, y: torch.einsum("...j,kj->...k", x, y),
    "einsum of a diagonal": lambda torch, x, _: torch.einsum("ii->i", x[:, :3]),
    "einsum of one": lambda torch, x, _: torch.einsum("ij->ji", x),
    "logsumexp": lambda torch, x, _: torch.logsumexp(x, 1),
    "repeat": lambda torch, x, _: x.repeat(2, 3),
    "isnan": lambda torch, x, _: torch.isnan(x),
    "isinf": lambda torch, x, _: torch.isinf(x / 0.0),
    "logical": lambda torch, x, y: torch.logical_and(x > 0, torch.logical_not(y > 0)),
    "hstack": lambda torch, x, y: torch.hstack([x, y]),
    "vstack": lambda torch, x, y: torch.vstack([x, y]),
    "expm1": lambda torch, x, _: torch.expm1(x),
    "log1p": lambda torch, x, _: torch.log1p(x.abs()),
    "log2": lambda torch, x, _: torch.log2(x.abs() + 1),
    "silu": lambda torch, x, _: torch.nn.functional.silu(x),
    "leaky_relu": lambda torch, x, _: torch.nn.functional.leaky_relu(x, 0.1),
    "elu": lambda torch, x, _: torch.nn.functional.elu(x, 0.7),
    "softplus": lambda torch, x, _: torch.nn.functional.softplus(x, 2.0),
    "logsigmoid": lambda torch, x, _: torch.nn.functional.logsigmoid(x),
    "bce with logits": lambda torch, x, y: torch.nn.functional.binary_cross_entropy_with_logits(
        x, y.detach().sigmoid(), reduction="sum"
    ),
    "weighted bce": lambda torch, x, y: torch.nn.BCEWithLogitsLoss(
        weight=torch.tensor([1.0, 2.0, 3.0, 4.0]), pos_weight=torch.tensor([2.0, 1.0, 0.5, 3.0])
    )(x, y.detach().sigmoid()),
    "bce": lambda torch, x, y: torch.nn.BCELoss()(x.sigmoid(), y.detach().sigmoid()),
    "l1": lambda torch, x, y: torch.nn.L1Loss()(x, y),
    "nll": lambda torch, x, _: torch.nn.NLLLoss()(torch.log_softmax(x, 1), torch.tensor([0, 3, 1])),
    "one_hot": lambda torch, x, _: torch.nn.functional.one_hot(torch.tensor([0, 2]), 4),
    "normalize": lambda torch, x, _: torch.nn.functional.normalize(x),
    "conv1d": lambda torch, x, y: torch.nn.functional.conv1d(
        x.reshape(1, 2, 6), y.reshape(2, 2, 3), stride=2, padding=1
    ),
    "batch norm": lambda torch, x, _: torch.nn.BatchNorm1d(4)(x),
    "batch norm of sequences": lambda torch, x, _: torch.nn.BatchNorm1d(2)(x.reshape(2, 2, 3)),
}


def run_case(torch: Any, name: str) -> dict[str, Any]:
    """Returns the results of a case, and the gradients of their weighted sum."""
    x, y = spread(torch, 3, 4), spread(torch, 3, 4, seed=1)
    x.requires_grad_()
    y.requires_grad_()
    found = CASES[name](torch, x, y)
    results = list(found) if isinstance(found, tuple) else [found]
    first = results[0]
    if first.requires_grad:
        weights = spread(torch, *first.shape, seed=2) if first.dim() else torch.tensor(1.5)
        (first * weights).sum().backward()
    gradients = [None if leaf.grad is None else leaf.grad.tolist() for leaf in (x, y)]
    return {"results": [result.tolist() for result in results], "gradients": gradients}


def fill(torch: Any, module: Any) -> Any:
    """Gives a module parameters that are the same in both hosts."""
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(spread(torch, *parameter.shape, seed=number) / 4)
    return module


LAYERS: dict[str, Callable[[Any], Any]] = {
    "LSTM": lambda nn: nn.LSTM(4, 3, num_layers=2, bidirectional=True),
    "LSTM with the batch first": lambda nn: nn.LSTM(4, 3, batch_first=True, bias=False),
    "GRU": lambda nn: nn.GRU(4, 3, num_layers=2),
    "GRU both ways": lambda nn: nn.GRU(4, 3, bidirectional=True, batch_first=True),
    "MultiheadAttention": lambda nn: nn.MultiheadAttention(4, 2),
    "MultiheadAttention with the batch first": lambda nn: nn.MultiheadAttention(
        4, 2, batch_first=True, bias=False
    ),
    "Conv1d": lambda nn: nn.Conv1d(3, 2, 2, padding=1),
    "BatchNorm1d": lambda nn: nn.BatchNorm1d(3),
    "ModuleDict": lambda nn: nn.ModuleDict({"a": nn.SiLU(), "b": nn.LeakyReLU(0.2)}),
    "others": lambda nn: nn.Sequential(nn.ELU(), nn.Softplus(), nn.Identity(), nn.LogSoftmax(1)),
}


def run_layer(torch: Any, name: str) -> dict[str, Any]:
    """Returns a layer's text, state, outputs and gradients."""
    layer = fill(torch, LAYERS[name](torch.nn))
    found: dict[str, Any] = {
        "text": repr(layer),
        "state": {key: list(value.shape) for key, value in layer.state_dict().items()},
    }
    if name == "ModuleDict":
        return found
    x = spread(torch, 2, 3, 4)
    x.requires_grad_()
    given = (x, x, x) if name.startswith("Multi") else (x,)
    result = layer(*given)
    outputs = flat(result)
    (outputs[0] * spread(torch, *outputs[0].shape, seed=3)).sum().backward()
    found["outputs"] = [output.tolist() for output in outputs]
    found["gradients"] = [leaf.grad.tolist() for leaf in (x, *layer.parameters())]
    return found


def flat(result: Any) -> list[Any]:
    """Returns the tensors in nested tuples."""
    if isinstance(result, tuple):
        return [tensor for item in result for tensor in flat(item)]
    return [result]
