"""Records what torch does with the cases beside this file.

Run where torch is installed: `python -m tests.python.host_fixtures.record`.

The tests of the embedded host compare with what it writes, `torch.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.python.host_fixtures import cases


def main() -> None:
    """Runs all cases and writes the file."""
    import torch  # type: ignore[import-not-found]  # what is installed here is the host

    torch.set_num_threads(1)
    found = {
        "torch": torch.__version__,
        "optimizers": {name: cases.run_optimizer(torch, name) for name in cases.OPTIMIZERS},
        "steps": {name: step_operators(torch, name) for name in cases.OPTIMIZERS},
        "schedulers": {name: cases.run_scheduler(torch, name) for name in cases.SCHEDULERS},
        "modules": {name: describe(make(torch.nn)) for name, make in cases.MODULES.items()},
        "outputs": cases.run_modules(torch),
        "batch norm": cases.run_batch_norm(torch, 0.1),
        "batch norm without momentum": cases.run_batch_norm(torch, None),
        "training": cases.run_training(torch),
    }
    text = json.dumps(found, indent=None, separators=(",", ":"))
    Path(__file__).with_name("torch.json").write_text(text.replace('"},"', '"},\n"') + "\n")


def describe(module: Any) -> dict[str, Any]:
    """Returns a module's text and the shapes of its state."""
    state = {name: list(tensor.shape) for name, tensor in module.state_dict().items()}
    return {"text": repr(module), "state": state}


def step_operators(torch: Any, name: str) -> dict[str, list[str]]:
    """Returns the operators of the first and of a later step, and of both ways to clear."""
    params = cases.parameters(torch)
    optimizer = cases.OPTIMIZERS[name](torch.optim, params)
    traces = {}
    for step in range(3):
        cases.set_gradients(torch, params, step)
        traces[step] = operators(torch, optimizer.step)
    zeros = operators(torch, lambda: optimizer.zero_grad(set_to_none=False))
    none = operators(torch, optimizer.zero_grad)
    return {"first": traces[0], "later": traces[2], "zeros": zeros, "none": none}


def operators(torch: Any, run: Any) -> list[str]:
    """Returns the names of what a profile saw, each below its parent and indented."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        run()
    lines: list[str] = []

    def walk(event: Any, depth: int) -> None:
        lines.append("  " * depth + event.name)
        for child in event.cpu_children:
            walk(child, depth + 1)

    for event in prof.events():
        if event.cpu_parent is None:
            walk(event, 0)
    return lines


if __name__ == "__main__":
    main()
