"""Writes `docs/host.md`: which of torch's names the embedded runtime has, and which it lacks."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/host.md"
NAMES = ROOT / "python/mindtorch_v2/_torch_names.json"
HEAD = """# What the embedded runtime has

`mindtorch_v2` is a small runtime for trying the profiler where PyTorch is not installed. It works
on the CPU, in `bfloat16`, `float32`, `float64`, `int32`, `int64` and `bool`. What differs in
behaviour is in [compat.md](compat.md).

To profile a real PyTorch, record with `torch.profiler` there and read the trace with this package:

```python
prof.export_chrome_trace("trace.json.gz")           # where PyTorch is
profile = mindprof.load("trace.json.gz")            # anywhere
```

A name that torch has and that is missing here raises an `AttributeError` that leads to this page.
`tools/host_page.py` writes it.
"""


def section(place: str, torchs: list[str]) -> str:
    """Returns the part of the page about one module."""
    module = importlib.import_module(place.replace("torch", "mindtorch_v2", 1))
    has = [name for name in torchs if hasattr(module, name)]
    own = getattr(module, "__all__", [])
    further = sorted(name for name in own if name not in torchs and not name.startswith("_"))
    lines = [f"## `{place}`", "", f"{len(has)} of torch's {len(torchs)} names:"]
    lines += ["", ", ".join(f"`{name}`" for name in has)]
    if further:
        lines += ["", "Further: " + ", ".join(f"`{name}`" for name in further)]
    return "\n".join(lines) + "\n"


def tensor_section() -> str:
    """Returns the part of the page about tensors."""
    tensor = importlib.import_module("mindtorch_v2").Tensor
    names = sorted(name for name in dir(tensor) if not name.startswith("_"))
    listed = ", ".join(f"`{name}`" for name in names)
    return f"## `torch.Tensor`\n\n{len(names)} methods and attributes:\n\n{listed}\n"


def page() -> str:
    """Returns the page."""
    names: dict[str, list[str]] = json.loads(NAMES.read_text())
    parts = [section(place, torchs) for place, torchs in names.items()]
    return "\n".join([HEAD, tensor_section(), *parts])


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PAGE.read_text() == page() else "docs/host.md is not up to date")
    PAGE.write_text(page())
