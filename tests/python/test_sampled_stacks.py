"""Sampled stacks: operators know their line, and everything else is estimated from samples."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from mindprof.profiler import profile, record_function

from tests.python.stack_frames import tensor, where
from tests.workloads import IMPORT_TORCH, torch

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="frames of Python 3.10 are not read: its calls are traced"
)


@pytest.fixture(autouse=True)
def _no_hook_is_left() -> Iterator[None]:
    yield
    assert sys.getprofile() is None


def record(step: Callable[[], object]) -> profile:
    with profile(with_stack="sampled") as prof:
        assert sys.getprofile() is None, "calls are not traced"
        step()
    return prof


def stack_of(prof: profile, name: str) -> list[list[str]]:
    return [event.stack for event in prof.events() if event.name == name]


def trace_of(prof: profile, tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    found: dict[str, Any] = json.loads(path.read_text(), parse_float=Decimal)
    return found


def calls_of(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event.get("cat") == "python_function"]


def busy(samples: float = 20.0) -> int:
    """Works in Python for as long as so many samples take."""
    end = time.monotonic() + samples * 0.01
    count = 0
    while time.monotonic() < end:
        count += 1
    return count


@pytest.mark.runtime
class TestOperators:
    def test_the_innermost_frame_is_the_calling_line(self) -> None:
        x = tensor()

        def step() -> None:
            x + x  # first
            torch.add(x, x)  # second

        found = stack_of(record(step), "aten::add")
        assert [stack[0] for stack in found] == [*where(step, "# first"), *where(step, "# second")]

    def test_callers_are_those_of_traced_stacks(self) -> None:
        x = tensor()

        def inner() -> None:
            x + x

        def step() -> None:
            inner()
            for _ in range(2):
                inner()

        with profile(with_stack=True) as traced:
            step()
        sampled = record(step)

        def own(prof: profile) -> list[list[str]]:
            # The outer frames differ by the lines of this test.
            return [
                [frame for frame in stack if "step" in frame or "inner" in frame]
                for stack in stack_of(prof, "aten::add")
            ]

        assert own(sampled) == own(traced)
        assert len(own(sampled)) == 3

    def test_generators_are_below_whoever_resumes_them(self) -> None:
        x = tensor()

        def produce() -> Iterator[object]:
            yield x + x
            yield x + x

        def first(source: Iterator[object]) -> None:
            next(source)

        def second(source: Iterator[object]) -> None:
            next(source)

        def step() -> None:
            source = produce()
            first(source)
            second(source)

        found = stack_of(record(step), "aten::add")
        assert [stack[1] for stack in found] == [*where(first, "next"), *where(second, "next")]

    def test_code_that_reuses_an_address_has_its_own_name(self) -> None:
        x = tensor()
        # Whether an address is used again at once differs from recording to recording.
        for _ in range(4):
            with profile(with_stack="sampled") as prof:
                for number in range(50):
                    scope = {"x": x}
                    exec(f"def made_{number}():\n    x + x\nmade_{number}()", scope)
                    scope.clear()
                    gc.collect()
            found = [event.stack[0] for event in prof.events() if event.name == "aten::add"]
            names = [frame.split(": ")[1] for frame in found]
            assert names == [f"made_{number}" for number in range(50)]

    def test_names_keep_their_characters(self) -> None:
        x = tensor()
        names = ["été", "ひらがな", "\U00010400", "plain"]

        def step() -> None:
            for name in names:
                exec(f"def {name}():\n    x + x\n{name}()", {"x": x})

        found = stack_of(record(step), "aten::add")
        assert [stack[0].split(": ")[1] for stack in found] == names

    def test_deep_recursion_is_recorded(self) -> None:
        x = tensor()

        def down(depth: int) -> None:
            if depth:
                down(depth - 1)
            else:
                x + x

        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(5000)
        try:
            found = stack_of(record(lambda: down(3000)), "aten::add")
        finally:
            sys.setrecursionlimit(limit)
        assert len(found) == 1
        assert found[0][0] in where(down, "x + x")

    def test_a_traced_and_a_sampled_recording_run_at_once(self) -> None:
        x = tensor()

        def step() -> None:
            x + x

        with profile(with_stack="sampled") as sampled, profile(with_stack=True) as traced:
            step()
        for prof in (sampled, traced):
            assert stack_of(prof, "aten::add")[0][0] in where(step, "x + x")


class TestSamples:
    def test_python_code_is_found_with_its_callers(self, tmp_path: Path) -> None:
        def step() -> None:
            busy()

        trace = trace_of(record(step), tmp_path)
        names = {event["name"].split(": ")[-1] for event in calls_of(trace)}
        assert {"step", "busy"} <= names
        assert not any("mindprof/" in event["name"] for event in calls_of(trace))
        facts = trace["mindprof_sampling"]
        assert facts["interval_us"] > 0
        assert facts["samples"] >= facts["main_samples"] >= 1

    def test_calls_enclose_ranges_and_operators(self, tmp_path: Path) -> None:
        x = tensor()

        def step() -> None:
            for _ in range(5):
                with record_function("range"):
                    busy(2)
                    torch.add(x, x)
                busy(2)

        trace = trace_of(record(step), tmp_path)
        spans = [
            (event["ts"], event["ts"] + event["dur"])
            for event in trace["traceEvents"]
            if event.get("cat") in ("python_function", "user_annotation", "cpu_op")
            and event["tid"] == threading.get_native_id()
        ]
        for begin, end in spans:
            for other_begin, other_end in spans:
                crosses = begin < other_begin < end < other_end
                assert not crosses, "calls never cross the edge of a range"

    def test_every_thread_is_sampled(self, tmp_path: Path) -> None:
        def elsewhere() -> None:
            busy(60)

        leave = threading.Event()

        def worker() -> None:
            elsewhere()
            leave.wait()

        threads = [threading.Thread(target=worker, name=f"worker {n}") for n in range(3)]
        with profile(with_stack="sampled") as prof:
            for thread in threads:
                thread.start()
            busy(80)
        leave.set()
        for thread in threads:
            thread.join()
        trace = trace_of(prof, tmp_path)
        found = {event["tid"] for event in calls_of(trace) if "elsewhere" in event["name"]}
        assert found == {thread.native_id for thread in threads}
        named = {
            event["tid"]: event["args"]["name"]
            for event in trace["traceEvents"]
            if event.get("name") == "thread_name" and event["tid"] in found
        }
        assert all(thread.name in named[thread.native_id] for thread in threads)

    def test_waits_are_found(self, tmp_path: Path) -> None:
        def step() -> None:
            time.sleep(0.2)  # here

        trace = trace_of(record(step), tmp_path)
        names = {event["name"] for event in calls_of(trace)}
        assert set(where(step, "# here")) <= names

    def test_the_sampler_ends_with_the_last_recording(self) -> None:
        def samplers() -> int:
            names = Path("/proc/self/task").glob("*/comm")
            return sum(name.read_text().startswith("mindprof-sample") for name in names)

        assert samplers() == 0
        with profile(with_stack="sampled"):
            busy()  # A new thread names itself.
            assert samplers() == 1
            with profile(with_stack="sampled"):
                assert samplers() == 1
            assert samplers() == 1
        assert samplers() == 0


def test_another_text_is_refused() -> None:
    with pytest.raises(ValueError, match="with_stack is 'some': use True, False or \"sampled\""):
        profile(with_stack="some")  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_samples_by_itself(tmp_path: Path) -> None:
    program = f"""
import os, sys, time
{IMPORT_TORCH}
import mindprof

def busy():
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        pass

with mindprof.profile(with_stack="sampled") as outer:
    for _ in range(20):
        child = os.fork()
        if child == 0:
            with mindprof.profile(with_stack="sampled") as prof:
                busy()
            prof.export_chrome_trace(sys.argv[1])
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        busy
print("done")
"""
    trace = tmp_path / "child.json"
    done = subprocess.run(
        [sys.executable, "-c", program, str(trace)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == "done\n"
    names = {event["name"] for event in calls_of(json.loads(trace.read_text()))}
    assert any("busy" in name for name in names)
