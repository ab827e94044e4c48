"""The torch.profiler API on a Rust engine.

`profile` records every operator that runs while it is open. `record_function` adds a named range of
your own:

    >>> import mindprof
    >>> with mindprof.profile() as prof:
    ...     with mindprof.record_function("step"):
    ...         pass
    >>> [row.key for row in prof.key_averages()]
    ['step']
"""

try:
    from mindprof._own_imports import leave_folder

    # Before anything of the standard library is imported.
    leave_folder()
    from mindprof._core import (
        ProfilerError,
        __version__,
        look_up_classes,
        name_own_folder,
        record_function,
    )
    from mindprof._reimport import restore_first_import
except SystemError as error:
    # A free-threaded interpreter raises nothing more specific for a module built with the GIL.
    raise ImportError(
        "mindprof was built for Python with the GIL, and this interpreter is free-threaded\n"
        "hint: use the standard build of this Python version"
    ) from error
else:
    # Before any other module of the package is imported.
    restore_first_import()
from mindprof._diff import DiffRow, DiffVerdict, ProfileDiff, diff
from mindprof._frameworks.present import supported_activities
from mindprof._install.install import install, uninstall
from mindprof._late_modules import import_before_forks
from mindprof._load import LoadedProfile, RepairWarning, load
from mindprof._profiler.observer import ExecutionTraceObserver
from mindprof._profiler.profile import profile
from mindprof._profiler.schedule import ProfilerAction, schedule
from mindprof._profiler.tensorboard import tensorboard_trace_handler
from mindprof._results.device_type import DeviceType
from mindprof._results.event_list import EventList
from mindprof._results.function_event import FunctionEvent
from mindprof._results.function_event_avg import FunctionEventAvg
from mindprof._settings.activity import (
    CuspyConfig,
    PerformanceMetricsConfig,
    ProfilerActivity,
    ProfilerActivityConfig,
    kineto_available,
)
from mindprof._settings.profiler_config import _ExperimentalConfig as ExperimentalConfig

# The engine looks classes up now rather than at first use, when another thread may be forking.
look_up_classes()
import_before_forks()
name_own_folder(__path__[0])
del import_before_forks, leave_folder, look_up_classes, name_own_folder, restore_first_import

__all__ = [
    "CuspyConfig",
    "DeviceType",
    "DiffRow",
    "DiffVerdict",
    "EventList",
    "ExecutionTraceObserver",
    "ExperimentalConfig",
    "FunctionEvent",
    "FunctionEventAvg",
    "LoadedProfile",
    "PerformanceMetricsConfig",
    "ProfileDiff",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerActivityConfig",
    "ProfilerError",
    "RepairWarning",
    "__version__",
    "diff",
    "install",
    "kineto_available",
    "load",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
    "uninstall",
]
