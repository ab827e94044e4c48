"""Small models that are trained with torch, to be recorded, and with the runtime, to be compared.

Everything takes the module `torch` as an argument. Weights and inputs come from a formula, so that
both start alike without a file of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.host import models

Step = Callable[[], Any]


class Workload:
    """A model, its optimizer, and what it is trained on.

    Args:
        torch: The module to build with.
        model: The model.
        optimizer: The optimizer of its parameters.
        make: Returns inputs and targets.
        loss: Compares outputs and targets.
        autocast: Whether steps cast to `bfloat16` by themselves.
    """

    def __init__(
        self,
        torch: Any,
        model: Any,
        optimizer: Any,
        make: Callable[[], tuple[Any, Any]],
        loss: Callable[[Any, Any], Any],
        autocast: bool = False,
    ) -> None:
        self.torch, self.model, self.optimizer = torch, model, optimizer
        self.make, self.loss, self.autocast = make, loss, autocast

    def step(self) -> Any:
        """Trains one step and returns the loss."""
        with self.torch.autocast("cpu", dtype=self.torch.bfloat16, enabled=self.autocast):
            return self._step()

    def _step(self) -> Any:
        x, y = self.make()
        self.optimizer.zero_grad()
        loss = self.loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss


def numbers(torch: Any, seed: int, *sizes: int) -> Any:
    """Returns a tensor of numbers between -1 and 1 that look random and are the same everywhere."""
    count = math.prod(sizes)
    values = [math.sin(seed * 12.9898 + index * 78.233) * 43758.5453 for index in range(count)]
    return torch.tensor([2 * (value - math.floor(value)) - 1 for value in values]).reshape(sizes)


def classes(torch: Any, seed: int, count: int, *sizes: int) -> Any:
    """Returns a tensor of classes below `count` that look random and are the same everywhere."""
    total = math.prod(sizes)
    return torch.tensor(
        [(seed * 7 + index * index * 31) % count for index in range(total)]
    ).reshape(sizes)


def start(torch: Any, model: Any) -> None:
    """Sets all parameters by the formula, as small as layers of their width need them."""
    with torch.no_grad():
        for seed, parameter in enumerate(model.parameters()):
            width = parameter.shape[-1] if parameter.dim() > 1 else 16
            values = numbers(torch, seed + 1, *parameter.shape) / math.sqrt(width)
            parameter.copy_(values + (1.0 if parameter.dim() == 1 and seed % 2 == 0 else 0.0) * 0.5)


def mlp(torch: Any) -> Workload:
    """Two linear layers and a squared difference, trained by plain gradient descent."""
    model = models.mlp(torch)
    start(torch, model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    seeds = _counter()

    def make() -> tuple[Any, Any]:
        seed = next(seeds)
        return numbers(torch, seed, 32, 64), numbers(torch, seed + 1, 32, 10)

    return Workload(torch, model, optimizer, make, torch.nn.functional.mse_loss)


def cnn(torch: Any) -> Workload:
    """Convolutions with normalisation and pooling, trained by gradient descent with momentum."""
    model = models.cnn(torch)
    start(torch, model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    seeds = _counter()

    def make() -> tuple[Any, Any]:
        seed = next(seeds)
        return numbers(torch, seed, 8, 3, 32, 32), classes(torch, seed, 10, 8)

    return Workload(torch, model, optimizer, make, torch.nn.functional.cross_entropy)


def cnn_autocast(torch: Any) -> Workload:
    """The same convolutions in `bfloat16`, as far as torch casts."""
    workload = cnn(torch)
    workload.autocast = True
    return workload


def gpt(torch: Any) -> Workload:
    """A small transformer, trained by AdamW."""
    model = models.gpt(torch, words=64, places=16, width=32)
    start(torch, model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    seeds = _counter()

    def make() -> tuple[Any, Any]:
        tokens = classes(torch, next(seeds), 64, 4, 16)
        return tokens, tokens

    loss = partial(models.next_token_loss, torch)
    return Workload(torch, model, optimizer, make, loss)


def gpt_autocast(torch: Any) -> Workload:
    """The same transformer in `bfloat16`, as far as torch casts."""
    workload = gpt(torch)
    workload.autocast = True
    return workload


def _counter() -> Iterator[int]:
    return iter(range(100, 1000))


WORKLOADS = {
    "mlp": mlp,
    "cnn": cnn,
    "cnn_autocast": cnn_autocast,
    "gpt": gpt,
    "gpt_autocast": gpt_autocast,
}
