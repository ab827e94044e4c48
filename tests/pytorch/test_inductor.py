"""Inductor's own users of the profiler work with ours: its benchmarks and its report of kernels."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from torch.autograd import DeviceType  # type: ignore[import-not-found]

REPEATS = 3
RANGE = "_CALLABLE"


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    mindprof.install()
    yield
    mindprof.uninstall()


def benchmarked(name: str) -> Any:
    """Records as Inductor's benchmarks do: each call in a range, beside work that is left out."""
    x = torch.ones(64, 64)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        for _ in range(REPEATS):
            x.zero_()
            with torch.profiler.record_function(name):
                torch.mm(x, x).relu()
    return prof


def test_the_benchmark_by_profiling_reads_raw_events() -> None:
    utils = importlib.import_module("torch._inductor.utils")
    if not hasattr(utils, "_get_do_bench_profile_result"):
        pytest.skip("this torch reads no raw events in its benchmark")
    prof = benchmarked(utils._DO_BENCH_PROFILE_EVENT_NAME)
    raw = prof.profiler.kineto_results.events()
    # There is no device here: the time of all CPU events takes its place.
    mean_ms = utils._get_do_bench_profile_result(raw, prof.events(), REPEATS, DeviceType.CPU)
    name = utils._DO_BENCH_PROFILE_EVENT_NAME
    inside = [event for event in prof.events() if _is_within(event, name)]
    spent_us = sum(event.time_range.elapsed_us() for event in inside)
    assert mean_ms == pytest.approx(spent_us / 1000 / REPEATS)


def _is_within(event: Any, name: str) -> bool:
    while event is not None:
        if event.name == name:
            return True
        event = event.cpu_parent
    return False


def test_the_benchmarker_with_the_profiler_reads_raw_events() -> None:
    benchmarking = importlib.import_module("torch._inductor.runtime.benchmarking")
    if not hasattr(benchmarking, "_get_callable_device_kernel_time_us"):
        pytest.skip("this torch has no such benchmarker")
    prof = benchmarked(RANGE)
    raw = prof.profiler.kineto_results.events()
    read = benchmarking._get_callable_device_kernel_time_us
    found_us = read(raw, prof.events(), REPEATS, DeviceType.CPU)
    ranges = [event for event in prof.events() if event.name == RANGE]
    assert found_us >= sum(event.time_range.elapsed_us() for event in ranges) > 0
    with pytest.raises(RuntimeError, match="Expected 4 _CALLABLE profiling events"):
        read(raw, prof.events(), REPEATS + 1, DeviceType.CPU)


COMPILED = """
import mindprof, torch
mindprof.install()
import torch._inductor.wrapper_benchmark as wrapper

wrapper.PROFILE_PATH = "trace.json"
compiled = torch.compile(lambda x: (x + 1).relu().sum())
x = torch.ones(8)
compiled(x)

def run(times, repeat):
    for _ in range(times * repeat):
        compiled(x)

wrapper.perf_profile(1.0, 2, 2, "benchmark", run)
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
def test_the_report_of_a_compiled_module(tmp_path: Path) -> None:
    # In a process of its own: the compiler looks into every imported module, this test's too.
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", COMPILED],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "No device detected" in done.stdout
    assert "Output for tabulate: benchmark, 0.00%" in done.stdout
    # torch 2.7 takes no path, and writes the trace into the folder for temporary files.
    (trace,) = [*tmp_path.glob("trace.json"), *tmp_path.glob("compiled_module_profile.json")]
    rows = {row.key: row.count for row in mindprof.load(trace).key_averages()}
    assert 4 in rows.values()


def test_the_report_counts_kernels_on_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tabulate")
    wrapper = importlib.import_module("torch._inductor.wrapper_benchmark")
    kernel = mindprof.FunctionEvent(
        0,
        "triton_poi_fused",
        1,
        0.0,
        400.0,
        use_device="cuda",
        device_type=mindprof.DeviceType.CUDA,
    )
    events = mindprof.EventList([kernel, mindprof.FunctionEvent(1, "aten::mm", 1, 0.0, 9.0)])
    events._build_tree()
    wrapper.parse_profile_event_list("benchmark", events.key_averages(), 1.0, 1, "cuda")
    told = capsys.readouterr().out
    assert "triton_pointwise category kernels" in told
    assert "aten::mm" not in told
    assert "40.00%" in told
