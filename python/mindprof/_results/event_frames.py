"""`EventFrames`: converts events and rows to plain values, Arrow tables and data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mindprof import _core
from mindprof._results.dataclass_fields import show_as_dataclass
from mindprof._results.device_type import DeviceType
from mindprof._results.function_event import FunctionEvent
from mindprof._results.function_event_avg import FunctionEventAvg
from mindprof._results.lazy_list import Entry
from mindprof._results.metrics import SUMS
from mindprof._results.recorded_list import RecordedList

_SHARED = {
    "key": "text",
    **SUMS,
    "is_async": "bool",
    "is_user_annotation": "bool",
    "device_type": "text",
    "input_shapes": "shapes",
    "stack": "texts",
}
_OF_ROWS = {**_SHARED, "p50": "float", "p90": "float", "p99": "float", "max": "float"}
_OF_EVENTS = {
    **_SHARED,
    "thread": "int",
    "start_us": "float",
    "end_us": "float",
    "sequence_nr": "int",
    "category": "text",
    "process": "int",
    "thread_id": "int",
    "thread_name": "text",
    "device_index": "int",
    "stream": "int",
    "correlation": "int",
    "external_id": "int",
    "step": "int",
    "rank": "int",
}

# How to read the columns that are not simply the attribute of the same name.
_SAID: dict[str, Callable[[Any], Any]] = {
    "device_type": lambda item: item.device_type.name,
    "input_shapes": lambda item: item.input_shapes or [],
    "stack": lambda item: item.stack or [],
    # For CPU events, torch's attribute is the process id.
    "device_index": lambda item: (
        None if item.device_type == DeviceType.CPU else getattr(item, "device_index", None)
    ),
    "external_id": lambda item: getattr(item, "external_id", None) or None,
}

show_as_dataclass(FunctionEventAvg, {**_OF_ROWS, "device_type": "any"})
show_as_dataclass(FunctionEvent, {**_OF_EVENTS, "device_type": "any"})
show_as_dataclass(_core.FunctionEvent, {**_OF_EVENTS, "device_type": "any"})


class EventFrames(RecordedList[Entry]):
    """The conversions of an event list for other tools."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Returns the items as dicts of plain values."""
        return [plain(item) for item in self]

    def to_arrow(self) -> Any:
        """Returns the items as a pyarrow table, which DuckDB can query directly.

        Pass this table to such tools rather than the list itself, which they would take for a list
        of values.

        Raises:
            ImportError: pyarrow is not installed.
        """
        return library("pyarrow").table(self._columns())

    def to_pandas(self) -> Any:
        """Returns the items as a pandas data frame, through pyarrow if it is installed.

        Raises:
            ImportError: pandas is not installed.
        """
        from importlib.util import find_spec

        pandas = library("pandas")
        if find_spec("pyarrow") is None:
            return pandas.DataFrame(self.to_dicts())
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Returns the items as a polars data frame.

        Raises:
            ImportError: polars is not installed.
        """
        return library("polars").DataFrame(self._columns())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Exports the columns through Arrow's C data interface."""
        return self._columns().__arrow_c_stream__(requested_schema)

    def _columns(self) -> _core.ArrowTable:
        source = self._untouched()
        return columns(self) if source is None else source.arrow()


def plain(item: Any) -> dict[str, Any]:
    """Returns an event or a row as a dict of plain values. Times are microseconds."""
    return {name: _said(name)(item) for name in _kinds(item)}


def columns(items: Iterable[Any]) -> _core.ArrowTable:
    """Returns items as columns: those of events or of rows, depending on the first item."""
    listed = list(items)
    kinds = _kinds(listed[0]) if listed else _OF_EVENTS
    return _core.ArrowTable.of_columns(
        [(name, kind, list(map(_said(name), listed))) for name, kind in kinds.items()]
    )


def _kinds(item: Any) -> dict[str, str]:
    return _OF_ROWS if isinstance(item, FunctionEventAvg) else _OF_EVENTS


def _said(name: str) -> Callable[[Any], Any]:
    # A list may mix events and rows, and a new row lacks some attributes.
    return _SAID.get(name) or (lambda item: getattr(item, name, None))


def library(name: str) -> Any:
    """Imports an optional library.

    Raises:
        ImportError: The library is not installed.
    """
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is not installed: pip install {name}", name=name) from error
