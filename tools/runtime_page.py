"""Writes `docs/runtime.md`: which of torch's names the embedded runtime has.

`python tools/runtime_page.py` writes the page; `--check` fails if the page is out of date.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/runtime.md"
NAMES = ROOT / "python/mindtorch_v2/_torch_names.json"
HEAD = """# The embedded runtime

`mindtorch_v2` is a small tensor library that comes with mindprof, so that you can try the profiler
without installing PyTorch. It runs on the CPU and supports `bfloat16`, `float32`, `float64`,
`int32`, `int64` and `bool`. [compat.md](compat.md) lists where it behaves differently from torch.

You do not need it to profile PyTorch. `mindprof.profile` records a real PyTorch live, and
`mindprof.load` reads traces that `torch.profiler` wrote; see [pytorch.md](pytorch.md).

This page lists the names that the runtime provides. Accessing a name that torch has and the
runtime lacks raises an `AttributeError` that points here. `tools/runtime_page.py` writes this page.
"""


def is_imported(module: ModuleType, name: str) -> bool:
    """Returns whether a name is a module from elsewhere that `module` imports for itself."""
    value = getattr(module, name, None)
    is_inside = isinstance(value, ModuleType) and value.__name__.startswith(f"{module.__name__}.")
    return isinstance(value, ModuleType) and not is_inside


def section(place: str, names: list[str]) -> str:
    """Returns the section about one module."""
    module = importlib.import_module(place.replace("torch", "mindtorch_v2", 1))
    torchs = [name for name in names if not is_imported(module, name)]
    has = [name for name in torchs if hasattr(module, name)]
    own = getattr(module, "__all__", [])
    further = sorted(name for name in own if name not in torchs and not name.startswith("_"))
    lines = [f"## `{place}`", "", f"{len(has)} of torch's {len(torchs)} names:"]
    lines += ["", ", ".join(f"`{name}`" for name in has)]
    if further:
        lines += ["", "Not in torch's module: " + ", ".join(f"`{name}`" for name in further)]
    return "\n".join(lines) + "\n"


def tensor_section() -> str:
    """Returns the section about tensors."""
    tensor = importlib.import_module("mindtorch_v2").Tensor
    names = sorted(name for name in dir(tensor) if not name.startswith("_"))
    listed = ", ".join(f"`{name}`" for name in names)
    return f"## `torch.Tensor`\n\n{len(names)} methods and attributes:\n\n{listed}\n"


def page() -> str:
    """Returns the text of the page."""
    names: dict[str, list[str]] = json.loads(NAMES.read_text())
    parts = [section(place, torchs) for place, torchs in names.items()]
    return "\n".join([HEAD, tensor_section(), *parts])


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PAGE.read_text() == page() else f"{PAGE.name} is out of date: run this tool")
    PAGE.write_text(page())
