"""`FunctionEvent`: one event.

An event of a recording is a handle that reads its attributes from the profile when they are asked
for (`mindprof._core.FunctionEvent`, which says that it is of the class here); one that is made by
hand holds them itself. What follows from the attributes by torch's rules is written once, for both.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from mindprof._results import notebook
from mindprof._results.device_type import DeviceType
from mindprof._results.event_keys import KeyedEventMixin
from mindprof._results.formatted_times import FormattedTimesMixin, warn_of_former_name
from mindprof._results.records import EventMetadata, Interval, Kernel, metadata_of

_WITH_DEVICE_TIME = (
    DeviceType.CUDA,
    DeviceType.PrivateUse1,
    DeviceType.MTIA,
    DeviceType.HPU,
    DeviceType.XPU,
)

# Where an event ran, and what it is tied to, beyond torch's attributes.
PLACE = ("process", "thread_id", "thread_name", "stream", "correlation", "step", "rank")


class FunctionEvent(FormattedTimesMixin, KeyedEventMixin):
    """One event. The arguments are torch's, and become attributes of the same names.

    An event also answers by MindTorch v2's keys, as a mapping: `event["kind"]`, `dict(event)`.

    Args:
        id: A number of its own.
        name: What ran.
        thread: The number of the thread it ran on.
        start_us: When it began, in microseconds.
        end_us: When it ended.
        overload_name: Which of the operators of that name it is.
        fwd_thread: Of a backward node, the number of the thread that the forward ran on.
        input_shapes: The sizes of its inputs.
        stack: Who called it, innermost first.
        scope: Which part of the program opened it: 0 an operator, 1 a backward node, 7 the user.
        use_device: The device that worked beside the host.
        cpu_memory_usage: The bytes it took on the host.
        device_memory_usage: The bytes it took on devices.
        is_async: It ended on another thread than it began on.
        is_remote: It ran on another machine.
        sequence_nr: What links a forward operator with its backward node; -1 for none.
        node_id: The machine it ran on; -1 where there is but one.
        device_type: The kind of device it ran on.
        device_index: Which of the devices of that kind.
        device_resource_id: The stream, or the thread.
        is_legacy: Its device times were taken on the host.
        flops: Its floating-point operations.
        trace_name: Its name in traces; None leaves it out of them.
        concrete_inputs: The values of its inputs.
        kwinputs: The values of its keyword inputs.
        is_user_annotation: The user named it.
        is_python_function: It is a call of a Python function.
        activity_type: Its category in traces.
        flow_id: The arrow that leaves or reaches it.
        flow_type: What kind of arrow that is.
        flow_start: The arrow leaves it.
        external_id: Its number in traces.
        linked_correlation_id: The number of the event that it was done for.
        extra_meta: What else is known, as texts by key.
        structured_input_shapes: The sizes of its inputs, lists of tensors told apart.
        structured_input_strides: The strides of its inputs likewise.
        input_dtypes: The types of its inputs.
        python_id: Of a Python function, the number of the call.
        python_parent_id: The number of the caller's call.
        python_module_id: The number of the module.
        typed_metadata: What else is known, typed.

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
        for argument in ("self", "start_us", "end_us", "extra_meta", "typed_metadata"):
            del given[argument]
        self.__dict__.update(given)
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

    @classmethod
    def _copied(cls, event: FunctionEvent) -> FunctionEvent:
        """Returns an event that holds what another one says at the moment."""
        copied = cls(event.id, event.name, event.thread, 0.0, 0.0)
        for name in list(vars(copied)):
            setattr(copied, name, getattr(event, name))
        for name in PLACE:
            setattr(copied, name, getattr(event, name))
        copied._recorded_keys = dict(event)
        return copied

    @property
    def category(self) -> str | None:
        """Its category in traces."""
        return self.activity_type

    @property
    def start_us(self) -> float:
        """When it began, in microseconds."""
        return self.time_range.start

    @property
    def end_us(self) -> float:
        """When it ended, in microseconds."""
        return self.time_range.end

    # Where it ran; of an event that is made by hand nobody knows.
    process: int | None = None
    thread_id: int | None = None
    thread_name: str | None = None
    stream: int | None = None
    correlation: int | None = None
    step: int | None = None
    rank: int | None = None

    # What a recorded event has the same for all.
    extra_meta: Any = None
    metadata: Any = None
    _event_metadata: EventMetadata | None = None

    # See `dataclass_fields`.
    __dataclass_fields__: ClassVar[dict[str, Any]]

    # What the arguments set.
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
        """Adds something that a device did for the event."""
        assert self.device_type == DeviceType.CPU, "Expected device_type to be CPU"
        # Set again, because a recorded event makes its list anew each time.
        kernels = self.kernels
        kernels.append(Kernel(name, device, duration))
        self.kernels = kernels

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds an event that ran inside of this one."""
        assert self.device_type == DeviceType.CPU, "Expected device_type to be CPU"
        assert isinstance(child, FunctionEvent), "Expected child to be a FunctionEvent"
        assert child.device_type == DeviceType.CPU, "Expected child device_type to be CPU"
        children = self.cpu_children
        children.append(child)
        self.cpu_children = children

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Sets the event that this one ran inside of."""
        assert self.device_type == DeviceType.CPU, "Expected device_type to be CPU"
        assert isinstance(parent, FunctionEvent), "Expected parent to be a FunctionEvent"
        assert parent.device_type == DeviceType.CPU, "Expected parent device_type to be CPU"
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """The name that events are grouped under."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """The time on the host in microseconds, children included."""
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self) -> float:
        """The time on the host in microseconds, without the children. Never negative."""
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return max(
            0, self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)
        )

    @property
    def self_cpu_memory_usage(self) -> int:
        """The bytes taken on the host, without the children's."""
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """The bytes taken on devices, without the children's."""
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        children = sum(child.device_memory_usage for child in self.cpu_children)
        return self.device_memory_usage - children

    @property
    def device_time_total(self) -> float:
        """The time on devices in microseconds, children's included."""
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
        """The time on devices in microseconds, without the children's."""
        if self.is_async or not self.use_device:
            return 0
        if self.device_type == DeviceType.CPU:
            children = sum(child.device_time_total for child in self.cpu_children)
            return self.device_time_total - children
        self._check_device()
        return self.device_time_total

    def _check_device(self) -> None:
        assert self.device_type in _WITH_DEVICE_TIME, (
            "Expected device_type to be CUDA, PrivateUse1, MTIA, HPU or XPU, "
            f"but got {self.device_type}"
        )

    @property
    def cuda_time_total(self) -> float:
        """The former name of `device_time_total`."""
        warn_of_former_name("`cuda_time_total` is deprecated. Use `device_time_total` instead.")
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        """The former name of `self_device_time_total`."""
        warn_of_former_name(
            "`self_cuda_time_total` is deprecated. Use `self_device_time_total` instead."
        )
        return self.self_device_time_total

    @property
    def self_cuda_memory_usage(self) -> int:
        """The former name of `self_device_memory_usage`."""
        warn_of_former_name(
            "`self_cuda_memory_usage` is deprecated. Use `self_device_memory_usage` instead."
        )
        return self.self_device_memory_usage

    @property
    def event_metadata(self) -> EventMetadata | None:
        """The former name of `metadata`."""
        warn_of_former_name("`event_metadata` is deprecated. Use `metadata` instead.")
        return self._event_metadata

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: the attributes that data frames have as columns."""
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
    """Returns the arguments that make an event like another one, but small.

    What can be long is left out: inputs, frames, and all other events.
    """
    made: dict[str, Any] = {"id": event.id, "name": event.name, "thread": event.thread}
    made |= {"start_us": event.time_range.start, "end_us": event.time_range.end}
    for name in _OUTLINE:
        value = getattr(event, name)
        if value != getattr(_BLANK, name):
            made[name] = value
    for name, value in made.items():
        if type(value) is str:
            # One object for all of a text, which pickles then hold once.
            made[name] = sys.intern(value)
    return made
