"""What operators of frameworks are given is asked of their tensors each time, and told right."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mindprof
import numpy as np
import pytest
from mindprof import hosts


class ElementType:
    """A type of elements, as frameworks define them in Python."""

    def __init__(self, name: str) -> None:
        self.name = name


class ShownType:
    """A type of elements that has no name, and is shown by it."""

    def __init__(self, name: str) -> None:
        self.shown = name

    def __repr__(self) -> str:
        return f"framework.{self.shown}"


class Tensor:
    """A tensor whose type is a property and whose strides are a method."""

    def __init__(self, shape: Any, dtype: Any) -> None:
        self.shape = shape
        self.kind = dtype

    @property
    def dtype(self) -> Any:
        return self.kind

    def stride(self) -> tuple[int, ...]:
        return tuple(reversed(self.shape))


class Size:
    """A symbolic size, which is a number only by its conversion."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class Unsizable:
    """An object whose conversion fails."""

    def __index__(self) -> int:
        raise TypeError("not known")


def record(*operators: tuple[Any, ...]) -> list[mindprof.FunctionEvent]:
    """Opens an operator for each tuple of inputs, and returns their events."""
    with mindprof.profile(record_shapes=True) as prof:
        for inputs in operators:
            hosts.close_operator(hosts.open_operator("example::add", inputs))
    return list(prof.events())


def record_between(inputs: tuple[Any, ...], change: Any) -> list[mindprof.FunctionEvent]:
    """Records an operator, makes a change, and records the same again, several times each."""
    with mindprof.profile(record_shapes=True) as prof:
        for step in (None, None, change, None):
            if step is not None:
                step()
            hosts.close_operator(hosts.open_operator("example::add", inputs))
    return list(prof.events())


def test_a_tensor_is_asked_each_time() -> None:
    tensor = Tensor((2, 3), ElementType("float32"))

    def change() -> None:
        tensor.shape = (4, 5)
        tensor.kind = ElementType("int64")

    events = record_between((tensor,), change)
    assert [event.input_shapes for event in events] == [[[2, 3]]] * 2 + [[[4, 5]]] * 2
    assert [event.input_dtypes for event in events] == [["float"]] * 2 + [["long int"]] * 2
    strides = [event.structured_input_strides for event in events]
    assert strides == [[[3, 2]]] * 2 + [[[5, 4]]] * 2


@pytest.mark.parametrize("kind", [ElementType, ShownType])
def test_a_type_of_elements_that_changes_is_told_as_it_is_now(kind: Any) -> None:
    dtype = kind("float32")

    def change() -> None:
        setattr(dtype, "name" if kind is ElementType else "shown", "float64")

    events = record_between((Tensor((2,), dtype),), change)
    assert [event.input_dtypes for event in events] == [["float"]] * 2 + [["double"]] * 2


def test_what_becomes_a_tensor_is_one_from_then_on() -> None:
    class Late:
        pass

    late = Late()

    def change() -> None:
        Late.shape, Late.dtype, Late.stride = (2, 3), "float32", (1, 2)  # type: ignore[attr-defined]

    events = record_between((late,), change)
    assert [event.input_shapes for event in events] == [[[]]] * 2 + [[[2, 3]]] * 2
    assert events[-1].structured_input_strides == [[1, 2]]


def test_strides_that_come_later_are_told() -> None:
    tensor = SimpleNamespace(shape=(2, 3), dtype="float32")
    events = record_between((tensor,), lambda: setattr(tensor, "stride", (1, 2)))
    strides = [event.structured_input_strides for event in events]
    assert strides == [[[3, 1]]] * 2 + [[[1, 2]]] * 2


def test_arrays_of_numpy_are_tensors() -> None:
    array = np.zeros((3, 4), dtype=np.float16)
    narrow = np.zeros((2,), dtype=np.int8)
    events = record(*[(array, array.T, narrow)] * 3)
    for event in events:
        assert event.input_shapes == [[3, 4], [4, 3], [2]]
        assert event.structured_input_strides == [[4, 1], [1, 4], [1]]
        assert event.input_dtypes == ["c10::Half", "c10::Half", "signed char"]


def test_more_types_of_elements_are_told_apart_than_are_remembered() -> None:
    names = {
        "uint8": "unsigned char",
        "int8": "signed char",
        "int16": "short int",
        "int32": "int",
        "int64": "long int",
        "float16": "c10::Half",
        "float32": "float",
        "float64": "double",
        "bool": "bool",
        "complex64": "c10::complex<float>",
    }
    kinds = (str, ElementType, ShownType, np.dtype)
    inputs = [(Tensor((1,), kind(name)),) for kind in kinds for name in names]
    events = record(*inputs, *inputs)
    assert [event.input_dtypes for event in events] == [[name] for name in names.values()] * 8


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (3, 3),
        (-(1 << 63), -(1 << 63)),
        (1 << 63, None),
        (True, True),
        (2.5, 2.5),
        (np.float64(2.5), 2.5),
        (np.float32(2.5), 2.5),
        (np.int64(-3), -3),
        (np.uint8(255), 255),
        (np.uint64((1 << 64) - 1), None),
        (np.bool_(True), True),
        (np.bool_(False), False),
        ([np.int64(2), 3], [2, 3]),
        ((np.bool_(True), np.bool_(False)), [True, False]),
        (Size(4), 4),
        ([Size(4), 5], [4, 5]),
        (Unsizable(), None),
        ([1, 2], [1, 2]),
        ((1, 2), [1, 2]),
        ([1.5, 2.5], [1.5, 2.5]),
        ((True, False), [True, False]),
        ([], []),
        ([1, True], [1, True]),
        ([1, 2.5], [1, 2.5]),
        ((2.5, 1, None), [2.5, 1, None]),
        (1 - 2j, 1 - 2j),
        (np.complex128(0.5j), 0.5j),
        ([1j, 2j], [1j, 2j]),
        ([np.complex128(1j), 2], [1j, 2]),
        ([1, 2.5, "a"], None),
        ([None, 1], None),
        ([1, 2.5] * 15, [1, 2.5] * 15),
        ([1, 2.5] * 16, None),
        ([1, 1 << 63], None),
        (["a", "b"], None),
        ([None], None),
        ("text", None),
        (None, None),
    ],
)
def test_numbers_and_lists_of_them_keep_their_values(value: Any, told: Any) -> None:
    (event,) = record((value, 7))
    assert event.concrete_inputs == [told, 7]
    assert type(event.concrete_inputs[0]) is type(told)
    if isinstance(told, list):
        assert [type(item) for item in event.concrete_inputs[0]] == [type(item) for item in told]


def test_numbers_have_the_texts_of_torch_in_traces_and_are_read_again(tmp_path: Path) -> None:
    inputs = (1 - 2j, complex(0, 0.1), [1, 2.5], [1j, 2], [True, 2, None], [0.5, 1e300 - 1e-5j])
    with mindprof.profile(record_shapes=True) as prof:
        hosts.close_operator(hosts.open_operator("example::add", inputs))
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    (arguments,) = (
        event["args"] for event in trace["traceEvents"] if event["name"] == "example::add"
    )
    assert arguments["Concrete Inputs"] == [
        "1.-2.j",
        "0.+0.10000000000000001j",
        "[1, 2.5]",
        "[0.+1.j, 2]",
        "[True, 2, None]",
        "[0.5, 1.0000000000000001e+300-1.0000000000000001e-05j]",
    ]
    assert arguments["Input type"] == ["Scalar"] * 2 + ["ScalarList"] * 4
    (read,) = mindprof.load(tmp_path / "trace.json").events()
    (event,) = prof.events()
    assert read.concrete_inputs == event.concrete_inputs == list(inputs)


def test_a_list_is_one_of_tensors_if_all_of_it_are() -> None:
    tensor = hosts.TensorInput((2, 3), "float32")
    events = record(([tensor, tensor], 7), ([tensor, 1], 7), ([tensor, None], 7))
    assert events[0].structured_input_shapes == [[[2, 3], [2, 3]], []]
    for event in events[1:]:
        assert event.structured_input_shapes == [[], []]
        assert event.concrete_inputs == [None, 7]


def test_a_list_that_changes_while_it_is_asked_breaks_nothing() -> None:
    tensors: list[Any] = []

    class Shrinking(Tensor):
        @property
        def dtype(self) -> str:
            tensors.clear()
            return "float32"

    tensors.extend(Shrinking((2,), None) for _ in range(3))
    (event,) = record((tensors, 7))
    assert event.structured_input_shapes == [[], []]
    assert event.concrete_inputs == [None, 7]


def test_a_tensor_may_run_operators_when_it_is_asked() -> None:
    class Lazy(Tensor):
        @property
        def dtype(self) -> str:
            inner = hosts.open_operator("example::realize", (hosts.TensorInput((9,), "int8"), 1))
            hosts.close_operator(inner)
            return "float32"

    events = record((Lazy((2, 3), None), 5))
    assert [(event.name, event.input_shapes, event.concrete_inputs) for event in events] == [
        ("example::realize", [[9], []], [None, 1]),
        ("example::add", [[2, 3], []], [None, 5]),
    ]


def test_a_tensor_that_cannot_be_asked_is_just_there() -> None:
    class Broken(Tensor):
        @property
        def dtype(self) -> str:
            raise RuntimeError("no type yet")

    events = record((Broken((2,), None), 5), (Tensor((-1, 2), "float32"), 5), (Tensor(3, "x"), 5))
    assert [event.input_shapes for event in events] == [[[], []]] * 3


def test_many_values_do_not_disturb_the_next_operator() -> None:
    events = record((list(range(10_000)), 1), (2, 3))
    assert events[1].concrete_inputs == [2, 3]


def test_shapes_are_tuples_lists_or_other_sequences_of_whole_numbers() -> None:
    shapes = [(2, 3), [2, 3], np.array([2, 3]), (np.int64(2), np.int64(3))]
    events = record(*[(SimpleNamespace(shape=shape, dtype="float32"),) for shape in shapes])
    assert [event.input_shapes for event in events] == [[[2, 3]]] * 4


def test_a_tensor_that_is_given_twice_is_asked_once_an_operator() -> None:
    asked = []

    class Counting(Tensor):
        @property
        def dtype(self) -> str:
            asked.append(self)
            return "float32"

    tensor, other = Counting((2, 3), None), Counting((4,), None)
    events = record((tensor, tensor, other, tensor, [1, 2], 1, 1), (tensor, tensor))
    assert events[0].input_shapes == [[2, 3], [2, 3], [4], [2, 3], [], [], []]
    assert events[0].concrete_inputs == [None] * 4 + [[1, 2], 1, 1]
    assert events[1].input_shapes == [[2, 3], [2, 3]]
    assert asked == [tensor, other, tensor, tensor]


def test_a_number_that_has_a_shape_is_a_number_beside_tensors_too() -> None:
    number, tensor = np.float64(2.5), Tensor((2,), "float32")
    events = record(*[(tensor, number, tensor, [tensor, number], number)] * 3)
    for event in events:
        assert event.concrete_inputs == [None, 2.5, None, None, 2.5]
        assert event.structured_input_shapes == [[2], [], [2], [[2], []], []]


def test_sizes_that_only_count_as_numbers_are_read_each_time() -> None:
    class Size:
        value = 2

        def __index__(self) -> int:
            return self.value

    size = Size()
    tensor = SimpleNamespace(shape=(size, 3), stride=(3, 1), dtype="float32")
    events = record_between((tensor,), lambda: setattr(size, "value", 7))
    assert [event.input_shapes for event in events] == [[[2, 3]]] * 2 + [[[7, 3]]] * 2


def test_tensors_that_share_a_tuple_are_told_apart() -> None:
    shape, dense, turned = (2, 2), (2, 1), (1, 2)
    tensors = [
        SimpleNamespace(shape=shape, stride=stride, dtype=dtype)
        for stride in (dense, turned)
        for dtype in ("float32", "int64")
    ]
    events = record(*[tuple(tensors)] * 3)
    for event in events:
        assert event.structured_input_strides == [[2, 1], [2, 1], [1, 2], [1, 2]]
        assert event.input_dtypes == ["float", "long int"] * 2


def test_more_layouts_are_told_apart_than_are_remembered() -> None:
    tensors = [
        SimpleNamespace(shape=(size, 3), stride=(3, 1), dtype="float32") for size in range(30)
    ]
    events = record(*[(tensor, tensors[0]) for tensor in tensors] * 2)
    assert [event.input_shapes for event in events] == [[[i, 3], [0, 3]] for i in range(30)] * 2


def test_a_tensor_input_tells_what_it_was_made_of_and_stays_so() -> None:
    tensor = hosts.TensorInput([2, 3], "torch.int64", (1, 2))
    assert (tensor.shape, tensor.dtype, tensor.stride) == ((2, 3), "torch.int64", (1, 2))
    assert hosts.TensorInput((2, 0, 3), "float32").stride == (3, 3, 1)
    for name in ("shape", "dtype", "stride"):
        with pytest.raises(AttributeError, match=r"readonly|not writable"):
            setattr(tensor, name, (1,))
    again = pickle.loads(pickle.dumps(tensor))
    (event,) = record((again, hosts.TensorInput((), "bool"), [tensor, again]))
    assert event.structured_input_shapes == [[2, 3], [], [[2, 3], [2, 3]]]
    assert event.structured_input_strides == [[1, 2], [], [[1, 2], [1, 2]]]
    assert event.input_dtypes[:2] == ["long int", "bool"]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (((2, -1), "float32"), ValueError, "'shape': expected non-negative sizes, found -1"),
        (((1 << 70,), "float32"), ValueError, "'shape': expected 64-bit sizes, found"),
        (
            ((2, 3), "float32", (1,)),
            ValueError,
            r"'strides': expected one per dimension \(2\), found 1",
        ),
        (((2,), "float32", (1 << 70,)), ValueError, "'strides': expected 64-bit integers"),
        (((2,), "float32", 1), TypeError, "'strides'"),
        ((("a",), "float32"), TypeError, "shape"),
        (((2,), np.float32), TypeError, "dtype"),
    ],
)
def test_what_is_no_tensor_input_is_refused(
    arguments: tuple[Any, ...], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        hosts.TensorInput(*arguments)


def test_equal_names_are_one_operator_and_others_are_not() -> None:
    with mindprof.profile() as prof:
        for number in range(3_000):
            hosts.close_operator(hosts.open_operator("".join(("example::", str(number % 1_000)))))
    counts = {row.key: row.count for row in prof.key_averages()}
    assert counts == {f"example::{number}": 3 for number in range(1_000)}
