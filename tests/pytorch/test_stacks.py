"""Stacks and modules of a real torch's operators, which run without Python's lock."""

from __future__ import annotations

import gc
import inspect
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]

FILE = Path(__file__).name

# With a device, torch's own calls that wait for it are recorded too, as by torch.
CPU = [mindprof.ProfilerActivity.CPU]


def line_of(function: Any, text: str) -> int:
    """Returns the line of a function that holds a text."""
    lines, first = inspect.getsourcelines(function)
    [line] = [first + offset for offset, line in enumerate(lines) if text in line]
    return line


def frame(function: Any, text: str) -> str:
    return f"{FILE}({line_of(function, text)}): {function.__name__}"


def compute(x: torch.Tensor) -> torch.Tensor:
    y = x + x  # by an operator of the language
    z = torch.mul(y, y)  # by a function
    return z.neg()  # by a method


@pytest.mark.parametrize("on_thread", [False, True])
def test_operators_have_the_line_that_calls_them(on_thread: bool) -> None:
    x = torch.ones(2)
    with mindprof.profile(with_stack=True) as prof:
        if on_thread:
            worker = threading.Thread(target=compute, args=(x,))
            worker.start()
            worker.join()
        else:
            compute(x)
    stacks = {event.name: event.stack for event in prof.events()}
    for name, text in [("add", "x + x"), ("mul", "torch.mul"), ("neg", "z.neg")]:
        assert stacks[f"aten::{name}"][0].endswith(frame(compute, text)), stacks
    assert prof.lost_events == 0


def repeat(x: torch.Tensor) -> None:
    for _ in range(3):
        x + x
        x * x


def test_each_line_of_a_loop_is_told() -> None:
    with mindprof.profile(with_stack=True) as prof:
        repeat(torch.ones(2))
    found = [(e.name, e.stack[0]) for e in prof.events() if e.name in ("aten::add", "aten::mul")]
    assert len(found) == 6
    for name, called in found:
        assert called.endswith(frame(repeat, "x + x" if name == "aten::add" else "x * x"))


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x) * 2


def test_modules_are_named_in_stacks_and_as_calls() -> None:
    model = Model()
    with mindprof.profile(with_stack=True) as prof:
        model(torch.ones(2, 4))
    linear = next(event for event in prof.events() if event.name == "aten::linear")
    modules = [called for called in linear.stack if called.startswith("nn.Module")]
    assert modules == ["nn.Module: Linear_0", "nn.Module: Sequential_0", "nn.Module: Model_0"]
    calls = [row.key for row in prof.key_averages(include_python_functions=True)]
    assert {"nn.Module: Model_0", "nn.Module: ReLU_0"} <= set(calls)


def test_backward_nodes_have_the_stack_of_their_forward() -> None:
    model = Model()
    with mindprof.profile(with_stack=True) as prof:
        model(torch.ones(2, 4)).sum().backward()
    node = next(event for event in prof.events() if event.name == "MulBackward0")
    assert any(called.endswith(frame(Model.forward, "self.layers(x)")) for called in node.stack)


def functions(stack: list[str]) -> list[str]:
    """Returns a stack without lines: those of Python's operators are the functions' in torch."""
    names = [re.sub(r"\(\d+\)", "", called) for called in stack]
    return [name for name in names if name.startswith(FILE)]


def test_a_stack_is_torchs() -> None:
    x = torch.ones(2)

    def record(profile: Any, **options: Any) -> Any:
        with profile(with_stack=True, **options) as prof:
            compute(x)
        return {e.name: e.stack for e in prof.events() if e.name.startswith("aten::")}

    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
    theirs = record(torch.profiler.profile, experimental_config=verbose)
    ours = record(mindprof.profile)
    assert {name: functions(stack) for name, stack in ours.items()} == {
        name: functions(stack) for name, stack in theirs.items()
    }


def calls_of(prof: Any) -> list[str]:
    rows = prof.key_averages(include_python_functions=True)
    return sorted(row.key for row in rows if not row.key.startswith(("aten::", "[memory]")))


def test_a_recording_has_no_calls_of_mindprof() -> None:
    begin = line_of(test_a_recording_has_no_calls_of_mindprof, "with " + "mindprof.profile")
    options: dict[str, Any] = {"record_shapes": True, "profile_memory": True}
    with mindprof.profile(activities=CPU, with_stack=True, **options) as prof:
        torch.ones(2)
    calls = [call for call in calls_of(prof) if "pytest" not in call and "pluggy" not in call]
    own = [call for call in calls if call.startswith((f"{FILE}({begin})", "<built-in method ones"))]
    assert len(own) == 2, calls
    assert [call for call in calls if "mindprof/" in call or "torch/distributed" in call] == []
    assert [call for call in calls if "enum.py" in call or "<frozen os>" in call] == []


def test_steps_are_not_calls() -> None:
    schedule = mindprof.schedule(wait=0, warmup=1, active=3, repeat=1)
    with mindprof.profile(activities=CPU, with_stack=True, schedule=schedule) as prof:
        for _ in range(4):
            torch.ones(2)
            prof.step()
    steps = [row.count for row in prof.key_averages() if row.key == "ProfilerStep*"]
    assert steps == [3]
    calls = calls_of(prof)
    assert [call for call in calls if re.search(r"mindprof/|enum\.py|<frozen os>", call)] == []


@mindprof.record_function("decorated")
def decorated() -> torch.Tensor:
    return torch.ones(2)


def test_functions_that_mindprof_calls_are_recorded() -> None:
    with mindprof.profile(with_stack=True) as prof:
        decorated()
    found = next(event for event in prof.events() if event.name == "aten::ones")
    names = [re.sub(r"\(\d+\)", "", called) for called in found.stack]
    caller = test_functions_that_mindprof_calls_are_recorded.__name__
    assert [name.rpartition("/")[2] for name in names[:2]] == [
        f"{FILE}: decorated",
        f"{FILE}: {caller}",
    ]
    assert f": {caller}" in names[1]


def nested_profile() -> mindprof.profile:
    with mindprof.profile(activities=CPU, with_stack=True, profile_memory=True) as prof:
        z = torch.ones(100, 100)
        del z
    return prof


def call_nested() -> mindprof.profile:
    return nested_profile()


def rows_with_memory(prof: mindprof.profile) -> list[tuple[str, int, int]]:
    return [(row.key, row.count, row.cpu_memory_usage) for row in prof.key_averages()]


@pytest.mark.parametrize("options", [{"with_stack": True}, {}], ids=["stacks", "plain"])
def test_a_nested_profile_begins_with_the_open_calls(options: dict[str, Any]) -> None:
    alone = call_nested()
    with mindprof.profile(activities=CPU, **options) as outer:
        nested = call_nested()
    (root,) = (event for event in alone.events() if event.cpu_parent is None)
    (found,) = (event for event in nested.events() if event.cpu_parent is None)
    assert found.name.split(": ")[-1] == root.name.split(": ")[-1]
    assert rows_with_memory(nested) == rows_with_memory(alone)
    functions = {event.name.split(": ")[-1] for event in nested.events()}
    assert {"call_nested", "nested_profile"} <= functions
    if options:
        names = [event.name.split(": ")[-1] for event in outer.events()]
        assert (names.count("call_nested"), names.count("nested_profile")) == (1, 1)


def test_garbage_collections_show_no_calls_of_ours() -> None:
    config = mindprof.ExperimentalConfig(record_python_gc_info=True)
    with mindprof.profile(with_stack=True, experimental_config=config) as prof:
        gc.collect()
        gc.collect()
    names = [event.name for event in prof.events()]
    assert names.count("Python GC") == 2
    # Starting and stopping are calls of ours; the collections themselves make none.
    of_ours = [name.split(": ")[-1] for name in names if "garbage.py" in name]
    assert set(of_ours) <= {"__init__", "start", "stop"}


WITH_FRAME_HOOK = """
import mindprof, torch, torch._dynamo

torch._C._dynamo.eval_frame.set_eval_frame(False)
x = torch.ones(2)
with mindprof.profile(with_stack=True) as prof:
    x + x
[event] = [event for event in prof.events() if event.name == "aten::add"]
print(len(event.stack), prof.lost_events)
"""


def test_lines_are_found_although_a_compiler_evaluates_frames() -> None:
    # In a process of its own, in which the hook is there before the first recording.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", WITH_FRAME_HOOK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "1 0\n", done.stderr
