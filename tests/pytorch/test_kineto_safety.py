"""What could go wrong around torch's own collector ends in a right recording or a clear warning."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from mindprof import ExperimentalConfig, _core
from mindprof._frameworks import torch_names
from mindprof._frameworks.present import present_host

from tests.pytorch.one_collection import is_call

CPU = [torch.profiler.ProfilerActivity.CPU]
BUSY = r"recorded exclusively by another profiler: this recording has"


@pytest.fixture(autouse=True)
def _by_kineto(monkeypatch: pytest.MonkeyPatch) -> None:
    # The probe of the observer is not to be seen by anyone.
    mindprof.supported_activities()
    monkeypatch.setenv("MINDPROF_TORCH_BACKEND", "kineto")


def counts(prof: Any) -> Counter[str]:
    return Counter({row.key: row.count for row in prof.key_averages()})


def threads_of(prof: Any) -> set[int]:
    """Returns the threads of what the program ran: the collector's own work has another one."""
    return {event.thread for event in prof.events() if not is_call(event.name)}


def python(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, by Kineto as here."""
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def add(times: int = 1) -> None:
    x = torch.ones(2)
    for _ in range(times):
        x + x


def test_ranges_of_both_worlds_and_operators_nest() -> None:
    outer, inner = mindprof.record_function("ours"), torch.profiler.record_function("theirs")
    with mindprof.profile() as prof, outer, inner, mindprof.record_function("innermost"):
        torch.ones(2).neg()
    parents = {event.name: event.cpu_parent and event.cpu_parent.name for event in prof.events()}
    assert parents["ours"] is None
    assert parents["theirs"] == "ours"
    assert parents["innermost"] == "theirs"
    assert parents["aten::neg"] == "innermost"
    assert len(threads_of(prof)) == 1


def test_all_threads_are_recorded_on_threads_of_their_own() -> None:
    def work() -> None:
        with mindprof.record_function("worker"):
            add()

    with mindprof.profile() as prof:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
        add()
    assert counts(prof)["aten::add"] == 2
    [inside] = [e for e in prof.events() if e.name == "aten::add" and e.cpu_parent is not None]
    assert inside.cpu_parent.name == "worker"
    assert len(threads_of(prof)) == 2


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("way", ["kineto", "observer"])
def test_a_second_recording_is_told_that_it_has_nothing_of_torch(
    memory: bool, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mindprof.profile(profile_memory=memory) as outer:
        add()
        monkeypatch.setenv("MINDPROF_TORCH_BACKEND", way)
        told = pytest.warns(UserWarning, match=f"{BUSY} no operators of torch")
        with told, mindprof.profile() as inner, mindprof.record_function("mine"):
            add(2)
        add(4)
    assert counts(outer)["aten::add"] == 7
    assert counts(outer)["mine"] == 1
    assert counts(inner) == {"mine": 1}
    with mindprof.profile() as after:
        add()
    assert counts(after)["aten::add"] == 1


def test_beside_the_observer_it_is_the_observer_that_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MINDPROF_TORCH_BACKEND", "observer")
    with mindprof.profile() as outer:
        add()
        monkeypatch.setenv("MINDPROF_TORCH_BACKEND", "kineto")
        told = pytest.warns(UserWarning, match=f"{BUSY} them through the observer")
        with told, mindprof.profile() as inner:
            add(2)
    assert counts(outer)["aten::add"] == 3
    assert counts(inner)["aten::add"] == 2


def run_twice(work: Callable[[], None]) -> None:
    """Runs something on two threads at once."""
    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def test_recordings_on_two_threads() -> None:
    barrier = threading.Barrier(2)
    found: list[Counter[str]] = []

    def work() -> None:
        prof = mindprof.profile()
        barrier.wait()
        prof.start()
        barrier.wait()
        add(100)
        barrier.wait()
        prof.stop()
        found.append(counts(prof))

    with pytest.warns(UserWarning, match=BUSY):
        run_twice(work)
    assert sorted(count["aten::add"] for count in found) == [0, 200]


def test_inside_of_torchs_own_profiler() -> None:
    with torch.profiler.profile(activities=CPU) as theirs:
        with pytest.warns(UserWarning, match=BUSY), mindprof.profile() as ours:
            add(2)
        add()
    assert counts(ours)["aten::add"] == 2
    assert counts(theirs)["aten::add"] == 3


# In a process of its own: an old torch cannot use its profiler again after it was refused.
REFUSED = """
import mindprof, torch
x = torch.ones(2)
with mindprof.profile(profile_memory={memory}) as prof:
    x + x
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            x * x
    except RuntimeError as error:
        print(error)
    x - x
print("rows", {{row.key: row.count for row in prof.key_averages()}})
print("lost", prof.lost_events, prof.key_averages().table().count("torch lost as a whole"))
"""


@pytest.mark.parametrize("memory", [False, True])
def test_torchs_own_profiler_inside_is_refused_or_takes_over(memory: bool) -> None:
    done = python(REFUSED.format(memory=memory))
    is_kept = "'aten::add': 1" in done.stdout
    assert is_kept or "torch's events are lost: torch.profiler was started" in done.stderr
    assert ("lost 0 0" if is_kept else "lost 1 1") in done.stdout


def test_a_start_that_fails_leaves_torch_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    native = torch._C._autograd

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    prof = mindprof.profile()
    with monkeypatch.context() as patch:
        patch.setattr(native, "_enable_profiler", fail)
        with pytest.raises(KeyboardInterrupt):
            prof.start()
    assert not torch.autograd._profiler_enabled()
    with mindprof.profile() as after:
        add()
    assert counts(after)["aten::add"] == 1


def test_a_profiler_that_was_prepared_and_never_started_is_in_nobodys_way() -> None:
    prepared = mindprof.profile()
    prepared.prepare_trace()
    with mindprof.profile() as prof:
        add()
    assert counts(prof)["aten::add"] == 1
    prepared.start_trace()
    add(2)
    prepared.stop_trace()
    assert counts(prepared)["aten::add"] == 2


def test_a_profiler_that_is_let_go_of_gives_torchs_collector_back() -> None:
    prof = mindprof.profile(profile_memory=True)
    prof.start()
    del prof
    gc.collect()
    assert not torch.autograd._profiler_enabled()
    with mindprof.profile(profile_memory=True) as after:
        add()
    assert counts(after)["aten::add"] == 1


def test_a_schedule_of_several_cycles() -> None:
    found = []
    plan = mindprof.schedule(wait=1, warmup=1, active=2, repeat=3)
    ready = lambda prof: found.append(counts(prof))  # noqa: E731
    with mindprof.profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(14):
            add()
            prof.step()
    assert [count["aten::add"] for count in found] == [2, 2, 2]
    assert [count["ProfilerStep*"] for count in found] == [2, 2, 2]


def test_events_of_several_cycles_are_kept() -> None:
    plan = mindprof.schedule(wait=0, warmup=1, active=1, repeat=2)
    with mindprof.profile(schedule=plan, acc_events=True) as prof:
        for _ in range(4):
            add()
            prof.step()
    assert counts(prof)["aten::add"] == 2


def test_collection_can_be_toggled() -> None:
    own_thread = ExperimentalConfig(profile_all_threads=False)
    with mindprof.profile(experimental_config=own_thread) as prof:
        add()
        prof.toggle_collection_dynamic(False, CPU)
        add(2)
        prof.toggle_collection_dynamic(True, CPU)
        add(4)
    assert counts(prof)["aten::add"] == 5


def test_collection_of_all_threads_is_toggled_or_told_of() -> None:
    with warnings.catch_warnings(record=True) as told, mindprof.profile() as prof:
        warnings.simplefilter("always")
        add()
        prof.toggle_collection_dynamic(False, CPU)
        add(2)
        prof.toggle_collection_dynamic(True, CPU)
        add(4)
    goes_on = any("collection continues" in str(warning.message) for warning in told)
    assert counts(prof)["aten::add"] == (7 if goes_on else 5)


# Python from 3.12 on warns of forks beside other threads, which torch has.
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:torch's operators:UserWarning")
@pytest.mark.parametrize("memory", [False, True])
def test_a_forked_child_runs_and_records_on_its_own(memory: bool) -> None:
    torch.set_num_threads(1)
    with mindprof.profile(profile_memory=memory) as prof:
        add()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with mindprof.profile() as own:
                    add(3)
                code = 0 if counts(own)["aten::add"] == 3 else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        add()
    assert os.waitstatus_to_exitcode(status) == 0
    assert counts(prof)["aten::add"] == 2


@pytest.mark.parametrize("memory", [False, True])
def test_a_range_with_the_name_of_a_record_is_a_range(memory: bool) -> None:
    kept = []
    with mindprof.profile(profile_memory=memory) as prof:
        for name in ("[memory]", "[OutOfMemory]"):
            with torch.profiler.record_function(name):
                kept.append(torch.ones(100))
    ranges = [event for event in prof.events() if event.is_user_annotation]
    assert [event.name for event in ranges] == ["[memory]", "[OutOfMemory]"]
    assert all("aten::ones" in [child.name for child in event.cpu_children] for event in ranges)
    assert sum(row.self_cpu_memory_usage for row in prof.key_averages()) == 800 * memory


def test_an_end_on_another_thread() -> None:
    prof = mindprof.profile()
    prof.start()
    add()
    worker = threading.Thread(target=prof.stop)
    worker.start()
    worker.join()
    assert counts(prof)["aten::add"] == 1


LEFT = """
import os, threading, warnings
import mindprof
import torch

torch.set_num_threads(1)
lost = mindprof.profile(profile_memory=True)
lost.start()
torch.ones(2)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    worker = threading.Thread(target=lost.stop)
    worker.start()
    worker.join()
print(sum("are lost" in str(warning.message) for warning in told), lost.lost_events)
print(torch.autograd.profiler._is_profiler_enabled)
child = os.fork()
if child == 0:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with mindprof.profile() as own:
            torch.ones(2)
    # With a GPU, a forked child cannot run what the observer's layout is probed with.
    is_told = any("has no operators of torch" in str(warning.message) for warning in told)
    is_whole = "aten::ones" in [row.key for row in own.key_averages()]
    os._exit(0 if is_whole or (is_told and torch.cuda.is_available()) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
warnings.simplefilter("error", UserWarning)
with mindprof.profile(profile_memory=True) as prof:
    kept = torch.ones(100)
print(sum(row.self_cpu_memory_usage for row in prof.key_averages()))
"""


def test_what_is_lost_by_an_end_on_another_thread_is_in_nobodys_way() -> None:
    assert python(LEFT).stdout.split() == ["1", "1", "False", "0", "400"]


#: Prints what operators were given, and how often. With a word, results are read by accessors.
GIVEN = """
import logging
import sys
import mindprof
import mindprof._frameworks.kineto_results as results
import torch

logging.basicConfig(level=logging.INFO)
results._is_checked = len(sys.argv) > 1
with mindprof.profile(record_shapes=True, profile_memory=True) as prof:
    x = torch.ones(2, 3, requires_grad=True)
    y = torch.cat([x * 2, torch.add(x, x, alpha=3), x.t().reshape([2, 3])], dim=-1)
    y = torch.nn.functional.pad(y, [1, 2], value=0.5).clamp(-1.5, None).to(torch.float64)
    torch.sum(y.unsqueeze(0), [0, 2], keepdim=True).sum().backward()
    with torch.profiler.record_function("a range"):
        torch.full([3], True)
        torch._foreach_add([torch.full([3], 1 - 2j)] * 2, [2, 0.1j])
    fast = torch._C._profiler._RecordFunctionFast("fast", [x, 3], {"key": "value", "n": 4})
    with fast:
        pass
for event in prof.events():
    print(event.name, event.input_shapes, event.concrete_inputs, event.kwinputs, event.thread)
"""


def test_results_are_read_from_memory_and_by_accessors_alike() -> None:
    def told(*words: str) -> list[str]:
        done = python(GIVEN, *words)
        assert "are read through Python accessors" not in done.stderr
        return done.stdout.splitlines()

    from_memory = told()
    assert "aten::add [[2, 3], [2, 3], []] [None, None, 3] {} 1" in from_memory
    assert from_memory == told("by accessors")


def test_a_recording_that_has_ended_leaves_the_next_alone() -> None:
    first = mindprof.profile()
    first.start()
    assert first.profiler is not None
    session: Any = first.profiler._session
    first.stop()
    with mindprof.profile() as second:
        add()
        del session
        gc.collect()
        add()
    assert counts(second)["aten::add"] == 2


def test_beside_torchs_own_profiler_on_another_thread() -> None:
    has_begun, may_end = threading.Event(), threading.Event()
    theirs = torch.profiler.profile(activities=CPU)

    def work() -> None:
        with theirs:
            torch.ones(2).sin()
            has_begun.set()
            may_end.wait()
            torch.ones(2).sin()

    worker = threading.Thread(target=work)
    worker.start()
    has_begun.wait()
    try:
        with pytest.warns(UserWarning, match=BUSY), mindprof.profile() as ours:
            add()
    finally:
        may_end.set()
        worker.join()
    assert counts(ours)["aten::add"] == 1
    assert counts(theirs)["aten::sin"] == 2


#: A second profiler, the first time that a process has two.
SECOND = """
import warnings
import mindprof
import torch

warnings.simplefilter("ignore")
x = torch.ones(2)
with mindprof.profile() as first, mindprof.profile():
    x * x
print([event.name for event in first.events()])
"""


def test_a_second_recording_adds_nothing_to_the_first() -> None:
    assert python(SECOND).stdout == "['aten::mul']\n"


def test_the_host_says_what_it_is() -> None:
    host = present_host()
    assert type(host).__name__ == "KinetoHost"
    assert host.has_device("cuda") == torch.cuda.is_available()


UNENDED = """
import atexit, builtins, sys, threading

def stop():
    prof.stop()
    print(next(row.count for row in prof.key_averages() if row.key == "aten::add"))

words = sys.argv[1:]
if "first" in words:
    atexit.register(stop)
import mindprof, torch
if "last" in words:
    atexit.register(stop)
prof = mindprof.profile(profile_memory="memory" in words, with_stack="stacks" in words)
if "kept" in words:
    builtins.prof = prof
if "elsewhere" in words:
    thread = threading.Thread(target=prof.start)
    thread.start()
    thread.join()
else:
    prof.start()
torch.ones(2) + 1
"""


@pytest.mark.parametrize(
    "words",
    [[], ["memory"], ["stacks"], ["kept"], ["elsewhere"], ["memory", "elsewhere"]],
    ids=" ".join,
)
def test_a_recording_that_nobody_ends_does_not_crash_at_exit(words: list[str]) -> None:
    python(UNENDED, *words)


def test_a_recording_that_is_ended_at_exit_is_whole() -> None:
    done = python(UNENDED, "last")
    assert done.stdout.split() == ["1"]
    assert "began to exit" not in done.stderr
    # What was registered first is called after ours, which has ended it by then.
    done = python(UNENDED, "first")
    assert done.stdout.split() == ["1"]
    assert "torch was recorded until the interpreter began to exit" in done.stderr


def test_it_is_known_whether_anybody_uses_kineto() -> None:
    assert not _core.kineto_is_active()
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1)
    prof = torch.profiler.profile(activities=CPU, schedule=schedule)
    prof.start()
    assert _core.kineto_is_active(), "it is prepared"
    prof.step()
    answers = []
    thread = threading.Thread(target=lambda: answers.append(_core.kineto_is_active()))
    thread.start()
    thread.join()
    assert answers == [True], "it collects on another thread"
    prof.stop()
    assert not _core.kineto_is_active()


def test_torchs_profilers_begin_and_end_with_a_lock_held() -> None:
    lock = threading.RLock()
    begun = []
    held = torch_names.watched(torch, lock, lambda: begun.append(True))
    assert len(held) == 3
    with torch.profiler.profile(activities=CPU):
        pass
    assert len(begun) == 2, "prepared and started"
    with pytest.raises(TypeError):
        torch._C._autograd._enable_profiler()
    assert len(begun) == 3
    answers = []

    def take() -> None:
        answers.append(lock.acquire(blocking=False))
        # torch's functions may be interposed in again, with this lock.
        lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    assert answers == [True], "it is free again"
    for one in held:
        one.undo()
    with torch.profiler.profile(activities=CPU):
        pass
    assert len(begun) == 3
