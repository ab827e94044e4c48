"""Events and rows as plain values, and as columns for data frames."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mindprof import _core
from mindprof._function_event_avg import FunctionEventAvg
from mindprof._recorded_list import RecordedList

_SHARED = {
    "key": "text",
    "count": "int",
    "cpu_time_total": "float",
    "self_cpu_time_total": "float",
    "device_time_total": "float",
    "self_device_time_total": "float",
    "cpu_memory_usage": "int",
    "self_cpu_memory_usage": "int",
    "device_memory_usage": "int",
    "self_device_memory_usage": "int",
    "flops": "int",
    "is_async": "bool",
    "is_user_annotation": "bool",
}
_TEXTS = {"device_type": "text", "input_shapes": "text", "stack": "text"}
_OF_ROWS = {"p50": "float", "p90": "float", "p99": "float", "max": "float"}
_OF_EVENTS = {"thread": "int", "start_us": "float", "end_us": "float", "sequence_nr": "int"}


class EventFrames(RecordedList):
    """What other tools take of lists of events and rows."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Returns the items as dicts of plain values."""
        return [plain(item) for item in self]

    def to_arrow(self) -> Any:
        """Returns the items as a table of pyarrow.

        Raises:
            ImportError: pyarrow is not installed.
        """
        return library("pyarrow").table(self._columns())

    def to_pandas(self) -> Any:
        """Returns the items as a data frame of pandas, through pyarrow if that is there.

        Raises:
            ImportError: pandas is not installed.
        """
        pandas = library("pandas")
        if find_spec("pyarrow") is None:
            return pandas.DataFrame(self.to_dicts())
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Returns the items as a data frame of polars.

        Raises:
            ImportError: polars is not installed.
        """
        return library("polars").DataFrame(self._columns())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Hands the items over by column, as Arrow's C data interface says."""
        return self._columns().__arrow_c_stream__(requested_schema)

    def _columns(self) -> _core.ArrowTable:
        source = self._untouched()
        return columns(self) if source is None else source.arrow()


def plain(item: Any) -> dict[str, Any]:
    """Returns what is known of an event or a row as plain values. Times are microseconds."""
    values = {name: getattr(item, name, None) for name in _SHARED}
    values["device_type"] = item.device_type.name
    values["input_shapes"] = str(item.input_shapes) if item.input_shapes else ""
    values["stack"] = ";".join(item.stack or [])
    if isinstance(item, FunctionEventAvg):
        values.update({name: getattr(item, name) for name in _OF_ROWS})
    else:
        values["thread"] = item.thread
        values["start_us"] = item.time_range.start
        values["end_us"] = item.time_range.end
        values["sequence_nr"] = item.sequence_nr
    return values


def columns(items: Iterable[Any]) -> _core.ArrowTable:
    """Returns events or rows, whichever the first one is, by column."""
    dicts = [plain(item) for item in items]
    kinds = {**_SHARED, **_TEXTS, **(_OF_ROWS if dicts and "p50" in dicts[0] else _OF_EVENTS)}
    return _core.ArrowTable.of_columns(
        [(name, kind, [values.get(name) for values in dicts]) for name, kind in kinds.items()]
    )


def library(name: str) -> Any:
    """Imports a library that is not needed otherwise.

    Raises:
        ImportError: It is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs {name}: pip install {name}", name=name) from error
