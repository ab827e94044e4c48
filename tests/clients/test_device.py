"""HTA and TensorBoard's plugin find on their own sample traces what the tests of devices expect.

The traces are large and lie outside of the project, in `../shared/traces`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hta.trace_analysis import TraceAnalysis
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator

from tests.hta_view import FIGURES, TRACES, expected_figures

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not TRACES.exists(), reason="there are no sample traces"),
]


def ask_hta(path: Path) -> dict[str, Any]:
    """Returns HTA's figures of a trace, as `tests/hta_figures.json` has them."""
    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir="")
    temporal = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    kinds, _ = analysis.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True)
    idle, _ = analysis.get_idle_time_breakdown(visualize=False)
    gaps: dict[str, dict[str, float]] = {}
    for _, row in idle.iterrows():
        gaps.setdefault(str(row["stream"]), {})[row["idle_category"]] = float(row["idle_time"])
    overlap = float(analysis.get_comm_comp_overlap(visualize=False).iloc[0].iloc[1])
    delays = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]["launch_delay"]
    queue = analysis.get_queue_length_summary()
    return {
        "temporal": [
            float(temporal[f"{key}(us)"])
            for key in ("idle_time", "compute_time", "non_compute_time", "kernel_time")
        ],
        "kernels": {row["kernel_type"]: float(row["sum"]) for _, row in kinds.iterrows()},
        "overlap": None if math.isnan(overlap) else overlap,
        "gaps": gaps,
        "launches": [
            len(delays),
            float(delays.sum()),
            int((delays > 50).sum()),
            int((delays > 100).sum()),
        ],
        "queue": {
            str(key[1]): [int(row.iloc[0]), int(row.iloc[7]), float(row.iloc[1])]
            for key, row in queue.iterrows()
        },
    }


@pytest.mark.parametrize("name", FIGURES)
def test_htas_figures_are_the_expected_ones(name: str) -> None:
    expected = expected_figures(name)
    found = ask_hta(TRACES / f"{name}.json.gz")
    for question, answer in found.items():
        if question == "queue":
            # HTA sorts equal times in any order, which the mean depends on.
            assert answer.keys() == expected[question].keys()
        else:
            assert answer == expected[question], question


def test_the_plugins_figures_are_the_expected_ones(tmp_path: Path) -> None:
    path = TRACES / "kineto2021-resnet50-workers0.json.gz"
    data = RunProfileData.parse("worker", "span", str(path), str(tmp_path))
    run = RunGenerator("worker", "span", data).generate_run_profile()
    shown = {row["title"]: row["value"] for row in run.gpu_summary}
    assert shown["GPU Utilization"] == "55.51 %"
    assert shown["Est. SM Efficiency"] == "54.68 %"
    assert shown["Est. Achieved Occupancy"] == "49.13 %"
    kernel, loader = data.avg_costs.costs[0], data.avg_costs.costs[5]
    assert (round(kernel), round(loader)) == (98_589, 59_262)
