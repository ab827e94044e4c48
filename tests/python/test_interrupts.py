"""Interrupts inside of the engine, and the objects that keep them from doing harm."""

from __future__ import annotations

import gc
import threading
from types import ModuleType
from typing import Any

import pytest
from mindprof import _core, profile


class Unnamed(threading.Thread):
    """A thread whose name cannot be read without an exception."""

    error: type[BaseException] | None = None
    text = ""

    @property
    def _name(self) -> str:
        if Unnamed.error is not None:
            raise Unnamed.error
        return self.text

    @_name.setter
    def _name(self, text: str) -> None:
        self.text = text


@pytest.fixture
def unnamed() -> Any:
    """A running thread whose name is read when a recording stops."""
    stop = threading.Event()
    thread = Unnamed(target=stop.wait)
    thread.start()
    yield Unnamed
    Unnamed.error = None
    stop.set()
    thread.join()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_inside_of_the_engine_arrives(
    unnamed: type[Unnamed], error: type[BaseException]
) -> None:
    with pytest.raises(error), profile():
        unnamed.error = error
    unnamed.error = None
    assert not _core.is_profiling()


def test_an_error_of_a_name_is_ignored(unnamed: type[Unnamed]) -> None:
    with profile() as prof:
        unnamed.error = ValueError
    assert list(prof.events()) == []


def module() -> Any:
    """A module with an attribute to replace."""
    made = ModuleType("made")
    vars(made)["value"] = "theirs"
    return made


def test_a_replacement_lasts_as_long_as_its_object() -> None:
    owner = module()
    replacement = _core.Replacement(owner, "value", "ours")
    assert (owner.value, replacement.is_in_place) == ("ours", True)
    del replacement
    assert owner.value == "theirs"


def test_a_replacement_that_somebody_replaced_is_left_alone() -> None:
    owner = module()
    replacement = _core.Replacement(owner, "value", "ours")
    owner.value = "another"
    assert not replacement.is_in_place
    replacement.undo()
    assert owner.value == "another"


def test_a_replacement_stays_if_its_owner_says_so() -> None:
    owner = module()
    _core.Replacement(owner, "value", "ours", stays=lambda: True)
    assert owner.value == "ours"


def test_a_class_gets_back_what_its_dictionary_held() -> None:
    class Owner:
        @staticmethod
        def value() -> str:
            return "theirs"

    before = vars(Owner)["value"]
    replacement = _core.Replacement(Owner, "value", staticmethod(lambda: "ours"))
    assert Owner.value() == "ours"
    replacement.undo()
    assert vars(Owner)["value"] is before


def test_an_attribute_that_is_not_there_cannot_be_replaced() -> None:
    with pytest.raises(AttributeError, match="missing"):
        _core.Replacement(module(), "missing", "ours")


def test_a_session_drops_what_it_holds_when_it_stops_or_is_dropped() -> None:
    owner = module()
    for ending in ("stop", "drop"):
        prof = profile()
        prof.start()
        assert prof.profiler is not None
        session: Any = prof.profiler._session
        assert session.hold([_core.Replacement(owner, "value", "ours")])
        assert owner.value == "ours"
        if ending == "stop":
            prof.stop()
            assert not session.hold([])
        del prof, session
        gc.collect()
        assert owner.value == "theirs"


def test_a_call_is_repeated_until_nothing_interrupts_it() -> None:
    calls: list[int] = []

    def interrupted() -> None:
        calls.append(len(calls))
        if len(calls) < 3:
            raise KeyboardInterrupt(len(calls))

    found = _core.complete(interrupted)
    assert [(type(error), error.args) for error in found] == [
        (KeyboardInterrupt, (1,)),
        (KeyboardInterrupt, (2,)),
    ]
    assert len(calls) == 3


def test_a_call_that_always_fails_raises() -> None:
    def fail() -> None:
        raise ValueError("always")

    with pytest.raises(ValueError, match="always"):
        _core.complete(fail)
