"""Trains a small model with the profiler on, prints where the time went, and writes the trace.

The model learns to tell whether a point lies inside a circle.
"""

from __future__ import annotations

from pathlib import Path

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile, record_function

STEPS = 50


def main() -> None:
    """Trains, prints and writes."""
    torch.manual_seed(0)
    points = torch.randn(256, 2)
    inside = ((points * points).sum(1) < 1.0).to(torch.int64)

    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    criterion = nn.CrossEntropyLoss()

    with profile(record_shapes=True) as prof:
        for _ in range(STEPS):
            optimizer.zero_grad()
            with record_function("## forward ##"):
                loss = criterion(model(points), inside)
            loss.backward()
            optimizer.step()
            scheduler.step()

    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=15))
    print(f"loss after {STEPS} steps: {loss.item():.4f}")

    trace = Path("out") / "train.trace.json"
    prof.export_chrome_trace(trace)
    print(f"wrote {trace}: open it at https://ui.perfetto.dev or in chrome://tracing")


if __name__ == "__main__":
    main()
