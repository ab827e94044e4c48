"""A training step whose memory is compared line by line with torch's.

It has what backward computes in an order that shows: products of matrices, of batches and of
elements, a matrix with a vector, powers, and gradients that leaves have to copy. Run at the root
with a Python that has torch to record the golden: `CONTRACT_HOST=torch python
tests/contract/memory_step.py`.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

from host import profile, torch

GOLDEN = Path(__file__).parents[1] / "goldens" / "memory_step.json"


def step(leaves: list[Any], optimizer: Any) -> None:
    """Trains once; no two tensors have one size, so that a line says whose it is."""
    left, right, first, second, weights, bias, vector = leaves
    product = left @ right
    weighed = (product * weights + bias) ** 2
    batches = torch.bmm(first, second)
    loss = weighed.mean() + (batches.sum(0) ** 3).sum() + torch.mv(product, vector).sum()
    loss.backward()
    optimizer.step()


def rows() -> list[list[int]]:
    """Profiles the second step and returns action, bytes and category of each line."""
    sizes = [(5, 7), (7, 11), (2, 3, 13), (2, 13, 17), (5, 11), (11,), (11,)]
    leaves = [torch.ones(*size).requires_grad_() for size in sizes]
    optimizer = torch.optim.SGD(leaves, 0.01, momentum=0.9)
    step(leaves, optimizer)
    # Before the profiler: torch does not see what was taken before it and is given back in it.
    optimizer.zero_grad()
    flags = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    with profile(**flags) as profiler:
        step(leaves, optimizer)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        path = Path(folder) / "memory.raw.json.gz"
        profiler.export_memory_timeline(str(path), device="cpu")
        found = json.loads(gzip.decompress(path.read_bytes()))
    return [row[1:] for row in found]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(rows()).replace("], [", "],\n[") + "\n")
