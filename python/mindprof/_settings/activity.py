"""Activities: the groups of events that a profiler can record, and how users select them.

The classes follow torch's and accept torch's own objects in their place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from mindprof._enumeration import Enumeration
from mindprof._settings.torch_objects import is_of_torch

if TYPE_CHECKING:
    from dataclasses import dataclass, field
else:
    from mindprof._dataclass import dataclass, field


class ProfilerActivity(
    Enumeration,
    members={"CPU": 0, "XPU": 1, "MTIA": 4, "CUDA": 2, "HPU": 3, "PrivateUse1": 5},
    torch_module="torch.autograd.profiler",
):
    """A group of activities: everything on the CPU, or everything on one kind of device.

    A member equals the member of torch's class that has the same name.
    """

    CPU: ClassVar[ProfilerActivity]
    XPU: ClassVar[ProfilerActivity]
    MTIA: ClassVar[ProfilerActivity]
    CUDA: ClassVar[ProfilerActivity]
    HPU: ClassVar[ProfilerActivity]
    PrivateUse1: ClassVar[ProfilerActivity]

    def __eq__(self, other: object) -> bool:
        return super().__eq__(own_activity(other))

    # Hashes by number, like torch's members.
    __hash__ = Enumeration.__hash__


# The device that each group records, in torch's order of preference.
DEVICE_NAMES = {
    ProfilerActivity.CUDA: "cuda",
    ProfilerActivity.XPU: "xpu",
    ProfilerActivity.MTIA: "mtia",
    ProfilerActivity.HPU: "hpu",
    ProfilerActivity.PrivateUse1: "privateuseone",
}

# The activity types that the CPU group can be restricted to.
CPU_ACTIVITY_TYPES = frozenset(
    {
        "CPU_OP",
        "USER_ANNOTATION",
        "PYTHON_FUNCTION",
        "CPU_INSTANT_EVENT",
        "EXTERNAL_CORRELATION",
        "CUDA_RUNTIME",
        "CUDA_DRIVER",
        "XPU_RUNTIME",
        "PRIVATEUSE1_RUNTIME",
    }
)


def kineto_available() -> bool:
    """Returns whether a recorder is available, which is always the case."""
    return True


class _ProfilerExtensionConfig(ABC):
    """A configuration that becomes key-value pairs for a recorder."""

    @abstractmethod
    def _to_config_entries(self) -> dict[str, str]: ...


Config = TypeVar("Config", bound=_ProfilerExtensionConfig)


@dataclass(frozen=True)
class CuspyConfig(_ProfilerExtensionConfig):
    """Configures torch's Cuspy recorder for CUDA. Accepted, but has no effect.

    Args:
        enable_cuda_sync_events: Collect synchronization events.
        enable_environment_counters: Collect power, clocks and temperatures.
        enable_graph_dependencies: Record the edges of CUDA graphs.
        enable_event_node_ids: Record which CUDA graph node recorded an event.
    """

    enable_cuda_sync_events: bool = False
    enable_environment_counters: bool = False
    enable_graph_dependencies: bool = False
    enable_event_node_ids: bool = False

    def _to_config_entries(self) -> dict[str, str]:
        return {}


@dataclass
class PerformanceMetricsConfig(_ProfilerExtensionConfig):
    """Selects hardware counters to collect. Accepted, but has no effect.

    Args:
        metric_names: The hardware's names of the counters.
        sampling_interval_ms: The time between two samples.
        lookback_window_ms: How long samples are kept.
    """

    metric_names: list[str]
    sampling_interval_ms: float | None = None
    lookback_window_ms: float | None = None

    def _to_config_entries(self) -> dict[str, str]:
        entries = {
            "": ",".join(self.metric_names),
            "_SAMPLING_INTERVAL_MS": self.sampling_interval_ms,
            "_LOOKBACK_WINDOW_MS": self.lookback_window_ms,
        }
        return {
            f"PERFORMANCE_METRICS{suffix}": str(value)
            for suffix, value in entries.items()
            if value is not None
        }


@dataclass
class ProfilerActivityConfig:
    """Restricts and configures a group of activities.

    Args:
        activity_types: The activity types to write into traces; all of the group if `None`.
        profiler_configs: Further configurations for the group.
    """

    activity_types: list[str] | None = None
    profiler_configs: list[_ProfilerExtensionConfig] = field(default_factory=list)

    def _get_profiler_config(self, config_type: type[Config]) -> Config | None:
        found = (config for config in self.profiler_configs if isinstance(config, config_type))
        return next(found, None)


def own_activity(group: Any) -> Any:
    """Converts a group of torch's class to ours; returns anything else unchanged."""
    if not is_of_torch(group, "ProfilerActivity"):
        return group
    named = getattr(ProfilerActivity, group.name, None)
    if named is not None:
        return named
    # torch names `PrivateUse1` after a backend that has renamed it, such as `NPU`.
    return next((own for own in DEVICE_NAMES if int(own) == int(group)), group)


def _own_activity_config(config: Any) -> ProfilerActivityConfig:
    """Converts a configuration, given as torch's class, ours or a list of types, to ours."""
    if isinstance(config, ProfilerActivityConfig):
        return config
    if is_of_torch(config, "ProfilerActivityConfig"):
        return ProfilerActivityConfig(config.activity_types)
    return ProfilerActivityConfig(config)


ActivityConfigs = dict[ProfilerActivity, ProfilerActivityConfig]


def parse_activities(activities: Iterable[Any]) -> tuple[set[ProfilerActivity], ActivityConfigs]:
    """Returns the groups that a user selected, and the configurations given with them.

    Args:
        activities: Groups, or dicts from a group to a configuration or a list of activity types.

    Raises:
        TypeError: An item is neither.
        ValueError: A group occurs twice.
    """
    groups: set[ProfilerActivity] = set()
    configs: ActivityConfigs = {}
    for item in activities:
        if isinstance(own_activity(item), ProfilerActivity):
            named: dict[ProfilerActivity, Any] = {own_activity(item): None}
        elif isinstance(item, dict):
            named = {own_activity(group): config for group, config in item.items()}
        else:
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
        for group, config in named.items():
            if group in groups:
                raise ValueError(f"Activity {group} specified more than once")
            groups.add(group)
            if isinstance(item, dict):
                configs[group] = _own_activity_config(config)
    return groups, configs


def device_of(activities: set[ProfilerActivity]) -> str | None:
    """Returns the device that these groups record, or `None` if they record only the CPU."""
    return next((name for group, name in DEVICE_NAMES.items() if group in activities), None)


def check_activity_types(filters: dict[ProfilerActivity, set[str]]) -> None:
    """Checks the activity types selected for the CPU group.

    Raises:
        RuntimeError: The group has no such type.
    """
    for name in filters.get(ProfilerActivity.CPU, ()):
        if name not in CPU_ACTIVITY_TYPES:
            raise RuntimeError(f"Unknown or non-member activity type name: '{name}'")
