"""Events, averages and event lists at torch's path, re-exported from `mindprof.profiler_util`."""

from mindprof.profiler_util import DeviceType as DeviceType
from mindprof.profiler_util import (
    EventList,
    EventMetadata,
    FormattedTimesMixin,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
    MemRecordsAcc,
    StringTable,
)
from mindprof.profiler_util import _build_table as _build_table
from mindprof.profiler_util import _filter_name as _filter_name
from mindprof.profiler_util import _filter_stack_entry as _filter_stack_entry
from mindprof.profiler_util import _format_memory as _format_memory
from mindprof.profiler_util import _format_time as _format_time
from mindprof.profiler_util import _format_time_share as _format_time_share
from mindprof.profiler_util import _rewrite_name as _rewrite_name

__all__ = [
    "EventList",
    "EventMetadata",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemRecordsAcc",
    "StringTable",
]
