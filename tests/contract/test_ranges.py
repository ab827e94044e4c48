"""Section 3.3: `record_function`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from host import counts, events, export, mark, names, profile, record, torch, work


def inside(trace: dict[str, Any], inner: str, outer: str) -> bool:
    """Returns whether all ranges of one name lie within one of another."""
    bounds = [
        (event["ts"], event["ts"] + event["dur"])
        for event in events(trace)
        if event["name"] == outer
    ]
    return all(
        any(start <= event["ts"] and event["ts"] + event["dur"] <= end for start, end in bounds)
        for event in events(trace)
        if event["name"] == inner
    )


def test_r_1_a_context_manager_and_a_decorator(tmp_path: Path) -> None:
    scope = record("range", "text")
    assert (scope.name, scope.args, scope.record) == ("range", "text", None)
    assert scope.run_callbacks_on_exit is True

    def body() -> None:
        with scope as entered:
            assert entered is scope
            raise KeyError

    with profile() as profiler:
        with pytest.raises(KeyError):
            body()
        assert scope.__enter__() is scope
        assert scope.__exit__(None, None, None) is None
    assert scope.record is not None
    assert names(export(profiler, tmp_path)) == {"range": 2}


def test_r_2_types_are_checked_when_entered() -> None:
    text = r"profiler::_record_function_enter_new\(\) Expected a value of type 'str' for argument "
    with pytest.raises(RuntimeError, match=text + "'name' but instead found type 'int'"):
        record(3).__enter__()
    text = text.replace("'str'", r"'Optional\[str\]'")
    with pytest.raises(RuntimeError, match=text + "'args' but instead found type 'int'"):
        record("name", 3).__enter__()


def test_r_3_exit_without_enter() -> None:
    with pytest.raises(AssertionError, match=r"^Expected record to be set$"):
        record("name").__exit__(None, None, None)


def test_r_4_only_ranges_that_begin_while_recording(tmp_path: Path) -> None:
    mark("nothing runs")
    early, late = record("early"), record("late")
    early.__enter__()
    profiler = profile()
    profiler.start()
    early.__exit__(None, None, None)
    late.__enter__()
    profiler.stop()
    late.__exit__(None, None, None)
    (event,) = events(export(profiler, tmp_path))
    assert event["name"] == "late"
    assert event["args"]["finished"] is False


def test_r_5_a_range_is_an_annotation(tmp_path: Path) -> None:
    with profile(record_shapes=True) as profiler, record("range", "some text"):
        work()
    (row,) = [row for row in profiler.key_averages() if row.key == "range"]
    assert row.is_user_annotation
    path = tmp_path / "trace.json"
    trace = export(profiler, tmp_path)
    assert {event["cat"] for event in events(trace) if event["name"] == "range"} == {
        "user_annotation"
    }
    assert "some text" not in path.read_text()


def test_r_5_the_text_is_one_input_without_a_shape() -> None:
    with profile(record_shapes=True) as profiler, record("range", "some text"):
        pass
    (event,) = profiler.events()
    assert (event.scope, event.is_user_annotation) == (7, True)
    assert event.input_shapes == [[]]


def test_r_6_decorated_functions_keep_their_name() -> None:
    @record("range")  # type: ignore[untyped-decorator]
    def double(value: int) -> int:
        """Doubles."""
        return 2 * value

    assert (double.__name__, double.__doc__) == ("double", "Doubles.")
    with profile() as profiler:
        assert [double(1), double(value=2)] == [2, 4]
    assert counts(profiler) == {"range": 2}


@pytest.mark.differs("torch closes the outer range when the inner one begins")
def test_r_6_recursion_through_a_decorator_nests(tmp_path: Path) -> None:
    @record("range")  # type: ignore[untyped-decorator]
    def down(depth: int) -> None:
        if depth:
            down(depth - 1)
        else:
            mark("deepest")

    scope = record("again")
    with profile() as profiler:
        down(2)
        with scope, scope:
            mark("within")
    trace = export(profiler, tmp_path)
    assert names(trace) == {"range": 3, "deepest": 1, "again": 2, "within": 1}
    ranges = [event for event in events(trace) if event["name"] == "range"]
    starts = [event["ts"] for event in ranges]
    ends = [event["ts"] + event["dur"] for event in ranges]
    assert sorted(starts) == starts
    assert sorted(ends, reverse=True) == ends
    assert inside(trace, "deepest", "range")
    assert inside(trace, "within", "again")


@pytest.mark.differs("torch times only the making of a generator")
def test_r_7_generators_are_timed_over_their_whole_life(tmp_path: Path) -> None:
    @record("generator")  # type: ignore[untyped-decorator]
    def numbers() -> Iterator[int]:
        for number in range(3):
            mark("step")
            yield number

    with profile() as profiler:
        assert list(numbers()) == [0, 1, 2]
    trace = export(profiler, tmp_path)
    assert names(trace) == {"generator": 1, "step": 3}
    assert inside(trace, "step", "generator")


@pytest.mark.differs("torch times only the making of a coroutine")
def test_r_7_coroutines_are_timed_over_their_whole_life(tmp_path: Path) -> None:
    @record("coroutine")  # type: ignore[untyped-decorator]
    async def answer() -> int:
        await asyncio.sleep(0)
        mark("step")
        return 42

    @record("async generator")  # type: ignore[untyped-decorator]
    async def echo() -> AsyncIterator[Any]:
        received = yield 0
        mark("received")
        try:
            yield received
        except KeyError:
            yield "caught"

    async def main() -> list[Any]:
        generator: Any = echo()
        first = await generator.__anext__()
        second = await generator.asend("sent")
        third = await generator.athrow(KeyError())
        await generator.aclose()
        return [await answer(), first, second, third]

    with profile() as profiler:
        assert asyncio.run(main()) == [42, 0, "sent", "caught"]
    trace = export(profiler, tmp_path)
    assert names(trace) == {"coroutine": 1, "step": 1, "async generator": 1, "received": 1}
    assert inside(trace, "step", "coroutine")
    assert inside(trace, "received", "async generator")


def test_r_8_ranges_may_end_out_of_turn() -> None:
    first, second = record("first"), record("second")
    with profile() as profiler:
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        mark("third")
        second.__exit__(None, None, None)
    assert counts(profiler) == {"first": 1, "second": 1, "third": 1}


def test_r_9_a_range_ends_with_at_most_one_future() -> None:
    scope = record("range")
    with pytest.raises(AssertionError, match=r"^Expected record to be set$"):
        scope._call_end_callbacks_on_future(None)
    text = "^_call_end_callbacks_on_future can only be called once.$"
    with pytest.raises(RuntimeError, match=text):
        scope._call_end_callbacks_on_future(None)


@pytest.mark.differs("torch takes its own futures only")
def test_r_9_a_range_ends_when_its_future_is_done(tmp_path: Path) -> None:
    future: Future[int] = Future()
    with profile() as profiler:
        with record("range") as scope:
            ended = scope._call_end_callbacks_on_future(future)
        mark("after the body")
        assert not ended.done()
        future.set_result(42)
        assert ended.result() == 42
    trace = export(profiler, tmp_path)
    assert names(trace) == {"range": 1, "after the body": 1}
    assert inside(trace, "after the body", "range")


def test_r_10_a_range_with_arguments(tmp_path: Path) -> None:
    enter = torch.autograd._record_function_with_args_enter
    leave = torch.autograd._record_function_with_args_exit
    with profile(record_shapes=True) as profiler:
        handle = enter("range", torch.ones(2, 3), 4, None)
        mark("inside")
        leave(handle)
    trace = export(profiler, tmp_path)
    (event,) = [event for event in events(trace) if event["name"] == "range"]
    assert event["cat"] == "user_annotation"
    assert event["args"]["Input Dims"][0] == [2, 3]
    assert event["args"]["Input type"][0] == "float"
    assert event["args"]["Concrete Inputs"] == ["", "4", ""]
    assert inside(trace, "inside", "range")


def test_r_11_a_fast_range_is_an_operator(tmp_path: Path) -> None:
    fast = torch._C._profiler._RecordFunctionFast
    with profile() as profiler, fast("range"):
        mark("inside")
    (event,) = [event for event in events(export(profiler, tmp_path)) if event["name"] == "range"]
    assert event["cat"] == "cpu_op"


KEYWORDS = {
    "int": -3,
    "float": 2.5,
    "truth": True,
    "text": "some text",
    "texts": ["a", "b"],
    "empty": [],
    "none": None,
    "ints": [1, 2],
    "floats": [1.5],
    "truths": [True, False],
}


def fast_range(keywords: dict[str, Any], tmp_path: Path, shapes: bool = True) -> tuple[Any, Any]:
    """Returns the event and the trace's event of a fast range with values by keyword."""
    fast = torch._C._profiler._RecordFunctionFast
    with profile(record_shapes=shapes) as profiler, fast("range", [torch.ones(2)], keywords):
        pass
    (event,) = [event for event in profiler.events() if event.name == "range"]
    trace = events(export(profiler, tmp_path))
    (written,) = [event for event in trace if event["name"] == "range"]
    return event, written


def test_a_fast_range_keeps_values_by_keyword(tmp_path: Path) -> None:
    event, written = fast_range(KEYWORDS, tmp_path)
    assert event.kwinputs == KEYWORDS
    assert event.input_shapes == [[2]]
    shown = {key: written["args"].get(key, "skipped") for key in KEYWORDS}
    skipped = dict.fromkeys(("none", "ints", "floats", "truths"), "skipped")
    assert shown == {**KEYWORDS, **skipped}


def test_values_by_keyword_are_kept_with_shapes_only(tmp_path: Path) -> None:
    event, written = fast_range({"int": 1, "scope": "user_scope"}, tmp_path, shapes=False)
    assert event.kwinputs == {}
    assert "int" not in written["args"]
    assert written["cat"] == "cpu_op"


@pytest.mark.parametrize(
    ("scope", "number", "category"),
    [("user_scope", 7, "user_annotation"), ("other", 0, "cpu_op"), (7, 0, "cpu_op")],
)
def test_a_fast_range_says_its_scope(
    scope: object, number: int, category: str, tmp_path: Path
) -> None:
    event, written = fast_range({"scope": scope}, tmp_path)
    assert (event.scope, event.is_user_annotation) == (number, number == 7)
    assert (written["cat"], written["args"]["scope"]) == (category, scope)


@pytest.mark.parametrize(
    ("value", "kept", "warning"),
    [
        (torch.ones(2), "NULL", "Unable to infer type of value for keyword: x"),
        ({"a": 1}, "NULL", "Unable to infer type of value for keyword: x"),
        ([1, "a"], None, "Unable to infer type of value in the List for keyword: x"),
        ([torch.ones(2)], None, "Unable to infer type of value in the List for keyword: x"),
    ],
)
def test_values_by_keyword_that_are_not_plain_warn(
    value: object, kept: object, warning: str, tmp_path: Path
) -> None:
    with pytest.warns(UserWarning, match=warning):
        event, written = fast_range({"x": value}, tmp_path)
    assert event.kwinputs == {"x": kept}
    assert written["args"].get("x") == kept


def test_a_range_takes_lists() -> None:
    fast = torch._C._profiler._RecordFunctionFast
    one = torch.ones(2)
    values = [[one, one], [1, 2], [1.5], [True, False], "text", ["text"]]
    with profile(record_shapes=True) as profiler, fast("range", values):
        pass
    (event,) = [event for event in profiler.events() if event.name == "range"]
    assert event.structured_input_shapes == [[[2], [2]], [], [], [], [], []]
    assert event.concrete_inputs == [None, [1, 2], [1.5], [True, False], None, None]


@pytest.mark.differs("torch takes names for mangled C++ names")
def test_r_12_names_are_not_demangled() -> None:
    with profile() as profiler:
        mark("ra")
    assert counts(profiler) == {"ra": 1}


@pytest.mark.differs("torch records the thread that started the profiler")
def test_all_threads_are_recorded() -> None:
    with profile() as profiler:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert counts(profiler)["aten::add"] == 1
