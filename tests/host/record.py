"""Records what torch makes of the workloads: values.json and one tree of operators per workload.

Run at the root with a Python that has torch: `python -m tests.host.record`. The tests
`test_host_values` and `test_host_nesting` compare the runtime with it.
"""

from __future__ import annotations

import importlib
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.host.workloads import WORKLOADS, Workload

HERE = Path(__file__).parent
STEPS = 5


def values(workload: Workload) -> dict[str, Any]:
    """Trains, and returns losses, gradients and parameters: a few elements and the size of each."""
    losses = [float(workload.step()) for _ in range(STEPS)]
    named = list(workload.model.named_parameters())
    return {
        "losses": losses,
        "gradients": {name: sample(parameter.grad) for name, parameter in named},
        "parameters": {name: sample(parameter.detach()) for name, parameter in named},
    }


def sample(tensor: Any) -> list[float]:
    """Returns the root of the sum of squares and up to eight elements spread over the tensor."""
    flat = tensor.flatten()
    places = [index * (flat.numel() - 1) // 7 for index in range(8)] if flat.numel() >= 8 else [0]
    size = float((flat.double() ** 2).sum() ** 0.5)
    return [size, *(float(flat[place]) for place in places)]


def tree(workload: Workload) -> str:
    """Profiles one step and returns its operators, indented, with sequence numbers from zero."""
    workload.step()
    profiler = workload.torch.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as recording:
        workload.step()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        recording.export_chrome_trace(file.name)
        rows = json.loads(Path(file.name).read_text())["traceEvents"]
    kinds = ("cpu_op", "user_annotation")
    rows = sorted(
        (row for row in rows if row.get("cat") in kinds), key=lambda r: (r["ts"], -r["dur"])
    )
    numbers = [row["args"].get("Sequence number") for row in rows]
    first = min(number for number in numbers if number is not None)
    lines: list[str] = []
    ends: list[float] = []
    for row, number in zip(rows, numbers, strict=True):
        while ends and row["ts"] >= ends[-1]:
            ends.pop()
        mark = "" if number is None else f" #{number - first}"
        lines.append("  " * len(ends) + row["name"] + mark)
        ends.append(row["ts"] + row["dur"])
    return "\n".join(lines) + "\n"


def main() -> None:
    """Records all workloads."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)
    known = {name: values(build(torch)) for name, build in WORKLOADS.items()}
    (HERE / "values.json").write_text(json.dumps(known, indent=1) + "\n")
    for name, build in WORKLOADS.items():
        (HERE / f"{name}.tree.txt").write_text(tree(build(torch)))


if __name__ == "__main__":
    main()
