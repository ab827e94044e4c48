"""The torch.profiler API on a Rust engine.

`profile` records everything that the host runs while it is open, `record_function` names a range of your own:

    >>> import mindprof
    >>> with mindprof.profile() as prof:
    ...     with mindprof.record_function("step"):
    ...         pass
    >>> [row.key for row in prof.key_averages()]
    ['step']
"""

from mindprof._core import ProfilerError, __version__, record_function
from mindprof._device_type import DeviceType
from mindprof._event_list import EventList
from mindprof._function_event import FunctionEvent, FunctionEventAvg
from mindprof._profile import profile

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerError",
    "__version__",
    "profile",
    "record_function",
]
