"""`DeviceType`: the kind of device that an event ran on, with torch's names and numbers."""

from __future__ import annotations

from typing import Any, ClassVar

from mindprof._enumeration import Enumeration, numbered

_DEVICES = (
    "CPU CUDA MKLDNN OPENGL OPENCL IDEEP HIP FPGA MAIA XLA Vulkan Metal XPU MPS Meta HPU VE Lazy "
    "IPU MTIA PrivateUse1"
)


class DeviceType(
    Enumeration, members=numbered(_DEVICES), torch_module="torch.autograd.profiler_util"
):
    """The kind of device that an event ran on. A member also equals its own name.

    It hashes like its name, or like torch's member once torch is imported.

    >>> DeviceType.CPU == "CPU", DeviceType.CPU.name
    (True, 'CPU')
    """

    CPU: ClassVar[DeviceType]
    CUDA: ClassVar[DeviceType]
    MKLDNN: ClassVar[DeviceType]
    OPENGL: ClassVar[DeviceType]
    OPENCL: ClassVar[DeviceType]
    IDEEP: ClassVar[DeviceType]
    HIP: ClassVar[DeviceType]
    FPGA: ClassVar[DeviceType]
    MAIA: ClassVar[DeviceType]
    XLA: ClassVar[DeviceType]
    Vulkan: ClassVar[DeviceType]
    Metal: ClassVar[DeviceType]
    XPU: ClassVar[DeviceType]
    MPS: ClassVar[DeviceType]
    Meta: ClassVar[DeviceType]
    HPU: ClassVar[DeviceType]
    VE: ClassVar[DeviceType]
    Lazy: ClassVar[DeviceType]
    IPU: ClassVar[DeviceType]
    MTIA: ClassVar[DeviceType]
    PrivateUse1: ClassVar[DeviceType]

    def __eq__(self, other: object) -> bool:
        return other == self.name if isinstance(other, str) else super().__eq__(other)

    # Members equal their names, so they hash like them. Torch's have another hash.
    def __hash__(self) -> int:
        return hash(self.name)


MEMBERS = DeviceType._in_order
"""All members, indexed by number."""


def current(device: Any) -> Any:
    """Returns the member that `DeviceType` has now for one from before the import of torch."""
    is_former = type(device) is DeviceType and DeviceType._joint is not None
    return DeviceType(device) if is_former else device
