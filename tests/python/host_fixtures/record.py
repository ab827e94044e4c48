"""Records what torch does with the cases beside this file.

Run where torch is installed: `python -m tests.python.host_fixtures.record`.

The tests of the embedded host compare with what it writes, `torch.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.python.host_fixtures import cases, optimizer_cases, scheduler_cases


def main() -> None:
    """Runs all cases and writes the file."""
    import torch  # type: ignore[import-not-found]  # what is installed here is the host

    torch.set_num_threads(1)
    optimizers = [*optimizer_cases.OPTIMIZERS, *optimizer_cases.SEARCHERS]
    found = {
        "torch": torch.__version__,
        "optimizers": {name: optimizer_cases.run_optimizer(torch, name) for name in optimizers},
        **numbered({name: step_operators(torch, name) for name in optimizers}),
        "schedulers": {
            name: scheduler_cases.run_scheduler(torch, name) for name in scheduler_cases.SCHEDULERS
        },
        "modules": {name: describe(make(torch.nn)) for name, make in cases.MODULES.items()},
        "outputs": cases.run_modules(torch),
        "batch norm": cases.run_batch_norm(torch, 0.1),
        "batch norm without momentum": cases.run_batch_norm(torch, None),
        "training": cases.run_training(torch),
    }
    text = json.dumps(found, indent=None, separators=(",", ":"))
    Path(__file__).with_name("torch.json").write_text(text.replace('"},"', '"},\n"') + "\n")


def numbered(steps: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """Returns steps with numbers for lines, and the lines: few of them differ."""
    lines = sorted({line for step in steps.values() for found in step.values() for line in found})
    numbers = {line: number for number, line in enumerate(lines)}
    steps_of_numbers = {
        name: {which: [numbers[line] for line in found] for which, found in step.items()}
        for name, step in steps.items()
    }
    return {"lines": lines, "steps": steps_of_numbers}


def describe(module: Any) -> dict[str, Any]:
    """Returns a module's text and the shapes of its state."""
    state = {name: list(tensor.shape) for name, tensor in module.state_dict().items()}
    return {"text": repr(module), "state": state}


def step_operators(torch: Any, name: str) -> dict[str, list[str]]:
    """Returns the operators of the first and of a later step, and of both ways to clear."""
    params = optimizer_cases.params_of(torch, name)
    optimizer = optimizer_cases.make(torch, name, params)
    traces = [
        operators(torch, optimizer_cases.prepare(torch, name, params, optimizer, step))
        for step in range(3)
    ]
    found = {"first": traces[0], "later": traces[2]}
    if name == "SGD":
        found["zeros"] = operators(torch, lambda: optimizer.zero_grad(set_to_none=False))
        found["none"] = operators(torch, optimizer.zero_grad)
    return found


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
