"""The operators of a training step: names, counts, parents and sequence numbers are torch's."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import mindtorch_v2 as torch
import pytest
from mindprof import profile

HOST = Path(__file__).parent.parent / "host"
pytest.importorskip("mindtorch_v2.optim")

from tests.host.workloads import WORKLOADS  # noqa: E402


def tree(path: Path) -> str:
    rows = json.loads(path.read_text())["traceEvents"]
    kinds = ("cpu_op", "user_annotation")
    rows = [row for row in rows if row.get("cat") in kinds]
    rows.sort(key=lambda row: (row["ts"], -row["dur"]))
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


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_training_step_nests_as_torchs(name: str, tmp_path: Path) -> None:
    workload = WORKLOADS[name](torch)
    workload.step()
    with profile() as prof:
        workload.step()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    found, known = tree(path), (HOST / f"{name}.tree.txt").read_text()
    names = [
        Counter(line.split(" #")[0].strip() for line in text.splitlines())
        for text in (found, known)
    ]
    assert names[0] == names[1]
    assert found == known
