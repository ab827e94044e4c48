"""Frameworks that register themselves: told when recordings begin and end, asked for devices."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from mindprof import _core
from mindprof._hosts.columns import numbers
from mindprof._profiler.activity import DEVICE_NAMES, ProfilerActivity
from mindprof._profiler.options import SessionOptions
from mindprof._results.device_type import DeviceType

# A kind of device that torch has no name for counts to the one that it keeps for others.
_OTHER = "privateuseone"

_DEVICE_TYPES = {
    "cuda": DeviceType.CUDA,
    "xpu": DeviceType.XPU,
    "mtia": DeviceType.MTIA,
    "hpu": DeviceType.HPU,
    _OTHER: DeviceType.PrivateUse1,
}


class Recording:
    """One recording, as a framework sees it.

    Args:
        session: The window of the engine.
        options: What the user asked for.
    """

    def __init__(self, session: _core.Session, options: SessionOptions) -> None:
        self._session = session
        self.record_shapes = options.record_shapes
        self.profile_memory = options.profile_memory
        self.with_stack = options.with_stack

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
        """Hands over what devices of one kind did, as columns of equal length.

        A column is an array of whole numbers: of numpy, of Arrow, of the standard library, or a
        list. To be called by `Framework.end`.

        Args:
            device: The kind, as `Framework.devices` names it.
            names: The texts that events are named by.
            name: Of each event, the place of its name in `names`.
            start_ns: When it began, in nanoseconds since the Unix epoch, as `time.time_ns()`.
            end_ns: When it ended.
            stream: The queue that it ran in; zero if None.
            correlation: The number that its operator was opened with; none if None.
            device_index: Which of the devices of that kind ran it; the first if None.

        Raises:
            ValueError: A column has another length or a number that makes no sense.
        """
        columns = {"name": name, "start_ns": start_ns, "end_ns": end_ns}
        optional = {"stream": stream, "correlation": correlation, "device_index": device_index}
        given: dict[str, Any] = {key: numbers(value) for key, value in columns.items()}
        zeros = bytes(len(given["name"]))
        for key, value in optional.items():
            given[key] = zeros if value is None else numbers(value)
        given["device"] = _DEVICE_TYPES[_known(device)].value
        given["names"] = list(names)
        self._session.add_device_events(given)


class Framework:
    """What runs operators by itself, and wants to be told of recordings.

    Operators need no framework: `open_operator` records from anywhere. A subclass says what devices
    there are, and hands over late what they did. Recordings may overlap: each begins and ends by
    itself.
    """

    def devices(self) -> Iterable[str]:
        """Returns the kinds of devices that work here, by torch's names or the framework's own."""
        return ()

    def begin(self, recording: Recording) -> None:
        """Is called when a recording has begun."""

    def end(self, recording: Recording) -> None:
        """Is called before a recording ends: the time to hand over what devices did."""


# Replaced as a whole, so that a recording begins without a lock.
_registered: tuple[Framework, ...] = ()

Recordings = list[tuple[Framework, Recording]]


def register(framework: Framework) -> None:
    """Has a framework told of all recordings that begin from now on; a second time does nothing.

    Raises:
        TypeError: It is no instance of `Framework`.

    Example:
        >>> class Quiet(Framework):
        ...     pass
        >>> quiet = Quiet()
        >>> register(quiet)
        >>> unregister(quiet)
    """
    global _registered
    if not isinstance(framework, Framework):
        raise TypeError(f"expected an instance of Framework, found {framework!r}")
    if framework not in _registered:
        _registered = (*_registered, framework)


def unregister(framework: Framework) -> None:
    """Has a framework told of no further recordings; one that is not registered stays so."""
    global _registered
    _registered = tuple(other for other in _registered if other is not framework)


def has_frameworks() -> bool:
    """Returns whether anyone is to be told of recordings."""
    return bool(_registered)


def begin_recordings(session: _core.Session, options: SessionOptions) -> Recordings:
    """Tells all frameworks of a recording that has begun."""
    recordings = [(framework, Recording(session, options)) for framework in _registered]
    for framework, recording in recordings:
        _call(framework.begin, recording)
    return recordings


def end_recordings(recordings: Recordings) -> None:
    """Tells those that were told of the beginning that the recording ends."""
    for framework, recording in recordings:
        _call(framework.end, recording)


def framework_activities() -> set[ProfilerActivity]:
    """Returns the groups of the devices that frameworks have."""
    kinds = {_known(name) for framework in _registered for name in _devices(framework)}
    return {group for group, name in DEVICE_NAMES.items() if name in kinds}


def has_framework_device(name: str) -> bool:
    """Returns whether a framework has devices of a kind, by torch's name for it."""
    return any(DEVICE_NAMES[group] == name for group in framework_activities())


def _devices(framework: Framework) -> list[str]:
    """Asks a framework; what goes wrong there costs the profile its devices and no more."""
    try:
        return list(framework.devices())
    except Exception as error:
        warnings.warn(
            f"{type(framework).__qualname__}.devices failed, and its devices are not recorded: "
            f"{error!r}",
            RuntimeWarning,
            stacklevel=5,
        )
        return []


def _known(device: str) -> str:
    return device if device in _DEVICE_TYPES else _OTHER


def _call(told: Any, recording: Recording) -> None:
    """Calls a framework; what goes wrong there costs the profile its part and no more."""
    try:
        told(recording)
    except Exception as error:
        warnings.warn(
            f"{told.__qualname__} failed, and what it would have recorded is missing: {error!r}",
            RuntimeWarning,
            stacklevel=5,
        )
