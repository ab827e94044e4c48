"""The names that `install()` replaces in torch_npu.

Its profiler has neither tables nor events. If torch's own collector reaches the NPU, by a plugin
that newer versions of torch_npu register, its users get our profiler with torch's interface.
Otherwise the names remain, because nothing but torch_npu's own profiler can record the NPU then.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from mindprof._install.replacements import Replacements
from mindprof._profiler.profile import profile
from mindprof._profiler.schedule import ProfilerAction, Schedule
from mindprof._profiler.tensorboard import Exporter, tensorboard_trace_handler
from mindprof._results.logger import inform
from mindprof._settings.activity import ProfilerActivity

#: After the import of this module, all names to replace exist.
NPU_MODULE = "torch_npu.profiler"

_OPTIONS_WITHOUT_EFFECT = (
    "experimental_config: the options of torch_npu have no effect on torch's collector, which "
    "records the NPU. For counters, call mindprof.uninstall() and use torch_npu.profiler."
)

# torch's registry of plugins for backends that torch does not contain, as libtorch exports it.
_REGISTRY = "N5torch8profiler4impl27PrivateUse1ProfilerRegistry"
_INSTANCE = f"_Z{_REGISTRY}8instanceEv"
_HAS_FACTORY = f"_Z{_REGISTRY.replace('N', 'NK', 1)}10hasFactoryEv"


class npu_profile(profile):
    """`profile` with the arguments of `torch_npu.profiler.profile`.

    Args:
        activities: Members of torch_npu's `ProfilerActivity`, or of torch's.
        schedule: A function from the number of a step to torch_npu's `ProfilerAction`, or torch's.
        experimental_config: torch_npu's options, which have no effect.
        use_cuda: No effect, as in torch_npu.
        **options: The other arguments of `profile`.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], Any] | None = None,
        experimental_config: Any = None,
        use_cuda: bool | None = None,  # noqa: ARG002
        **options: Any,
    ) -> None:
        if _is_of_npu(experimental_config):
            warnings.warn(_OPTIONS_WITHOUT_EFFECT, stacklevel=2)
            experimental_config = None
        super().__init__(
            activities=None if activities is None else [_activity(one) for one in activities],
            schedule=schedule and _own_schedule(schedule),
            experimental_config=experimental_config,
            **options,
        )


def npu_trace_handler(
    dir_name: str | None = None,
    worker_name: str | None = None,
    analyse_flag: bool = True,  # noqa: ARG001
    async_mode: bool = False,  # noqa: ARG001
) -> Callable[[Exporter], None]:
    """Returns a callback for `on_trace_ready` that writes a trace into a folder.

    Args:
        dir_name: The folder; the current one if `None`.
        worker_name: A name for this process; the machine's name and the process id if `None`.
        analyse_flag: No effect: there is nothing to analyse later.
        async_mode: No effect: the file is complete when the callback returns.
    """
    return tensorboard_trace_handler(dir_name or os.getcwd(), worker_name)


_PROFILER_NAMES = {"profile": npu_profile, "tensorboard_trace_handler": npu_trace_handler}


def replace_npu_names(profiler: ModuleType, replacements: Replacements) -> None:
    """Replaces torch_npu's names with ours, if torch's collector reaches the NPU.

    Args:
        profiler: `torch_npu.profiler`.
        replacements: Collects the replacements, to undo them later.
    """
    if not _has_plugin():
        inform("torch_npu.profiler remains: torch's collector has no plugin that records NPUs")
        return
    inner = sys.modules.get("torch_npu.profiler.profiler")
    for module in filter(None, (profiler, inner)):
        for name, value in _PROFILER_NAMES.items():
            replacements.replace(module, name, value)


def _has_plugin() -> bool:
    """Returns whether a plugin for backends that torch does not contain is registered with torch.

    torch lists the activity of such a backend whether there is a plugin or not.
    """
    import ctypes

    folder = os.path.dirname(sys.modules["torch"].__file__ or "")
    try:
        library = ctypes.CDLL(os.path.join(folder, "lib", "libtorch_cpu.so"))
        instance, has_factory = library[_INSTANCE], library[_HAS_FACTORY]
    except (AttributeError, OSError):
        return False
    instance.restype, has_factory.restype = ctypes.c_void_p, ctypes.c_bool
    return bool(has_factory(ctypes.c_void_p(instance())))


def _is_of_npu(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "torch_npu"


def _activity(group: Any) -> Any:
    """Converts a group of torch_npu's class to ours; returns anything else unchanged."""
    if not _is_of_npu(group):
        return group
    return ProfilerActivity.CPU if group.name == "CPU" else ProfilerActivity.PrivateUse1


def _own_schedule(schedule: Callable[[int], Any]) -> Schedule:
    """Converts the actions of a schedule to ours. Those of torch are converted later."""

    def action(step: int) -> Any:
        found = schedule(step)
        return ProfilerAction[found.name] if _is_of_npu(found) else found

    return action
