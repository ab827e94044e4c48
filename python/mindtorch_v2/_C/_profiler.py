"""The profiler part of torch's native module."""

from mindprof._core import RecordFunctionFast
from mindprof._profiler.switches import (
    _set_fwd_bwd_enabled_val as _set_fwd_bwd_enabled_val,
)
from mindprof._profiler.switches import (
    _set_record_concrete_inputs_enabled_val as _set_record_concrete_inputs_enabled_val,
)
from mindprof._settings.activity import ProfilerActivity as ProfilerActivity
from mindprof._settings.profiler_config import ActiveProfilerType as ActiveProfilerType
from mindprof._settings.profiler_config import ProfilerConfig as ProfilerConfig
from mindprof._settings.profiler_config import ProfilerState as ProfilerState
from mindprof._settings.profiler_config import RecordScope as RecordScope
from mindprof._settings.profiler_config import _ExperimentalConfig as _ExperimentalConfig

_RecordFunctionFast = RecordFunctionFast
