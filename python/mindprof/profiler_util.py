"""Events, rows and their lists under the names of `torch.autograd.profiler_util`."""

from mindprof._device_type import DeviceType as DeviceType
from mindprof._event_list import EventList
from mindprof._event_list import _build_table as _build_table
from mindprof._format import (
    _filter_name as _filter_name,
)
from mindprof._format import (
    _filter_stack_entry as _filter_stack_entry,
)
from mindprof._format import (
    _format_memory as _format_memory,
)
from mindprof._format import (
    _format_time as _format_time,
)
from mindprof._format import (
    _format_time_share as _format_time_share,
)
from mindprof._format import (
    _rewrite_name as _rewrite_name,
)
from mindprof._formatted_times import FormattedTimesMixin
from mindprof._function_event import FunctionEvent
from mindprof._function_event_avg import FunctionEventAvg
from mindprof._records import EventMetadata, Interval, Kernel, MemRecordsAcc, StringTable

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
