"""Threads have the names that Python gave them, wherever a recording says where something ran."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mindprof.profiler import profile

from tests.workloads import torch


def names_in(path: Path) -> set[str]:
    """Returns the names of threads in a trace, without their numbers."""
    events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    facts = [event for event in events if event.get("name") == "thread_name"]
    return {fact["args"]["name"].partition(" (")[2].removesuffix(")") for fact in facts}


def work() -> None:
    torch.ones(2).add(1)


@pytest.mark.parametrize("with_stack", [False, True])
def test_a_thread_that_runs_and_one_that_has_ended_keep_their_names(
    tmp_path: Path, with_stack: bool
) -> None:
    done, leave = threading.Event(), threading.Event()

    def run() -> None:
        work()
        done.set()
        leave.wait()

    loader = threading.Thread(target=run, name="loader")
    ended = threading.Thread(target=work, name='écrivain "2"')
    with profile(with_stack=with_stack) as prof:
        work()
        ended.start()
        ended.join()
        loader.start()
        done.wait()
    leave.set()
    loader.join()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    assert {"loader", 'écrivain "2"'} <= names_in(path)
    assert "MainThread" not in names_in(path), "the main thread has the program's name"
    assert {"loader", 'écrivain "2"'} <= {event.thread_name for event in prof.events()}
    prof.export_speedscope(str(tmp_path / "trace.speedscope.json"))
    scope = json.loads((tmp_path / "trace.speedscope.json").read_text())
    assert any("loader" in one["name"] for one in scope["profiles"])


def test_threads_of_a_pool_have_names(tmp_path: Path) -> None:
    with profile() as prof, ThreadPoolExecutor(2, thread_name_prefix="pool") as pool:
        list(pool.map(lambda _: work(), range(8)))
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    assert any(name.startswith("pool_") for name in names_in(path))


def test_asking_for_names_is_no_call_of_the_recording() -> None:
    with profile(with_stack=True) as outer, profile(with_stack=True):
        work()
    assert not any("threading.py" in event.name for event in outer.events())
