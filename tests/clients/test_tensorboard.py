"""TensorBoard's plugin shows the same of a trace that was written again as of torch's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator

from tests.clients.traces import DEVICE, HOST, convert, export, golden, record

VIEWS = [
    "views",
    "overview",
    "operation_table_by_name",
    "operation_stack_by_name",
    "operation_table_by_name_input",
    "operation_pie_by_name",
    "kernel_op_table",
    "kernel_pie",
    "kernel_table",
    "tc_pie",
    "gpu_summary",
]

pytestmark = pytest.mark.filterwarnings("ignore")


def show(path: Path, cache: Path) -> dict[str, Any]:
    """Returns what the plugin's pages are drawn from."""
    data = RunProfileData.parse("worker", "span", str(path), str(cache))
    run = RunGenerator("worker", "span", data).generate_run_profile()
    shown = {view: getattr(run, view) for view in VIEWS}
    if run.memory_snapshot is not None:
        shown["memory"] = run.get_memory_stats(), run.get_memory_curve()
    if run.module_stats:
        shown["modules"] = run.get_module_view()
    return shown | {"tree": nodes(run.tid2tree)}


def nodes(trees: dict[int, Any]) -> list[tuple[Any, ...]]:
    """Returns the operators and modules of all threads' trees, and how many each has beneath it."""
    found = []
    waiting = list(trees.values())
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children)
        if node.type in ("Operator", "Module"):
            found.append((node.start_time, node.end_time, node.name, len(node.children)))
    return sorted(found)


@pytest.mark.parametrize("name", [*DEVICE, *HOST])
def test_every_page_is_the_same(name: str, tmp_path: Path) -> None:
    expected = show(golden(name), tmp_path)
    assert len(expected["tree"]) > 5
    for path in (convert(name, tmp_path / "a.json.gz"), export(name, tmp_path / "b.json")):
        shown = show(path, tmp_path)
        for view, page in expected.items():
            assert shown[view] == page, view


def test_a_recording_of_our_own_has_its_operators(tmp_path: Path) -> None:
    prof = record()
    prof.export_chrome_trace(str(tmp_path / "own.json"))
    rows = show(tmp_path / "own.json", tmp_path)["operation_table_by_name"]["data"]
    calls = {row["name"]: row["calls"] for row in rows}
    ours = {row.key: row.count for row in prof.key_averages() if row.key.startswith("aten::")}
    assert {name: count for name, count in calls.items() if name.startswith("aten::")} == ours
    assert len(ours) > 5
