"""Sections 3.1, 3.2, 3.5 and 3.7: schedules, the TensorBoard handler, and small helpers."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
from host import LETTERS, Action, load, names, profile, torch, work

schedule = torch.profiler.schedule


def letters(function: Any, steps: int = 16) -> str:
    """Writes a schedule as letters."""
    by_action = {action: letter for letter, action in LETTERS.items()}
    return "".join(by_action[function(step)] for step in range(steps))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"wait": 1, "warmup": 1, "active": 2}, "NWRSNWRSNWRSNWRS"),
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 1}, "NWRSNNNNNNNNNNNN"),
        (
            {"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 3},
            "NNNNWRSNWRSNNNNN",
        ),
        (
            {
                "wait": 2,
                "warmup": 1,
                "active": 1,
                "repeat": 2,
                "skip_first": 1,
                "skip_first_wait": 1,
            },
            "NWSNNWSNNNNNNNNN",
        ),
        (
            {"wait": 2, "warmup": 1, "active": 1, "repeat": 1, "skip_first_wait": -1},
            "WSNNNNNNNNNNNNNN",
        ),
        (
            {"wait": 2, "warmup": 1, "active": 1, "repeat": 2, "skip_first": 2},
            "NNNNWSNNWSNNNNNN",
        ),
        ({"wait": 0, "warmup": 1, "active": 1}, "WSWSWSWSWSWSWSWS"),
        ({"wait": 0, "warmup": 1, "active": 3, "repeat": 1}, "WRRSNNNNNNNNNNNN"),
    ],
)
def test_schedules(arguments: dict[str, int], expected: str) -> None:
    assert letters(schedule(**arguments)) == expected


def test_a_negative_step_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"^Step must be non-negative. Got -1.$"):
        schedule(wait=0, warmup=1, active=1)(-1)


@pytest.mark.parametrize("name", ["wait", "warmup", "active", "repeat", "skip_first"])
def test_negative_arguments_are_refused(name: str) -> None:
    arguments = {"wait": 1, "warmup": 1, "active": 1, "repeat": 0, "skip_first": 0, name: -1}
    text = (
        "Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need "
        ">= 0), active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} "
        "(need >= 0)."
    ).format(**arguments)
    with pytest.raises(AssertionError, match=f"^{re.escape(text)}$"):
        schedule(**arguments)


def test_a_schedule_without_warmup_warns() -> None:
    text = "^Profiler won't be using warmup, this can skew profiler results$"
    with pytest.warns(UserWarning, match=text):
        schedule(wait=1, warmup=0, active=1)


def test_schedule_takes_keywords_only() -> None:
    text = r"schedule\(\) takes 0 positional arguments but 3 were given"
    with pytest.raises(TypeError, match=text):
        schedule(1, 1, 1)
    with pytest.raises(TypeError, match="active"):
        schedule(wait=1, warmup=1)


def test_actions_are_true() -> None:
    assert bool(Action.NONE)
    assert [action.value for action in Action] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("gzip", [False, True])
def test_the_tensorboard_handler_writes_one_file_per_cycle(tmp_path: Path, gzip: bool) -> None:
    folder = tmp_path / "a" / "b"
    handler = torch.profiler.tensorboard_trace_handler(str(folder), use_gzip=gzip)
    for _ in range(2):
        with profile(on_trace_ready=handler):
            work()
    suffix = r"\.gz" if gzip else ""
    pattern = rf"{re.escape(socket.gethostname())}_\d+\.\d{{19}}\.pt\.trace\.json{suffix}"
    files = list(folder.iterdir())
    assert len(files) == 2
    for file in files:
        assert re.fullmatch(pattern, file.name)
        assert names(load(file))["aten::add"] == 1


def test_the_tensorboard_handler_takes_a_name(tmp_path: Path) -> None:
    with profile(on_trace_ready=torch.profiler.tensorboard_trace_handler(str(tmp_path), "me")):
        work()
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("me.")


def test_the_tensorboard_handler_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "folder")
    profiler = profile(on_trace_ready=torch.profiler.tensorboard_trace_handler(folder))
    profiler.start()
    with pytest.raises(RuntimeError, match=f"^Can't create directory: {re.escape(folder)}$"):
        profiler.stop()


@pytest.mark.differs("torch would overwrite it")
def test_the_tensorboard_handler_never_overwrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 7)
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path), "rank")
    for _ in range(2):
        with profile(on_trace_ready=handler):
            work()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "rank.7.pt.trace.json",
        "rank.8.pt.trace.json",
    ]


def test_the_step_tracker_counts_by_requester() -> None:
    tracker = torch.autograd.profiler.KinetoStepTracker
    start = tracker.current_step()
    assert tracker.increment_step("a") == start + 1
    assert tracker.increment_step("b") == start + 2
    assert tracker.increment_step("a") == start + 2
    assert tracker.current_step() == start + 2
    tracker._step_dict["a"] += 5
    with pytest.warns(UserWarning, match="Profiler step count has increased more than 1 - current"):
        tracker.increment_step("a")
    assert [tracker.erase_step_count(name) for name in ("a", "b", "a")] == [True, True, False]


def test_a_profiler_is_a_requester_until_it_is_left() -> None:
    tracker = torch.autograd.profiler.KinetoStepTracker
    profiler = profile()
    assert "ProfilerStep" in tracker._step_dict
    profiler.start()
    profiler.stop()
    assert "ProfilerStep" in tracker._step_dict
    with profiler:
        pass
    assert "ProfilerStep" not in tracker._step_dict


def test_a_daemon_counts_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINETO_USE_DAEMON", "1")
    tracker = torch.autograd.profiler.KinetoStepTracker
    start = tracker.current_step()
    with profile() as profiler:
        profiler.step()
    assert tracker.current_step() == start + 1


@pytest.mark.parametrize("name", ["load_nvprof", "parse_nvprof_trace"])
def test_names_of_nvprof_are_deprecated(name: str, tmp_path: Path) -> None:
    text = f"`torch.autograd.profiler.{name}` is deprecated and will be removed in PyTorch 2.17."
    # What the file holds is no trace, which is an error of its own.
    with pytest.warns(FutureWarning, match=text), pytest.raises(Exception):  # noqa: B017, PT011
        getattr(torch.autograd.profiler, name)(str(tmp_path / "none.db"))


def test_enforce_unique_is_deprecated() -> None:
    with pytest.warns(
        FutureWarning, match=r"`torch.autograd.profiler.EnforceUnique` is deprecated"
    ):
        unique = torch.autograd.profiler.EnforceUnique()
    unique.see(1, "a")
    with pytest.raises(RuntimeError, match=re.escape("duplicate key: (1, 'a')")):
        unique.see(1, "a")


def test_itt_has_its_names() -> None:
    itt = torch.profiler.itt
    assert {"is_available", "mark", "range", "range_pop", "range_push"} == set(itt.__all__)
    assert isinstance(itt.is_available(), bool)


@pytest.mark.differs("torch is built with it")
@pytest.mark.parametrize("name", ["itt", "nvtx"])
def test_emitting_warns_and_does_nothing(name: str) -> None:
    emitter = getattr(torch.autograd.profiler, f"emit_{name}")()
    with pytest.warns(UserWarning, match=f"emit_{name} has no effect"), emitter as entered:
        assert entered is emitter
    text = f"^{name.upper()} annotation context manager is not reentrant$"
    with pytest.raises(RuntimeError, match=text):
        emitter.__enter__()
    with getattr(torch.autograd.profiler, f"emit_{name}")(enabled=False) as entered:
        assert entered is None


@pytest.mark.differs("torch is built with it")
def test_itt_refuses() -> None:
    text = "^ITT functions not installed. Are you sure you have a ITT build"
    with pytest.raises(RuntimeError, match=text):
        torch.profiler.itt.mark("x")
    with pytest.raises(RuntimeError, match=text), torch.profiler.itt.range("{} {b}", 1, b=2):
        pass
