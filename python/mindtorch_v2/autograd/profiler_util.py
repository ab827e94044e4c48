"""The lists and rows of the profiler at torch's path."""

from mindprof import EventList, FunctionEventAvg

# EXTEND HERE: FunctionEvent, EventMetadata, FormattedTimesMixin, Interval, Kernel, StringTable,
# MemRecordsAcc.
__all__ = ["EventList", "FunctionEventAvg"]
