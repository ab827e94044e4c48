"""Programs that run operators in ways of their own: scripts, collectives, compiled graphs."""

from __future__ import annotations

import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
import torch.distributed  # type: ignore[import-not-found]
from mindprof._frameworks.torch_backend import torch_version

from tests.pytorch.test_same_run import counts, record_twice


def asynchronous(prof: Any) -> Counter[str]:
    return Counter(event.name for event in prof.events() if event.is_async)


def test_a_script_that_forks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        run = torch.jit.script(_fork_and_wait)
    x = torch.randn(8, 8)
    for _ in range(3):
        run(x)

    def work() -> None:
        run(x)
        # What waited is ended by the thread that it waited for, a moment after the result is there.
        time.sleep(0.2)

    theirs, ours = record_twice(work)
    assert counts(ours.key_averages()) == counts(theirs.key_averages())
    # What ends after the recording, as a fork's last moments may, counts as asynchronous in torch.
    assert asynchronous(ours) <= asynchronous(theirs)


def _square(x: torch.Tensor) -> torch.Tensor:
    return (x @ x).relu()


def _fork_and_wait(x: torch.Tensor) -> torch.Tensor:
    future = torch.jit.fork(_square, x)
    return _square(x) + torch.jit.wait(future)


@pytest.fixture
def distributed_step(tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Yields a step of distributed training, of which this process is the only rank."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    model(torch.ones(3, 4)).sum().backward()

    def step() -> None:
        model(torch.ones(3, 4)).sum().backward()
        torch.distributed.barrier()

    yield step
    torch.distributed.destroy_process_group()


def test_distributed_training(distributed_step: Callable[[], Any], tmp_path: Path) -> None:
    theirs, ours = record_twice(distributed_step, record_shapes=True)
    assert counts(ours.key_averages()) == counts(theirs.key_averages())
    assert asynchronous(ours) == asynchronous(theirs)
    assert "gloo:all_reduce" in asynchronous(ours)
    told = []
    for number, prof in enumerate((theirs, ours)):
        path = tmp_path / f"{number}.json"
        prof.export_chrome_trace(str(path))
        told.append(json.loads(path.read_text())["distributedInfo"])
    assert told[0] == told[1]
    assert told[1]["backend"] == "gloo"


def test_what_the_user_says_of_ranks_stays(
    distributed_step: Callable[[], Any], tmp_path: Path
) -> None:
    with mindprof.profile() as prof:
        distributed_step()
        prof.add_metadata_json("distributedInfo", '{"rank": 7}')
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert json.loads((tmp_path / "trace.json").read_text())["distributedInfo"] == {"rank": 7}


def test_a_collective_has_no_part_in_its_threads_tree(
    distributed_step: Callable[[], Any],
) -> None:
    with mindprof.profile() as prof:
        distributed_step()
    reduced = next(event for event in prof.events() if event.name == "gloo:all_reduce")
    assert reduced.cpu_parent is None
    assert not reduced.cpu_children


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_graph_has_its_ranges_without_torchs_profiler() -> None:
    compiled = torch.compile(lambda x: (x @ x).relu().sum())
    x = torch.randn(8, 8, requires_grad=True)
    for _ in range(2):
        compiled(x).backward()
    theirs_class = torch._C._profiler._RecordFunctionFast
    theirs, ours = record_twice(lambda: compiled(x).backward())
    with mindprof.profile() as alone:
        for _ in range(2):
            compiled(x).backward()
    expected = counts(theirs.key_averages())
    assert counts(ours.key_averages()) == expected
    assert counts(alone.key_averages()) == expected
    has_range = any(key.startswith("## Call CompiledFxGraph") for key, _ in expected)
    # Before torch 2.11 there may be none.
    assert has_range or torch_version(torch) < (2, 11)
    assert torch._C._profiler._RecordFunctionFast is theirs_class
