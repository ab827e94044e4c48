"""The folders of source files, whose paths are removed from the file names in stacks."""

from __future__ import annotations

import os
import site
import sys


def source_roots() -> tuple[str, ...]:
    """Returns the folders that modules are imported from, each with a trailing separator."""
    folders = [*sys.path, *site.getsitepackages(), site.getuserbase(), site.getusersitepackages()]
    package = os.path.dirname(os.path.dirname(__file__))
    folders.append(os.path.dirname(package))
    return tuple({os.path.abspath(folder) + os.sep for folder in folders})
