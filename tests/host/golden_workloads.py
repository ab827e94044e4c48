"""The training steps of the goldens, as they were recorded with torch; the module is an argument.

`tests/goldens` holds what torch says of two steps of each; `test_host_goldens` compares.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.host import models


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


def mlp(torch: Any, device: str = "cpu") -> Callable[[], Any]:
    """Two linear layers."""
    model = models.mlp(torch).to(device)

    def make() -> tuple[Any, Any]:
        return torch.randn(32, 64, device=device), torch.randn(32, 10, device=device)

    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return train(torch, model, optimizer, make, torch.nn.functional.mse_loss)


def cnn(torch: Any, device: str = "cpu") -> Callable[[], Any]:
    """Two convolutions, trained under autocast."""
    model = models.cnn(torch).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def make() -> tuple[Any, Any]:
        return torch.randn(8, 3, 32, 32).to(device), torch.randint(0, 10, (8,)).to(device)

    plain = train(torch, model, optimizer, make, torch.nn.functional.cross_entropy)

    def step() -> Any:
        with torch.autocast(device, torch.bfloat16):
            return plain()

    return step


def gpt(torch: Any, device: str = "cpu") -> Callable[[], Any]:
    """A transformer of three blocks."""
    model = models.gpt(torch, words=512, places=64, width=128).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def make() -> tuple[Any, Any]:
        return (torch.randint(0, 512, (4, 64), device=device),) * 2

    return train(torch, model, optimizer, make, partial(models.next_token_loss, torch))


WORKLOADS = {"mlp": mlp, "cnn": cnn, "gpt": gpt}
