"""What can be recorded: groups of activities, and how users name and narrow them down."""

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
):
    """A group of activities: what runs on the host, or on one kind of device.

    A group of torch's own class is found in sets of these by its name.
    """

    CPU: ClassVar[ProfilerActivity]
    XPU: ClassVar[ProfilerActivity]
    MTIA: ClassVar[ProfilerActivity]
    CUDA: ClassVar[ProfilerActivity]
    HPU: ClassVar[ProfilerActivity]
    PrivateUse1: ClassVar[ProfilerActivity]

    def __eq__(self, other: object) -> bool:
        return super().__eq__(own_activity(other))

    # By the number, in torch too.
    __hash__ = Enumeration.__hash__


# By group, in torch's order of preference: the name of the device that a profiler of that group
# looks at.
DEVICE_NAMES = {
    ProfilerActivity.CUDA: "cuda",
    ProfilerActivity.XPU: "xpu",
    ProfilerActivity.MTIA: "mtia",
    ProfilerActivity.HPU: "hpu",
    ProfilerActivity.PrivateUse1: "privateuseone",
}

# What the host's group can be narrowed down to.
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
    """Returns whether the recorder is there, which it always is."""
    return True


class _ProfilerExtensionConfig(ABC):
    """A configuration that is handed to a recorder as pairs of texts."""

    @abstractmethod
    def _to_config_entries(self) -> dict[str, str]: ...


Config = TypeVar("Config", bound=_ProfilerExtensionConfig)


@dataclass(frozen=True)
class CuspyConfig(_ProfilerExtensionConfig):
    """Says what to collect of CUDA. Accepted; without CUDA it changes nothing.

    Args:
        enable_cuda_sync_events: Collect synchronisations.
        enable_environment_counters: Collect power, clocks and temperatures.
        enable_graph_dependencies: Record the edges of CUDA graphs.
        enable_event_node_ids: Tell which node of a CUDA graph recorded an event.
    """

    enable_cuda_sync_events: bool = False
    enable_environment_counters: bool = False
    enable_graph_dependencies: bool = False
    enable_event_node_ids: bool = False

    def _to_config_entries(self) -> dict[str, str]:
        return {}


@dataclass
class PerformanceMetricsConfig(_ProfilerExtensionConfig):
    """Says which counters of the hardware to collect. Accepted; without CUDA it changes nothing.

    Args:
        metric_names: The counters, by the names that the hardware has for them.
        sampling_interval_ms: How long from one sample to the next.
        lookback_window_ms: How far back samples are kept.
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
    """Narrows a group of activities down.

    Args:
        activity_types: The types to write into traces; all of the group's if None.
        profiler_configs: Further configurations for the group.
    """

    activity_types: list[str] | None = None
    profiler_configs: list[_ProfilerExtensionConfig] = field(default_factory=list)

    def _get_profiler_config(self, config_type: type[Config]) -> Config | None:
        found = (config for config in self.profiler_configs if isinstance(config, config_type))
        return next(found, None)


def own_activity(group: Any) -> Any:
    """Returns a group of torch's own class as ours, and everything else as it is."""
    if is_of_torch(group, "ProfilerActivity"):
        return getattr(ProfilerActivity, group.name, group)
    return group


def _own_activity_config(config: Any) -> ProfilerActivityConfig:
    """Returns how a group is narrowed down, given as either class or as a list of types."""
    if isinstance(config, ProfilerActivityConfig):
        return config
    if is_of_torch(config, "ProfilerActivityConfig"):
        return ProfilerActivityConfig(config.activity_types)
    return ProfilerActivityConfig(config)


ActivityConfigs = dict[ProfilerActivity, ProfilerActivityConfig]


def parse_activities(activities: Iterable[Any]) -> tuple[set[ProfilerActivity], ActivityConfigs]:
    """Returns the groups that a user named, and the configurations of those that came with one.

    Args:
        activities: Groups, and dicts from a group to a configuration or a list of activity types.

    Raises:
        TypeError: An item is neither.
        ValueError: A group is named twice.
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
    """Returns the device that a profiler of these groups looks at, None for the host alone."""
    return next((name for group, name in DEVICE_NAMES.items() if group in activities), None)


def check_activity_types(filters: dict[ProfilerActivity, set[str]]) -> None:
    """Refuses activity types that the host's group does not have.

    Raises:
        RuntimeError: There is one.
    """
    for name in filters.get(ProfilerActivity.CPU, ()):
        if name not in CPU_ACTIVITY_TYPES:
            raise RuntimeError(f"Unknown or non-member activity type name: '{name}'")
