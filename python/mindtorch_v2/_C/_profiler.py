"""The profiler's part of torch's native module."""

from mindprof._activity import ProfilerActivity as ProfilerActivity
from mindprof._core import RecordFunctionFast
from mindprof._profiler_config import ActiveProfilerType as ActiveProfilerType
from mindprof._profiler_config import ProfilerConfig as ProfilerConfig
from mindprof._profiler_config import ProfilerState as ProfilerState
from mindprof._profiler_config import RecordScope as RecordScope
from mindprof._profiler_config import _ExperimentalConfig as _ExperimentalConfig

_RecordFunctionFast = RecordFunctionFast
