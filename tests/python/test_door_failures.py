"""Frameworks and operators that fail: the error is their own, and nothing is left open."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mindprof
import pytest
from mindprof import hosts


def test_an_operator_that_raises_is_closed() -> None:
    with mindprof.profile() as prof:
        with pytest.raises(KeyError), hosts.operator("example::add", 1):
            raise KeyError
        with hosts.operator("example::mul"):
            pass
    assert [event.cpu_parent for event in prof.events()] == [None, None]


def test_an_operator_raises_what_its_body_raises() -> None:
    class Own(StopIteration):
        """An error that contexts made of generators take for their own end."""

    error = Own("of the framework")
    with mindprof.profile() as prof:
        outer, inner = hosts.operator("example::outer"), hosts.operator("example::inner")
        with pytest.raises(Own) as raised, outer, inner:
            raise error
        hosts.close_operator(hosts.open_operator("example::after"))
    assert raised.value is error
    assert error.__context__ is None
    assert {event.name: getattr(event.cpu_parent, "name", None) for event in prof.events()} == {
        "example::outer": None,
        "example::inner": "example::outer",
        "example::after": None,
    }


def test_an_operator_that_cannot_be_opened_opens_and_closes_nothing() -> None:
    with mindprof.profile() as prof, hosts.operator("example::outer"):
        nameless = hosts.operator(3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="argument 'name'"), nameless:
            raise AssertionError("the body is not run")
        hosts.close_operator(hosts.open_operator("example::inner"))
    parents = {event.name: getattr(event.cpu_parent, "name", None) for event in prof.events()}
    assert parents == {"example::outer": None, "example::inner": "example::outer"}


def test_a_function_that_is_an_operator_is_one_at_each_call() -> None:
    @hosts.operator("example::half", correlation=0)
    def half(number: int, fails: bool = False) -> int:
        if fails:
            raise ValueError(number)
        return number // 2

    assert half(4) == 2
    with mindprof.profile() as prof:
        assert half(6) == 3
        with pytest.raises(ValueError, match=r"^7$"):
            half(7, fails=True)
        assert half(8) == 4
    assert [(event.name, event.cpu_parent) for event in prof.events()] == [
        ("example::half", None)
    ] * 3


class Log(hosts.Framework):
    """Notes what it is told, and raises what it is given."""

    def __init__(self, log: list[Any], name: str, **errors: BaseException) -> None:
        self.log = log
        self.name = name
        self.errors = errors

    def begin(self, recording: hosts.Recording) -> None:
        self.tell("begin", recording)

    def end(self, recording: hosts.Recording) -> None:
        self.tell("end", recording)

    def tell(self, what: str, recording: hosts.Recording) -> None:
        self.log.append((self.name, what, recording))
        if what in self.errors:
            raise self.errors[what]


def told(log: list[Any]) -> list[tuple[str, str]]:
    return [(name, what) for name, what, _ in log]


def test_a_framework_whose_begin_failed_is_not_told_of_the_end(
    register: Callable[[hosts.Framework], None],
) -> None:
    log: list[Any] = []
    register(Log(log, "first"))
    register(Log(log, "broken", begin=OSError("no such device")))
    register(Log(log, "last"))
    prof = mindprof.profile()
    with pytest.warns(RuntimeWarning, match=r"Log.begin failed.*no such device") as raised:
        prof.start()
    assert [warning.filename for warning in raised] == [__file__]
    with mindprof.record_function("step"):
        pass
    prof.stop()
    begun = [("first", "begin"), ("broken", "begin"), ("last", "begin")]
    assert told(log) == [*begun, ("first", "end"), ("last", "end")]
    assert log[0][2] is log[3][2]
    assert [row.key for row in prof.key_averages()] == ["step"]


def test_it_is_told_of_the_next_recording(register: Callable[[hosts.Framework], None]) -> None:
    log: list[Any] = []
    broken = Log(log, "broken", begin=OSError("not yet"))
    register(broken)
    for errors in (broken.errors, {}):
        broken.errors = errors
        prof = mindprof.profile()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prof.start()
        prof.stop()
    assert told(log)[-2:] == [("broken", "begin"), ("broken", "end")]


@pytest.mark.parametrize("stage", ["begin", "end"])
def test_whoever_interrupts_leaves_no_framework_behind(
    stage: str, register: Callable[[hosts.Framework], None]
) -> None:
    log: list[Any] = []
    register(Log(log, "first"))
    register(Log(log, "interrupted", **{stage: KeyboardInterrupt("by the user")}))
    register(Log(log, "last"))
    prof = mindprof.profile()
    if stage == "end":
        prof.start()
    with pytest.raises(KeyboardInterrupt, match="by the user"):
        prof.start() if stage == "begin" else prof.stop()
    begun = [name for name, what in told(log) if what == "begin"]
    ended = [name for name, what in told(log) if what == "end"]
    assert begun == (
        ["first", "interrupted", "last"] if stage == "end" else ["first", "interrupted"]
    )
    assert ended == [name for name in begun if (name, stage) != ("interrupted", "begin")]
    assert not hosts.is_recording()
    assert len(prof.events()) == 0


def test_an_operator_whose_handle_is_lost_ends_there(
    register: Callable[[hosts.Framework], None],
) -> None:
    class Losing(hosts.Framework):
        def begin(self, recording: hosts.Recording) -> None:
            operator = hosts.open_operator("example::get_ready")
            raise OSError(f"{operator} is lost, shapes={recording.record_shapes}")

    register(Losing())
    prof = mindprof.profile()
    with pytest.warns(RuntimeWarning, match="Losing.begin failed"):
        prof.start()
    hosts.close_operator(hosts.open_operator("example::after"))
    prof.stop()
    assert [(event.name, event.cpu_parent) for event in prof.events()] == [
        ("example::get_ready", None),
        ("example::after", None),
    ]


def test_a_framework_that_fails_costs_its_own_part_only(
    register: Callable[[hosts.Framework], None],
) -> None:
    class Broken(hosts.Framework):
        def end(self, recording: hosts.Recording) -> None:
            raise OSError(f"the device is gone, shapes={recording.record_shapes}")

    register(Broken())
    prof = mindprof.profile()
    prof.start()
    with mindprof.record_function("step"):
        pass
    with pytest.warns(RuntimeWarning, match=r"Broken.end failed.*the device is gone"):
        prof.stop()
    assert [row.key for row in prof.key_averages()] == ["step"]


class Asked:
    """A tensor that answers as it is told to; what is an error it raises."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {"shape": (2, 3), "dtype": "float32", "stride": (3, 1), **answers}

    def __getattr__(self, name: str) -> Any:
        answer = self.answers.get(name, AttributeError(name))
        if isinstance(answer, BaseException):
            raise answer
        return answer


def raised(error: BaseException) -> Any:
    raise error


QUESTIONS: dict[str, Callable[[BaseException], dict[str, Any]]] = {
    "shape": lambda error: {"shape": error},
    "dtype": lambda error: {"dtype": error},
    "stride": lambda error: {"stride": error},
    "stride()": lambda error: {"stride": lambda: raised(error)},
    "a size": lambda error: {
        "shape": (2, type("Size", (), {"__index__": lambda _: raised(error)})())
    },
    "a type's name": lambda error: {"dtype": Asked(name=error)},
}


@pytest.mark.parametrize("ending", [SystemExit(3), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_ends_the_program_is_not_taken_for_an_answer(
    question: str, ending: BaseException
) -> None:
    tensor = Asked(**QUESTIONS[question](ending))
    with mindprof.profile(record_shapes=True) as prof:
        # Twice: a class that has answered badly is asked in another way.
        for inputs in ((tensor,), ([tensor],)):
            with pytest.raises(type(ending)) as caught:
                hosts.open_operator("example::add", inputs)
            assert caught.value is ending
        with pytest.raises(type(ending)):
            hosts.open_operator("example::add", (), {"out": tensor})
    assert len(prof.events()) == 0


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_error_of_a_tensor_costs_the_operator_nothing(question: str) -> None:
    tensor = Asked(**QUESTIONS[question](ValueError("of the tensor")))
    with mindprof.profile(record_shapes=True) as prof:
        for inputs in ((tensor, 1), ([tensor], 1)):
            hosts.close_operator(hosts.open_operator("example::add", inputs))
    assert [event.concrete_inputs[1] for event in prof.events()] == [1, 1]


@pytest.mark.parametrize(
    ("stride", "found"), [((1,), 1), ((), 0), ((6, 3, 1), 3), (lambda: [1], 1)]
)
def test_strides_that_are_not_those_of_the_shape_are_refused(stride: Any, found: int) -> None:
    text = f"argument 'inputs': .*a stride for each of 2 dimensions, found {found}"
    with mindprof.profile(record_shapes=True) as prof:
        for _ in range(2):
            with pytest.raises(ValueError, match=text):
                hosts.open_operator("example::add", (Asked(stride=stride),))
        hosts.close_operator(hosts.open_operator("example::add", (Asked(),)))
    assert [event.input_shapes for event in prof.events()] == [[[2, 3]]]
