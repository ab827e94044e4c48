"""Records what torch says of the memory of the workloads: memory.json.

Run at the root with a Python that has torch: `python -m tests.host.record_memory`. The test
`test_memory_timeline` compares the runtime with it. Memory of which torch knows nothing is left
out: it is scratch of its kernels, and ours have their own.
"""

from __future__ import annotations

import gzip
import importlib
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

from tests.host.workloads import WORKLOADS, Workload

HERE = Path(__file__).parent
CATEGORIES = (
    "PARAMETER",
    "OPTIMIZER_STATE",
    "INPUT",
    "TEMPORARY",
    "ACTIVATION",
    "GRADIENT",
    "AUTOGRAD_DETAIL",
)


def changes(workload: Workload) -> dict[str, list[list[int]]]:
    """Profiles two steps after two, and returns rows of action and bytes by category."""
    for _ in range(2):
        workload.step()
    profiler = workload.torch.profiler
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    ) as recording:
        for _ in range(2):
            workload.step()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        path = Path(folder) / "memory.raw.json.gz"
        recording.export_memory_timeline(str(path), device="cpu")
        rows = json.loads(gzip.decompress(path.read_bytes()))
    return {
        name: [[action, size] for _, action, size, category in rows if category == index]
        for index, name in enumerate(CATEGORIES)
    }


def main() -> None:
    """Records all workloads."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)
    known = {name: changes(build(torch)) for name, build in WORKLOADS.items()}
    (HERE / "memory.json").write_text(json.dumps(known) + "\n")


if __name__ == "__main__":
    main()
