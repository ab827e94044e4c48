"""Live stacks: who called an operator, and the calls of Python themselves."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mindprof.profiler import profile, record_function

from tests.python.stack_frames import at, calls, record, stacks, tensor, where
from tests.workloads import torch


@pytest.fixture(autouse=True)
def _no_hook_is_left() -> Iterator[None]:
    before = sys.getprofile()
    yield
    assert sys.getprofile() is before
    assert threading.getprofile() is None


@pytest.mark.runtime
class TestOperators:
    def test_the_innermost_frame_is_the_calling_line(self) -> None:
        x = tensor()

        def step() -> None:
            x + x

        prof = record(step)
        assert stacks(prof) == [where(step, "x + x")]

    def test_two_lines_of_one_function_are_told_apart(self) -> None:
        x = tensor()

        def step() -> None:
            x + x  # here
            torch.add(x, x)  # here
            x + x  # here

        prof = record(step)
        lines = where(step, "# here")
        assert stacks(prof) == [[line] for line in lines]
        rows = [row for row in prof.key_averages(group_by_stack_n=1) if row.key == "aten::add"]
        assert sorted(row.stack[0] for row in rows) == sorted(lines)
        merged = [row for row in prof.key_averages() if row.key == "aten::add"]
        assert [row.count for row in merged] == [3]

    def test_callers_are_at_the_line_of_their_call(self) -> None:
        x = tensor()

        def inner() -> None:
            x + x

        def outer() -> None:
            inner()
            inner()

        prof = record(outer)
        (inside,) = where(inner, "x + x")
        assert stacks(prof) == [[inside, caller] for caller in where(outer, "inner()")]

    def test_operators_inside_of_operators_have_the_same_stack(self) -> None:
        x = tensor()
        prof = record(lambda: torch.nn.functional.linear(x, x))
        for name in ("aten::linear", "aten::t"):
            assert stacks(prof, name)[0][0].endswith(": <lambda>")

    def test_named_ranges_know_their_line(self) -> None:
        def step() -> None:
            with record_function("range"):
                pass

        prof = record(step)
        assert stacks(prof, "range") == [where(step, "with record_function")]

    def test_the_backward_pass_shows_the_forward_line(self) -> None:
        x = torch.ones((2, 2), requires_grad=True)

        def step() -> None:
            y = x * x
            y.sum().backward()

        prof = record(step)
        assert stacks(prof, "MulBackward0") == [where(step, "x * x")]

    def test_the_table_has_a_source_location(self) -> None:
        x = tensor()

        def step() -> None:
            x + x

        text = record(step).key_averages(group_by_stack_n=2).table()
        assert "Source Location" in text
        assert where(step, "x + x")[0] in text

    def test_without_with_stack_there_is_none(self) -> None:
        x = tensor()
        with profile() as prof:
            assert sys.getprofile() is None
            x + x
        assert [event.stack for event in prof.events()] == [[]]


@pytest.mark.runtime
class TestThreads:
    def test_new_threads_are_followed(self) -> None:
        x = tensor()

        def work() -> None:
            x + x

        def step() -> None:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

        prof = record(step)
        (stack,) = stacks(prof)
        assert stack[0] == where(work, "x + x")[0]
        assert stack[1].startswith("threading.py(")
        assert any(event.name.endswith(": work") for event in calls(prof))

    def test_threads_that_run_already_are_followed(self) -> None:
        x = tensor()
        begin, done = threading.Event(), threading.Event()

        def work() -> None:
            # Whatever happens, neither thread waits for the other for good: a test fails then.
            try:
                begin.wait()
                x + x
                x * x
            finally:
                done.set()

        thread = threading.Thread(target=work)
        thread.start()

        def step() -> None:
            begin.set()
            done.wait()

        try:
            prof = record(step)
        finally:
            begin.set()
            thread.join()
        assert [stack[0] for stack in stacks(prof)] == where(work, "x + x")
        assert [stack[0] for stack in stacks(prof, "aten::mul")] == where(work, "x * x")

    def test_calls_of_threads_that_run_already_are_recorded(self) -> None:
        begin, done, over = threading.Event(), threading.Event(), threading.Event()
        left: list[Any] = []

        def called() -> None:
            len(())

        def work() -> None:
            try:
                begin.wait()
                called()
            finally:
                done.set()
            over.wait()
            left.append(sys.getprofile())

        thread = threading.Thread(target=work)
        thread.start()

        def step() -> None:
            begin.set()
            done.wait()

        try:
            prof = record(step)
        finally:
            begin.set()
            over.set()
            thread.join()
        assert sum(event.name.endswith(": called") for event in calls(prof)) == 1
        assert left == [None]

    def test_a_tool_in_a_thread_that_runs_already_keeps_it(self) -> None:
        ready, begin, done = threading.Event(), threading.Event(), threading.Event()
        seen: list[str] = []
        left: list[Any] = []

        def other(frame: Any, *_: Any) -> None:
            seen.append(frame.f_code.co_name)

        def called() -> None:
            pass

        def work() -> None:
            sys.setprofile(other)
            try:
                ready.set()
                begin.wait()
                called()
                left.append(sys.getprofile())
            finally:
                sys.setprofile(None)
                done.set()

        thread = threading.Thread(target=work)
        thread.start()
        ready.wait()

        def step() -> None:
            begin.set()
            done.wait()

        try:
            record(step)
        finally:
            begin.set()
            thread.join()
        assert seen.count("called") == 2, "a call and a return"
        assert left == [other]

    def test_start_in_one_thread_and_stop_in_another(self) -> None:
        x = tensor()
        prof = profile(with_stack=True)
        prof.start()
        x + x
        thread = threading.Thread(target=prof.stop)
        thread.start()
        thread.join()
        list(range(1))
        (stack,) = [event.stack for event in prof.events() if event.name == "aten::add"]
        assert stack[0].endswith(": test_start_in_one_thread_and_stop_in_another")
        # The hook finds out by itself, with the next call.
        len(())
        assert sys.getprofile() is None

    def test_a_forked_child_goes_on_without_and_can_begin_anew(self) -> None:
        x = tensor()
        read, write = os.pipe()
        prof = profile(with_stack=True)
        prof.start()
        child = os.fork()
        if child == 0:
            answer = b"no"
            try:
                again = record(lambda: x + x)
                answer = b"yes" if stacks(again)[0][0].endswith("<lambda>") else b"other"
            finally:
                os.write(write, answer)
                os._exit(0)
        os.waitpid(child, 0)
        x * x
        prof.stop()
        assert os.read(read, 10) == b"yes"
        (stack,) = [event.stack for event in prof.events() if event.name == "aten::mul"]
        assert stack[0].endswith(": test_a_forked_child_goes_on_without_and_can_begin_anew")
        os.close(read)
        os.close(write)


@pytest.mark.runtime
class TestOtherTools:
    def test_a_profile_function_that_is_there_stays(self) -> None:
        x = tensor()
        seen: list[str] = []

        def other(frame: Any, *_: Any) -> None:
            seen.append(frame.f_code.co_name)

        def watched() -> None:
            x + x

        sys.setprofile(other)
        try:
            prof = record(watched)
            assert sys.getprofile() is other
        finally:
            sys.setprofile(None)
        assert "watched" in seen
        assert stacks(prof) == [where(watched, "x + x")]
        assert not any(event.name.endswith(": watched") for event in calls(prof))
        assert prof.lost_events >= 1
        assert "in Python calls that another tool hides" in prof.key_averages().table()

    def test_a_profile_function_that_comes_keeps_working(self) -> None:
        x = tensor()
        seen: list[str] = []

        def other(frame: Any, *_: Any) -> None:
            seen.append(frame.f_code.co_name)

        def watched() -> None:
            x + x

        def step() -> None:
            sys.setprofile(other)
            watched()
            assert sys.getprofile() is other
            sys.setprofile(None)
            watched()
            watched()

        prof = record(step)
        (inside,) = where(watched, "x + x")
        assert seen.count("watched") == 2, "a call and a return"
        assert stacks(prof) == [[inside, caller] for caller in where(step, "watched()")]
        followed = [event for event in calls(prof) if event.name.endswith(": watched")]
        assert len(followed) >= 1

    def test_a_tool_that_puts_back_what_it_found_puts_back_ours(self) -> None:
        x = tensor()

        def watched() -> None:
            x + x

        def step() -> None:
            found = sys.getprofile()
            sys.setprofile(lambda *_: None)
            sys.setprofile(found)
            watched()
            watched()

        prof = record(step)
        assert [stack[0] for stack in stacks(prof)] == where(watched, "x + x") * 2
        assert sum(event.name.endswith(": watched") for event in calls(prof)) == 2

    def test_cprofile_beside_us(self) -> None:
        import cProfile

        x = tensor()

        def watched() -> None:
            x + x

        def step() -> None:
            other = cProfile.Profile()
            other.enable()
            watched()
            other.disable()
            names = {function[2] for function in _stats(other)}
            assert "watched" in names
            watched()

        prof = record(step)
        assert [stack[0] for stack in stacks(prof)] == where(watched, "x + x") * 2

    def test_a_tracer_beside_us(self) -> None:
        x = tensor()
        seen: list[str] = []

        def tracer(frame: Any, event: str, _: Any) -> Any:
            if event == "line":
                seen.append(frame.f_code.co_name)
            return tracer

        def watched() -> None:
            x + x

        def step() -> None:
            before = sys.gettrace()
            sys.settrace(tracer)
            watched()
            sys.settrace(before)
            watched()

        prof = record(step)
        assert seen.count("watched") == 1
        callers = where(step, "watched()")
        assert stacks(prof) == [[*where(watched, "x + x"), caller] for caller in callers]
        assert sum(event.name.endswith(": watched") for event in calls(prof)) == 2

    def test_a_tool_of_one_thread_hides_the_calls_of_that_one_alone(self) -> None:
        x = tensor()
        seen: list[str] = []

        def other(frame: Any, *_: Any) -> None:
            seen.append(frame.f_code.co_name)

        def watched() -> None:
            x + x

        def work() -> None:
            sys.setprofile(other)
            watched()
            assert sys.getprofile() is other
            sys.setprofile(None)

        def step() -> None:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            watched()

        prof = record(step)
        assert seen.count("watched") == 2, "a call and a return"
        found = [stack[:2] for stack in stacks(prof)]
        callers = where(work, "watched()") + where(step, "watched()")
        assert found == [[*where(watched, "x + x"), caller] for caller in callers]
        assert any(event.name.endswith(": watched") for event in calls(prof))

    def test_a_tool_that_follows_new_threads_goes_on_to(self) -> None:
        x = tensor()
        seen: list[str] = []

        def other(frame: Any, *_: Any) -> None:
            seen.append(frame.f_code.co_name)

        def work() -> None:
            x + x

        def step() -> None:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

        threading.setprofile(other)
        try:
            prof = record(step)
            assert threading.getprofile() is other
        finally:
            threading.setprofile(None)
        assert "work" in seen
        assert [stack[0] for stack in stacks(prof)] == where(work, "x + x")

    if sys.version_info >= (3, 12):

        def test_a_tool_that_monitors_keeps_working(self) -> None:
            x = tensor()
            seen: list[str] = []

            def watched() -> None:
                x + x

            monitoring, tool = sys.monitoring, sys.monitoring.PROFILER_ID
            monitoring.use_tool_id(tool, "other")
            event = monitoring.events.PY_START
            monitoring.register_callback(tool, event, lambda code, _: seen.append(code.co_name))
            monitoring.set_events(tool, event)
            try:
                prof = record(watched)
                watched()
            finally:
                monitoring.set_events(tool, 0)
                monitoring.free_tool_id(tool)
            assert seen.count("watched") == 2
            assert stacks(prof) == [where(watched, "x + x")]
            assert sum(event.name.endswith(": watched") for event in calls(prof)) == 1


def _stats(other: Any) -> dict[tuple[str, int, str], Any]:
    import pstats

    return pstats.Stats(other).stats  # type: ignore[attr-defined,no-any-return]


@pytest.mark.runtime
class TestCalls:
    def test_they_are_events_with_the_line_of_the_definition(self) -> None:
        def inner() -> None:
            len(())

        def outer() -> None:
            inner()

        prof = record(outer)
        found = {event.name: event for event in calls(prof)}
        outer_call, inner_call = (found[where(f, "def")[0]] for f in (outer, inner))
        length = found["<built-in function len>"]
        assert inner_call.python_parent_id == outer_call.python_id
        assert length.python_parent_id == inner_call.python_id
        assert length.python_module_id == -1
        assert inner_call.cpu_parent is outer_call or inner_call.cpu_parent.name == outer_call.name
        assert outer_call.cpu_time_total >= inner_call.cpu_time_total >= length.cpu_time_total

    def test_operators_have_no_number(self) -> None:
        x = tensor()
        prof = record(lambda: x + x)
        (event,) = [event for event in prof.events() if event.name == "aten::add"]
        assert (event.python_id, event.python_parent_id, event.python_module_id) == (-1, -1, -1)
        assert event.cpu_parent.is_python_function

    def test_averages_leave_them_out_unless_asked(self) -> None:
        x = tensor()
        prof = record(lambda: x + x)
        assert [row.key for row in prof.key_averages()] == ["aten::add"]
        rows = prof.key_averages(include_python_functions=True)
        assert any(row.key.endswith(": <lambda>") for row in rows)

    def test_the_trace_has_them_nested(self, tmp_path: Path) -> None:
        x = tensor()

        def step() -> None:
            torch.add(x, x)

        prof = record(step)
        path = tmp_path / "trace.json"
        prof.export_chrome_trace(path)
        events = json.loads(path.read_text())["traceEvents"]
        functions = [event for event in events if event.get("cat") == "python_function"]
        by_number = {event["args"]["Python id"]: event for event in functions}
        (built_in,) = [e for e in functions if e["name"] == "<built-in function add>"]
        caller = by_number[built_in["args"]["Python parent id"]]
        assert caller["name"].endswith(": step")
        assert caller["ts"] <= built_in["ts"]
        assert built_in["ts"] + built_in["dur"] <= caller["ts"] + caller["dur"]
        (operator,) = [event for event in events if event.get("cat") == "cpu_op"]
        assert operator["args"]["Call stack"].startswith(where(step, "torch.add")[0])

    def test_they_go_on_while_operators_are_not_collected(self) -> None:
        x = tensor()

        def step() -> None:
            x + x

        with profile(with_stack=True) as prof:
            prof.toggle_collection_dynamic(False, list(prof.activities))
            step()
        assert "aten::add" not in [event.name for event in prof.events()]
        assert any(event.name.endswith(": step") for event in calls(prof))

    def test_frames_that_were_there_at_the_start_are_events_too(self) -> None:
        def step() -> None:
            pass

        prof = record(step)
        (event,) = [e for e in calls(prof) if e.name.endswith(": record")]
        (begun,) = [e for e in calls(prof) if e.name == where(step, "def")[0]]
        assert event.time_range.start <= begun.time_range.start
        assert event.time_range.end >= begun.time_range.end
        assert event.stack[0].endswith(": test_frames_that_were_there_at_the_start_are_events_too")

    def test_nested_profilers_both_have_them(self) -> None:
        x = tensor()

        def step() -> None:
            x + x

        with profile(with_stack=True) as outer, profile() as plain:
            inner = record(step)
        for prof in (outer, inner):
            assert stacks(prof)[0][:1] == where(step, "x + x")
        assert not calls(plain)
        assert [event.stack for event in plain.events()] == [[]]

    @settings(max_examples=25, deadline=None)
    @given(st.lists(st.sampled_from(["call", "native", "generate", "fail", "operate"]), max_size=8))
    def test_every_operator_has_the_stack_that_python_tells(self, plan: list[str]) -> None:
        x = tensor()
        told: list[list[tuple[str, int]]] = []

        def run(rest: list[str]) -> None:
            if not rest:
                return
            kind, *rest = rest
            if kind == "call":
                run(rest)
            elif kind == "native":
                list(map(run, [rest]))
            elif kind == "generate":
                for _ in generate(rest):
                    run(rest[:1])
            elif kind == "fail":
                try:
                    fail(rest)
                except ValueError:
                    operate()
            operate()
            run(rest[:1])

        def generate(rest: list[str]) -> Generator[None, None, None]:
            run(rest)
            yield
            operate()

        def fail(rest: list[str]) -> None:
            run(rest)
            raise ValueError

        def operate() -> None:
            told.append(walk())
            x + x

        prof = record(lambda: run(plan))
        found = [
            [frame for frame in stack if not frame.startswith("<built-in")]
            for stack in stacks(prof)
        ]
        expected = [[at(__file__, number, name) for name, number in frames] for frames in told]
        # Python was asked one line above the operator.
        assert [stack[1:] for stack in found] == [stack[1:] for stack in expected]
        assert {stack[0].split(": ")[1] for stack in found} <= {"operate"}
        assert prof.lost_events == 0


def walk() -> list[tuple[str, int]]:
    """Returns the names and lines of the frames up to `record`."""
    frames = []
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "record":
        frames.append((frame.f_code.co_name, frame.f_lineno))
        assert frame.f_back is not None
        frame = frame.f_back
    return frames


@pytest.mark.runtime
class TestBounds:
    def test_calls_too_deep_are_counted_and_operators_keep_their_line(self) -> None:
        x = tensor()

        def down(n: int) -> None:
            if n:
                down(n - 1)
            else:
                x + x
            x * x

        prof = record(lambda: down(30), stack_depth=20)
        (stack,) = [event.stack for event in prof.events() if event.name == "aten::add"]
        assert stack[:1] == where(down, "x + x")
        assert len(stack) <= 21
        shown = [event.stack[0] for event in prof.events() if event.name == "aten::mul"]
        assert shown == where(down, "x * x") * 31
        assert prof.lost_events > 0
        assert "nested too deep" in prof.key_averages().table()

    def test_deep_recursion_within_the_limit_is_whole(self) -> None:
        x = tensor()

        def down(n: int) -> None:
            if n:
                down(n - 1)
            else:
                x + x

        prof = record(lambda: down(400))
        (stack,) = stacks(prof)
        assert len(stack) == 402
        assert prof.lost_events == 0

    def test_a_small_budget_loses_events_and_counts_them(self) -> None:
        x = tensor()

        def step() -> None:
            for _ in range(500):
                x + x

        prof = record(step, budget_bytes=4096)
        kept = sum(event.name == "aten::add" for event in prof.events())
        assert kept < 500
        assert prof.lost_events >= 500 - kept
        assert all(event.stack for event in prof.events() if event.name == "aten::add")


class TestExports:
    def test_lines_end_in_the_calling_line(self, tmp_path: Path) -> None:
        x = tensor()

        def step() -> None:
            x + x

        prof = record(step)
        path = tmp_path / "stacks.txt"
        prof.export_stacks(str(path), "self_cpu_time_total")
        lines = path.read_text().splitlines()
        assert all(re.fullmatch(r"\S+ [1-9][0-9]*", text) for text in lines)
        innermost = [text.rsplit(" ", 1)[0].split(";")[-1] for text in lines]
        assert where(step, "x + x")[0].replace(" ", "_") in innermost

    def test_a_metric_that_there_is_not(self, tmp_path: Path) -> None:
        prof = record(lambda: None)
        expected = re.escape(
            "metric should be one of: ['self_cpu_time_total', 'self_cuda_time_total', "
            "'self_xpu_time_total', 'self_privateuse1_time_total']"
        )
        for export in (prof.export_stacks, prof.export_flamegraph):
            with pytest.raises(ValueError, match=expected):
                export(str(tmp_path / "stacks.txt"), "self_npu_time_total")

    def test_no_device_worked(self, tmp_path: Path) -> None:
        x = tensor()
        prof = record(lambda: x + x)
        path = tmp_path / "stacks.txt"
        prof.export_stacks(str(path), "self_cuda_time_total")
        assert path.read_text() == ""

    def test_a_flame_graph_is_a_picture(self, tmp_path: Path) -> None:
        x = tensor()
        prof = record(lambda: x + x)
        path = tmp_path / "stacks.svg"
        prof.export_flamegraph(str(path))
        picture = path.read_text()
        assert picture.startswith("<?xml")
        assert "aten::add" in picture

    def test_speedscope_has_a_frame_for_each_name(self, tmp_path: Path) -> None:
        x = tensor()
        prof = record(lambda: x + x)
        path = tmp_path / "stacks.speedscope.json"
        prof.export_speedscope(str(path))
        names = [frame["name"] for frame in json.loads(path.read_text())["shared"]["frames"]]
        assert "aten::add" in names

    def test_before_the_end_there_is_nothing_to_draw(self, tmp_path: Path) -> None:
        with profile(with_stack=True) as prof:
            with pytest.raises(AttributeError, match="no finished recording"):
                prof.export_flamegraph(str(tmp_path / "stacks.svg"))
            with pytest.raises(AttributeError, match="no finished recording"):
                prof.export_speedscope(str(tmp_path / "stacks.json"))
