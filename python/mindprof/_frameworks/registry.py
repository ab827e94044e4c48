"""Frameworks that register themselves: told when recordings begin and end, asked for devices."""

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

# How far outside of a recording an event of a device may be: work that was asked for before, and
# clocks that are not quite the same.
_SLACK_NS = 60_000_000_000

# A kind of device that torch has no name for counts to the one that it keeps for others.
_OTHER = "privateuseone"

_DEVICE_TYPES = {
    "cuda": DeviceType.CUDA,
    "xpu": DeviceType.XPU,
    "mtia": DeviceType.MTIA,
    "hpu": DeviceType.HPU,
    _OTHER: DeviceType.PrivateUse1,
}


# What runs the program, and what runs nothing.
_NO_DEVICES = ("cpu", "meta")


class Recording:
    """One recording, as a framework sees it: what the user asked for, and where device events go.

    Args:
        session: The window of the engine.
        options: What the user asked for.

    Attributes:
        activities: The groups to record. Work of devices of other groups is not asked for.
        record_shapes: Whether inputs are kept.
        profile_memory: Whether allocations are.
        with_stack: Whether Python calls are.
        with_flops: Whether operations are to be counted.
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
        """Returns whether work of a kind of device was asked for.

        Args:
            device: The kind, as `Framework.devices` names it.

        Raises:
            TypeError: It is no text.
            ValueError: It is no name of a kind of device.
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
            TypeError: A column holds something else than whole numbers, or `names` is no list of
                texts.
            ValueError: A column has another length, a number that makes no sense, or a time that is
                more than a minute outside of the recording; or `device` is no kind of device.
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
                "the recording has ended, and what devices did is not in it\n"
                "hint: call add_device_events in Framework.end"
            )


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
        raise TypeError(
            f"argument 'framework': expected an instance of Framework, found {framework!r}"
        )
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
    """Tells all frameworks of a recording that has begun. Returns those who are to hear of its end.

    One whose `begin` failed is not among them: it has begun nothing that it could end.
    """
    begun: Recordings = []
    try:
        for framework in _registered:
            recording = Recording(session, options)
            if _call(framework.begin, recording):
                begun.append((framework, recording))
    # Whoever interrupts: no framework is to go on collecting for a recording that never was.
    except BaseException:
        end_recordings(begun)
        raise
    return begun


def end_recordings(recordings: Recordings) -> None:
    """Tells those that have begun that the recording ends: all of them, whoever interrupts."""
    left = list(recordings)
    try:
        while left:
            framework, recording = left.pop(0)
            _call(framework.end, recording)
    finally:
        if left:
            end_recordings(left)


def framework_activities() -> set[ProfilerActivity]:
    """Returns the groups of the devices that frameworks have."""
    kinds = {kind for framework in _registered for kind in _devices(framework)}
    return {group for group, name in DEVICE_NAMES.items() if name in kinds}


def has_framework_device(name: str) -> bool:
    """Returns whether a framework has devices of a kind, by torch's name for it."""
    return any(DEVICE_NAMES[group] == name for group in framework_activities())


def _devices(framework: Framework) -> list[str]:
    """Returns torch's names of a framework's devices.

    What goes wrong there costs the profile its devices and no more.
    """
    where = f"{type(framework).__qualname__}.devices"
    try:
        return [_known(name, f"{where}()") for name in _texts(framework.devices(), f"{where}()")]
    except Exception as error:
        warnings.warn(
            f"{where} failed, and its devices are not recorded: {error!r}",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
        return []


def _texts(found: Any, where: str) -> list[str]:
    """Returns a list of texts as one.

    Args:
        found: What was given.
        where: Who gave it, for errors.

    Raises:
        TypeError: It is none; least of all a single text, which is a list of its letters.
    """
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise TypeError(f"{where}: expected a list of texts, found {found!r}")
    texts = list(found)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{where}: expected a list of texts, found {text!r} at [{place}]")
    return texts


def _known(device: str, where: str) -> str:
    """Returns torch's name for a kind of device.

    Args:
        device: The kind.
        where: Who names it, for errors.

    Raises:
        TypeError: It is no text.
        ValueError: It is no name of a kind of device.
    """
    if not isinstance(device, str):
        raise TypeError(f"{where}: expected the name of a kind of device, found {device!r}")
    if not device.isidentifier() or device != device.lower() or device in _NO_DEVICES:
        raise ValueError(
            f"{where}: expected the name of a kind of device in small letters, as 'cuda' or "
            f"'npu', found {device!r}"
        )
    return device if device in _DEVICE_TYPES else _OTHER


def _call(told: Any, recording: Recording) -> bool:
    """Calls a framework, and returns whether that went well.

    What goes wrong there costs the profile its part and no more.
    """
    try:
        told(recording)
    except Exception as error:
        name = getattr(told, "__qualname__", told)
        warnings.warn(
            f"{name} failed, and what it would have recorded is missing: {error!r}",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
        return False
    return True
