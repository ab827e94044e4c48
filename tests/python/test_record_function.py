"""`record_function` as a context manager and as a decorator."""

from __future__ import annotations

import threading

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


def test_a_scope_closed_by_another_thread_is_recorded() -> None:
    with profile() as prof:
        scope = record_function("handed over")
        scope.__enter__()
        thread = threading.Thread(target=scope.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
    assert [(row.key, row.count) for row in prof.key_averages()] == [("handed over", 1)]


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
