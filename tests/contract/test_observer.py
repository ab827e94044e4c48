"""Section 2.14: observers that run along."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from host import follow, profile, torch, work


class Observer:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.was_enabled: list[bool] = []

    def start(self) -> None:
        self.calls.append("start")
        self.was_enabled.append(torch.autograd._profiler_enabled())

    def stop(self) -> None:
        self.calls.append("stop")
        self.was_enabled.append(torch.autograd._profiler_enabled())

    def cleanup(self) -> None:
        self.calls.append("cleanup")


class Falsy(Observer):
    """An observer that looks like none."""

    def __bool__(self) -> bool:
        return False


def test_p_110_observers_are_called_around_the_recording() -> None:
    observer = Observer()
    profiler = profile(execution_trace_observer=observer)
    profiler.start()
    assert observer.calls == ["start"]
    profiler.stop()
    assert observer.calls == ["start", "stop"]
    assert observer.was_enabled == [False, True]
    with profiler:
        pass
    assert observer.calls == ["start", "stop", "start", "stop", "cleanup"]
    assert hasattr(torch.profiler.profiler, "_ITraceObserver")


def test_p_111_no_observer_and_half_an_observer() -> None:
    falsy = Falsy()
    with profile(execution_trace_observer=falsy):
        work()
    assert falsy.calls == []
    with pytest.raises(AttributeError, match="object has no attribute 'start'"):
        profile(execution_trace_observer=object()).start()


def test_p_112_the_environment_can_ask_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert profile().execution_trace_observer is None
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        observer = profile().execution_trace_observer
    assert isinstance(observer, torch.profiler.ExecutionTraceObserver)
    observer.unregister_callback()
    given: Any = Observer()
    assert profile(execution_trace_observer=given).execution_trace_observer is given


def test_p_113_one_start_and_one_stop_per_cycle() -> None:
    observer = Observer()
    with profile(schedule=follow("WSWSN"), execution_trace_observer=observer) as profiler:
        for _ in range(4):
            profiler.step()
    assert observer.calls == ["start", "stop", "start", "stop", "cleanup"]


# Before a file that cannot be written: after one, torch registers no observer that works.
def test_an_execution_trace_of_two_windows(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path))
    assert observer.is_registered
    assert path.exists()
    assert observer.get_output_file_path() == str(path)
    observer.start()
    assert observer.is_running()
    torch.ones(2)
    observer.stop()
    assert not observer.is_running()
    torch.full((3,), 1.0)
    observer.start()
    torch.zeros(2)
    observer.unregister_callback()
    assert not observer.is_registered
    assert not observer.is_running()
    trace = json.loads(path.read_text())
    assert trace["schema"] == "1.1.1-chakra.0.0.4"
    names = [node["name"] for node in trace["nodes"]]
    assert names == [
        "[pytorch|profiler|execution_trace|thread]",
        *["aten::empty", "aten::fill_", "aten::ones"],
        *["aten::empty", "aten::zero_", "aten::zeros"],
        "[pytorch|profiler|execution_trace|process]",
    ]


def test_an_execution_trace_of_nothing_and_a_compressed_one(tmp_path: Path) -> None:
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(str(tmp_path / "empty.json")).cleanup()
    trace = json.loads((tmp_path / "empty.json").read_text())
    assert [node["id"] for node in trace["nodes"]] == [1]
    packed = tmp_path / "packed.json.gz"
    observer.register_callback(str(packed)).start()
    torch.ones(2)
    observer.cleanup()
    with gzip.open(packed, "rt") as file:
        assert len(json.load(file)["nodes"]) == 5


def test_an_execution_trace_runs_along_with_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path))
    with profile(execution_trace_observer=observer) as profiler:
        torch.ones(2)
    nodes = [node["name"] for node in json.loads(path.read_text())["nodes"]]
    events = [event.name for event in profiler.events()]
    assert "aten::ones" in nodes
    assert events == ["aten::ones", "aten::empty", "aten::fill_"]


def test_an_observer_that_cannot_write(tmp_path: Path) -> None:
    observer = torch.profiler.ExecutionTraceObserver()
    assert observer.get_output_file_path() is None
    observer.start()
    assert not observer.is_running()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert observer.register_callback(str(tmp_path / "no" / "trace.json")) is observer
    assert not observer.is_registered
    observer.cleanup()


def test_the_folder_beside_an_execution_trace(tmp_path: Path) -> None:
    find = torch.profiler.ExecutionTraceObserver.get_resources_dir_for_et_path
    trace = str(tmp_path / "trace.json")
    assert find(trace) is None
    assert find(trace, create_dir=True) == str(tmp_path / "trace_resources")
    assert find(trace) == str(tmp_path / "trace_resources")
    assert torch.profiler.ExecutionTraceObserver().get_resources_dir() is None
