"""Small models that are trained with torch, to be recorded, and with the runtime, to be compared.

Everything takes the module `torch` as an argument. Weights and inputs come from a formula, so that
both start alike without a file of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

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
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    start(torch, model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    seeds = _counter()

    def make() -> tuple[Any, Any]:
        seed = next(seeds)
        return numbers(torch, seed, 32, 64), numbers(torch, seed + 1, 32, 10)

    return Workload(torch, model, optimizer, make, nn.functional.mse_loss)


def cnn(torch: Any) -> Workload:
    """Convolutions with normalisation and pooling, trained by gradient descent with momentum."""
    nn = torch.nn
    body = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    body += [nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    model = nn.Sequential(*body, nn.Flatten(), nn.Linear(32, 10))
    start(torch, model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    seeds = _counter()

    def make() -> tuple[Any, Any]:
        seed = next(seeds)
        return numbers(torch, seed, 8, 3, 32, 32), classes(torch, seed, 10, 8)

    return Workload(torch, model, optimizer, make, nn.functional.cross_entropy)


def cnn_autocast(torch: Any) -> Workload:
    """The same convolutions in `bfloat16`, as far as torch casts."""
    workload = cnn(torch)
    workload.autocast = True
    return workload


def gpt(torch: Any) -> Workload:
    """A small transformer, trained by AdamW."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        """Attention and a feed-forward part, each with a residual."""

        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attend, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            """Returns the input with what both parts add."""
            batch, length, width = x.shape
            parts = self.attend(self.before_attention(x))
            parts = parts.view(batch, length, 3, self.heads, width // self.heads)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            attention = nn.functional.scaled_dot_product_attention(
                query, key, value, is_causal=True
            )
            x = x + self.merge(attention.transpose(1, 2).reshape(batch, length, width))
            return x + self.narrow(nn.functional.gelu(self.widen(self.before_feed(x))))

    class Transformer(nn.Module):  # type: ignore[name-defined, misc]
        """Embeddings, blocks and a head."""

        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(64, 32), nn.Embedding(16, 32)
            self.blocks = nn.ModuleList(Block(32, 4) for _ in range(3))
            self.head = nn.Linear(32, 64)

        def forward(self, x: Any) -> Any:
            """Returns scores of the next token."""
            hidden = self.tokens(x) + self.places(torch.arange(x.shape[1]))
            for block in self.blocks:
                hidden = block(hidden)
            return self.head(hidden)

    model = Transformer()
    start(torch, model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    seeds = _counter()

    def make() -> tuple[Any, Any]:
        tokens = classes(torch, next(seeds), 64, 4, 16)
        return tokens, tokens

    def loss(outputs: Any, targets: Any) -> Any:
        return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())

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
