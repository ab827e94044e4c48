"""The models of the goldens, as they were recorded with torch; the module is an argument.

`tests/goldens` holds what torch says of two steps of each; `test_host_goldens` compares.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def train(
    torch: Any,
    model: Any,
    optimizer: Any,
    make: Callable[[], tuple[Any, Any]],
    loss: Callable[[Any, Any], Any],
) -> Callable[[], Any]:
    """Returns a function that trains one step, with the ranges of the recording."""
    record_function = torch.profiler.record_function

    def step() -> Any:
        with record_function("## data ##"):
            x, y = make()
        optimizer.zero_grad()
        with record_function("## forward ##"):
            result = loss(model(x), y)
        result.backward()
        optimizer.step()
        return result

    return step


def mlp(torch: Any) -> Callable[[], Any]:
    """Two linear layers."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to("cpu")

    def make() -> tuple[Any, Any]:
        return torch.randn(32, 64, device="cpu"), torch.randn(32, 10, device="cpu")

    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return train(torch, model, optimizer, make, nn.functional.mse_loss)


def cnn(torch: Any) -> Callable[[], Any]:
    """Two convolutions, trained under autocast."""
    nn = torch.nn

    class Network(nn.Module):  # type: ignore[name-defined, misc]
        """Convolutions and a head."""

        def __init__(self) -> None:
            super().__init__()
            body = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
            body += [nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
            self.body = nn.Sequential(*body)
            self.head = nn.Linear(32, 10)

        def forward(self, x: Any) -> Any:
            """Returns scores."""
            return self.head(self.body(x).flatten(1))

    model = Network().to("cpu")
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def make() -> tuple[Any, Any]:
        return torch.randn(8, 3, 32, 32).to("cpu"), torch.randint(0, 10, (8,)).to("cpu")

    plain = train(torch, model, optimizer, make, nn.functional.cross_entropy)

    def step() -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return plain()

    return step


def gpt(torch: Any) -> Callable[[], Any]:
    """A transformer of three blocks."""
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
            attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.merge(attended.transpose(1, 2).reshape(batch, length, width))
            return x + self.narrow(nn.functional.gelu(self.widen(self.before_feed(x))))

    class Transformer(nn.Module):  # type: ignore[name-defined, misc]
        """Embeddings, blocks and a head."""

        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(512, 128), nn.Embedding(64, 128)
            self.blocks = nn.ModuleList(Block(128, 4) for _ in range(3))
            self.head = nn.Linear(128, 512)

        def forward(self, x: Any) -> Any:
            """Returns scores of the next token."""
            hidden = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
            for block in self.blocks:
                hidden = block(hidden)
            return self.head(hidden)

    model = Transformer().to("cpu")
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def make() -> tuple[Any, Any]:
        return (torch.randint(0, 512, (4, 64), device="cpu"),) * 2

    def loss(outputs: Any, targets: Any) -> Any:
        return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())

    return train(torch, model, optimizer, make, loss)


WORKLOADS = {"mlp": mlp, "cnn": cnn, "gpt": gpt}
