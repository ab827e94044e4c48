"""`CodeCosts`: the user's functions, lines or modules with what they cost.

The engine computes them from a finished recording; `SharedResults` returns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindprof import _core

WIDTH = 80


class CodeCosts(list[dict[str, Any]]):
    """The functions, lines or modules of a profile, by decreasing own cost.

    Each entry is a dict with the keys of `mindprof functions --json`; times are microseconds.
    Printing the list prints the text of the command.

    Attributes:
        total: The cost of the main thread and of the backward work that it waits for.
        outside: The part of it that none of the entries led to.
        elsewhere: The entries of other threads and processes.
        sampling: How Python stacks were sampled, or `None` if every call was recorded.
    """

    def __init__(self, what: str, document: dict[str, Any], text: str) -> None:
        super().__init__(document.get(what, []))
        self.total: dict[str, Any] = document["total"]
        self.outside: dict[str, Any] = document["outside"]
        key = "lines_elsewhere" if what == "lines" else "elsewhere"
        self.elsewhere: list[dict[str, Any]] = document.get(key, [])
        self.sampling: dict[str, Any] | None = document.get("sampling")
        self._text = text

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    __repr__ = __str__


def code_costs(
    recording: _core.Profile,
    what: str,
    *,
    mine: str | Sequence[str] | None = None,
    file: str | None = None,
    instances: bool = False,
) -> CodeCosts:
    """Asks the engine for the `functions`, `lines` or `modules` of a recording."""
    patterns = [mine] if isinstance(mine, str) else list(mine or ())
    document, text = recording.code_costs(
        what, mine=patterns, file=file, instances=instances, width=WIDTH
    )
    import json

    return CodeCosts(what, json.loads(document), text)
