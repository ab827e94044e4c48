"""The profiler's part of torch's native module."""

from mindprof._core import RecordFunctionFast
from mindprof._profiler.activity import ProfilerActivity as ProfilerActivity
from mindprof._profiler.profiler_config import ActiveProfilerType as ActiveProfilerType
from mindprof._profiler.profiler_config import ProfilerConfig as ProfilerConfig
from mindprof._profiler.profiler_config import ProfilerState as ProfilerState
from mindprof._profiler.profiler_config import RecordScope as RecordScope
from mindprof._profiler.profiler_config import _ExperimentalConfig as _ExperimentalConfig

_RecordFunctionFast = RecordFunctionFast
