"""`mindprof.install()` with the real torch: its profiler's names are ours, and back again."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import mindprof
import pytest
import torch  # type: ignore[import-not-found]
from mindprof._profiler import autograd_profile

OURS = {
    ("torch.profiler", "profile"): mindprof.profile,
    ("torch.profiler", "tensorboard_trace_handler"): mindprof.tensorboard_trace_handler,
    ("torch.profiler.profiler", "profile"): mindprof.profile,
    ("torch.autograd.profiler", "profile"): autograd_profile.profile,
}

MODULES = ("torch.profiler", "torch.profiler.profiler", "torch.autograd.profiler")


def names(module: ModuleType) -> dict[str, int]:
    return {name: id(value) for name, value in vars(module).items()}


@pytest.fixture(name="installed")
def _installed() -> Iterator[None]:
    mindprof.install()
    yield
    mindprof.uninstall()


def test_the_names_are_ours_until_uninstall_puts_back_what_was_there() -> None:
    before = [names(sys.modules[module]) for module in MODULES]
    mindprof.install()
    mindprof.install()
    for (module, name), value in OURS.items():
        assert getattr(sys.modules[module], name) is value
    mindprof.uninstall()
    assert [names(sys.modules[module]) for module in MODULES] == before
    mindprof.uninstall()
    assert [names(sys.modules[module]) for module in MODULES] == before


@pytest.mark.usefixtures("installed")
def test_code_for_torch_uses_the_engine(tmp_path: Path) -> None:
    seen = []
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=torch.profiler.tensorboard_trace_handler(str(tmp_path), "worker"),
        record_shapes=True,
    ) as prof:
        assert isinstance(prof, torch.profiler.profile)
        assert torch.profiler.ProfilerActivity.CPU in prof.activities
        for _ in range(5):
            with torch.profiler.record_function("forward"):
                torch.ones(2, 3) + 1
            seen.append(prof.current_action == torch.profiler.ProfilerAction.RECORD_AND_SAVE)
            prof.step()
    assert seen == [False, False, False, True, False]
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["aten::add"].count == 2
    assert rows["forward"].count == 2
    assert isinstance(prof.key_averages(), mindprof.EventList)
    assert [path.name.partition(".")[0] for path in tmp_path.iterdir()] == ["worker"]


@pytest.mark.usefixtures("installed")
def test_the_older_profiler_uses_the_engine() -> None:
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        torch.ones(2, 3) + 1
    assert [row.count for row in prof.key_averages() if row.key == "aten::add"] == [1]
    assert isinstance(prof.key_averages(), mindprof.EventList)


def test_what_was_taken_out_before_stays_with_torchs_engine() -> None:
    before = torch.profiler.profile
    mindprof.install()
    try:
        with before(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            torch.ones(2, 3) + 1
    finally:
        mindprof.uninstall()
    assert "aten::add" in [row.key for row in prof.key_averages()]
    assert type(prof.key_averages()).__module__.startswith("torch.")


def test_a_schedule_of_ours_drives_torchs_own_profiler() -> None:
    torchs = torch.profiler.profile
    with torchs(schedule=mindprof.schedule(wait=1, warmup=1, active=1, repeat=1)) as prof:
        for _ in range(4):
            torch.ones(2, 3) + 1
            prof.step()
    assert [row.count for row in prof.key_averages() if row.key == "aten::add"] == [1]


def test_what_somebody_else_put_there_since_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    mindprof.install()
    monkeypatch.setattr(torch.profiler, "tensorboard_trace_handler", print)
    mindprof.uninstall()
    assert torch.profiler.tensorboard_trace_handler is print
    monkeypatch.undo()
    # What the other put aside was ours: that is for the other to undo.
    own = torch.profiler.profiler.tensorboard_trace_handler
    torch.profiler.tensorboard_trace_handler = own


def test_threads_that_install_at_once_leave_one_installation() -> None:
    before = [names(sys.modules[module]) for module in MODULES]
    barrier = threading.Barrier(8)

    def change(is_install: bool) -> None:
        barrier.wait()
        for _ in range(200):
            (mindprof.install if is_install else mindprof.uninstall)()

    threads = [threading.Thread(target=change, args=(n % 2 == 0,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    mindprof.install()
    assert torch.profiler.profile is mindprof.profile
    mindprof.uninstall()
    assert [names(sys.modules[module]) for module in MODULES] == before


def python(program: str, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    (folder / "program.py").write_text(program)
    return subprocess.run(
        [sys.executable, *words, "program.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_torch_that_comes_later_has_our_names(tmp_path: Path) -> None:
    program = """
import mindprof, sys
mindprof.install()
assert "torch" not in sys.modules
from torch.profiler import profile
import torch
assert profile is mindprof.profile is torch.profiler.profiler.profile
assert type(torch.profiler.__loader__).__module__.partition(".")[0] != "mindprof"
with profile() as prof:
    torch.ones(2) + 1
assert "aten::add" in [row.key for row in prof.key_averages()]
mindprof.uninstall()
assert torch.profiler.profile is not mindprof.profile
assert not [finder for finder in sys.meta_path if "mindprof" in type(finder).__module__]
"""
    done = python(program, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_torch_that_comes_after_uninstall_is_left_alone(tmp_path: Path) -> None:
    program = """
import mindprof
mindprof.install()
mindprof.uninstall()
import torch
assert torch.profiler.profile is not mindprof.profile
"""
    done = python(program, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


OWN_PROFILER = """
import sys, torch
from torch.profiler import ProfilerActivity, profile, schedule

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
    on_trace_ready=lambda prof: prof.export_chrome_trace("own.json"),
    record_shapes=True,
    profile_memory=True,
) as prof:
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
        prof.step()
counts = {row.key: row.count for row in prof.key_averages()}
print(type(prof).__module__.partition(".")[0], counts["aten::addmm"])
"""


@pytest.mark.parametrize(
    ("words", "owner"), [([], "mindprof"), (["--memory"], "mindprof"), (["--no-install"], "torch")]
)
def test_a_program_under_run_keeps_its_own_profiler(
    tmp_path: Path, words: list[str], owner: str
) -> None:
    done = python(OWN_PROFILER, "-m", "mindprof", "run", "-o", "out", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{owner} 2\n"
    assert (tmp_path / "own.json").stat().st_size > 0
    assert mindprof.load(tmp_path / "out" / "trace.json.gz").key_averages()
    counts = {row.key: row.count for row in mindprof.load(tmp_path / "own.json").key_averages()}
    assert counts["aten::addmm"] == 2
