"""`WhatIf`: how long steps would take if some of their work were faster.

The engine replays a finished recording; `SharedResults` returns the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mindprof import _core

WIDTH = 80


class WhatIf(dict[str, Any]):
    """The steps with some changes, with the keys of `what-if --json`.

    Times are microseconds. Printing it prints the text of the command.
    """

    def __init__(self, document: dict[str, Any], text: str) -> None:
        super().__init__(document)
        self._text = text

    @property
    def recorded_us(self) -> float:
        """The median of the recorded steps."""
        return float(self["recorded"]["median_us"])

    @property
    def unrecorded_us(self) -> float:
        """The same without the profiler's own cost, as far as that can be estimated."""
        return float(self["unrecorded"]["median_us"])

    @property
    def changed_us(self) -> float:
        """The median of the steps with the changes and without the profiler's own cost."""
        return float(self["changed"]["median_us"])

    @property
    def saved_us(self) -> float:
        """The time that the changes save of the median step. Negative if it takes longer."""
        return self.unrecorded_us - self.changed_us

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    __repr__ = __str__


def what_if(
    recording: _core.Profile,
    scale: Sequence[str | Mapping[str, float]],
    remove: str | Sequence[str],
    without: list[str],
) -> WhatIf:
    """Asks the engine to replay a recording with changes."""
    scales = [change for asked in scale for change in _factors(asked)]
    removed = [remove] if isinstance(remove, str) else list(remove)
    scales += [(name, 0.0) for name in removed]
    document, text = recording.what_if(scales, without=without, width=WIDTH)
    import json

    return WhatIf(json.loads(document), text)


def _factors(asked: str | Mapping[str, float]) -> list[tuple[str, float]]:
    if not isinstance(asked, str):
        return [(name, float(factor)) for name, factor in asked.items()]
    name, equals, factor = asked.rpartition("=")
    try:
        scale = float(factor.removesuffix("%")) / (100 if factor.endswith("%") else 1)
    except ValueError:
        scale = -1.0
    if not equals or not name.strip() or scale < 0:
        raise ValueError(f"{asked!r} is no change: use NAME=FACTOR, such as 'optimizer=0.5'")
    return [(name.strip(), scale)]
