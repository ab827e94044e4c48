"""Where source files are found: what is cut off their names when stacks are shown."""

from __future__ import annotations

import os
import sys


def source_roots() -> tuple[str, ...]:
    """Returns the folders that modules are imported from, each with a separator at its end."""
    import site
    from pathlib import Path

    folders = [*sys.path, *site.getsitepackages(), site.getuserbase(), site.getusersitepackages()]
    folders.append(str(Path(__file__).parents[2]))
    return tuple({os.path.abspath(folder) + os.sep for folder in folders})
