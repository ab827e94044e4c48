"""Trains a small model and profiles its last step.

Run `python examples/train.py`. The model learns whether a point lies inside a circle. The example
prints the operator averages of the step, and writes its trace and its memory timeline to `out/`.
"""

from __future__ import annotations

from pathlib import Path

import mindprof
import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile, record_function, schedule

STEPS = 50
OUT = Path("out")


def main() -> None:
    """Trains the model, prints the averages and writes both files."""
    torch.manual_seed(0)
    points = torch.randn(256, 2)
    inside = ((points * points).sum(1) < 1.0).to(torch.int64)

    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    criterion = nn.CrossEntropyLoss()

    last_step = schedule(wait=STEPS - 2, warmup=1, active=1)
    with profile(schedule=last_step, record_shapes=True, profile_memory=True) as prof:
        for _ in range(STEPS):
            optimizer.zero_grad()
            with record_function("## forward ##"):
                loss = criterion(model(points), inside)
            loss.backward()
            optimizer.step()
            scheduler.step()
            prof.step()

    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=15))
    print(f"loss after {STEPS} steps: {loss.item():.4f}")

    trace, report = OUT / "train.trace.json", OUT / "train.report.html"
    memory = OUT / "train.memory.html"
    prof.export_chrome_trace(trace)
    prof.export_html(report)
    mindprof.load(trace).export_memory_timeline(str(memory))
    print(f"the step's trace:  {trace} (open it at https://ui.perfetto.dev or in chrome://tracing)")
    print(f"the step's report: {report} (open it in a browser)")
    print(f"the step's memory: {memory} (open it in a browser)")


if __name__ == "__main__":
    main()
