"""What of the engine takes which place in torch.

`record_function` stays torch's own: the observer hears of its ranges, and compiled code knows it.
So do schedules, whose actions trainers check for torch's class, and the enumerations,
configurations and observers: our profilers take all of them as they are.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

from mindprof._install.replacements import Replacements
from mindprof._profiler import autograd_profile
from mindprof._profiler.kineto_profile import _KinetoProfile
from mindprof._profiler.profile import profile
from mindprof._profiler.tensorboard import tensorboard_trace_handler

#: The module after whose import everything is there that is to be replaced.
TORCH_MODULE = "torch.profiler"

_PROFILER_NAMES = {
    "profile": profile,
    "_KinetoProfile": _KinetoProfile,
    "tensorboard_trace_handler": tensorboard_trace_handler,
}


def replace_torch_names(profiler: ModuleType, replacements: Replacements) -> None:
    """Puts our names in the place of torch's.

    Args:
        profiler: `torch.profiler`.
        replacements: Takes what was done.
    """
    inner = sys.modules.get("torch.profiler.profiler")
    older = sys.modules.get("torch.autograd.profiler")
    if inner is not None and older is not None and vars(inner).get("prof") is older:
        # torch's own profiler, where a program got hold of it before, goes on with torch's engine.
        replacements.replace(inner, "prof", SimpleNamespace(**vars(older)))
    for module in filter(None, (profiler, inner)):
        for name, value in _PROFILER_NAMES.items():
            replacements.replace(module, name, value)
    if older is not None:
        replacements.replace(older, "profile", autograd_profile.profile)
