"""The names that `install()` replaces in torch.

`record_function` remains torch's: the observer sees its ranges, and compiled code knows it.
Schedules remain too, because trainers check that actions are of torch's class, and so do the
enumerations, configurations and observers. Our profilers accept all of them.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

from mindprof._install.replacements import Replacements
from mindprof._profiler import autograd_profile
from mindprof._profiler.kineto_profile import _KinetoProfile
from mindprof._profiler.profile import profile
from mindprof._profiler.tensorboard import tensorboard_trace_handler

#: After the import of this module, all names to replace exist.
TORCH_MODULE = "torch.profiler"

_PROFILER_NAMES = {
    "profile": profile,
    "_KinetoProfile": _KinetoProfile,
    "tensorboard_trace_handler": tensorboard_trace_handler,
}


def replace_torch_names(profiler: ModuleType, replacements: Replacements) -> None:
    """Replaces torch's names with ours.

    Args:
        profiler: `torch.profiler`.
        replacements: Collects the replacements, to undo them later.
    """
    inner = sys.modules.get("torch.profiler.profiler")
    older = sys.modules.get("torch.autograd.profiler")
    if inner is not None and older is not None and vars(inner).get("prof") is older:
        # A program that imported torch's profiler earlier keeps torch's engine with it.
        replacements.replace(inner, "prof", SimpleNamespace(**vars(older)))
    for module in filter(None, (profiler, inner)):
        for name, value in _PROFILER_NAMES.items():
            replacements.replace(module, name, value)
    if older is not None:
        replacements.replace(older, "profile", autograd_profile.profile)
