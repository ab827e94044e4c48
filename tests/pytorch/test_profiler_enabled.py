"""Code that asks torch whether a profiler runs is told so inside of a recording of ours."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]

CPU = [torch.profiler.ProfilerActivity.CPU]
KINDS = torch._C._profiler.ActiveProfilerType
NAMES = ("_profiler_enabled", "_toggle_collection_dynamic", "_disable_profiler")
MEMORY = pytest.mark.parametrize("memory", [False, True], ids=["plain", "with memory"])


def answers() -> tuple[bool, bool, str]:
    of_c = torch._C._autograd
    return torch.autograd._profiler_enabled(), of_c._profiler_enabled(), of_c._profiler_type().name


INSIDE = (True, True, "KINETO")
OUTSIDE = (False, False, "NONE")


def on_thread(run: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(run()))
    thread.start()
    thread.join()
    return found[0]


@pytest.fixture(autouse=True)
def functions() -> Iterator[None]:
    """torch's own functions are there before and after."""
    modules = torch.autograd, torch._C._autograd, torch.autograd.profiler
    before = [getattr(module, name, None) for module in modules for name in NAMES]
    yield
    assert [getattr(module, name, None) for module in modules for name in NAMES] == before
    assert answers() == OUTSIDE


@MEMORY
def test_the_thread_of_a_recording_is_told_of_it_as_torchs_is(memory: bool) -> None:
    with torch.profiler.profile(activities=CPU):
        plain = answers(), on_thread(answers)
    with mindprof.profile(profile_memory=memory):
        assert (answers(), on_thread(answers)) == plain == (INSIDE, OUTSIDE)


@MEMORY
def test_functions_that_were_imported_before_the_recording_are_told(memory: bool) -> None:
    is_enabled, kind = torch.autograd._profiler_enabled, torch._C._autograd._profiler_type
    before = repr(is_enabled), repr(kind)
    with mindprof.profile(profile_memory=memory):
        assert (is_enabled(), kind().name) == (True, "KINETO")
        assert (repr(is_enabled), repr(kind)) == before
        assert torch.autograd._profiler_enabled is is_enabled
        with pytest.raises(TypeError, match="incompatible function arguments"):
            is_enabled(1)
    assert (is_enabled(), kind().name) == (False, "NONE")


def test_a_function_that_the_program_replaced_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch._C._autograd, "_profiler_type", lambda: KINDS.NVTX)
    with mindprof.profile(profile_memory=True) as prof:
        torch.ones(2)
        assert torch._C._autograd._profiler_type() == KINDS.NVTX
    assert "aten::ones" in [row.key for row in prof.key_averages()]
    monkeypatch.undo()


@MEMORY
def test_recordings_nest_and_end_by_exceptions(memory: bool) -> None:
    with mindprof.profile(profile_memory=memory):
        with suppress(ZeroDivisionError), mindprof.profile(profile_memory=memory):
            assert answers() == INSIDE
            raise ZeroDivisionError
        assert answers() == INSIDE
    assert answers() == OUTSIDE


@MEMORY
def test_a_recording_that_ends_on_another_thread_is_over_here(memory: bool) -> None:
    prof = mindprof.profile(profile_memory=memory)
    prof.start()
    on_thread(prof.stop)
    assert answers() == OUTSIDE


def test_another_recording_goes_on_when_one_ends() -> None:
    begun, done = threading.Event(), threading.Event()

    def other() -> None:
        with mindprof.profile():
            begun.set()
            done.wait()

    worker = threading.Thread(target=other)
    with mindprof.profile():
        worker.start()
        begun.wait()
    assert answers() == OUTSIDE, "it is that of another thread"
    with mindprof.profile():
        done.set()
        worker.join()
        assert answers() == INSIDE


# With CUDA, whose collection it ends.
@pytest.mark.filterwarnings("ignore:device events are lost:UserWarning")
def test_a_profiler_of_torch_inside_of_ours_is_what_torch_tells_of() -> None:
    with mindprof.profile():
        with torch.autograd.profiler.profile() as inside:
            torch.ones(2)
            assert answers() == INSIDE
        assert answers() == INSIDE
        assert inside.key_averages()[0].key == "aten::ones"


@pytest.mark.filterwarnings("ignore")
def test_data_pipes_open_their_ranges() -> None:
    wrapper = pytest.importorskip("torch.utils.data.datapipes.iter").IterableWrapper

    def rows(profile: Any) -> list[tuple[str, int]]:
        with profile(activities=CPU) as prof:
            list(wrapper(range(4)).map(str))
        return sorted((row.key, row.count) for row in prof.key_averages())

    assert rows(mindprof.profile) == rows(torch.profiler.profile)
    assert [count for _, count in rows(mindprof.profile)] == [5, 5]


def asks(x: Any) -> Any:
    return x * 2 if torch.autograd._profiler_enabled() else x * 3


# torch says that it cannot trace the question.
@pytest.mark.filterwarnings("ignore:.*Dynamo does not know how to trace:UserWarning")
def test_compiled_code_takes_the_branch_that_it_would_take() -> None:
    compiled = torch.compile(asks, backend="eager")
    one = torch.ones(1)
    for _ in range(3):
        assert compiled(one).item() == 3
        with mindprof.profile():
            assert compiled(one).item() == 2
        with torch.profiler.profile(activities=CPU):
            assert compiled(one).item() == 2


def test_remote_calls_do_not_take_ours_for_the_profiler_that_they_support() -> None:
    api = pytest.importorskip("torch.distributed.rpc.api")
    if not hasattr(api, "_get_should_profile"):
        pytest.skip("this torch has no remote calls")
    with torch.profiler.profile(activities=CPU):
        plain = api._get_should_profile()
    with mindprof.profile(profile_memory=True):
        assert api._get_should_profile() == plain


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@MEMORY
def test_a_forked_child_is_told_of_none(memory: bool) -> None:
    with mindprof.profile(profile_memory=memory):
        child = os.fork()
        if child == 0:
            os._exit(0 if answers() == OUTSIDE else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@MEMORY
def test_values_of_fast_ranges_are_recorded(memory: bool) -> None:
    fast = torch._C._profiler._RecordFunctionFast

    def values(profile: Any) -> list[Any]:
        with profile(activities=CPU, record_shapes=True, profile_memory=memory) as prof:
            scope = torch._C._profiler._RecordFunctionFast("fast", [torch.ones(5), 7])
            scope.__enter__()
            scope.__exit__(None, None, None)
        return [event.input_shapes for event in prof.events() if event.name == "fast"]

    assert values(mindprof.profile) == values(torch.profiler.profile) == [[[5], []]]
    assert torch._C._profiler._RecordFunctionFast is fast


STAND_INS = [
    (torch.optim.Optimizer, "_optimizer_step_code"),
]
ATTRIBUTES = ("__name__", "__qualname__", "__code__", "__defaults__", "__self__")


@pytest.mark.parametrize(("owner", "name"), STAND_INS, ids=[name for _, name in STAND_INS])
def test_a_stand_in_has_the_attributes_of_its_function(owner: Any, name: str) -> None:
    theirs = getattr(owner, name)
    with mindprof.profile(record_shapes=True, profile_memory=True):
        ours = getattr(owner, name)
        assert ours is not theirs
        for attribute in ATTRIBUTES:
            missing = f"no {attribute}"
            expected = getattr(theirs, attribute, missing)
            assert getattr(ours, attribute, missing) == expected
        assert ours.__wrapped__ is theirs
        if hasattr(theirs, "__code__"):
            assert inspect.signature(ours) == inspect.signature(theirs)
    assert getattr(owner, name) is theirs


BESIDE = """
import threading
import mindprof
import torch

x = torch.ones(4, 4)

def record():
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, with_stack=True) as prof:
        x @ x
    print(sum(event.name == "aten::mm" for event in prof.events()))

with mindprof.profile(record_shapes=True, profile_memory=True):
    thread = threading.Thread(target=record)
    thread.start()
    thread.join()
record()
"""


def test_torchs_profiler_records_stacks_beside_ours_and_after_it() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BESIDE],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "1"], done.stderr


def test_the_loop_of_a_worker_is_wrapped_as_functions_are() -> None:
    module = torch.utils.data._utils.worker
    theirs = module._worker_loop
    with mindprof.profile():
        assert module._worker_loop is not theirs
        assert module._worker_loop.__wrapped__ is theirs
        assert module._worker_loop.__name__ == "_worker_loop"
        assert inspect.signature(module._worker_loop) == inspect.signature(theirs)
