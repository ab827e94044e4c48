"""The names that `install()` replaces in MindTorch v2, the framework.

Its dispatcher asks whether a profiler is active, and calls hooks when each operator begins and
ends. The package of the same name that ships with mindprof has no such dispatcher and already uses
this profiler.
"""

from __future__ import annotations

import sys
from types import ModuleType

from mindprof import _core
from mindprof._install.replacements import Replacements
from mindprof._profiler.profile import profile
from mindprof._profiler.schedule import ProfilerAction, schedule
from mindprof._settings.activity import ProfilerActivity

#: After the import of this module, all names to replace exist.
MINDTORCH_MODULE = "mindtorch_v2._dispatch.dispatcher"

_PROFILER_NAMES = {
    "ProfilerAction": ProfilerAction,
    "ProfilerActivity": ProfilerActivity,
    "profile": profile,
    "record_function": _core.record_function,
    "schedule": schedule,
}


def replace_mindtorch_names(dispatcher: ModuleType, replacements: Replacements) -> None:
    """Connects the dispatcher to the engine and replaces the framework's profiler.

    Args:
        dispatcher: The dispatcher module.
        replacements: Collects the replacements, to undo them later.
    """
    replacements.replace(dispatcher, "is_profiler_enabled", _core.is_recording)
    replacements.replace(dispatcher, "dispatch_op_enter", _core.open_dispatched_operator)
    replacements.replace(dispatcher, "dispatch_op_exit", _core.close_operator)
    for name in ("mindtorch_v2.profiler", "mindtorch_v2.profiler.profiler"):
        if name in sys.modules:
            for place, value in _PROFILER_NAMES.items():
                replacements.replace(sys.modules[name], place, value)
