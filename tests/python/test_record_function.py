"""`record_function` as a context manager and as a decorator."""

from __future__ import annotations

import threading
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mindprof import profile, record_function


def test_it_returns_itself_and_knows_its_name() -> None:
    with record_function("named", "arguments") as scope:
        assert (scope.name, scope.args) == ("named", "arguments")


def test_a_name_that_is_no_text_is_refused_at_enter() -> None:
    scope = record_function(5)
    with pytest.raises(RuntimeError, match="Expected a value of type 'str' for argument 'name'"):
        scope.__enter__()


def test_leaving_without_entering_is_refused() -> None:
    with pytest.raises(AssertionError, match="Expected record to be set"):
        record_function("never").__exit__(None, None, None)


def test_a_decorated_function_is_recorded_at_each_call_also_inside_itself() -> None:
    @record_function("countdown")
    def countdown(n: int) -> int:
        """Counts down."""
        return n if n == 0 else countdown(n - 1) + other()

    @record_function("other")
    def other() -> int:
        return 0

    with profile() as prof:
        countdown(3)
    assert {row.key: row.count for row in prof.key_averages()} == {"countdown": 4, "other": 3}
    assert (countdown.__name__, countdown.__doc__) == ("countdown", "Counts down.")


def test_scopes_closed_out_of_turn_are_all_recorded() -> None:
    with profile() as prof:
        first, second = record_function("first"), record_function("second")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
    assert [row.key for row in prof.key_averages()] == ["first", "second"]


def test_a_scope_closed_by_another_thread_is_of_its_own_thread() -> None:
    with profile(with_stack=True, record_shapes=True) as prof:
        scope = record_function("handed over", "arguments")
        scope.__enter__()
        thread = threading.Thread(target=scope.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        with record_function("after"):
            pass
    events = {event.name: event for event in prof.events()}
    handed_over, after = events["handed over"], events["after"]
    assert handed_over.is_async
    assert not after.is_async
    assert handed_over.thread == after.thread
    assert any(__name__.rpartition(".")[2] in line for line in handed_over.stack)
    assert handed_over.input_shapes == [[]]


def test_ranges_of_requests_in_flight_are_neither_lost_nor_left_out() -> None:
    in_flight: deque[record_function] = deque()
    with profile() as prof:
        for number in range(3000):
            # Two names in turn: an only child of its parent's name counts to its parent.
            in_flight.append(record_function(f"request {number % 2}").__enter__())
            if len(in_flight) > 20:
                in_flight.popleft().__exit__(None, None, None)
    for request in in_flight:
        request.__exit__(None, None, None)
    counts = [row.count for row in prof.key_averages()]
    assert (counts, prof.lost_events) == ([1500, 1500], 0)


def test_names_are_within_the_budget_and_leave_room_for_the_next_profile() -> None:
    with profile(budget_bytes=1 << 20) as prof:
        for number in range(50):
            with record_function(f"{number:08}" + "x" * (1 << 20)):
                pass
    assert prof.lost_events == 50
    assert "50 with names over the byte budget" in prof.key_averages().table()
    with profile() as prof, record_function("short"):
        pass
    assert [row.key for row in prof.key_averages()] == ["short"]
    assert prof.lost_events == 0


@given(name=st.text())
def test_any_name_is_kept(name: str) -> None:
    with profile() as prof, record_function(name):
        pass
    expected = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
    assert [row.key for row in prof.key_averages()] == [expected]


def test_a_name_with_lone_surrogates_is_shown_with_replacements() -> None:
    with profile() as prof, record_function("half \ud800 pair"):
        pass
    (row,) = prof.key_averages()
    assert row.key.startswith("half ")
    assert "\ufffd" in row.key


def test_one_instance_in_two_threads_at_once_ends_each_threads_own_range() -> None:
    shared = record_function("shared")
    inside = threading.Barrier(2, timeout=30)
    first_left = threading.Event()

    def first() -> None:
        with shared:
            inside.wait()
        first_left.set()

    def second() -> None:
        with shared:
            inside.wait()
            first_left.wait(30)
            with record_function("late"):
                pass

    with profile() as prof:
        threads = [threading.Thread(target=body) for body in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ranges = [event for event in prof.events() if event.name == "shared"]
    assert [event.is_async for event in ranges] == [False, False]
    (late,) = (event for event in prof.events() if event.name == "late")
    assert late.cpu_parent is not None
    assert late.cpu_parent.name == "shared"
    assert late.cpu_parent.thread == late.thread
