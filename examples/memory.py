"""Shows what holds the memory of a training step at its peak.

Run `python examples/memory.py`. It records with `profile_memory=True`, prints the operators that
allocate the most, and writes `out/memory.html`: the memory of parameters, gradients, activations
and optimizer states over time.
"""

from __future__ import annotations

import mindprof
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile


def main() -> None:
    """Records two steps and writes a page about their memory."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters())

    # Categories come from shapes, and lines of code from stacks.
    with profile(profile_memory=True, record_shapes=True, with_stack=True) as prof:
        for _ in range(2):
            model(torch.randn(128, 64)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    rows = prof.key_averages()
    print(rows.table(sort_by="self_cpu_memory_usage", row_limit=5))

    prof.export_chrome_trace("out/memory.json.gz")
    mindprof.load("out/memory.json.gz").export_memory_timeline("out/memory.html")
    print("wrote out/memory.html: open it in a browser")


if __name__ == "__main__":
    main()
