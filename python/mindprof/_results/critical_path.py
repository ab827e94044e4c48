"""`CriticalPath`: what determines how long steps take.

The engine computes it from a finished recording; `SharedResults` returns it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mindprof import _core

WIDTH = 80

CHROME = (".json", ".json.gz")


class CriticalPath(dict[str, Any]):
    """The critical path of the steps of a profile, with the keys of `critical-path --json`.

    Times are microseconds of an average step. Printing it prints the text of the command.
    """

    def __init__(self, document: dict[str, Any], text: str) -> None:
        super().__init__(document)
        self._text = text

    @property
    def bound_by(self) -> str:
        """The part of the machine that bounds steps: `"cpu"`, `"gpu"` or `"communication"`."""
        return str(self["bound_by"])

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    __repr__ = __str__


def critical_path(
    recording: _core.Profile,
    *,
    mine: str | Sequence[str] | None,
    limit: int,
    recorded: bool,
    out: str | os.PathLike[str] | None,
) -> CriticalPath:
    """Asks the engine for the critical path of a recording."""
    if out is not None and not os.fspath(out).endswith(CHROME):
        raise ValueError(
            f"{os.fspath(out)}: a critical path is written to Chrome traces only: "
            "use a name that ends with .json or .json.gz"
        )
    patterns = [mine] if isinstance(mine, str) else list(mine or ())
    document, text = recording.critical_path(
        mine=patterns, limit=limit, recorded=recorded, out=out, width=WIDTH
    )
    import json

    return CriticalPath(json.loads(document), text)
