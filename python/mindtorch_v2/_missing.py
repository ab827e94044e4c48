"""The error for names that torch has and this runtime does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

_ADVICE = (
    "mindtorch_v2 is a small runtime for trying the profiler without PyTorch; docs/runtime.md "
    "lists what it supports. To profile PyTorch itself, use mindprof in a PyTorch program, or "
    "read a trace that torch.profiler exported with mindprof.load()"
)


@cache
def _names() -> dict[str, list[str]]:
    text = resources.files("mindtorch_v2").joinpath("_torch_names.json").read_text()
    names: dict[str, list[str]] = json.loads(text)
    return names


def attribute_of(module: str) -> Callable[[str], Any]:
    """Returns a module's `__getattr__`, which explains names that only torch has."""
    place = module.replace("mindtorch_v2", "torch", 1)

    def missing(name: str) -> Any:
        if not name.startswith("_") and name in _names().get(place, []):
            raise AttributeError(f"module {module!r} has no {name!r}, which torch has: {_ADVICE}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return missing
