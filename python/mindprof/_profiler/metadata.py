"""What users say about a trace: checked when it is said, JSON when it is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from mindprof._settings.profiler_config import refuse


def quoted(value: Any) -> str:
    """Returns a text as JSON.

    Raises:
        AttributeError: `value` is no text.
        TypeError: `value` is bytes.
    """
    import json

    # Changes nothing, but fails for whatever torch fails for, with the same error.
    text: str = value.replace('"', '"')
    return json.dumps(text, ensure_ascii=False)


def host_name() -> str:
    """Returns the name of this machine as JSON."""
    import socket

    return quoted(socket.gethostname())


def distributed(environment: Mapping[str, str] = os.environ) -> str | None:
    """Returns which of how many processes this one is, as JSON; None where nothing says so.

    A process group of torch's says it, and without one the launcher does by `RANK` and
    `WORLD_SIZE`, and by `LOCAL_RANK` for the rank on this machine. The keys are those that tools
    look for in torch's traces.
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


def rank_among_several(environment: Mapping[str, str] = os.environ) -> int | None:
    """Returns the rank that the launcher gave; None if this is the only process."""
    rank, world_size, _ = _launched(environment)
    return None if rank is None or world_size is None or world_size < 2 else rank


def _launched(environment: Mapping[str, str]) -> tuple[int | None, int | None, int | None]:
    """Returns the rank, of how many, and the rank on this machine, as far as they are set."""
    texts = (environment.get(name, "") for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    rank, world_size, local_rank = (int(text) if text.isdecimal() else None for text in texts)
    return rank, world_size, local_rank


def has_process_groups() -> bool:
    """Returns whether the torch of this process has a process group now."""
    groups = sys.modules.get("torch.distributed")
    # Whoever imports it on another thread may not be done.
    if groups is None or getattr(groups.__spec__, "_initializing", False):
        return False
    return bool(groups.is_available() and groups.is_initialized())


def _process_groups() -> dict[str, Any] | None:
    """Returns what the torch of this process says of its process groups; None if it has none."""
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
    """Refuses what is neither text nor bytes.

    Raises:
        TypeError: `key` or `value` is neither.
    """
    if not (isinstance(key, (str, bytes)) and isinstance(value, (str, bytes))):
        raise refuse("_add_metadata_json", "(arg0: str, arg1: str) -> None", f"{key!r}, {value!r}")


def pairs(entries: dict[Any, Any]) -> list[tuple[str, str]]:
    """Returns entries as texts; the writer makes a JSON string of each value that is not JSON."""
    return [(_text(key), _text(value)) for key, value in entries.items()]


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else repr(value)
