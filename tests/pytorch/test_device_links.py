"""Kernels belong to the operators that torch says they belong to, of two runs of one workload."""

from __future__ import annotations

from collections import Counter
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from mindprof import ProfilerActivity

from tests.pytorch.one_collection import OVERHEAD
from tests.pytorch.workloads import NAMES, workload

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA"),
    # Of threads that use CUDA first.
    pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS:UserWarning"),
]

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "everything": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}
BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def links(prof: Any) -> Counter[tuple[str, str]]:
    """Counts the pairs of an operator and a kernel that it owns.

    Before 2.15, torch also gives kernels to work of the collector, where two numbers collide.
    """
    events = [event for event in prof.events() if event.name not in OVERHEAD]
    return Counter((event.name, kernel.name) for event in events for kernel in event.kernels)


def record(kind: Any, name: str, options: dict[str, Any]) -> Any:
    step = workload(name, "cuda")
    groups = torch.profiler.ProfilerActivity
    config = torch._C._profiler._ExperimentalConfig
    if kind is mindprof.profile:
        options = {**options, "activities": BOTH}
    else:
        options = {
            **options,
            "activities": [groups.CPU, groups.CUDA],
            "experimental_config": config(profile_all_threads="profile_memory" not in options),
        }
    with kind(**options) as prof:
        for _ in range(3):
            step()
    return prof


# torch cannot record memory of all threads.
RUNS = [
    pytest.param((name, kind), id=f"{name}-{kind}")
    for name in NAMES
    for kind in OPTIONS
    if (name, kind) != ("threads", "everything")
]


@pytest.fixture(scope="module", params=RUNS)
def recorded(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    name, kind = request.param
    return (
        record(mindprof.profile, name, OPTIONS[kind]),
        record(torch.profiler.profile, name, OPTIONS[kind]),
    )


def test_operators_own_the_kernels_that_torch_says(recorded: tuple[Any, Any]) -> None:
    ours, theirs = map(links, recorded)
    assert ours == theirs
    assert recorded[0].lost_events == 0


def test_device_rows_have_the_same_counts(recorded: tuple[Any, Any]) -> None:
    def counts(prof: Any) -> dict[str, int]:
        rows = prof.key_averages()
        on_device = [row for row in rows if row.device_type.name == "CUDA"]
        return {row.key: row.count for row in on_device}

    ours, theirs = map(counts, recorded)
    assert ours == theirs


def test_streams_are_the_same(recorded: tuple[Any, Any]) -> None:
    def streams(prof: Any) -> set[tuple[int, int]]:
        events = [event for event in prof.events() if event.device_type.name == "CUDA"]
        return {(event.device_index, event.device_resource_id) for event in events}

    ours, theirs = map(streams, recorded)
    assert ours == theirs


def test_memory_of_the_device_is_the_same(recorded: tuple[Any, Any]) -> None:
    def memory(prof: Any) -> dict[str, int]:
        return {row.key: row.self_device_memory_usage for row in prof.key_averages()}

    ours, theirs = map(memory, recorded)
    common = {key for key in ours.keys() & theirs.keys() if key.startswith("aten::")}
    assert {key: ours[key] for key in common} == {key: theirs[key] for key in common}
