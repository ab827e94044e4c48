"""What could go wrong beside a real torch ends in a right recording, never in a crash."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from torch.utils.data import DataLoader, Dataset  # type: ignore[import-not-found]


def counts(prof: Any) -> Counter[str]:
    return Counter({row.key: row.count for row in prof.key_averages()})


def test_an_operator_that_raises_ends() -> None:
    with mindprof.profile(record_shapes=True) as prof:
        with pytest.raises(RuntimeError):
            torch.ones(2, 3) @ torch.ones(2, 3)
        torch.ones(2).neg()
    events = {event.name: event for event in prof.events()}
    assert events["aten::neg"].cpu_parent is None
    assert "aten::mm" in events


def test_torchs_own_profiler_may_run_around_and_inside() -> None:
    x = torch.ones(2)
    # Of the host alone: with a GPU, torch's collector serves one at a time.
    activities = [torch.profiler.ProfilerActivity.CPU]
    with (
        torch.profiler.profile(activities=activities) as around,
        mindprof.profile(activities=activities) as ours,
    ):
        x + x
    with mindprof.profile(activities=activities) as outer:
        with torch.profiler.profile(activities=activities) as inside:
            x * x
        x - x
    assert [counts(prof)["aten::add"] for prof in (around, ours)] == [1, 1]
    assert counts(inside) == {"aten::mul": 1}
    assert counts(outer) == {"aten::mul": 1, "aten::sub": 1}


def test_two_profilers_on_two_threads_both_have_all() -> None:
    x = torch.ones(2)
    barrier = threading.Barrier(2)
    found: list[Counter[str]] = []

    def work() -> None:
        with mindprof.profile(record_shapes=True, profile_memory=True) as prof:
            barrier.wait()
            for _ in range(100):
                x + x
            barrier.wait()
        found.append(counts(prof))

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [count["aten::add"] for count in found] == [200, 200]


def test_inputs_are_there_for_those_alone_who_want_them() -> None:
    x = torch.ones(2, 3)
    with mindprof.profile() as plain:
        x + x
        with mindprof.profile(record_shapes=True) as shaped:
            x + x
        x + x
    assert [event.input_shapes for event in plain.events()] == [[], [], []]
    assert [event.input_shapes for event in shaped.events()] == [[[2, 3], [2, 3], []]]


def test_a_profiler_with_shapes_takes_nothing_from_one_without() -> None:
    """torch is asked anew for its scopes then, on all threads."""
    count = 50_000

    def work() -> None:
        x = torch.ones(2)
        with torch.no_grad():
            for _ in range(count):
                x.neg_()

    with mindprof.profile() as prof:
        worker = threading.Thread(target=work)
        worker.start()
        while worker.is_alive():
            with mindprof.profile(record_shapes=True):
                pass
            # The worker asks for Python's lock after each operator, and would mostly wait for it.
            time.sleep(1e-4)
    assert counts(prof)["aten::neg_"] == count


# Python from 3.12 on warns of forks beside other threads, which torch has.
FORKS = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


@FORKS
def test_a_forked_child_runs_and_records_on_its_own() -> None:
    x = torch.ones(2)
    torch.set_num_threads(1)
    with mindprof.profile(profile_memory=True) as prof:
        x + x
        child = os.fork()
        if child == 0:
            code = 1
            try:
                x * x
                with mindprof.profile() as own:
                    x - x
                code = 0 if counts(own) == {"aten::sub": 1} else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        x + x
    assert os.waitstatus_to_exitcode(status) == 0
    assert counts(prof)["aten::add"] == 2
    assert "aten::mul" not in counts(prof)


class Numbers(Dataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return torch.full((2,), float(index))


@FORKS
def test_workers_of_a_data_loader_are_left_alone() -> None:
    with mindprof.profile(record_shapes=True) as prof:
        batches = list(DataLoader(Numbers(), batch_size=4, num_workers=2))
    assert [tuple(batch.shape) for batch in batches] == [(4, 2), (4, 2)]
    ranges = [key for key in counts(prof) if key.startswith("enumerate(DataLoader)")]
    assert len(ranges) == 1


def end_elsewhere(scope: Any) -> None:
    """Ends a range on another thread."""
    worker = threading.Thread(target=scope.__exit__, args=(None, None, None))
    worker.start()
    worker.join()


def test_a_range_may_end_on_another_thread() -> None:
    scope = torch.profiler.record_function("handed over")
    with mindprof.profile() as prof:
        scope.__enter__()
        end_elsewhere(scope)
    [event] = [event for event in prof.events() if event.name == "handed over"]
    assert event.is_async


def test_a_range_in_the_place_of_one_that_ended_on_another_thread_is_recorded() -> None:
    # From here on torch may tell of a scope twice, and the second time is left out.
    with mindprof.profile(), mindprof.profile(record_shapes=True):
        torch.ones(2).neg()
    for number in range(20):
        scope = torch.profiler.record_function("handed over")
        with mindprof.profile() as prof:
            scope.__enter__()
            end_elsewhere(scope)
            # torch gives the same memory to the next one.
            del scope
            next_one = torch.profiler.record_function("next")
            next_one.__enter__()
            next_one.__exit__(None, None, None)
        assert (counts(prof)["handed over"], counts(prof)["next"]) == (1, 1), number


def test_scopes_that_end_after_the_recording_do_no_harm() -> None:
    scope = torch.profiler.record_function("late")
    with mindprof.profile() as prof:
        scope.__enter__()
    scope.__exit__(None, None, None)
    with mindprof.profile() as after:
        torch.ones(2).neg()
    assert counts(prof)["late"] == 1
    assert counts(after)["aten::neg"] == 1


def test_a_paused_recording_takes_no_operators() -> None:
    x = torch.ones(2)
    with mindprof.profile() as prof:
        x + x
        prof.toggle_collection_dynamic(False, [torch.profiler.ProfilerActivity.CPU])
        x * x
        prof.toggle_collection_dynamic(True, [torch.profiler.ProfilerActivity.CPU])
        x - x
    assert counts(prof) == {"aten::add": 1, "aten::sub": 1}


@pytest.fixture
def library() -> Iterator[Any]:
    library = torch.library.Library("mindprof_test", "DEF")
    yield library
    library._destroy()


def test_operators_that_come_and_go_keep_their_names(library: Any) -> None:
    for number in range(3):
        library.define(f"op{number}(Tensor x) -> Tensor")
        library.impl(f"op{number}", torch.neg, "CPU")
    x = torch.ones(2)
    with mindprof.profile() as prof:
        for number in range(3):
            getattr(torch.ops.mindprof_test, f"op{number}")(x)
    assert {f"mindprof_test::op{number}" for number in range(3)} <= set(counts(prof))


def test_undefined_sparse_and_subclassed_tensors_are_written() -> None:
    sparse = torch.eye(3).to_sparse()
    with mindprof.profile(record_shapes=True, profile_memory=True) as prof:
        sparse @ torch.ones(3, 2)
        torch.nn.Parameter(torch.ones(2)).sum().backward()
    assert len(prof.events()) > 5
    shapes = [event.input_shapes for event in prof.events() if event.name == "aten::mm"]
    assert [[3, 3], [3, 2]] in shapes
