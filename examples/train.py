"""Trains a small model with the profiler on, prints where the time went, and writes the trace.

The model is a line through noisy points, y = x @ w, fitted by gradient descent; the gradient is
written out by hand.
"""

from __future__ import annotations

from pathlib import Path

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function

STEPS = 20
LEARNING_RATE = 0.1


def main() -> None:
    """Trains, prints and writes."""
    torch.manual_seed(0)
    inputs = torch.randn((256, 16))
    truth = torch.randn((16, 1))
    noise = torch.randn((256, 1)) * 0.01
    targets = inputs @ truth + noise
    weights = torch.zeros((16, 1))

    with profile(record_shapes=True) as prof:
        for _ in range(STEPS):
            with record_function("## forward ##"):
                error = inputs @ weights - targets
                loss = (error * error).mean()
            with record_function("## backward ##"):
                gradient = inputs.t() @ error * (2.0 / 256)
            with record_function("## update ##"):
                weights = weights - gradient * LEARNING_RATE

    print(prof.key_averages().table(sort_by="self_cpu_time_total"))
    print(f"loss after {STEPS} steps: {loss.item():.6f}")

    trace = Path("out") / "train.trace.json"
    prof.export_chrome_trace(trace)
    print(f"wrote {trace}: open it at https://ui.perfetto.dev or in chrome://tracing")


if __name__ == "__main__":
    main()
