"""Writes the public names of the torch modules that `mindtorch_v2` mirrors.

Run it under a Python that has torch; it writes `python/mindtorch_v2/_torch_names.json`, from which
the runtime tells a name that torch has, but the runtime lacks, from a misspelt one.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

TARGET = Path(__file__).parents[1] / "python/mindtorch_v2/_torch_names.json"
MODULES = (
    "torch",
    "torch.autograd",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.optim",
    "torch.utils",
    "torch.utils.data",
)


def public_names(module: ModuleType) -> list[str]:
    """Returns the public names of a module, sorted."""
    listed = set(getattr(module, "__all__", ()))
    listed |= {name for name in dir(module) if not name.startswith("_")}
    return sorted(name for name in listed if not name.startswith("_"))


def main() -> None:
    """Writes the list."""
    names = {name: public_names(importlib.import_module(name)) for name in MODULES}
    lines = [f" {json.dumps(name)}: {json.dumps(found)}" for name, found in names.items()]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
