"""What is run both with torch, by `record.py`, and with the embedded host, by the tests.

Every function is given the module that it calls torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

STEPS = 5
SHAPES = [(3, 4), (4,)]

MODULES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda nn: nn.Linear(3, 4),
    "linear without bias": lambda nn: nn.Linear(3, 4, bias=False),
    "conv": lambda nn: nn.Conv2d(3, 4, 3),
    "conv with all": lambda nn: nn.Conv2d(
        4, 6, (3, 5), stride=2, padding=1, dilation=2, groups=2, bias=False
    ),
    "conv of the same size": lambda nn: nn.Conv2d(3, 4, 3, padding="same"),
    "embedding": lambda nn: nn.Embedding(3, 4),
    "embedding with padding": lambda nn: nn.Embedding(3, 4, padding_idx=-1),
    "layer norm": lambda nn: nn.LayerNorm(4),
    "layer norm over two": lambda nn: nn.LayerNorm((3, 4), elementwise_affine=False),
    "layer norm without bias": lambda nn: nn.LayerNorm(4, bias=False),
    "batch norm": lambda nn: nn.BatchNorm2d(3),
    "batch norm with little": lambda nn: nn.BatchNorm2d(
        3, affine=False, track_running_stats=False, momentum=None
    ),
    "dropout": lambda nn: nn.Dropout(0.2, inplace=True),
    "relu": lambda nn: nn.ReLU(),
    "relu in place": lambda nn: nn.ReLU(inplace=True),
    "gelu": lambda nn: nn.GELU("tanh"),
    "tanh": lambda nn: nn.Tanh(),
    "sigmoid": lambda nn: nn.Sigmoid(),
    "softmax": lambda nn: nn.Softmax(dim=1),
    "max pool": lambda nn: nn.MaxPool2d((2, 3), 1, 1, ceil_mode=True),
    "adaptive pool": lambda nn: nn.AdaptiveAvgPool2d((1, None)),
    "flatten": lambda nn: nn.Flatten(),
    "mse loss": lambda nn: nn.MSELoss(reduction="sum"),
    "cross entropy": lambda nn: nn.CrossEntropyLoss(),
    "empty list": lambda nn: nn.ModuleList(),
    "mlp": lambda nn: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)),
    "nested": lambda nn: nn.Sequential(
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()), nn.Flatten()
    ),
    "list with repeats": lambda nn: nn.ModuleList(
        [*(nn.Linear(2, 2) for _ in range(3)), nn.ReLU(), nn.ModuleList([nn.Tanh(), nn.Tanh()])]
    ),
}


def values(torch: Any, shape: tuple[int, ...], seed: int) -> Any:
    """Returns a tensor of `shape` whose values follow from `seed` alone."""
    count = math.prod(shape)
    flat = [math.sin(1.0 + 7.3 * seed + 1.7 * i) for i in range(count)]
    return torch.tensor(flat).reshape(shape)


def parameters(torch: Any) -> list[Any]:
    """Returns the parameters that the optimizers are run on."""
    return [torch.nn.Parameter(values(torch, s, seed)) for seed, s in enumerate(SHAPES)]


def set_gradients(torch: Any, params: list[Any], step: int) -> None:
    """Gives the parameters the gradients of a step."""
    for number, param in enumerate(params):
        param.grad = values(torch, tuple(param.shape), 10 * step + number + 5)


def run_modules(torch: Any) -> dict[str, Any]:
    """Returns what modules compute, with the parameters and inputs of `values`."""
    nn = torch.nn
    image, row = values(torch, (2, 4, 6, 6), 3), values(torch, (3, 4), 4)
    classes = torch.tensor([2, 0, 3])
    modules = {
        "linear": (nn.Linear(4, 2), row),
        "conv": (nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), image),
        "embedding": (nn.Embedding(4, 3), classes),
        "layer norm": (nn.LayerNorm(4), row),
        "relu": (nn.ReLU(), row),
        "gelu": (nn.GELU(), row),
        "gelu tanh": (nn.GELU("tanh"), row),
        "tanh": (nn.Tanh(), row),
        "sigmoid": (nn.Sigmoid(), row),
        "softmax": (nn.Softmax(dim=1), row),
        "max pool": (nn.MaxPool2d(2), image),
        "adaptive pool": (nn.AdaptiveAvgPool2d((1, 3)), image),
        "flatten": (nn.Flatten(), image),
    }
    results = {name: set_parameters(torch, m)(x).tolist() for name, (m, x) in modules.items()}
    results["mse loss"] = nn.MSELoss(reduction="sum")(row, row * 0.5).item()
    weight = torch.tensor([1.0, 2.0, 0.5, 1.5])
    results["cross entropy"] = nn.CrossEntropyLoss()(row, classes).item()
    results["cross entropy with weights"] = nn.CrossEntropyLoss(weight)(row, classes).item()
    return results


def run_batch_norm(torch: Any, momentum: float | None) -> dict[str, Any]:
    """Trains a batch norm on three batches; returns its statistics and what it then computes."""
    norm = set_parameters(torch, torch.nn.BatchNorm2d(3, momentum=momentum))
    batches = [values(torch, (2, 3, 2, 2), seed) for seed in range(3)]
    outputs = [norm(batch).tolist() for batch in batches]
    norm.eval()
    return {
        "outputs": outputs,
        "evaluated": norm(batches[0]).tolist(),
        "state": {name: tensor.tolist() for name, tensor in norm.state_dict().items()},
    }


def run_training(torch: Any) -> dict[str, Any]:
    """Trains a small model; returns the loss of each step and the parameters after the last."""
    nn = torch.nn
    model = set_parameters(torch, nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = values(torch, (3, 4), 20), values(torch, (3, 2), 21)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.MSELoss()(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    state = {name: tensor.tolist() for name, tensor in model.state_dict().items()}
    return {"losses": losses, "state": state}


def set_parameters(torch: Any, module: Any) -> Any:
    """Sets the parameters of a module to `values`, and returns it."""
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(values(torch, tuple(parameter.shape), seed + 30))
    return module


def plain(value: Any) -> Any:
    """Returns a value as JSON gives it back."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.tolist() if hasattr(value, "tolist") else value
