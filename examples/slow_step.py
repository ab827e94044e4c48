"""Finds out where the time of a slow training step goes.

Run `python examples/slow_step.py`. It records three steps after a warm-up, as in a long training
run, prints the operators with the most self time, and writes a trace to `out/`. In a PyTorch
program, import `torch` and use `mindprof.profile`: the calls are the same.
"""

from __future__ import annotations

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function, schedule


def main() -> None:
    """Trains for a few steps and prints where the time went."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    # Skips one step, warms up for one, and records three.
    steps = schedule(wait=1, warmup=1, active=3, repeat=1)
    with profile(schedule=steps, record_shapes=True) as prof:
        for _ in range(5):
            with record_function("data"):  # names a section without operators
                batch = torch.randn(128, 64)
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()

    rows = prof.key_averages()
    print(rows.table(sort_by="self_cpu_time_total", row_limit=8))

    # The same averages by input shape: is it one layer or all of them?
    shapes = prof.key_averages(group_by_input_shape=True)
    print(shapes.table(sort_by="self_cpu_time_total", row_limit=5))

    prof.export_chrome_trace("out/slow_step.json.gz")
    print("wrote out/slow_step.json.gz: open it at https://ui.perfetto.dev")


if __name__ == "__main__":
    main()
