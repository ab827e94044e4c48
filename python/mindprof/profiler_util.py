"""The names of `torch.autograd.profiler_util`: events, rows and their lists."""

from mindprof._results.device_type import DeviceType as DeviceType
from mindprof._results.event_list import EventList
from mindprof._results.event_list import _build_table as _build_table
from mindprof._results.format import (
    _filter_name as _filter_name,
)
from mindprof._results.format import (
    _filter_stack_entry as _filter_stack_entry,
)
from mindprof._results.format import (
    _format_memory as _format_memory,
)
from mindprof._results.format import (
    _format_time as _format_time,
)
from mindprof._results.format import (
    _format_time_share as _format_time_share,
)
from mindprof._results.format import (
    _rewrite_name as _rewrite_name,
)
from mindprof._results.formatted_times import FormattedTimesMixin
from mindprof._results.function_event import FunctionEvent
from mindprof._results.function_event_avg import FunctionEventAvg
from mindprof._results.records import EventMetadata, Interval, Kernel, MemRecordsAcc, StringTable

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
