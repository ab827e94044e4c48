"""A process with torch_npu, on a machine without an NPU.

The device is a plugin of torch's collector that reports made-up kernels in the shape in which
torch_npu's plugin reports real ones; it is compiled here, which needs a C++ compiler. torch_npu
itself is a stand-in with the names of its profiler. The backend can be named once per process, so
each test has one of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import mindprof
import pytest
import torch  # type: ignore[import-not-found]

STAND_IN = Path(__file__).parent / "npu"
INCLUDED = Path(torch.__file__).parent / "include"
HEADER = INCLUDED / "torch/csrc/profiler/standalone/privateuse1_profiler.h"
COMPILER = shutil.which("g++") or shutil.which("clang++")

BEGINNING = """
import torch, torch_npu, mindprof
from mindprof import ProfilerActivity

CPU, NPU = ProfilerActivity.CPU, ProfilerActivity.PrivateUse1

def train():
    x = torch.ones(8, 8)
    torch.mm(x, x)
    torch_npu.plugin.npu_launch(b"MatMulV2", 3, 50_000)
    torch.add(x, x)
    torch_npu.plugin.npu_launch(b"Add", 4, 2_000)

def kernels(prof):
    found = [event for event in prof.events() if event.device_type.name == "PrivateUse1"]
    return [(event.name, event.time_range.elapsed_us()) for event in found]

# A kernel and the empty call that stands for its launch have the same name.
def rows(prof):
    found = {}
    for row in prof.key_averages():
        found.setdefault(row.key, []).append(row)
    return found

def device_time(rows):
    return sum(row.self_device_time_total for row in rows)
"""


@pytest.fixture(name="plugin", scope="module")
def _plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    if not HEADER.exists():
        pytest.skip("this torch takes no plugin for backends that it does not contain")
    library = tmp_path_factory.mktemp("npu") / "plugin.so"
    libraries = INCLUDED.parent / "lib"
    command = [COMPILER, "-std=c++20", "-shared", "-fPIC", "-DUSE_KINETO", "-DFMT_HEADER_ONLY"]
    command += [f"-I{INCLUDED}", f"-I{INCLUDED / 'kineto'}", str(STAND_IN / "plugin.cpp")]
    command += [f"-L{libraries}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{libraries}"]
    done = subprocess.run([*command, "-o", str(library)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return library


def run(program: str, plugin: Path | None, folder: Path) -> str:
    """Runs a program in a process with the stand-in, and returns what it prints."""
    paths = [str(STAND_IN), str(Path(mindprof.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("MINDPROF_TORCH_BACKEND", None)
    if plugin is not None:
        environment["NPU_PLUGIN"] = str(plugin)
    command = [sys.executable, "-W", "ignore", "-c", BEGINNING + program]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kernels_of_an_npu_are_recorded_beside_operators(plugin: Path, tmp_path: Path) -> None:
    program = """
assert NPU in mindprof.supported_activities()
for group in (NPU, torch.profiler.ProfilerActivity.PrivateUse1):
    with mindprof.profile(activities=[CPU, group]) as prof:
        train()
    assert kernels(prof) == [("MatMulV2", 50.0), ("Add", 2.0)], kernels(prof)
    found = rows(prof)
    [product] = found["aten::mm"]
    assert product.count == 1 and product.self_cpu_time_total > 0
    assert device_time(found["MatMulV2"]) == 50.0
prof.export_chrome_trace("trace.json")
again = mindprof.load("trace.json")
assert "Self NPU" in again.key_averages().table()
assert device_time(rows(again)["Add"]) == 2.0
print(torch_npu.plugin.npu_sessions())
"""
    assert int(run(program, plugin, tmp_path)) >= 2


def test_an_npu_is_recorded_alone(plugin: Path, tmp_path: Path) -> None:
    program = """
with mindprof.profile(activities=[NPU]) as prof:
    train()
assert kernels(prof) == [("MatMulV2", 50.0), ("Add", 2.0)], kernels(prof)
assert not any(name.startswith("aten::") for name in rows(prof))
"""
    run(program, plugin, tmp_path)


def test_users_of_torch_npu_get_torchs_interface(plugin: Path, tmp_path: Path) -> None:
    program = """
import warnings
theirs = torch_npu.profiler.profile
mindprof.install()
from torch_npu import profiler as npu

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    prof = npu.profile(
        activities=[npu.ProfilerActivity.CPU, npu.ProfilerActivity.NPU],
        schedule=npu.schedule(wait=1, active=2, warmup=1, repeat=1),
        on_trace_ready=npu.tensorboard_trace_handler("traces", "worker"),
        experimental_config=npu._ExperimentalConfig(),
        use_cuda=False,
        record_shapes=True,
    )
assert ["have no effect" in str(one.message) for one in told] == [True], told
with prof:
    for _ in range(4):
        train()
        prof.step()
assert [name for name, _ in kernels(prof)] == ["MatMulV2", "Add"] * 2
assert rows(prof)["aten::mm"][0].count == 2
mindprof.uninstall()
assert npu.profile is theirs
"""
    run(program, plugin, tmp_path)
    [trace] = (tmp_path / "traces").iterdir()
    assert '"MatMulV2"' in trace.read_text()


def test_without_a_plugin_torch_npu_keeps_its_profiler(tmp_path: Path) -> None:
    program = """
theirs = torch_npu.profiler.profile
mindprof.install()
assert torch_npu.profiler.profile is theirs
assert torch.profiler.profile is mindprof.profile
"""
    run(program, None, tmp_path)


def test_torch_npu_may_be_imported_later(plugin: Path, tmp_path: Path) -> None:
    program = """
import subprocess, sys
late = "import mindprof; mindprof.install(); import torch_npu; print(torch_npu.profiler.profile)"
print(subprocess.run([sys.executable, "-c", late], capture_output=True, text=True).stdout)
"""
    assert "npu_profile" in run(program, plugin, tmp_path)
