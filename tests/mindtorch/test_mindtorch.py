"""The real MindTorch v2 with the engine installed: what is recorded, and its own profiler tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mindprof
import pytest

SOURCE = Path(os.environ["MINDTORCH_SRC"])
OWN_TESTS = SOURCE.parent / "tests" / "mindtorch_v2" / "test_profiler.py"
#: Its tests that pass with the real torch in its place; the others ask for what torch has not.
HELD_ON_TORCH = (Path(__file__).parent / "held_on_torch.txt").read_text().split()

RECORDED = """
import mindprof
mindprof.install()
import mindtorch_v2 as torch
from mindtorch_v2 import nn, optim

assert torch.profiler.profile is mindprof.profile
layer = nn.Linear(3, 2)
optimizer = optim.SGD(layer.parameters(), lr=0.1)
x = torch.ones((4, 3))
with torch.profiler.profile(record_shapes=True, with_stack=True) as prof:
    for _ in range(3):
        with torch.profiler.record_function("step"):
            layer(x).sum().backward()
            optimizer.step()

rows = {row.key: row for row in prof.key_averages()}
assert rows["step"].count == 3
assert rows["sum"].count >= 3, rows.keys()
assert rows["matmul"].count >= 3, rows.keys()
matmul = [event for event in prof.events() if event.name == "matmul"][0]
assert matmul.input_shapes[0] == [4, 3], matmul.input_shapes
assert any("linear" in frame.lower() for frame in matmul.stack), matmul.stack
scope = matmul
while scope.cpu_parent is not None:
    scope = scope.cpu_parent
assert any(event.name == "step" for event in prof.events())
mindprof.uninstall()
assert torch.profiler.profile is not mindprof.profile
with torch.profiler.profile() as own:
    x + x
assert [event["name"] for event in own.events()] == ["add"]
print(sorted(rows))
"""


def python(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the interpreter with the checkout first on the path of modules."""
    paths = [str(SOURCE), str(Path(mindprof.__file__).parents[1]), str(Path(__file__).parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_operators_shapes_and_scopes_are_recorded(tmp_path: Path) -> None:
    done = python("-c", RECORDED, folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not OWN_TESTS.exists(), reason="the checkout has no tests beside its sources")
def test_its_own_profiler_tests_pass_as_far_as_they_hold_on_torch(tmp_path: Path) -> None:
    nodes = [f"{OWN_TESTS}::{name}" for name in HELD_ON_TORCH]
    options = ["-q", "-p", "no:cacheprovider", "-p", "engine_plugin", "--noconftest"]
    done = python("-m", "pytest", *options, "--rootdir", str(tmp_path), *nodes, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(HELD_ON_TORCH)} passed" in done.stdout
