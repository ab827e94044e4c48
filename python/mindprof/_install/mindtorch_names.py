"""What of the engine takes which place in MindTorch v2, the framework of that name.

Its dispatcher asks whether a profiler is on, and calls at the beginning and end of each operator.
The package of the same name that comes with mindprof has no such dispatcher: its profiler is ours.
"""

from __future__ import annotations

import sys
from types import ModuleType

from mindprof import _core
from mindprof._install.replacements import Replacements
from mindprof._profiler.profile import profile
from mindprof._profiler.schedule import ProfilerAction, schedule
from mindprof._settings.activity import ProfilerActivity

#: The module after whose import everything is there that is to be replaced.
MINDTORCH_MODULE = "mindtorch_v2._dispatch.dispatcher"

_PROFILER_NAMES = {
    "ProfilerAction": ProfilerAction,
    "ProfilerActivity": ProfilerActivity,
    "profile": profile,
    "record_function": _core.record_function,
    "schedule": schedule,
}


def replace_mindtorch_names(dispatcher: ModuleType, replacements: Replacements) -> None:
    """Has the dispatcher tell the engine, and puts our profiler in the place of its own.

    Args:
        dispatcher: The module of the dispatcher.
        replacements: Takes what was done.
    """
    replacements.replace(dispatcher, "is_profiler_enabled", _core.is_recording)
    replacements.replace(dispatcher, "dispatch_op_enter", _core.open_dispatched_operator)
    replacements.replace(dispatcher, "dispatch_op_exit", _core.close_operator)
    for name in ("mindtorch_v2.profiler", "mindtorch_v2.profiler.profiler"):
        if name in sys.modules:
            for place, value in _PROFILER_NAMES.items():
                replacements.replace(sys.modules[name], place, value)
