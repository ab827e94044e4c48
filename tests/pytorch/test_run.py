"""`mindprof run` of a script for the real torch, which is imported while the recording runs."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import torch

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("words", "steps"), [([], 4), (["--wait", "1", "--active", "2", "--repeat", "1"], 2)]
)
def test_a_script_is_recorded_without_a_change(
    tmp_path: Path, words: list[str], steps: int
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-m", "mindprof", "run", *words, "-o", "out", "train.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with gzip.open(tmp_path / "out/trace.json.gz", "rt") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    names = Counter(event["name"] for event in events)
    assert names["aten::addmm"] == steps
    assert names["autograd::engine::evaluate_function: AddmmBackward0"] == steps
    assert names["Optimizer.step#SGD.step"] == steps
    # The inside of the import is left out.
    assert names["import torch"] == (not words)
    assert len(events) < 5_000
    # On a busy machine, no operator takes enough of the time to be on the screen.
    assert "mindprof: " in done.stderr
    assert "aten::addmm" in (tmp_path / "out/table.txt").read_text()
    assert "train.py(8)" in (tmp_path / "out/stacks.folded").read_text()


def run(folder: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a folder, with its results in `out`."""
    (folder / "program.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "mindprof", "run", *words, "-o", "out", "program.py"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def trace_of(folder: Path) -> list[dict[str, Any]]:
    """Returns the events with a duration that a run left."""
    with gzip.open(folder / "out/trace.json.gz", "rt") as file:
        events: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return [event for event in events if event["ph"] == "X"]


DERIVED = """
import torch

class Derived(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)

model = torch.nn.Linear(4, 2)
optimizer = Derived(model.parameters(), lr=0.1)
torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for _ in range(6):
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    scheduler.step()
"""


@pytest.mark.parametrize("backend", ["observer", "kineto"])
@pytest.mark.parametrize("program", [SCRIPT.replace("range(4)", "range(6)"), DERIVED])
def test_the_last_step_of_a_window_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, program: str
) -> None:
    monkeypatch.setenv("MINDPROF_TORCH_BACKEND", backend)
    done = run(tmp_path, program, "--wait", "1", "--active", "2", "--repeat", "1")
    assert done.returncode == 0, done.stderr
    events = trace_of(tmp_path)
    steps = [event for event in events if event["name"].startswith("Optimizer.step#")]
    windows = [event for event in events if event["name"].startswith("ProfilerStep#")]
    assert len(windows) == 2
    inside = [
        [
            event["name"]
            for event in events
            if event["name"].startswith("aten::")
            and step["ts"] <= event["ts"]
            and event["ts"] + event["dur"] <= step["ts"] + step["dur"]
        ]
        for step in steps
    ]
    assert inside[0]
    assert inside[0] == inside[-1]


@pytest.mark.parametrize("words", [(), ("--active", "9")])
def test_a_step_within_a_step_is_no_second_one(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(tmp_path, DERIVED, *words, "--no-stacks")
    assert done.returncode == 0, done.stderr
    if words:
        assert "the window has 6 of 9 requested optimizer steps" in done.stderr
    else:
        assert "\n6 optimizer steps; " in (tmp_path / "out/table.txt").read_text()


INNER = """
import torch

inner = torch.optim.SGD(torch.nn.Linear(4, 2).parameters(), lr=0.1)

class Outer(torch.optim.SGD):
    def step(self, closure=None):
        for _ in range(3):
            inner.step()

outer = Outer(torch.nn.Linear(4, 2).parameters(), lr=0.1)
outer.step()
outer.step()
"""


@pytest.mark.parametrize("words", [(), ("--active", "9")])
def test_steps_within_those_of_another_optimizer_count(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = run(tmp_path, INNER, *words, "--no-stacks")
    assert done.returncode == 0, done.stderr
    if words:
        assert "the window has 6 of 9 requested optimizer steps" in done.stderr
    else:
        assert "\n6 optimizer steps; " in (tmp_path / "out/table.txt").read_text()


OWN_PROFILER = """
import torch

schedule = torch.profiler.schedule(wait=1, warmup=1, active=2)
with torch.profiler.profile(
    activities=[torch.profiler.ProfilerActivity.CPU],
    schedule=schedule,
    on_trace_ready=lambda prof: prof.export_chrome_trace("theirs.json"),
    profile_memory=True,
) as prof:
    for _ in range(4):
        torch.arange(125)
        prof.step()
torch.arange(125)
"""


def test_a_program_with_a_profiler_of_its_own_has_it_beside_ours(tmp_path: Path) -> None:
    done = run(tmp_path, OWN_PROFILER, "--memory", "--no-install")
    assert done.returncode == 0, done.stderr
    assert "memory was not recorded while torch.profiler ran on the same thread" in done.stderr
    theirs = json.loads((tmp_path / "theirs.json").read_text())["traceEvents"]
    with gzip.open(tmp_path / "out/trace.json.gz", "rt") as file:
        trace = json.load(file)
    assert trace["mindprof_memory_gaps"] == 1
    ours = trace["traceEvents"]
    calls = [[event["name"] for event in events].count("aten::arange") for events in (theirs, ours)]
    # The operator calls itself once.
    assert calls == [4, 10]
    sizes = [event["args"]["Bytes"] for event in ours if event["name"] == "[memory]"]
    assert sizes.count(1000) == 3, "two before torch's profiler, and one after it"


COMPILED = """
import warnings

import torch

warnings.filterwarnings("error", message="(?s).*Dynamo does not know")
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = torch.compile(optimizer.step, backend="eager")
for _ in range(6):
    model(torch.ones(3, 4)).sum().backward()
    step()
print("trained")
"""


def test_a_step_that_is_compiled_counts(tmp_path: Path) -> None:
    done = run(tmp_path, COMPILED, "--wait", "1", "--active", "2", "--repeat", "1", "--no-stacks")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "trained\n"
    names = [event["name"] for event in trace_of(tmp_path)]
    assert sum(name.startswith("ProfilerStep#") for name in names) == 2
    assert names.count("aten::addmm") == 2


LOADING = """
import os
import torch
from torch.utils.data import DataLoader

def load(rows):
    return torch.full((2, 4), 1.0).cosh()

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in DataLoader(range(8), num_workers=2, collate_fn=load):
    model(x).sum().backward()
    optimizer.step()
"""


def test_the_table_is_about_the_training(tmp_path: Path) -> None:
    done = run(tmp_path, LOADING)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "out/table.txt").read_text()
    assert "import torch" not in table
    # Which import takes the longest depends on the machine.
    assert re.search(r"\nimports: .*[( ]torch \d", table)
    assert "3 processes: the program and 2 workers" in table
    assert "\nwaited " in table
    assert "with --wait 2 --active 5" in table
    # What was waited for in Python is the range's own time, and no share is above the whole.
    row = next(line for line in table.splitlines() if "enumerate(DataLoader)" in line)
    own, total = (float(cell[:-1]) for cell in row.split() if cell.endswith("%"))
    assert own > 0.9 * total
    shares = [float(cell[:-1]) for cell in table.split() if cell.endswith("%") and cell != "%"]
    assert max(shares) <= 100


def test_time_outside_of_all_rows_is_told_beside_workers(tmp_path: Path) -> None:
    done = run(tmp_path, LOADING + "import time; time.sleep(5)", "--no-stacks")
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "out/table.txt").read_text()
    assert " passed outside all rows, in Python code or waiting\n" in table
    assert "\nstopping data loader workers: " in table


@pytest.mark.parametrize(("steps", "is_hinted"), [(6, False), (7, True)])
def test_a_schedule_is_proposed_to_programs_with_so_many_steps(
    tmp_path: Path, steps: int, is_hinted: bool
) -> None:
    done = run(tmp_path, SCRIPT.replace("range(4)", f"range({steps})"), "--no-stacks")
    assert done.returncode == 0, done.stderr
    assert ("--wait 2 --active 5" in (tmp_path / "out/table.txt").read_text()) is is_hinted


DISTRIBUTED = """
import torch

torch.distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(3, 4)).sum().backward()
optimizer.step()
"""


@pytest.mark.parametrize("end", ["", "torch.distributed.destroy_process_group()\n"])
@pytest.mark.parametrize("words", [(), ("--active", "1")])
def test_ranks_have_their_own_results_and_tell_of_their_group(
    tmp_path: Path, end: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "program.py").write_text(DISTRIBUTED + end)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    launcher = ["torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command = ["mindprof", "run", "-q", *words, "-o", "out", "program.py"]
    done = subprocess.run(
        [sys.executable, "-m", *launcher, "-m", *command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        with gzip.open(tmp_path / f"out/rank{rank}/trace.json.gz", "rt") as file:
            told = json.load(file)["distributedInfo"]
        assert (told["rank"], told["world_size"], told["local_rank"]) == (rank, 2, rank)
        assert (told["backend"], told["pg_count"]) == ("gloo", 1)


def test_steps_are_no_calls_that_take_time_from_others(tmp_path: Path) -> None:
    done = run(tmp_path, LOADING, "--active", "3", "--repeat", "0")
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "out/table-1.txt").read_text()
    assert "\n3 optimizer steps: " in table
    assert "skip it and the imports with --wait 1" in table
    # Eight steps are two windows of three, and one of two.
    assert "the window has 2 of 3 requested optimizer steps" in done.stderr
    for number, steps in ((1, 3), (2, 3), (3, 2)):
        table = (tmp_path / f"out/table-{number}.txt").read_text()
        assert "ProfilerStep" not in table
        with gzip.open(tmp_path / f"out/trace-{number}.json.gz", "rt") as file:
            events = json.load(file)["traceEvents"]
        names = [event["name"] for event in events if event["ph"] == "X"]
        assert len([name for name in names if name.startswith("ProfilerStep#")]) == steps
        assert names.count("after the last optimizer step") == (number == 3)


def test_processes_are_told_apart_in_trace_and_stacks(tmp_path: Path) -> None:
    assert run(tmp_path, LOADING, "-q").returncode == 0
    with gzip.open(tmp_path / "out/trace.json.gz", "rt") as file:
        events = json.load(file)["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    workers = {"DataLoader worker 0", "DataLoader worker 1"}
    assert workers < names
    assert len(names) == 3
    lines = (tmp_path / "out/stacks.folded").read_text().splitlines()
    roots = {line.split(";")[0] for line in lines}
    assert {root.replace("_", " ") for root in roots} == names
    of_loading = {line.split(";")[0] for line in lines if line.rpartition(" ")[0].endswith("cosh")}
    assert of_loading <= {name.replace(" ", "_") for name in workers}
    assert "DataLoader worker 1" in (tmp_path / "out/flamegraph.svg").read_text()


def test_a_worker_that_dies_is_in_the_counted_losses(tmp_path: Path) -> None:
    program = LOADING.replace("    return torch.full", "    os._exit(3)\n    return torch.full")
    done = run(tmp_path, program, "-q")
    assert done.returncode == 1
    assert "exited unexpectedly" in done.stderr
    # torch ends the other one, which may have handed over what it recorded.
    lost = "mindprof: events lost: [12] of workers that died or were late"
    assert re.search(lost, done.stderr), done.stderr
    with gzip.open(tmp_path / "out/trace.json.gz", "rt") as file:
        assert json.load(file)["mindprof"]["lost"]["workers"] in (1, 2)


def test_workers_of_a_data_loader_are_recorded(tmp_path: Path) -> None:
    program = tmp_path / "loading.py"
    program.write_text(
        "import torch\n"
        "from torch.utils.data import DataLoader\n"
        "def load(rows):\n"
        "    return torch.full((2,), 1.0).cosh()\n"
        "list(DataLoader(range(8), num_workers=2, collate_fn=load))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "mindprof", "run", "-q", "-o", "out", program.name]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    with gzip.open(tmp_path / "out/trace.json.gz", "rt") as file:
        names = Counter(event["name"] for event in json.load(file)["traceEvents"])
    assert names["aten::cosh"] == 8


def test_loader_workers_that_begin_before_the_window_are_in_it(tmp_path: Path) -> None:
    program = tmp_path / "load.py"
    program.write_text(
        "import torch\n"
        "from torch.utils.data import DataLoader\n"
        "def load(rows):\n"
        "    return torch.full((2, 4), 1.0).cosh()\n"
        "model = torch.nn.Linear(4, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for x in DataLoader(range(64), num_workers=2, prefetch_factor=1, collate_fn=load):\n"
        "    model(x).sum().backward()\n"
        "    optimizer.step()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = ["--wait", "2", "--active", "20", "--no-stacks", "-q", "-o", "out"]
    command = [sys.executable, "-m", "mindprof", "run", *words, program.name]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    with gzip.open(tmp_path / "out/trace.json.gz", "rt") as file:
        names = Counter(event["name"] for event in json.load(file)["traceEvents"])
    assert names["aten::addmm"] == 20
    assert names["aten::cosh"] >= 10


#: Kills a worker of the program's data loader when the second result file is begun.
KILLS_A_WORKER = """
import os, signal, sys
import multiprocessing
from mindprof._run import results
from mindprof._run.command import run

theirs = results.Results._files


def files(*words):
    found = theirs(*words)
    name, write = found[1]

    def write_later(path):
        worker = multiprocessing.active_children()[0].pid
        os.kill(worker, signal.SIGKILL)
        os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)
        write(path)

    found[1] = name, write_later
    return found


results.Results._files = files
sys.exit(run(sys.argv[1:]))
"""

WITH_LOADER = """
import torch

loader = torch.utils.data.DataLoader(range(4), num_workers=1, persistent_workers=True)
for batch in loader:
    torch.add(batch, 1)
"""


def test_a_worker_that_dies_while_results_are_written_costs_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(KILLS_A_WORKER)
    (tmp_path / "program.py").write_text(WITH_LOADER)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "own.py", "-q", "-o", "out", "program.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    # torch's handler raises, as it does if the worker dies before the program ends.
    assert done.returncode == 1, done.stderr
    assert "SIGCHLD arrived while results were written" in done.stderr
    assert "is killed by signal: Killed" in done.stderr
    files = {path.name for path in (tmp_path / "out").iterdir()}
    expected = {
        *("trace.json.gz", "summary.json", "table.txt"),
        *("stacks.folded", "flamegraph.svg", "report.html"),
    }
    assert files == expected


#: A program on a machine without a GPU: what torch would do when CUDA is first used is called.
OUT_OF_MEMORY = """
import pathlib
import pickle
import torch

def dump(path):
    pathlib.Path(path).write_bytes(pickle.dumps({"segments": [], "device_traces": []}))

torch.cuda.memory._record_memory_history = lambda **options: print("recording", options["stacks"])
torch.cuda.memory._dump_snapshot = dump
for call, *_ in torch.cuda._queued_calls:
    if "allocator_history" in getattr(call, "__module__", ""):
        call()
raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
"""


def test_a_memory_snapshot_is_kept_when_cuda_runs_out_of_memory(tmp_path: Path) -> None:
    done = run(tmp_path, OUT_OF_MEMORY, "--memory")
    assert done.returncode == 1
    assert done.stdout == "recording python\n"
    assert "OutOfMemoryError: CUDA out of memory" in done.stderr
    snapshot = tmp_path / "out" / "snapshot.pickle"
    assert f"mindprof memory {snapshot}" in done.stderr
    assert snapshot.exists()
    assert run(tmp_path, OUT_OF_MEMORY).stdout == ""
    assert not snapshot.exists()
