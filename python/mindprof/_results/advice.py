"""`Advice`: why a program is slow, what mending it would save, and what to try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mindprof import _core


class Finding(NamedTuple):
    """A cause of slowness, and what mending it would save.

    Args:
        rule: The id of the rule that found it.
        share: The part of the step time that mending it is likely to save, as a fraction. 0 if it
            costs something other than time.
        low: The least part that it is likely to save.
        high: The largest part that it could save.
        seconds: The time that it is likely to save in all steps together.
        confidence: `"low"`, `"medium"` or `"high"`.
        function: The user's function that leads to it.
        file: The file of the function.
        line: The line in it.
        module: The module that most of it happens in.
        events: The positions of the events that show it, the longest first.
        event_count: The number of all events that show it.
        remedy: What to try.
    """

    rule: str
    share: float
    low: float
    high: float
    seconds: float
    confidence: str
    function: str | None
    file: str | None
    line: int | None
    module: str | None
    events: list[int]
    event_count: int
    remedy: str


class Overhead(NamedTuple):
    """The profiler's own cost, in a step or in a program without steps.

    Args:
        recorded_us: The recorded time of an average step, in microseconds.
        replayed_us: Its time in a replay of the recording, which prices come from.
        unrecorded_us: The time that an average step is estimated to take without a profiler.
        imports_us: The time of the imports that the other times of a program without steps leave
            out.
    """

    recorded_us: float
    replayed_us: float
    unrecorded_us: float
    imports_us: float


class Advice:
    """Why a program is slow. `print` shows it as `mindprof advise` does.

    Attributes:
        findings: The causes, the most valuable first.
        clean: The ids of the rules that found nothing worth mending.
        unknown: The rules that could not be applied, with what the recording lacks.
        incomplete: The reasons for which the recording is incomplete, such as `lost`.
        overhead: The profiler's own cost.
        is_doubtful: Whether the replay takes more than 25 % more or less time than the recording.
            Nothing is priced then.
        steps: The number of steps that the advice rests on. A program without steps counts as one.
        has_steps: Whether the program has steps.
    """

    findings: list[Finding]
    clean: list[str]
    unknown: dict[str, str]
    incomplete: list[str]
    overhead: Overhead
    is_doubtful: bool
    steps: int
    has_steps: bool

    def __init__(self, recording: _core.Profile, mine: str | Sequence[str] | None = None) -> None:
        """Asks the engine.

        Args:
            recording: The recording to judge.
            mine: Parts of the paths of the user's files.
        """
        import json

        patterns = [mine] if isinstance(mine, str) else list(mine or ())
        document, self._text = recording.advice(mine=patterns, width=80)
        answer = json.loads(document)
        self.findings = [_finding(one) for one in answer["findings"]]
        self.clean = answer["clean"]
        self.unknown = {one["rule"]: one["missing"] for one in answer["unknown"]}
        self.incomplete = answer["incomplete"]
        self.overhead = Overhead(**answer["overhead"])
        self.is_doubtful = answer["is_doubtful"]
        self.steps = answer["steps"]
        self.has_steps = answer["has_steps"]

    def __str__(self) -> str:
        """Returns the advice as text of 80 columns."""
        return self._text

    def __repr__(self) -> str:
        """Returns the rules and shares of the findings."""
        findings = ", ".join(f"{one.rule} {one.share:.1%}" for one in self.findings)
        return f"<Advice: {findings or 'nothing found'}>"


def _finding(one: dict[str, Any]) -> Finding:
    fields = {**one, "event_count": one["count"], "remedy": one["try"]}
    return Finding(*(fields[name] for name in Finding._fields))
