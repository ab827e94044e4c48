"""The metadata of traces: the user's, the machine's name, and the rank of the process.

Values are checked when they are added, and are JSON when the trace is written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from mindprof._settings.profiler_config import refuse


def quoted(value: Any) -> str:
    """Returns a text as a JSON string.

    Raises:
        AttributeError: `value` is not a string.
        TypeError: `value` is bytes.
    """
    import json

    # Has no effect on strings, and raises what torch raises for anything else.
    text: str = value.replace('"', '"')
    return json.dumps(text, ensure_ascii=False)


def host_name() -> str:
    """Returns the name of this machine as a JSON string."""
    import socket

    return quoted(socket.gethostname())


# The keys of a device in torch's traces, each with the attribute of the device's properties.
_PROPERTIES = {
    "name": "name",
    "totalGlobalMem": "total_memory",
    "computeMajor": "major",
    "computeMinor": "minor",
    "maxThreadsPerBlock": "max_threads_per_block",
    "maxThreadsPerMultiprocessor": "max_threads_per_multi_processor",
    "regsPerMultiprocessor": "regs_per_multiprocessor",
    "warpSize": "warp_size",
    "sharedMemPerBlock": "shared_memory_per_block",
    "numSms": "multi_processor_count",
    "sharedMemPerBlockOptin": "shared_memory_per_block_optin",
    "sharedMemPerMultiprocessor": "shared_memory_per_multiprocessor",
}


def device_properties() -> str | None:
    """Returns the CUDA devices of this process as JSON, or `None` if it has not used any.

    The keys are those of torch's traces. Properties that this torch does not tell are left out.
    """
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    # Asking for a device would initialize CUDA, which takes seconds.
    if cuda is None or not getattr(cuda, "is_initialized", bool)():
        return None
    import json

    devices = []
    for number in range(cuda.device_count()):
        found = cuda.get_device_properties(number)
        known = {key: getattr(found, name, None) for key, name in _PROPERTIES.items()}
        devices.append({"id": number, **{k: v for k, v in known.items() if v is not None}})
    return json.dumps(devices) if devices else None


def distributed(environment: Mapping[str, str] = os.environ) -> str | None:
    """Returns the rank and the number of processes as JSON, or `None` if they are unknown.

    They come from torch's process group or, without one, from the launcher's variables `RANK` and
    `WORLD_SIZE`. `LOCAL_RANK` adds the rank on this machine. The keys are those of torch's traces,
    which tools look for.
    """
    rank, world_size, local_rank = _launched(environment)
    info = _process_groups()
    if info is None:
        if rank is None or world_size is None:
            return None
        info = {
            "backend": "",
            "rank": rank,
            "world_size": world_size,
            "pg_count": 0,
            "pg_config": [],
        }
    if local_rank is not None:
        info["local_rank"] = local_rank
    import json

    return json.dumps(info)


def several_ranks(environment: Mapping[str, str] = os.environ) -> tuple[int, int] | None:
    """Returns the launcher's rank of this process and the number of ranks, if there are several."""
    rank, world_size, _ = _launched(environment)
    return None if rank is None or world_size is None or world_size < 2 else (rank, world_size)


def _launched(environment: Mapping[str, str]) -> tuple[int | None, int | None, int | None]:
    """Returns the rank, the number of processes and the local rank, `None` if not set."""
    texts = (environment.get(name, "") for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    rank, world_size, local_rank = (int(text) if text.isdecimal() else None for text in texts)
    return rank, world_size, local_rank


def has_process_groups() -> bool:
    """Returns whether torch currently has a process group."""
    groups = sys.modules.get("torch.distributed")
    # Another thread may still be importing the module.
    if groups is None or getattr(groups.__spec__, "_initializing", False):
        return False
    return bool(groups.is_available() and groups.is_initialized())


def _process_groups() -> dict[str, Any] | None:
    """Returns a description of torch's process groups, or `None` if there are none."""
    if not has_process_groups():
        return None
    groups = sys.modules["torch.distributed"]
    configurations: list[Any] = getattr(groups.distributed_c10d, "_get_all_pg_configs", list)()
    info = {
        "backend": groups.get_backend(),
        "rank": groups.get_rank(),
        "world_size": groups.get_world_size(),
        "pg_count": len(configurations),
        "pg_config": configurations,
    }
    if info["backend"] == "nccl":
        info["nccl_version"] = ".".join(map(str, sys.modules["torch"].cuda.nccl.version()))
    return info


def check(key: Any, value: Any) -> None:
    """Checks that a key and its value are strings or bytes.

    Raises:
        TypeError: One of them is neither.
    """
    if not (isinstance(key, (str, bytes)) and isinstance(value, (str, bytes))):
        raise refuse("_add_metadata_json", "(arg0: str, arg1: str) -> None", f"{key!r}, {value!r}")


def pairs(entries: dict[Any, Any]) -> list[tuple[str, str]]:
    """Converts entries to strings. The writer quotes values that are not JSON."""
    return [(_text(key), _text(value)) for key, value in entries.items()]


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else repr(value)
