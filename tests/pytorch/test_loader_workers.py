"""Workers of a data loader record for the process that they load for."""

from __future__ import annotations

import gc
import gzip
import json
import os
import re
import subprocess
import sys
import threading
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from mindprof import _core
from mindprof._frameworks.loader_worker import is_trace
from mindprof._frameworks.loader_workers import WORKERS
from mindprof._frameworks.torch_backend import torch_version
from torch.utils.data import DataLoader, Dataset  # type: ignore[import-not-found]
from torch.utils.data._utils import worker as torchs_worker  # type: ignore[import-not-found]


class Numbers(Dataset):  # type: ignore[misc]
    """Eight rows, each made by one operator in the worker's own range."""

    def __len__(self) -> int:
        """Returns how many rows there are."""
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        """Returns a row."""
        with mindprof.record_function("row of a worker"):
            return torch.full((3,), float(index)).cosh()


def counts(prof: Any) -> Counter[str]:
    return Counter({row.key: row.count for row in prof.key_averages()})


def loader(**options: Any) -> DataLoader:
    return DataLoader(Numbers(), batch_size=2, num_workers=2, **options)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_workers_run_is_in_the_profile(method: str, tmp_path: Path) -> None:
    with mindprof.profile(record_shapes=True) as prof:
        batches = [batch.sum().item() for batch in loader(multiprocessing_context=method)]
        torch.ones(2).neg()
    assert len(batches) == 4
    found = counts(prof)
    assert found["aten::cosh"] == 8
    assert found["row of a worker"] == 8
    assert found["aten::neg"] == 1
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    rows = [
        event for event in json.loads(path.read_text())["traceEvents"] if event.get("ph") == "X"
    ]
    processes = {event["pid"] for event in rows if event["name"] == "aten::cosh"}
    assert len(processes) == 2
    assert os.getpid() not in processes
    inside = [event for event in prof.events() if event.name == "aten::cosh"]
    assert {event.cpu_parent.name for event in inside} == {"row of a worker"}
    assert {str(event.input_shapes) for event in inside} == {"[[3]]"}


def test_workers_that_live_on_record_for_the_next_profiler_too() -> None:
    made = loader(persistent_workers=True)
    with mindprof.profile() as prof:
        list(made)
    # Nobody asked for these.
    list(made)
    with mindprof.profile() as again:
        list(made)
    assert counts(prof)["aten::cosh"] == 8
    assert counts(again)["aten::cosh"] == 8
    del made


def test_a_profiler_without_workers_waits_for_none_that_ended() -> None:
    made = loader(persistent_workers=True)
    with mindprof.profile():
        list(made)
    workers = made._iterator._workers
    del made
    for worker in workers:
        worker.join()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with mindprof.profile() as prof:
            torch.ones(2).neg()
    assert counts(prof)["aten::neg"] == 1
    assert WORKERS._listener is None


def test_profilers_that_stop_on_two_threads_at_once_have_all_workers() -> None:
    made = loader(persistent_workers=True)
    profilers = [mindprof.profile() for _ in range(2)]
    for prof in profilers:
        prof.start()
    list(made)
    barrier = threading.Barrier(2)

    def stop(prof: Any) -> None:
        barrier.wait()
        prof.stop()

    threads = [threading.Thread(target=stop, args=(prof,)) for prof in profilers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [counts(prof)["aten::cosh"] for prof in profilers] == [8, 8]
    del made


def test_a_schedule_records_workers_in_each_of_its_cycles() -> None:
    found = []
    schedule = mindprof.schedule(wait=0, warmup=1, active=1, repeat=2)
    with mindprof.profile(
        schedule=schedule, on_trace_ready=lambda prof: found.append(counts(prof))
    ) as prof:
        made = loader(persistent_workers=True)
        for _ in range(4):
            list(made)
            prof.step()
    assert [cycle["aten::cosh"] for cycle in found] == [8, 8]
    del made


def test_nested_profilers_each_have_their_own() -> None:
    with mindprof.profile() as outer:
        list(loader())
        with mindprof.profile() as inner:
            list(loader())
    assert counts(outer)["aten::cosh"] == 16
    assert counts(inner)["aten::cosh"] == 8


def test_memory_and_stacks_of_workers() -> None:
    with mindprof.profile(profile_memory=True, with_stack=True) as prof:
        list(loader())
    row = next(row for row in prof.key_averages() if row.key == "aten::cosh")
    assert row.cpu_memory_usage > 0
    stacks = [event.stack for event in prof.events() if event.name == "aten::cosh"]
    assert all(any("__getitem__" in frame for frame in stack) for stack in stacks)


def test_workers_record_nothing_for_profilers_that_were_let_go_of() -> None:
    abandoned = mindprof.profile()
    abandoned.start()
    made = loader(persistent_workers=True)
    list(made)
    number = max(WORKERS._recordings)
    del abandoned
    gc.collect()
    # Those that live are told of it, those that come do not hear of it.
    with mindprof.profile() as prof:
        list(made)
        list(loader())
        assert number not in WORKERS._recordings
        assert number not in WORKERS._expected
        assert WORKERS._folder is not None
        left = [name for name in os.listdir(WORKERS._folder) if is_trace(name, number)]
        assert not left
    assert counts(prof)["aten::cosh"] == 16
    del made


def test_the_memory_timeline_is_that_of_the_process_that_records(tmp_path: Path) -> None:
    flags: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    # Workers are not to free what others left.
    gc.collect()
    # torch counts what was taken under a profiler, and forked workers count on from there.
    with mindprof.profile(profile_memory=True):
        kept = [torch.ones(5000)]
    with mindprof.profile(**flags) as prof:
        list(loader())
        kept.append(torch.ones(1000))
    trace = tmp_path / "trace.json"
    prof.export_chrome_trace(str(trace))
    with pytest.warns(FutureWarning, match="deprecated"):
        prof.export_memory_timeline(str(tmp_path / "own.json"))
    assert prof.mem_tl is not None
    changed = prof.mem_tl.timeline
    assert [size for _, action, _, size in changed if action.name == "CREATE"].count(4000) == 1
    done = subprocess.run(
        [sys.executable, "-m", "mindprof", "memory", str(trace), "--json"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        check=True,
    )
    told = {entry["process"]: entry for entry in json.loads(done.stdout)}
    assert len(told) == 3
    own = told.pop(os.getpid())
    points = json.loads((tmp_path / "own.json").read_text())[0]
    assert own["points"] == len(points)
    # Workers made rows of twelve bytes, and each of them less than what is kept here.
    assert own["peak_bytes"] >= 4000
    assert all(0 < entry["peak_bytes"] < 4000 for entry in told.values())
    # What torch counts in all misses what is given back between recordings: it is left out.
    assert all(entry["unseen"] is None for entry in (own, *told.values()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_worker_that_dies_is_told_of() -> None:
    with (
        pytest.warns(UserWarning, match="1 of 1 data loader workers died"),
        mindprof.profile() as prof,
        pytest.raises(RuntimeError, match="exited unexpectedly"),
    ):
        list(DataLoader(Deadly(), num_workers=1))
    assert counts(prof)["aten::cosh"] == 0
    assert prof.lost_events == 1
    assert "1 of workers that died or were late" in prof.key_averages().table()


def test_workers_leave_out_what_the_parent_does() -> None:
    made = loader(persistent_workers=True)
    cpu = [mindprof.ProfilerActivity.CPU]
    with mindprof.profile() as prof:
        list(made)
        prof.toggle_collection_dynamic(False, cpu)
        list(made)
        prof.toggle_collection_dynamic(True, cpu)
        list(made)
    assert counts(prof)["aten::cosh"] == 16
    del made


#: In a process of its own, in which nobody has used Kineto before.
TOGGLED = """
import mindprof
import torch
from torch.utils.data import DataLoader

def load(rows):
    return torch.tensor(rows, dtype=torch.float32).cosh()


made = DataLoader(range(8), num_workers=2, persistent_workers=True, collate_fn=load)
cpu = [mindprof.ProfilerActivity.CPU]
with mindprof.profile(activities=cpu) as prof:
    list(made)
    prof.toggle_collection_dynamic(False, cpu)
    list(made)
print([row.count for row in prof.key_averages() if row.key == "aten::cosh"])
"""


@pytest.mark.skipif(
    torch_version(torch) < (2, 15),
    reason="before torch 2.15 Kineto cannot be toggled for all threads",
)
def test_workers_by_kineto_leave_out_what_the_parent_does() -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "MINDPROF_TORCH_BACKEND": "kineto",
    }
    command = [sys.executable, "-W", "error::UserWarning", "-c", TOGGLED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "[8]\n", done.stderr


def test_workers_that_torch_has_no_patience_with_hand_over_what_they_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = os.pipe()
    write = _core.write_chrome_trace

    def write_late(*arguments: Any, **options: Any) -> None:
        os.read(reader, 1)
        write(*arguments, **options)

    monkeypatch.setattr(_core, "write_chrome_trace", write_late)
    # How long torch waits for a worker to end before it sends SIGTERM, and afterwards.
    monkeypatch.setattr(torch.utils.data._utils, "MP_STATUS_CHECK_INTERVAL", 0.1)
    with mindprof.profile() as prof:
        list(loader())
        os.write(writer, b"..")
    assert counts(prof)["aten::cosh"] == 8
    os.close(reader)
    os.close(writer)


class Deadly(Numbers):
    """Ends its worker."""

    def __getitem__(self, index: int) -> torch.Tensor:
        """Never returns."""
        os._exit(3)


def test_torchs_loop_is_there_again_afterwards() -> None:
    before = torchs_worker._worker_loop
    with mindprof.profile():
        list(loader())
        assert torchs_worker._worker_loop is not before
    assert torchs_worker._worker_loop is before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_signal_while_workers_are_waited_for_loses_no_operator_of_the_program() -> None:
    program = """
import os, signal, time, warnings
from multiprocessing import Event, connection
import mindprof
import torch
from torch.utils.data import DataLoader

is_busy = Event()

class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index > 0:
            is_busy.set()
            time.sleep(60)
        return torch.ones(3)

warnings.simplefilter("ignore")
try:
    with mindprof.profile() as prof:
        torch.ones(3).mul(2)
        batches = iter(DataLoader(Slow(), num_workers=1))
        next(batches)
        is_busy.wait()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        connection.wait = lambda *_: os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
print(sum(event.name == "aten::mul" for event in prof.events()), prof.lost_events)
for worker in batches._workers:
    worker.kill()
os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["interrupted", "1", "1"], done.stderr


def test_workers_of_a_run_hand_over_their_last_part(tmp_path: Path) -> None:
    program = """
import torch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        x = torch.ones(2)
        for _ in range(2_000):
            x = x.add(1)
        return x

if __name__ == "__main__":
    for batch in torch.utils.data.DataLoader(Data(), num_workers=1):
        batch.sum()
"""
    (tmp_path / "load.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "mindprof", "run", "--budget", "4MiB", "-o", "out", "load.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "data loader workers: the times are of their last part, " in said
    # The sums of a worker are not those of the program.
    assert "all of this is the last" not in said
    assert "workers that died" not in said
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["whole_run"] is None


OF_WORKERS = """
import torch
from torch.utils.data import DataLoader, Dataset

import words


class Texts(Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return len(words.cleaned("a b  c d " * 20000))


if __name__ == "__main__":
    for batch in DataLoader(Texts(), batch_size=5, num_workers=1):
        batch.float().sqrt()
"""

WORDS = """
def cleaned(text):
    kept = []
    for letter in text:
        if letter != " ":
            kept.append(letter)
    return "".join(kept)
"""


def test_files_that_only_workers_use_are_the_users(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(OF_WORKERS)
    (tmp_path / "words.py").write_text(WORDS)
    package = Path(mindprof.__file__).parents[1]
    command = partial(
        subprocess.run,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=True,
    )
    command([sys.executable, "-m", "mindprof", "run", "train.py"])
    trace = "mindprof-train/trace.json.gz"
    sources = json.loads(gzip.decompress((tmp_path / trace).read_bytes()))["mindprof_sources"]
    assert {"train.py", "words.py"} <= {Path(path).name for _, path in sources["own"]}
    functions = command([sys.executable, "-m", "mindprof", "functions", trace])
    assert re.search(r"words\.py:\d+ cleaned", functions.stdout)
