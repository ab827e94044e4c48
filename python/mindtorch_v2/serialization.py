"""`save` and `load`: tensors and plain values in a file that runs no code.

The file is a zip archive with two kinds of entries: `mindtorch_v2.json`, which identifies the
format and holds everything except elements, and `data/0`, `data/1` and so on, each with the
elements of one storage. It can contain only plain values, so that reading it never runs code.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import struct
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, BinaryIO

from mindprof._core import dtype, tensor_from_bytes, tensor_to_bytes

import mindtorch_v2 as torch
from mindtorch_v2.nn.parameter import Parameter

_INDEX = "mindtorch_v2.json"
_FORMAT = "mindtorch_v2 1"
_BYTES = {
    dtype.float32: 4,
    dtype.float64: 8,
    dtype.bfloat16: 2,
    dtype.int32: 4,
    dtype.int64: 8,
    dtype.bool: 1,
}
_DTYPES = {str(kind): kind for kind in _BYTES}
_MOST_DIMENSIONS = 64

# The exceptions that reading a damaged or malicious file can raise.
_DAMAGE = (
    AttributeError,
    EOFError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
)


def save(obj: object, f: Any, **options: Any) -> None:
    """Writes state dictionaries and other plain values with tensors to a file.

    The write is atomic: if it fails, an existing file at the path stays as it was.

    Args:
        obj: Tensors, numbers, strings and `None`, in lists, tuples and dictionaries.
        f: A path, or a file opened for writing bytes.
        options: torch's `pickle_module`, `pickle_protocol` and so on; ignored.

    Raises:
        TypeError: If `obj` contains a value that could only be read back by running code.

    Example:
        >>> import io, mindtorch_v2 as torch
        >>> file = io.BytesIO()
        >>> save({"weight": torch.ones(2)}, file)
        >>> load(file)
        {'weight': tensor([1., 1.])}
    """
    del options
    writer = _Writer()
    content = writer.encode(obj)
    index = json.dumps({"format": _FORMAT, "byteorder": sys.byteorder, "content": content})

    def write(file: Any) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(_INDEX, index)
            for number, elements in enumerate(writer.elements):
                archive.writestr(f"data/{number}", elements)

    if isinstance(f, (str, os.PathLike)):
        _write_whole(os.path.realpath(f), write)
    else:
        write(f)


def _write_whole(path: str, write: Callable[[BinaryIO], None]) -> None:
    """Writes a temporary file and moves it into place, with the existing permissions."""
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            write(file)
        return
    folder, name = os.path.split(path)
    part = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.part")
    try:
        with open(part, "xb") as file:
            with contextlib.suppress(FileNotFoundError):
                os.chmod(part, stat.S_IMODE(os.stat(path).st_mode))
            write(file)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **options: Any,
) -> Any:
    """Reads a file that `save` wrote, without running any code.

    Args:
        f: A path, or a file opened for reading bytes.
        map_location: Ignored: the CPU is the only device.
        pickle_module: Ignored: nothing is unpickled.
        weights_only: Ignored: loading never runs code.
        mmap: Ignored.
        options: Ignored.

    Raises:
        RuntimeError: If the file was not written by `save`, for example by torch.
    """
    del map_location, pickle_module, weights_only, mmap, options
    if hasattr(f, "seek"):
        f.seek(0)
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise FileNotFoundError(2, "No such file or directory", os.fspath(f))
        if not os.path.isfile(f):
            raise RuntimeError(f"load(): {os.fspath(f)} is not a regular file")
    try:
        return _read(f)
    except _DAMAGE as error:
        text = "load(): the file is damaged, or not one that mindtorch_v2.save() wrote"
        raise RuntimeError(text) from error


def _read(f: Any) -> Any:
    if not zipfile.is_zipfile(f):
        raise RuntimeError("load(): the file is not one that mindtorch_v2.save() wrote")
    with zipfile.ZipFile(f) as archive:
        names = archive.namelist()
        if _INDEX not in names:
            raise RuntimeError(_refusal(names))
        # Uncompressed entries cannot expand to more than the size of the file.
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise ValueError("expected entries that are not compressed")
        index = json.loads(archive.read(_INDEX))
        if index.get("format") != _FORMAT:
            raise RuntimeError(f"load(): unknown format {index.get('format')!r}")
        if index.get("byteorder") != sys.byteorder:
            raise RuntimeError("load(): the file was written with another byte order")
        return _Reader(lambda number: archive.read(f"data/{number}")).decode(index["content"])


def _refusal(names: list[str]) -> str:
    if any(name.endswith("data.pkl") for name in names):
        return (
            "load(): this is a file of PyTorch's torch.save(). It holds a pickle, which can run "
            "code when it is read, and mindtorch_v2 runs none. Write the tensors out with "
            "PyTorch, for example as numpy arrays (numpy.savez), and read those"
        )
    return "load(): the file is a zip, but not one that mindtorch_v2.save() wrote"


class _Writer:
    """Converts values to JSON and collects the elements of their tensors."""

    def __init__(self) -> None:
        self.elements: list[bytes] = []
        self._known: dict[int, dict[str, Any]] = {}
        self._held: list[Any] = []

    def encode(self, value: Any) -> Any:
        if value is None or type(value) in (bool, str, int):
            return value
        if type(value) is float:
            return {"float": value.hex()}
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.dtype):
            return {"dtype": str(value)}
        if isinstance(value, dict):
            kind = "ordered" if isinstance(value, OrderedDict) else "dict"
            return {kind: [[self.encode(k), self.encode(v)] for k, v in value.items()]}
        if isinstance(value, torch.Size):
            return {"size": list(value)}
        if type(value) in (list, tuple, set):
            return {type(value).__name__: [self.encode(item) for item in value]}
        raise TypeError(
            f"save(): {type(value).__name__} cannot be written without running code when it is "
            "read; save its state_dict() instead"
        )

    def _tensor(self, tensor: torch.Tensor) -> dict[str, Any]:
        known = self._known.get(id(tensor))
        if known is None:
            known = {
                "tensor": len(self.elements),
                "size": list(tensor.shape),
                "dtype": str(tensor.dtype),
                "requires_grad": tensor.requires_grad,
                "parameter": isinstance(tensor, Parameter),
            }
            self.elements.append(tensor_to_bytes(tensor.detach()))
            self._known[id(tensor)] = known
            self._held.append(tensor)
        return known


class _Reader:
    """Converts JSON back to values. A tensor that was saved once is restored as one object."""

    def __init__(self, elements: Callable[[int], bytes]) -> None:
        self._elements = elements
        self._tensors: dict[int, torch.Tensor] = {}

    def decode(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, str, int)):
            return value
        if not isinstance(value, dict):
            raise TypeError(f"expected a value that save() writes, found {type(value).__name__}")
        if "tensor" in value:
            return self._tensor(value)
        ((kind, inside),) = value.items()
        if kind not in ("float", "dtype") and not isinstance(inside, list):
            raise TypeError(f"expected a list in {kind!r}, found {type(inside).__name__}")
        if kind in ("dict", "ordered"):
            pairs = [(self.decode(key), self.decode(item)) for key, item in inside]
            return OrderedDict(pairs) if kind == "ordered" else dict(pairs)
        makers: dict[str, Callable[[Any], Any]] = {
            "float": float.fromhex,
            "dtype": _DTYPES.__getitem__,
            "size": torch.Size,
            "list": lambda items: [self.decode(item) for item in items],
            "tuple": lambda items: tuple(self.decode(item) for item in items),
            "set": lambda items: {self.decode(item) for item in items},
        }
        if kind not in makers:
            raise RuntimeError(f"load(): unknown kind of value {kind!r}")
        return makers[kind](inside)

    def _tensor(self, value: dict[str, Any]) -> torch.Tensor:
        number = value["tensor"]
        if number not in self._tensors:
            kind, size = _DTYPES[value["dtype"]], _checked_size(value["size"])
            elements = self._elements(number)
            if len(elements) != math.prod(size) * _BYTES[kind]:
                raise ValueError(f"expected the elements of {size}, found {len(elements)} bytes")
            tensor = tensor_from_bytes(elements, size, kind)
            if value["parameter"]:
                tensor = Parameter(tensor, value["requires_grad"])
            elif value["requires_grad"]:
                tensor.requires_grad_()
            self._tensors[number] = tensor
        return self._tensors[number]


__all__ = ["load", "save"]


def _checked_size(size: Any) -> list[int]:
    """Returns `size` if it is a valid shape.

    Raises:
        ValueError: If it is not.
    """
    is_list = isinstance(size, list) and all(type(number) is int for number in size)
    if not is_list or min(size, default=0) < 0 or len(size) > _MOST_DIMENSIONS:
        raise ValueError("expected the numbers of a size")
    # Checked even if another dimension is zero, because loops over the others must terminate.
    if math.prod(max(number, 1) for number in size) >= 1 << 48:
        raise ValueError("expected a size that memory can hold")
    found: list[int] = size
    return found
