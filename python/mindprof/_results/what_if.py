"""`WhatIf`: how long steps would take if some of their work were faster.

The engine replays a finished recording; `SharedResults` returns the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat

from mindprof import _core

WIDTH = 80

LARGEST_FACTOR = 1000
"""The engine refuses larger factors."""


class WhatIf(dict[str, Any]):
    """The steps with some changes, with the keys of `what-if --json`.

    Times are microseconds. Printing it prints the text of the command.
    """

    def __init__(self, document: dict[str, Any], text: str) -> None:
        super().__init__(document)
        self._text = text

    @property
    def recorded_us(self) -> float:
        """The time of an average step as it was recorded."""
        return float(self["recorded"]["mean_us"])

    @property
    def unrecorded_us(self) -> float:
        """The same without the profiler's own cost, as far as that can be estimated."""
        return float(self["unrecorded"]["mean_us"])

    @property
    def changed_us(self) -> float:
        """The time of an average step with the changes and without the profiler's own cost."""
        return float(self["changed"]["mean_us"])

    @property
    def saved_us(self) -> float:
        """The time that the changes save of an average step. Negative if it takes longer."""
        return float(self["saved_us"])

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    __repr__ = __str__


def what_if(
    recording: _core.Profile,
    scale: Sequence[str | Mapping[str, float | str]],
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


def _factors(asked: str | Mapping[str, float | str]) -> list[tuple[str, float]]:
    if isinstance(asked, Mapping):
        return [_factor(name, factor, {name: factor}) for name, factor in asked.items()]
    if not isinstance(asked, str):
        raise TypeError(
            f"{asked!r} is no change: use 'optimizer=0.5' or {{'optimizer': 0.5}}, "
            "several of them as several arguments"
        )
    name, equals, factor = asked.rpartition("=")
    return [_factor(name if equals else "", factor, asked)]


def _factor(name: object, factor: object, asked: object) -> tuple[str, float]:
    """Reads a factor, which may be a percentage."""
    if not isinstance(name, str) or not isinstance(factor, (str, SupportsFloat)):
        raise TypeError(f"{asked!r} is no change: use a name and a factor, such as 0.5 or '50%'")
    try:
        if isinstance(factor, str):
            scale = float(factor.removesuffix("%")) / (100 if factor.endswith("%") else 1)
        else:
            scale = float(factor)
    except (ValueError, OverflowError):
        scale = -1.0
    if not name.strip() or not 0 <= scale <= LARGEST_FACTOR:
        raise ValueError(
            f"{asked!r} cannot be applied: use NAME=FACTOR with a factor from 0 to "
            f"{LARGEST_FACTOR}, such as 'optimizer=0.5'"
        )
    return name.strip(), scale
