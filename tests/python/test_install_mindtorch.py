"""`mindprof.install()` beside a MindTorch v2 of the shape of the real one, and beside our own.

The stand-in has what the engine meets of the real package: a dispatcher that asks whether a
profiler is on, and calls at the beginning and end of each operator; `make test-mindtorch` runs the
real one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mindprof
import pytest

FILES = {
    "mindtorch_v2/__init__.py": """
from mindtorch_v2 import profiler
from mindtorch_v2._dispatch.dispatcher import dispatch


class Tensor:
    dtype = "torch.float32"

    def __init__(self, *shape):
        self.shape = shape

    def __add__(self, other):
        return dispatch("add", "cpu", self, other, alpha=1)

    def mean(self):
        return dispatch("mean", "cpu", self)
""",
    "mindtorch_v2/profiler/__init__.py": """
from mindtorch_v2.profiler.profiler import profile, record_function, schedule
""",
    "mindtorch_v2/profiler/profiler.py": """
class profile: pass
class record_function: pass
def schedule(): pass
def is_profiler_enabled(): return False
def dispatch_op_enter(name, dispatch_device, args, kwargs): raise AssertionError
def dispatch_op_exit(token): raise AssertionError
""",
    "mindtorch_v2/_dispatch/__init__.py": "",
    "mindtorch_v2/_dispatch/dispatcher.py": """
from mindtorch_v2.profiler.profiler import (
    dispatch_op_enter, dispatch_op_exit, is_profiler_enabled
)


def dispatch(name, device, *args, **kwargs):
    token = None
    if is_profiler_enabled():
        token = dispatch_op_enter(name, device, args, kwargs)
    try:
        if args[0].shape == ():
            raise ValueError("empty")
        # A composed operator, as some of the real ones are.
        return args[0] if name == "add" else args[0] + args[0]
    finally:
        if token is not None:
            dispatch_op_exit(token)
""",
}

USE = """
import mindtorch_v2

assert mindtorch_v2.profiler.profile is mindprof.profile
assert mindtorch_v2.profiler.profiler.profile is mindprof.profile
assert mindtorch_v2.profiler.record_function is mindprof.record_function
with mindtorch_v2.profiler.profile(record_shapes=True, with_stack=True) as prof:
    with mindtorch_v2.profiler.record_function("step"):
        mindtorch_v2.Tensor(2, 3).mean()
    try:
        mindtorch_v2.Tensor().mean()
    except ValueError:
        pass
names = [event.name for event in prof.events() if not event.is_python_function]
assert names == ["step", "mean", "add", "mean"], names
parents = [event.cpu_parent for event in prof.events() if event.name in ("mean", "add")]
while parents and parents[0].is_python_function:
    parents[0] = parents[0].cpu_parent
assert parents[0].name == "step"
(add,) = [event for event in prof.events() if event.name == "add"]
assert add.input_shapes[:2] == [[2, 3], [2, 3]]
assert add.concrete_inputs[-1] == 1
assert any("mean" in frame for frame in add.stack), add.stack
"""


@pytest.fixture(name="stand_in")
def _stand_in(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def check(program: str, first: Path | None = None) -> None:
    """Runs a program that asserts, with a folder first on the path of modules."""
    paths = [str(Path(mindprof.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    if first is not None:
        paths.insert(0, str(first))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_one_that_comes_later_is_recorded(stand_in: Path) -> None:
    check("import mindprof\nmindprof.install()\n" + USE, stand_in)


def test_one_that_is_there_is_recorded(stand_in: Path) -> None:
    check("import mindtorch_v2, mindprof\nmindprof.install()\n" + USE, stand_in)


def test_uninstall_gives_everything_back(stand_in: Path) -> None:
    program = """
import mindprof, mindtorch_v2
from mindtorch_v2._dispatch import dispatcher
modules = (dispatcher, mindtorch_v2.profiler, mindtorch_v2.profiler.profiler)
before = [dict(vars(module)) for module in modules]
mindprof.install()
assert dispatcher.is_profiler_enabled is not before[0]["is_profiler_enabled"]
mindprof.uninstall()
assert [dict(vars(module)) for module in modules] == before
mindtorch_v2.Tensor(2) + mindtorch_v2.Tensor(2)
"""
    check(program, stand_in)


def test_ours_steps_aside_for_one_that_is_first_on_the_path(stand_in: Path) -> None:
    program = f"""
import mindprof, mindtorch_v2
assert mindtorch_v2.__file__.startswith({str(stand_in)!r})
with mindprof.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
    with mindprof.record_function("step"):
        pass
assert [row.key for row in prof.key_averages()] == ["step"]
"""
    check(program, stand_in)


@pytest.mark.runtime
def test_our_own_needs_nothing_installed() -> None:
    program = """
import mindprof
mindprof.install()
import mindtorch_v2
assert mindtorch_v2.profiler.profile is mindprof.profile
with mindtorch_v2.profiler.profile() as prof:
    mindtorch_v2.ones(2) + 1
assert "aten::add" in [row.key for row in prof.key_averages()]
mindprof.uninstall()
assert mindtorch_v2.profiler.profile is mindprof.profile
"""
    check(program)
