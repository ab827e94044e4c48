"""Hard cases of recording CUDA: short, idle and late sessions, graphs, and errors of the device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from mindprof import DeviceType, ProfilerActivity

from tests.pytorch.workloads import workload

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA")

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
CYCLES_PER_SECOND = 1_500_000_000


def kernels(prof: Any) -> list[Any]:
    """Returns the kernels, without copies, fills and annotations."""
    return [
        event
        for event in prof.events()
        if event.device_type == DeviceType.CUDA
        and not event.is_user_annotation
        and not event.name.startswith(("Memcpy", "Memset", "Context Sync", "Stream Sync"))
    ]


def test_short_sessions_are_complete() -> None:
    x = torch.ones(8, 8, device="cuda")
    found: Counter[tuple[int, int]] = Counter()
    for _ in range(200):
        with mindprof.profile(activities=BOTH) as prof:
            x + x
        found[(len(kernels(prof)), prof.lost_events)] += 1
    assert found == {(1, 0): 200}


def test_work_before_and_after_20_idle_seconds_is_kept() -> None:
    x = torch.ones(8, 8, device="cuda")
    with mindprof.profile(activities=BOTH) as prof:
        x + x
        time.sleep(20)
        x * x
    first, last = sorted(kernels(prof), key=lambda event: event.time_range.start)
    assert last.time_range.start - first.time_range.start >= 20e6
    owners = {event.name for event in prof.events() for _ in event.kernels}
    assert {"aten::add", "aten::mul"} <= owners


def test_a_kernel_that_still_runs_at_the_end_is_kept_whole() -> None:
    torch.cuda._sleep(1000)
    torch.cuda.synchronize()
    with mindprof.profile(activities=BOTH) as prof:
        torch.cuda._sleep(CYCLES_PER_SECOND)
    [kernel] = kernels(prof)
    assert kernel.time_range.elapsed_us() > 100_000


def test_kernels_have_their_streams() -> None:
    x = torch.ones(8, 8, device="cuda")
    sides = [torch.cuda.Stream(), torch.cuda.Stream()]
    torch.cuda.synchronize()
    with mindprof.profile(activities=BOTH) as prof:
        for stream in sides:
            with torch.cuda.stream(stream):
                x + x
    assert len({event.device_resource_id for event in kernels(prof)}) == 2


def test_a_graph_that_is_replayed_100_times_has_all_its_kernels() -> None:
    x = torch.ones(8, 8, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        (x + x) * x
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (x + x) * x
    graph.replay()
    torch.cuda.synchronize()
    with mindprof.profile(activities=BOTH) as prof:
        for _ in range(100):
            graph.replay()
    assert len(kernels(prof)) == 200
    launches = [event for event in prof.events() if event.name == "cudaGraphLaunch"]
    assert len(launches) == 100
    assert prof.lost_events == 0


def test_a_compiled_model_has_its_kernels_and_their_owners() -> None:
    pytest.importorskip("triton")
    step = torch.compile(lambda x: torch.nn.functional.gelu(x * 2 + 1).sum())
    x = torch.ones(512, 512, device="cuda")
    try:
        step(x)
    except Exception as error:  # there is no C compiler, for instance
        pytest.skip(f"torch.compile does not work here: {error!r:.100}")
    counts = []
    for kind, groups in ((mindprof, ProfilerActivity), (torch.profiler, None)):
        groups = groups or torch.profiler.ProfilerActivity
        with kind.profile(activities=[groups.CPU, groups.CUDA]) as prof:
            for _ in range(3):
                step(x)
        owned = Counter(
            (event.name, kernel.name)
            for event in prof.events()
            for kernel in event.kernels
            if kernel.name.startswith("triton")
        )
        counts.append(owned)
    assert counts[0] == counts[1]
    assert sum(counts[0].values()) >= 3


def test_memory_that_is_not_there_is_an_error_of_the_program() -> None:
    with mindprof.profile(activities=BOTH, profile_memory=True, record_shapes=True) as prof:
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
        torch.ones(8, device="cuda")
    names = {event.name for event in prof.events()}
    assert {"aten::empty", "aten::ones"} <= names
    assert len(kernels(prof)) == 1


ASSERTS = """
import torch, mindprof
x = torch.zeros(4, device="cuda")
at = torch.full((4,), 99, device="cuda")
groups = mindprof.ProfilerActivity
prof = mindprof.profile(activities=[groups.CPU, groups.CUDA])
try:
    with prof:
        x[at] += 1
        torch.cuda.synchronize()
finally:
    print("recorded", sum(event.name == "aten::index" for event in prof.events()))
"""


def test_a_device_assert_reaches_the_user_and_hangs_nothing(tmp_path: Path) -> None:
    script = tmp_path / "asserts.py"
    script.write_text(ASSERTS)
    python = os.pathsep.join(sys.path)
    environment = {**os.environ, "PYTHONPATH": python}
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr[-2000:]
    assert "device-side assert" in done.stderr
    # What the CPU did is kept.
    assert "device events may be missing" in done.stderr
    assert "recorded 1" in done.stdout


SIZES = ("device", "stream", "grid", "block", "registers per thread", "shared memory", "bytes")
CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")


def test_a_written_trace_describes_work_as_torch_does(tmp_path: Path) -> None:
    step = workload("mlp", "cuda")
    step()
    described = []
    for kind in (mindprof, torch.profiler):
        groups = kind.ProfilerActivity
        with kind.profile(activities=[groups.CPU, groups.CUDA]) as prof:
            step()
        path = tmp_path / f"{kind.__name__}.json"
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
        work = [event for event in events if event.get("cat") in CATEGORIES]
        described.append(
            Counter(
                (event["cat"], event["name"], *[str(event["args"].get(key)) for key in SIZES])
                for event in work
            )
        )
    assert described[0] == described[1]
