"""`FunctionEventAvg`: a row, which sums the events of one group."""

from __future__ import annotations

import copy
import sys
from typing import Any, ClassVar

from mindprof import _core
from mindprof._results import notebook
from mindprof._results.device_type import DeviceType
from mindprof._results.formatted_times import FormattedTimesMixin
from mindprof._results.function_event import FunctionEvent, outline
from mindprof._results.metrics import SUMS
from mindprof._torch_classes import kinds, like_torchs

# All sums except FLOPs, which may be `None`.
_ALWAYS_KNOWN = tuple(name for name in SUMS if name != "flops")

DESCRIPTIONS = (
    "key",
    "node_id",
    "is_async",
    "is_remote",
    "cpu_parent",
    "cpu_children",
    "overload_name",
    "input_shapes",
    "stack",
    "scope",
    "device_type",
    "is_legacy",
    "use_device",
    "is_user_annotation",
)


# Attributes that keep a recording or other events alive.
_LINKS = frozenset({"_first", "_spread", "_parent", "_children"})


@like_torchs
class FunctionEventAvg(FormattedTimesMixin):
    """A row: the sums of a group of events, such as all calls of one operator.

    `key_averages` creates rows. A new row is empty, and takes the key of the first event added.

    Example:
        >>> row = FunctionEventAvg()
        >>> for end in (10.0, 30.0):
        ...     row += FunctionEvent(0, "aten::mm", 1, 0.0, end)
        >>> row.count, row.cpu_time
        (2, 20.0)
    """

    # See `dataclass_fields`.
    __dataclass_fields__: ClassVar[dict[str, Any]]

    # Set on the rows of a recording, but not on a new row.
    key: Any
    stack: Any
    is_user_annotation: bool
    self_cpu_percent: Any
    total_cpu_percent: Any
    total_device_percent: Any

    def __init__(self) -> None:
        self.key = None
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.use_device: str | None = None
        self.cpu_time_total: float = 0
        self.device_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.self_device_time_total: float = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack = None
        self.scope: int | None = None
        self.cpu_memory_usage = 0
        self.device_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.self_device_memory_usage = 0
        self.device_type = DeviceType.CPU
        self.is_legacy = False
        self.flops = 0

    # The first event of the row, and the times of all events: as a row of the engine, as a list, or
    # as percentiles. All are `None` once something without known times has been added.
    _first: FunctionEvent | None = None
    _spread: tuple[_core.Averages, int] | list[float] | None = None
    _known: tuple[float, float, float, float] | None = None
    _parent: FunctionEvent | None = None
    _children: list[FunctionEvent] | None = None

    @classmethod
    def _of(cls, attributes: dict[str, Any]) -> FunctionEventAvg:
        """Creates a row from attributes that the engine computed."""
        row = cls.__new__(cls)
        row.__dict__ = attributes
        return row

    @property
    def cpu_parent(self) -> Any:
        """The parent of the first event."""
        return self._parent if self._first is None else self._first.cpu_parent

    @cpu_parent.setter
    def cpu_parent(self, parent: FunctionEvent | None) -> None:
        self._settle()
        self._parent = parent

    @property
    def cpu_children(self) -> Any:
        """The children of the first event."""
        return self._children if self._first is None else self._first.cpu_children

    @cpu_children.setter
    def cpu_children(self, children: list[FunctionEvent] | None) -> None:
        self._settle()
        self._children = children

    def __getstate__(self) -> dict[str, Any]:
        # The recording and the children are not pickled. The percentiles and an outline of the
        # parent are.
        kept = (item for item in vars(self).items() if item[0] not in _LINKS)
        # Equal names become one object, which a pickle stores once.
        state = {sys.intern(name): value for name, value in kept}
        if isinstance(self._spread, list):
            state["_spread"] = self._spread
        elif (known := self._percentiles()) is not None:
            state["_known"] = known
        if (parent := self.cpu_parent) is not None:
            state["_parent"] = outline(parent)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(parent := state.get("_parent"), dict):
            self._parent = FunctionEvent(**parent)

    def __copy__(self) -> FunctionEventAvg:
        copied = self._of(dict(vars(self)))
        if isinstance(self._spread, list):
            copied._spread = list(self._spread)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> FunctionEventAvg:
        # Unlike a pickle, a copy within the process can share the recording.
        return self._of(copy.deepcopy(vars(self), memo))

    def _settle(self) -> None:
        """Copies the first event's parent and children, so that they can be set."""
        if self._first is not None:
            self._parent, self._children = self._first.cpu_parent, self._first.cpu_children
            self._first = None

    def _percentiles(self) -> tuple[float, float, float, float] | None:
        if self._spread is None:
            return self._known
        if isinstance(self._spread, list):
            return _core.percentiles_of(self._spread)
        averages, index = self._spread
        return averages.percentiles(index)

    @property
    def p50(self) -> Any:
        """The median CPU time in microseconds, or `None` if it is unknown."""
        found = self._percentiles()
        return None if found is None else found[0]

    @property
    def p90(self) -> Any:
        """The 90th percentile of the CPU times, or `None` if it is unknown."""
        found = self._percentiles()
        return None if found is None else found[1]

    @property
    def p99(self) -> Any:
        """The 99th percentile of the CPU times, or `None` if it is unknown."""
        found = self._percentiles()
        return None if found is None else found[2]

    @property
    def max(self) -> Any:
        """The longest CPU time, or `None` if it is unknown."""
        found = self._percentiles()
        return None if found is None else found[3]

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Adds an event or another row. The first one gives the row its key and description.

        Raises:
            AssertionError: `other` has another key, or is neither an event nor a row.
        """
        if self.key is None:
            for name in DESCRIPTIONS:
                setattr(self, name, getattr(other, name))
            self._spread = []
        is_row = isinstance(other, kinds(FunctionEventAvg))
        assert is_row or isinstance(other, kinds(FunctionEvent)), (
            "Expected other to be a FunctionEvent or FunctionEventAvg"
        )
        assert other.key == self.key, f"Expected keys to match, but got {other.key} vs {self.key}"
        times = getattr(other, "_spread", None) if is_row else [other.cpu_time_total]
        if isinstance(self._spread, list) and isinstance(times, list):
            self._spread.extend(times)
        else:
            self._spread = self._known = None
        for name in _ALWAYS_KNOWN:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if self.flops is None:
            self.flops = other.flops
        elif other.flops is not None:
            self.flops += other.flops
        return self

    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        return self.add(other)

    def _repr_html_(self) -> str:
        """Returns the notebook representation: the attributes that are columns of data frames."""
        fields: Any = type(self).__dataclass_fields__
        return notebook.pairs((name, getattr(self, name, None)) for name in fields.names())

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes!s} "
            f"cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage}>"
        )
