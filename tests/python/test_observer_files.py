"""The file of an execution trace: whose it is, and when it changes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from mindprof._profiler.observer import ExecutionTraceObserver

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_leaves_the_file_to_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            owned = observer.is_registered or observer.is_running()
            observer.__del__()
            status = 2 if owned else 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.read_bytes() == b""
    assert observer.is_running()
    # torch's name, which programs read.
    assert observer._execution_trace_running
    observer.unregister_callback()
    assert not observer._execution_trace_running
    assert json.loads(path.read_text())["pid"] == os.getpid()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_may_register_a_file_of_its_own(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "parent.json"))
    own = tmp_path / "child.json"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            observer.register_callback(str(own)).start()
            observer.unregister_callback()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert json.loads(own.read_text())["pid"] == child
    observer.unregister_callback()
    assert json.loads((tmp_path / "parent.json").read_text())["pid"] == os.getpid()


def test_registering_keeps_a_file_until_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("of yesterday")
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    observer.stop()
    assert path.read_text() == "of yesterday"
    observer.unregister_callback()
    assert json.loads(path.read_text())["nodes"]


def test_a_path_with_a_nul_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Failed to open output file: .*null"):
        observer = ExecutionTraceObserver().register_callback(f"{tmp_path}/trace\0.json")
    assert not observer.is_registered


@needs_pipes
@pytest.mark.parametrize("is_read", [False, True])
def test_a_pipe_is_warned_of_and_not_waited_for(tmp_path: Path, is_read: bool) -> None:
    path = tmp_path / "trace.json"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if is_read else None
    with pytest.warns(UserWarning, match="Failed to open output file"):
        observer = ExecutionTraceObserver().register_callback(str(path))
    assert not observer.is_registered
    if reader is not None:
        os.close(reader)
