"""The registry of third-party frameworks, which `mindprof.hosts` publishes.

A registered framework is notified when recordings start and stop, and provides device events.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from mindprof import _core
from mindprof._frameworks.call_level import level_outside
from mindprof._frameworks.columns import numbers
from mindprof._results.device_type import DeviceType
from mindprof._settings.activity import DEVICE_NAMES, ProfilerActivity
from mindprof._settings.options import SessionOptions

# How far outside a recording a device event may lie: the work may have been launched earlier, and
# the clocks may differ.
_SLACK_NS = 60_000_000_000

# The group for kinds of devices that torch has no name for.
_OTHER = "privateuseone"

_DEVICE_TYPES = {
    "cuda": DeviceType.CUDA,
    "xpu": DeviceType.XPU,
    "mtia": DeviceType.MTIA,
    "hpu": DeviceType.HPU,
    _OTHER: DeviceType.PrivateUse1,
}


# torch's names of devices that are not accelerators.
_NO_DEVICES = ("cpu", "meta")


class Recording:
    """One recording as a framework sees it: the user's options, and the sink for device events.

    A framework receives one in `Framework.begin` and the same one in `Framework.end`.

    Args:
        session: The engine's session.
        options: The options of the recording.

    Attributes:
        activities: The groups of activities that the user selected.
        record_shapes: Whether inputs are recorded.
        profile_memory: Whether allocations are recorded.
        with_stack: Whether Python calls are recorded.
        with_flops: Whether floating-point operations are counted.
        with_modules: Whether calls of modules are recorded.
    """

    def __init__(self, session: _core.Session, options: SessionOptions) -> None:
        self._session = session
        self._begin_ns = time.time_ns()
        self.activities = options.activities
        self.record_shapes = options.record_shapes
        self.profile_memory = options.profile_memory
        self.with_stack = options.with_stack
        self.with_flops = options.with_flops
        self.with_modules = options.with_modules

    def wants_device(self, device: str) -> bool:
        """Returns whether the user selected a kind of device.

        Args:
            device: The kind of device, as `Framework.devices` names it.

        Raises:
            TypeError: The name is not a string.
            ValueError: The name is not a valid device name.
        """
        name = _known(device, "argument 'device'")
        return any(DEVICE_NAMES.get(group) == name for group in self.activities)

    def add_device_events(
        self,
        device: str,
        names: Sequence[str],
        *,
        name: Any,
        start_ns: Any,
        end_ns: Any,
        stream: Any = None,
        correlation: Any = None,
        device_index: Any = None,
    ) -> None:
        """Adds the events of one kind of device, as columns of equal length.

        A column is an array of integers: of numpy, Arrow or the standard library, or a list. Call
        this in `Framework.end`.

        Args:
            device: The kind of device, as `Framework.devices` names it.
            names: The distinct names of events.
            name: For each event, the index of its name in `names`.
            start_ns: The starts in nanoseconds since the Unix epoch, as in `time.time_ns()`.
            end_ns: The ends, likewise.
            stream: The streams; zero if `None`.
            correlation: The correlation ids that operators were opened with; no links if `None`.
            device_index: The indices of the devices among those of the kind; zero if `None`.

        Raises:
            TypeError: A column does not hold integers, or `names` is not a list of strings.
            ValueError: A column has another length, an invalid number, or a time more than a minute
                outside the recording; or `device` is not a valid device name.
            RuntimeError: The recording has ended.
        """
        texts = _texts(names, "argument 'names'")
        columns = {"name": name, "start_ns": start_ns, "end_ns": end_ns}
        optional = {"stream": stream, "correlation": correlation, "device_index": device_index}
        given: dict[str, Any] = {key: numbers(value, key) for key, value in columns.items()}
        zeros = bytes(len(given["name"]))
        for key, value in optional.items():
            given[key] = zeros if value is None else numbers(value, key)
        given["device"] = _DEVICE_TYPES[_known(device, "argument 'device'")].value
        given["names"] = texts
        given["earliest_ns"] = max(self._begin_ns - _SLACK_NS, 0)
        given["latest_ns"] = time.time_ns() + _SLACK_NS
        if not self._session.add_device_events(given):
            raise RuntimeError(
                "the recording has ended: the device events were not added\n"
                "hint: call add_device_events in Framework.end"
            )


class Framework:
    """The base class of frameworks that want to be notified of recordings.

    Recording operators does not require it: `open_operator` works anywhere. A subclass names its
    devices, and adds their events at the end of a recording. Recordings may overlap; each one
    starts and stops independently.
    """

    def devices(self) -> Iterable[str]:
        """Returns the kinds of available devices, by torch's names or the framework's own."""
        return ()

    def begin(self, recording: Recording) -> None:
        """Called after a recording has started."""

    def end(self, recording: Recording) -> None:
        """Called before a recording stops, to add device events to it."""


# Replaced as a whole, so that a recording starts without taking a lock.
_registered: tuple[Framework, ...] = ()

Recordings = list[tuple[Framework, Recording]]


def register(framework: Framework) -> None:
    """Registers a framework for all recordings that start from now on.

    Registering it again has no effect.

    Raises:
        TypeError: The argument is not an instance of `Framework`.

    Example:
        >>> class Quiet(Framework):
        ...     pass
        >>> quiet = Quiet()
        >>> register(quiet)
        >>> unregister(quiet)
    """
    global _registered
    if not isinstance(framework, Framework):
        raise TypeError(
            f"argument 'framework': expected an instance of Framework, found {framework!r}"
        )
    if framework not in _registered:
        _registered = (*_registered, framework)


def unregister(framework: Framework) -> None:
    """Removes a framework. It has no effect if the framework is not registered."""
    global _registered
    _registered = tuple(other for other in _registered if other is not framework)


def has_frameworks() -> bool:
    """Returns whether any framework is registered."""
    return bool(_registered)


def begin_recordings(session: _core.Session, options: SessionOptions) -> Recordings:
    """Notifies all frameworks of a started recording, and returns those to notify of its end.

    A framework whose `begin` failed is not among them, because it has nothing to end.
    """
    begun: Recordings = []
    try:
        for framework in _registered:
            recording = Recording(session, options)
            if _call(framework.begin, recording):
                begun.append((framework, recording))
    # On an interrupt, no framework may keep collecting for a recording that does not exist.
    except BaseException:
        end_recordings(begun)
        raise
    return begun


def end_recordings(recordings: Recordings) -> None:
    """Notifies frameworks of the end of a recording: all of them, even if one is interrupted."""
    left = list(recordings)
    try:
        while left:
            framework, recording = left.pop(0)
            _call(framework.end, recording)
    finally:
        if left:
            end_recordings(left)


def framework_activities() -> set[ProfilerActivity]:
    """Returns the groups of the frameworks' devices."""
    kinds = {kind for framework in _registered for kind in _devices(framework)}
    return {group for group, name in DEVICE_NAMES.items() if name in kinds}


def has_framework_device(name: str) -> bool:
    """Returns whether a framework has a kind of device, by torch's name for it."""
    return any(DEVICE_NAMES[group] == name for group in framework_activities())


def _devices(framework: Framework) -> list[str]:
    """Returns torch's names of a framework's devices.

    If the framework fails, this warns and the profile lacks its devices.
    """
    where = f"{type(framework).__qualname__}.devices"
    try:
        return [_known(name, f"{where}()") for name in _texts(framework.devices(), f"{where}()")]
    except Exception as error:
        warnings.warn(
            f"{where} failed, so its devices are not recorded: {error!r}",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
        return []


def _texts(found: Any, where: str) -> list[str]:
    """Checks that an argument is a list of strings, and returns it as a list.

    Args:
        found: The argument.
        where: The source of the argument, for error messages.

    Raises:
        TypeError: It is anything else, such as a single string, which is iterable too.
    """
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise TypeError(f"{where}: expected a list of strings, found {found!r}")
    texts = list(found)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{where}: expected a list of strings, found {text!r} at [{place}]")
    return texts


def _known(device: str, where: str) -> str:
    """Returns torch's name for a kind of device.

    Args:
        device: The framework's name.
        where: The source of the name, for error messages.

    Raises:
        TypeError: The name is not a string.
        ValueError: The name is not a valid device name.
    """
    if not isinstance(device, str):
        raise TypeError(f"{where}: expected a device name, found {device!r}")
    if not device.isidentifier() or device != device.lower() or device in _NO_DEVICES:
        raise ValueError(
            f"{where}: expected a device name in lower case, such as 'cuda' or 'npu', "
            f"found {device!r}"
        )
    return device if device in _DEVICE_TYPES else _OTHER


def _call(told: Any, recording: Recording) -> bool:
    """Calls a framework, and returns whether the call succeeded.

    If it fails, this warns and the profile lacks the framework's part.
    """
    try:
        told(recording)
    except Exception as error:
        name = getattr(told, "__qualname__", told)
        warnings.warn(
            f"{name} failed, so its part of the recording is missing: {error!r}",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
        return False
    return True
