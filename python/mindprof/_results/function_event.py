"""`FunctionEvent`: one event.

A recorded event is a handle that reads its attributes from the profile on demand
(`mindprof._core.FunctionEvent`, which passes `isinstance` checks for the class here). An event that
is created by hand holds its attributes itself. Both derive further attributes by torch's rules,
which are written here once.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from mindprof._results import notebook
from mindprof._results.device_type import DeviceType, current
from mindprof._results.event_keys import KeyedEventMixin
from mindprof._results.formatted_times import FormattedTimesMixin, warn_of_former_name
from mindprof._results.records import EventMetadata, Interval, Kernel, metadata_of
from mindprof._torch_classes import kinds, like_torchs, meet_torch

_WITH_DEVICE_TIME = ("CUDA", "PrivateUse1", "MTIA", "HPU", "XPU")

# Our additions to torch's attributes: where an event ran, and what it is related to.
PLACE = ("process", "thread_id", "thread_name", "stream", "correlation", "step", "rank")


@like_torchs
class FunctionEvent(FormattedTimesMixin, KeyedEventMixin):
    """One event: an operator, a range, a Python call, a kernel or an allocation.

    The arguments are torch's, and become attributes of the same names. An event is also a mapping
    with MindTorch v2's keys: `event["kind"]`, `dict(event)`.

    Args:
        id: The id of the event.
        name: The name of the event.
        thread: The number of the thread it ran on.
        start_us: The start in microseconds.
        end_us: The end in microseconds.
        overload_name: The overload of the operator.
        fwd_thread: For a backward node, the number of the thread of the forward operator.
        input_shapes: The shapes of the inputs.
        stack: The call stack, innermost frame first.
        scope: The number of the `RecordScope`: 0 for an operator, 1 for a backward node, 7 for a
            user's range.
        use_device: The device that was recorded besides the CPU.
        cpu_memory_usage: The bytes allocated on the CPU.
        device_memory_usage: The bytes allocated on devices.
        is_async: Whether it ended on another thread than it began on.
        is_remote: Whether it ran on another machine.
        sequence_nr: The number that a forward operator and its backward node share, or -1.
        node_id: The machine it ran on, or -1 if there is only one.
        device_type: The kind of device it ran on.
        device_index: The index of the device among those of its kind.
        device_resource_id: The stream or the thread.
        is_legacy: Whether its device times were measured on the CPU.
        flops: The number of floating-point operations.
        trace_name: The name in traces; `None` omits the event from them.
        concrete_inputs: The values of the inputs.
        kwinputs: The values of the keyword inputs.
        is_user_annotation: Whether it is a user's range.
        is_python_function: Whether it is a call of a Python function.
        activity_type: The category in traces.
        flow_id: The id of the flow that begins or ends at the event.
        flow_type: The kind of that flow.
        flow_start: Whether the flow begins at the event.
        external_id: The external id in traces.
        linked_correlation_id: The correlation id of the CPU event that launched it.
        extra_meta: Further metadata as text by key.
        structured_input_shapes: The shapes of the inputs, with tensor lists as nested lists.
        structured_input_strides: The strides of the inputs, likewise.
        input_dtypes: The dtypes of the inputs.
        python_id: The id of a Python call.
        python_parent_id: The id of the calling Python call.
        python_module_id: The id of the module.
        typed_metadata: Further metadata as typed values.

    Example:
        >>> event = FunctionEvent(0, "aten::mm", 1, 0.0, 12.5)
        >>> event.cpu_time_total_str
        '12.500us'
    """

    def __init__(
        self,
        id: int,  # noqa: A002
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: Any = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: Any = None,
        kwinputs: Any = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        activity_type: str | None = None,
        flow_id: int | None = None,
        flow_type: int | None = None,
        flow_start: bool | None = None,
        external_id: int = 0,
        linked_correlation_id: int = 0,
        extra_meta: Mapping[str, str] | None = None,
        structured_input_shapes: Any = None,
        structured_input_strides: Any = None,
        input_dtypes: list[str] | None = None,
        python_id: int = -1,
        python_parent_id: int = -1,
        python_module_id: int = -1,
        typed_metadata: Any = None,
    ) -> None:
        given = dict(locals())
        meet_torch()
        for argument in ("self", "start_us", "end_us", "extra_meta", "typed_metadata"):
            del given[argument]
        self.__dict__.update(given)
        self.device_type = current(device_type)
        self.time_range = Interval(start_us, end_us)
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: Any = None
        self.self_cpu_percent: Any = -1
        self.total_cpu_percent: Any = -1
        self.total_device_percent: Any = -1
        self.metadata: Any = typed_metadata
        self._event_metadata: EventMetadata | None = metadata_of(extra_meta) if extra_meta else None

    @staticmethod
    def _attributes(event: FunctionEvent) -> dict[str, Any]:
        """Returns the attributes of a recorded event that one made by hand holds itself."""
        return {name: getattr(event, name) for name in vars(_BLANK)}

    @classmethod
    def _copied(cls, event: FunctionEvent) -> FunctionEvent:
        """Returns an event with the current attributes of a recorded one."""
        copied = cls(event.id, event.name, event.thread, 0.0, 0.0)
        for name in list(vars(copied)):
            setattr(copied, name, getattr(event, name))
        for name in PLACE:
            setattr(copied, name, getattr(event, name))
        copied._recorded_keys = dict(event)
        return copied

    @property
    def category(self) -> str | None:
        """The category of the event in traces."""
        return self.activity_type

    @property
    def start_us(self) -> float:
        """The start in microseconds."""
        return self.time_range.start

    @property
    def end_us(self) -> float:
        """The end in microseconds."""
        return self.time_range.end

    # Unknown for events that are created by hand.
    process: int | None = None
    thread_id: int | None = None
    thread_name: str | None = None
    stream: int | None = None
    correlation: int | None = None
    step: int | None = None
    rank: int | None = None

    # Defaults that all recorded events share.
    extra_meta: Any = None
    metadata: Any = None
    _event_metadata: EventMetadata | None = None

    # See `dataclass_fields`.
    __dataclass_fields__: ClassVar[dict[str, Any]]

    # Set from the arguments.
    id: int
    name: str
    thread: int
    overload_name: str | None
    use_device: str | None
    device_type: DeviceType
    device_index: int
    node_id: int
    input_shapes: Any
    cpu_memory_usage: int
    device_memory_usage: int
    is_async: bool
    is_remote: bool
    is_legacy: bool
    sequence_nr: int
    scope: int
    stack: Any
    fwd_thread: Any
    trace_name: Any
    flops: Any
    activity_type: str | None
    python_id: int
    python_parent_id: int
    python_module_id: int
    flow_id: int | None
    flow_type: int | None
    flow_start: bool | None
    concrete_inputs: Any
    kwinputs: Any
    structured_input_shapes: Any
    structured_input_strides: Any
    input_dtypes: Any
    is_user_annotation: bool
    is_python_function: bool
    external_id: int
    linked_correlation_id: int

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Adds a kernel that ran on a device for the event."""
        assert self.device_type == DeviceType.CPU, "Expected device_type to be CPU"
        # Assigned back, because a recorded event creates a new list for each read.
        kernels = self.kernels
        kernels.append(Kernel(name, device, duration))
        self.kernels = kernels

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds an event that ran inside this one."""
        assert self.device_type == DeviceType.CPU, "Expected device_type to be CPU"
        assert isinstance(child, kinds(FunctionEvent)), "Expected child to be a FunctionEvent"
        assert child.device_type == DeviceType.CPU, "Expected child device_type to be CPU"
        children = self.cpu_children
        children.append(child)
        self.cpu_children = children

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Sets the event that this one ran inside."""
        assert self.device_type == DeviceType.CPU, "Expected device_type to be CPU"
        assert isinstance(parent, kinds(FunctionEvent)), "Expected parent to be a FunctionEvent"
        assert parent.device_type == DeviceType.CPU, "Expected parent device_type to be CPU"
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """The name that events are grouped under."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """The CPU time in microseconds, including children."""
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self) -> float:
        """The CPU time in microseconds, excluding children; never negative."""
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return max(
            0, self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)
        )

    @property
    def self_cpu_memory_usage(self) -> int:
        """The bytes allocated on the CPU, excluding children."""
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """The bytes allocated on devices, excluding children."""
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        children = sum(child.device_memory_usage for child in self.cpu_children)
        return self.device_memory_usage - children

    @property
    def device_time_total(self) -> float:
        """The device time in microseconds, including children."""
        if self.is_async or not self.use_device:
            return 0
        if self.device_type == DeviceType.CPU:
            own = sum(kernel.duration for kernel in self.kernels)
            if self.is_legacy:
                return own
            return own + sum(child.device_time_total for child in self.cpu_children)
        self._check_device()
        return self.time_range.elapsed_us()

    @property
    def self_device_time_total(self) -> float:
        """The device time in microseconds, excluding children."""
        if self.is_async or not self.use_device:
            return 0
        if self.device_type == DeviceType.CPU:
            children = sum(child.device_time_total for child in self.cpu_children)
            return self.device_time_total - children
        self._check_device()
        return self.device_time_total

    def _check_device(self) -> None:
        assert self.device_type.name in _WITH_DEVICE_TIME, (
            "Expected device_type to be CUDA, PrivateUse1, MTIA, HPU or XPU, "
            f"but got {self.device_type}"
        )

    @property
    def cuda_time_total(self) -> float:
        """The deprecated name of `device_time_total`."""
        warn_of_former_name("`cuda_time_total` is deprecated. Use `device_time_total` instead.")
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        """The deprecated name of `self_device_time_total`."""
        warn_of_former_name(
            "`self_cuda_time_total` is deprecated. Use `self_device_time_total` instead."
        )
        return self.self_device_time_total

    @property
    def self_cuda_memory_usage(self) -> int:
        """The deprecated name of `self_device_memory_usage`."""
        warn_of_former_name(
            "`self_cuda_memory_usage` is deprecated. Use `self_device_memory_usage` instead."
        )
        return self.self_device_memory_usage

    @property
    def event_metadata(self) -> EventMetadata | None:
        """The deprecated name of `metadata`."""
        warn_of_former_name("`event_metadata` is deprecated. Use `metadata` instead.")
        return self._event_metadata

    def _repr_html_(self) -> str:
        """Returns the notebook representation: the attributes that are columns of data frames."""
        fields: Any = type(self).__dataclass_fields__
        return notebook.pairs((name, getattr(self, name, None)) for name in fields.names())

    def __repr__(self) -> str:
        device = self.use_device
        children = str([child.id for child in self.cpu_children])
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={children} {device}_time={self.device_time_str} name={self.name} "
            f"thread={self.thread} input_shapes={self.input_shapes!s} "
            f"cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage} is_async={self.is_async} "
            f"is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


_BLANK = FunctionEvent(0, "", 0, 0.0, 0.0)
_OUTLINE = (
    "overload_name",
    "fwd_thread",
    "scope",
    "use_device",
    "cpu_memory_usage",
    "device_memory_usage",
    "is_async",
    "is_remote",
    "sequence_nr",
    "node_id",
    "device_type",
    "device_index",
    "device_resource_id",
    "is_legacy",
    "flops",
    "trace_name",
    "is_user_annotation",
    "is_python_function",
    "activity_type",
    "external_id",
    "linked_correlation_id",
    "python_id",
    "python_parent_id",
    "python_module_id",
)


def outline(event: FunctionEvent) -> dict[str, Any]:
    """Returns the arguments for a small copy of an event, for pickling.

    Whatever can be large is left out: inputs, stacks, parents and children.
    """
    made: dict[str, Any] = {"id": event.id, "name": event.name, "thread": event.thread}
    made |= {"start_us": event.time_range.start, "end_us": event.time_range.end}
    for name in _OUTLINE:
        value = getattr(event, name)
        if value != getattr(_BLANK, name):
            made[name] = value
    for name, value in made.items():
        if type(value) is str:
            # Equal texts become one object, which a pickle stores once.
            made[name] = sys.intern(value)
    return made
