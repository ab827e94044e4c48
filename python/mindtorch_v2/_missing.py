"""What is said of torch's names that this runtime does not have."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

_ADVICE = (
    "mindtorch_v2 is a small runtime for trying the profiler without PyTorch. What it has is "
    "listed in docs/runtime.md. To profile a real PyTorch, use mindprof.profile() where torch is "
    "imported, or read a trace that torch.profiler wrote with mindprof.load()"
)


@cache
def _names() -> dict[str, list[str]]:
    text = resources.files("mindtorch_v2").joinpath("_torch_names.json").read_text()
    names: dict[str, list[str]] = json.loads(text)
    return names


def attribute_of(module: str) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a module: it names what torch has and this runtime has not."""
    place = module.replace("mindtorch_v2", "torch", 1)

    def missing(name: str) -> Any:
        if not name.startswith("_") and name in _names().get(place, []):
            raise AttributeError(f"module {module!r} has no {name!r}, which torch has: {_ADVICE}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return missing
