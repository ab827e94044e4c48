"""The profiler at torch's path, re-exported from `mindprof` under the same names."""

from mindprof.profiler import *  # noqa: F403
from mindprof.profiler import KinetoStepTracker as KinetoStepTracker
from mindprof.profiler import RecordScope as RecordScope
from mindprof.profiler import __all__ as __all__
from mindprof.profiler import _ExperimentalConfig as _ExperimentalConfig
from mindprof.profiler import _KinetoProfile as _KinetoProfile
from mindprof.profiler import _supported_activities as _supported_activities

from mindtorch_v2.profiler import itt as itt
from mindtorch_v2.profiler import profiler as profiler
