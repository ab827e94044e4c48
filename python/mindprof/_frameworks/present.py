"""The choice of the framework that profilers record."""

from __future__ import annotations

import sys

from mindprof._frameworks.devices import DeviceHost
from mindprof._frameworks.embedded import EmbeddedHost
from mindprof._frameworks.host import Host
from mindprof._frameworks.kineto import KinetoHost
from mindprof._frameworks.pytorch import PyTorchHost
from mindprof._frameworks.registry import framework_activities
from mindprof._frameworks.torch_backend import chosen_backend, is_loaded, recorded_devices
from mindprof._settings.activity import DEVICE_NAMES, ProfilerActivity

_EMBEDDED = EmbeddedHost()
_PYTORCH = PyTorchHost()
_KINETO = KinetoHost(_PYTORCH)
_DEVICES = DeviceHost(_PYTORCH, _KINETO)


def present_host(device: str | None = None) -> Host:
    """Returns the framework to record: torch if it is loaded and can be recorded.

    Otherwise it is the embedded runtime.

    Args:
        device: The device to record besides the CPU, by torch's name for it.

    Raises:
        RuntimeError: The environment selects a backend for torch that is not available.
    """
    torch = sys.modules.get("torch")
    if torch is None or not is_loaded(torch):
        return _EMBEDDED
    hosts: dict[str, Host] = {"observer": _PYTORCH, "devices": _DEVICES, "kineto": _KINETO}
    return hosts.get(chosen_backend(torch, device).name, _EMBEDDED)


def backend_name() -> str | None:
    """Returns the name that a backend, such as `npu`, has given to the device `PrivateUse1`.

    It is `None` if there is no such backend.
    """
    torch = sys.modules.get("torch")
    name = getattr(getattr(torch, "_C", None), "_get_privateuse1_backend_name", lambda: None)()
    return None if name in (None, DEVICE_NAMES[ProfilerActivity.PrivateUse1]) else str(name)


def supported_activities() -> set[ProfilerActivity]:
    """Returns the groups of activities that can be recorded in this process.

    >>> supported_activities()
    {<ProfilerActivity.CPU: 0>}
    """
    host = present_host()
    devices = set() if host is _EMBEDDED else recorded_devices(sys.modules["torch"])
    groups = {group for group, name in DEVICE_NAMES.items() if name in devices}
    return host.activities() | groups | framework_activities()
