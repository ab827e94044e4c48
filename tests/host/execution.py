"""The training step whose execution trace is compared, for torch and for the embedded host."""

from __future__ import annotations

from typing import Any

STEPS_BEFORE = 2


def write_trace(torch: Any, path: str) -> None:
    """Trains the small model of the goldens, and observes the third step."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step() -> None:
        with torch.profiler.record_function("## data ##"):
            x, y = torch.randn(32, 64), torch.randn(32, 10)
        optimizer.zero_grad()
        with torch.profiler.record_function("## forward ##"):
            loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()

    for _ in range(STEPS_BEFORE):
        step()
    observer = torch.profiler.ExecutionTraceObserver().register_callback(path)
    observer.start()
    step()
    observer.stop()
    observer.unregister_callback()
