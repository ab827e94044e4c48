"""The event tree of a recording as objects like those of torch's `experimental_event_tree()`.

`torch.profiler._memory_profiler` and tools that build module trees read them. The engine builds the
tree and numbers the tensors; a node's values are fetched when somebody reads them. Classes and
enumerations are torch's: an object here passes `isinstance` for the class that it stands for.
"""

from __future__ import annotations

import functools
import re
import sys
from typing import Any

from mindprof import _core

_TAGS = {0: "TorchOp", 3: "Allocation", 5: "PyCall", 6: "PyCCall", 7: "Kineto"}

_DTYPES = {
    "unsigned char": "uint8",
    "signed char": "int8",
    "short int": "int16",
    "int": "int32",
    "long int": "int64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "c10::complex<c10::Half>": "complex32",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "bool": "bool",
    "short unsigned int": "uint16",
    "unsigned int": "uint32",
    "long unsigned int": "uint64",
}
"""torch's Python name of each dtype, where it is not the end of the C++ name in lower case."""

_DEVICES = {0: "cpu", 14: "meta"}
"""The devices whose tensors have known storages, by torch's numbers."""

_LAYOUTS = {
    0: "strided",
    1: "sparse_coo",
    2: "sparse_csr",
    3: "_mkldnn",
    4: "sparse_csc",
    5: "sparse_bsr",
    6: "sparse_bsc",
    7: "jagged",
}

_NEEDS_TORCH = "the event tree consists of torch's classes: import torch first"
_HAS_DEVICES = (
    "the event tree of a recording with device events was not kept: set "
    "MINDPROF_TORCH_BACKEND=kineto in the environment and record with "
    "record_shapes=True, profile_memory=True and with_stack=True"
)
_NO_ADDRESSES = (
    "the tensors of this recording have no addresses: record with record_shapes=True and "
    "profile_memory=True, through the observer"
)
_OTHER_DEVICE = (
    "the storages of tensors on devices are not recorded: use torch's own profiler for their memory"
)
_NO_MODULES = "the modules of this recording are unknown: record through the observer"
_NO_PARAMETERS = (
    "the parameters of modules were not recorded: record with with_stack=True and "
    "profile_memory=True"
)

_MODULE = "nn.Module: "
_PLACE = re.compile(r"(.*)\(([0-9]+)\): (.*)", re.DOTALL)


def event_tree_of(recording: _core.Profile) -> list[ProfilerEvent]:
    """Returns the roots of the event tree of a recording.

    Args:
        recording: A finished recording of torch, with torch imported.

    Raises:
        RuntimeError: torch is not imported, or the recording has events of devices.
    """
    if "torch" not in sys.modules:
        raise RuntimeError(_NEEDS_TORCH)
    if recording.has_device_events:
        raise RuntimeError(_HAS_DEVICES)
    return _Nodes(recording.event_tree()).roots()


class _Nodes:
    """The nodes of one tree. Each is created once, so that nodes can be compared by identity."""

    def __init__(self, tree: _core.EventTree) -> None:
        self.tree = tree
        self.torch = sys.modules["torch"]
        self.native = self.torch._C._profiler
        self._known: list[ProfilerEvent | None] = [None] * len(tree)

    def roots(self) -> list[ProfilerEvent]:
        return [self.at(number) for number in self.tree.roots()]

    def at(self, number: int) -> ProfilerEvent:
        node = self._known[number]
        if node is None:
            node = self._known[number] = ProfilerEvent(self, number)
        return node

    @functools.cached_property
    def module_call(self) -> PyFrameState:
        """The function that calls modules."""
        found = _PLACE.fullmatch(self.tree.module_call or "")
        if found is None:
            raise RuntimeError(_NO_MODULES)
        file, line, function = found.groups()
        return PyFrameState(file, int(line), function)

    def frame(self, place: str) -> PyFrameState:
        """Returns the frame that a name describes: `file.py(10): function`, or that of a module."""
        found = _PLACE.fullmatch(place)
        if found is None:
            # The line of a module's frame is not recorded.
            return PyFrameState(self.module_call.file_name, 0, self.module_call.function_name)
        file, line, function = found.groups()
        return PyFrameState(file, int(line), function)


class _StandsFor:
    """An object that passes `isinstance` for a class of `torch._C._profiler`."""

    __slots__ = ()
    _torch_name: str

    @property
    def __class__(self) -> type:
        found: type = getattr(sys.modules["torch"]._C._profiler, self._torch_name)
        return found

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("the class of a node cannot be changed")


class ProfilerEvent(_StandsFor):
    """A node of the tree: an operator, a range, a Python call, an allocation or a free."""

    _torch_name = "_ProfilerEvent"

    def __init__(self, nodes: _Nodes, number: int) -> None:
        self._nodes = nodes
        self._number = number

    @property
    def id(self) -> int:
        """A number that is unique within the tree."""
        return self._number

    @functools.cached_property
    def name(self) -> str:
        """The name; `[memory]` for an allocation or a free."""
        return self._nodes.tree.name(self._number)

    @property
    def overload_name(self) -> str:
        """An empty text, because overloads are not recorded."""
        return ""

    @functools.cached_property
    def tag(self) -> Any:
        """The kind of node, a member of torch's `_EventType`."""
        return getattr(self._nodes.native._EventType, _TAGS[self._kind])

    @functools.cached_property
    def _kind(self) -> int:
        return self._nodes.tree.kind(self._number)

    @functools.cached_property
    def extra_fields(self) -> Any:
        """The fields of this kind of node."""
        return _FIELDS[self._kind](self._nodes, self._number)

    @property
    def typed(self) -> tuple[Any, Any]:
        """The tag and the fields."""
        return self.tag, self.extra_fields

    @property
    def parent(self) -> ProfilerEvent | None:
        """The node around this one; `None` for a root."""
        number = self._nodes.tree.parent(self._number)
        return None if number is None else self._nodes.at(number)

    @property
    def children(self) -> list[ProfilerEvent]:
        """The nodes directly inside this one, in time order."""
        return [self._nodes.at(number) for number in self._nodes.tree.children(self._number)]

    @functools.cached_property
    def _place(self) -> tuple[int, int | None, int, int]:
        return self._nodes.tree.place(self._number)

    @property
    def start_time_ns(self) -> int:
        """The start, in nanoseconds since the Unix epoch."""
        return self._place[0]

    @property
    def end_time_ns(self) -> int:
        """The end; the lowest number of 64 bits if the event had not ended, as in torch."""
        end = self._place[1]
        return -(1 << 63) if end is None else end

    @property
    def duration_time_ns(self) -> int:
        """The duration."""
        return self.end_time_ns - self.start_time_ns

    @property
    def start_tid(self) -> int:
        """The number of the thread."""
        return self._place[2]

    @property
    def correlation_id(self) -> int:
        """The number of the event, as torch counts; zero for Python calls and memory."""
        return self._place[3]

    def __repr__(self) -> str:
        return f"<{self._torch_name} {self.name!r}>"


class _Fields(_StandsFor):
    """The fields of a node."""

    def __init__(self, nodes: _Nodes, number: int) -> None:
        self._nodes = nodes
        self._number = number


class TorchOpFields(_Fields):
    """The fields of an operator, a range or a backward node."""

    _torch_name = "_ExtraFields_TorchOp"

    @property
    def name(self) -> str:
        """The name."""
        return self._nodes.tree.name(self._number)

    @functools.cached_property
    def inputs(self) -> list[Any]:
        """Tensors, lists of tensors and numbers; `None` for inputs of other kinds."""
        return [
            [TensorMetadata(self._nodes, tensor) for tensor in value]
            if isinstance(value, list)
            else TensorMetadata(self._nodes, value)
            if isinstance(value, tuple)
            else value
            for value in self._nodes.tree.inputs(self._number)
        ]

    @functools.cached_property
    def scope(self) -> Any:
        """The part of the program that opened it, a member of torch's `RecordScope`."""
        return self._nodes.native.RecordScope(self._nodes.tree.operator(self._number)[0])

    @property
    def sequence_number(self) -> int:
        """The number that links a forward operator with its backward node; -1 if there is none."""
        return self._nodes.tree.operator(self._number)[1]

    @property
    def allow_tf32_cublas(self) -> bool:
        """Not recorded.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("allow_tf32_cublas is not recorded: use torch's own profiler")


class AllocationFields(_Fields):
    """The fields of an allocation or a free."""

    _torch_name = "_ExtraFields_Allocation"

    @functools.cached_property
    def _record(self) -> tuple[int, int, int, int, str, int, int | None, int | None]:
        return self._nodes.tree.allocation(self._number)

    @property
    def ptr(self) -> int:
        """The address of the block."""
        return self._record[0]

    @property
    def alloc_size(self) -> int:
        """The size of the block; negative for a free."""
        return self._record[1]

    @property
    def total_allocated(self) -> int:
        """The bytes that the allocator had allocated afterwards."""
        return self._record[2]

    @property
    def total_reserved(self) -> int:
        """The bytes that the allocator had reserved afterwards."""
        return self._record[3]

    @property
    def device(self) -> Any:
        """The device of the block, a `torch.device`."""
        _, _, _, _, kind, index, _, _ = self._record
        return self._nodes.torch.device(kind, *([index] if index >= 0 else []))

    @property
    def allocation_id(self) -> int | None:
        """The number of the block among those at the same and other addresses."""
        return self._record[6]

    @property
    def id(self) -> int | None:
        """The number of the tensor in the block; `None` if no tensor was seen there."""
        return self._record[7]


class PyFrameState(_StandsFor):
    """A place in a Python function.

    Args:
        file_name: The file, without the prefix that all files share.
        line_number: The line; zero if it is unknown.
        function_name: The function.
    """

    __slots__ = ("file_name", "function_name", "line_number")
    _torch_name = "_PyFrameState"

    def __init__(self, file_name: str, line_number: int, function_name: str) -> None:
        self.file_name = file_name
        self.line_number = line_number
        self.function_name = function_name


class _CallFields(_Fields):
    @functools.cached_property
    def caller(self) -> PyFrameState:
        """The place that the call was made at."""
        place = self._nodes.tree.caller(self._number)
        return self._nodes.frame(self._nodes.tree.name(self._number) if place is None else place)


class PyCallFields(_CallFields):
    """The fields of a call of a Python function or a module."""

    _torch_name = "_ExtraFields_PyCall"

    @functools.cached_property
    def callsite(self) -> PyFrameState:
        """The function that was called."""
        name = self._nodes.tree.name(self._number)
        return self._nodes.frame(name) if _PLACE.fullmatch(name) else self._nodes.module_call

    @functools.cached_property
    def module(self) -> NNModuleInfo | None:
        """The module that was called; `None` for a function."""
        found = self._nodes.tree.module(self._number)
        if found is not None:
            return NNModuleInfo(self._nodes, found)
        if self._nodes.tree.name(self._number).startswith(_MODULE):
            raise RuntimeError(_NO_MODULES)
        return None

    @functools.cached_property
    def optimizer(self) -> OptimizerInfo | None:
        """The optimizer whose step this is; `None` for other calls."""
        found = self._nodes.tree.optimizer(self._number)
        return None if found is None else OptimizerInfo(self._nodes, found)


class PyCCallFields(_CallFields):
    """The fields of a call of a C function."""

    _torch_name = "_ExtraFields_PyCCall"


class KinetoFields(_Fields):
    """The fields of an event that Kineto collected; torch shows none either."""

    _torch_name = "_ExtraFields_Kineto"


class NNModuleInfo(_StandsFor):
    """A module, as it was at its first recorded call."""

    _torch_name = "_NNModuleInfo"

    def __init__(self, nodes: _Nodes, found: tuple[int, int, str, Any]) -> None:
        self._nodes = nodes
        self.self_ptr, self.cls_ptr, self.cls_name, self._parameters = found

    @functools.cached_property
    def parameters(self) -> list[tuple[str, TensorMetadata, TensorMetadata | None]]:
        """The parameters of the module itself: name, tensor and gradient.

        Raises:
            RuntimeError: They were not recorded.
        """
        if self._parameters is None:
            raise RuntimeError(_NO_PARAMETERS)
        return [
            (name, TensorMetadata(self._nodes, tensor), _metadata(self._nodes, gradient))
            for name, tensor, gradient, _ in self._parameters
        ]


class OptimizerInfo(_StandsFor):
    """An optimizer, as it was at its first recorded step."""

    _torch_name = "_OptimizerInfo"

    def __init__(self, nodes: _Nodes, found: tuple[int, Any]) -> None:
        self._nodes = nodes
        self.self_ptr, self._parameters = found

    @functools.cached_property
    def parameters(
        self,
    ) -> list[tuple[TensorMetadata, TensorMetadata | None, list[tuple[str, TensorMetadata]]]]:
        """The parameters: tensor, gradient and state."""
        return [
            (
                TensorMetadata(self._nodes, tensor),
                _metadata(self._nodes, gradient),
                [(name, TensorMetadata(self._nodes, kept)) for name, kept in state],
            )
            for _, tensor, gradient, state in self._parameters
        ]


class TensorMetadata(_StandsFor):
    """A tensor, as it was when an operator began or a module was called."""

    _torch_name = "_TensorMetadata"

    def __init__(self, nodes: _Nodes, found: tuple[Any, ...]) -> None:
        self._torch = nodes.torch
        (
            self._dtype,
            self.sizes,
            self.strides,
            self._storage,
            self._address,
            self._device,
            self._layout,
            self._storage_number,
            self._number,
        ) = found

    @property
    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    @property
    def dtype(self) -> Any:
        """The dtype, a `torch.dtype`."""
        name = _DTYPES.get(self._dtype) or self._dtype.rpartition("::")[2].lower()
        return getattr(self._torch, name)

    @property
    def layout(self) -> Any:
        """The layout, a `torch.layout`."""
        return getattr(self._torch, _LAYOUTS[self._known(self._layout)])

    @property
    def device(self) -> Any:
        """The device, a `torch.device`."""
        name = _DEVICES.get(self._known(self._device))
        if name is None:
            raise RuntimeError(_OTHER_DEVICE)
        return self._torch.device(name)

    @property
    def impl_ptr(self) -> int:
        """The address of the tensor object, which another tensor may get after its end."""
        address: int = self._known(self._address)
        return address

    @property
    def storage_data_ptr(self) -> int | None:
        """The address of the storage; `None` if it is empty."""
        self._check_device()
        return self._storage or None

    @property
    def allocation_id(self) -> int | None:
        """The number of the storage."""
        self._check_device()
        number: int | None = self._storage_number
        return number

    @property
    def id(self) -> int | None:
        """The number of the tensor, which it keeps if it changes its storage."""
        self._check_device()
        number: int | None = self._number
        return number

    def _check_device(self) -> None:
        if self._known(self._device) not in _DEVICES:
            raise RuntimeError(_OTHER_DEVICE)

    def _known(self, value: Any) -> Any:
        if value is None:
            raise RuntimeError(_NO_ADDRESSES)
        return value


def _metadata(nodes: _Nodes, found: tuple[Any, ...] | None) -> TensorMetadata | None:
    return None if found is None else TensorMetadata(nodes, found)


_FIELDS = {
    0: TorchOpFields,
    3: AllocationFields,
    5: PyCallFields,
    6: PyCCallFields,
    7: KinetoFields,
}
