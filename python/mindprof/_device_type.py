"""`DeviceType`: where an event ran."""

from __future__ import annotations

from typing import ClassVar

_NAMES = [
    "CPU",
    "CUDA",
    "MKLDNN",
    "OPENGL",
    "OPENCL",
    "IDEEP",
    "HIP",
    "FPGA",
    "MAIA",
    "XLA",
    "Vulkan",
    "Metal",
    "XPU",
    "MPS",
    "Meta",
    "HPU",
    "VE",
    "Lazy",
    "IPU",
    "MTIA",
    "PrivateUse1",
]


class DeviceType:
    """A kind of device. Members also compare equal to their own names.

    Args:
        value: The number of the kind.

    Example:
        >>> DeviceType.CUDA
        <DeviceType.CUDA: 1>
        >>> DeviceType(1) == DeviceType.CUDA == "CUDA"
        True
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
    __members__: ClassVar[dict[str, DeviceType]] = {}

    __slots__ = ("_value",)

    def __init__(self, value: int) -> None:
        self._value = int(value)

    @property
    def value(self) -> int:
        """The number of the kind."""
        return self._value

    @property
    def name(self) -> str:
        """The name of the kind; "???" if it has none."""
        return _NAMES[self._value] if 0 <= self._value < len(_NAMES) else "???"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DeviceType):
            return self._value == other._value
        return isinstance(other, str) and self.name == other

    def __hash__(self) -> int:
        return hash(self.name)

    def __int__(self) -> int:
        return self._value

    def __index__(self) -> int:
        return self._value

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"

    def __repr__(self) -> str:
        return f"<DeviceType.{self.name}: {self._value}>"

    def __reduce__(self) -> tuple[type[DeviceType], tuple[int]]:
        return DeviceType, (self._value,)


MEMBERS = [DeviceType(value) for value in range(len(_NAMES))]
"""Every kind, by its number."""

for _member in MEMBERS:
    setattr(DeviceType, _member.name, _member)
    DeviceType.__members__[_member.name] = _member
