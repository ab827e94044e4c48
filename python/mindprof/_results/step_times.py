"""`StepTimes`: what the time of each step was spent on."""

from __future__ import annotations

from typing import Any, NamedTuple

from mindprof import _core


class StepTime(NamedTuple):
    """One step.

    Args:
        number: The number of the step.
        start_us: Its start, in microseconds since the start of the recording.
        duration_us: Its duration in microseconds.
        split_us: The microseconds of each class, such as `"operators"`. They sum to the duration.
        is_slow: Whether it takes much longer than the median.
    """

    number: int
    start_us: float
    duration_us: float
    split_us: dict[str, float]
    is_slow: bool


class SlowStep(NamedTuple):
    """A step that takes much longer than the median, and what differed in it.

    Args:
        number: The number of the step.
        duration_us: Its duration in microseconds.
        excess_us: The microseconds by which it exceeds the median.
        kind: The class that grew most.
        function: The user's function that grew most, with file and line: `"train.py:7 save"`.
        operator: The operator that grew most.
    """

    number: int
    duration_us: float
    excess_us: float
    kind: str
    function: str | None
    operator: str | None


class StepTimes(NamedTuple):
    """The times of all steps whose beginning is known.

    Args:
        steps: The steps, sorted by number.
        split_us: The microseconds of each class in all steps.
        p50_us: The median of the durations.
        p90_us: The duration that 90 % of the steps do not exceed.
        p99_us: The duration that 99 % of the steps do not exceed.
        max_us: The longest duration.
        device_p50_us: The median step on the devices, if they need longer than the CPU.
        slow: The slowest of the slow steps, the slowest first.
        has_python: Whether Python calls were recorded. If not, `"idle"` contains Python code too.
    """

    steps: list[StepTime]
    split_us: dict[str, float]
    p50_us: float
    p90_us: float
    p99_us: float
    max_us: float
    device_p50_us: float | None
    slow: list[SlowStep]
    has_python: bool

    def __str__(self) -> str:
        """Returns the summary of `mindprof steps`, without a line for each step."""
        if not self.steps:
            return "no steps: record with `prof.step()` or `mindprof run`"
        count = len(self.steps)
        tails = {"p90": self.p90_us, "p99": self.p99_us}
        told = [(name, tails[name]) for name in _core.told_percentiles(count)]
        times = [("p50", self.p50_us), *told, ("longest", self.max_us)]
        texts = ", ".join(f"{name} {_time(time)}" for name, time in times)
        lines = [
            f"{count} step{'s' * (count > 1)}: {texts}",
            *self._behind(),
            "",
            f"{'Class':<13}  Share  Per step   In all",
            f"{'-' * 13}  -----  --------  -------",
        ]
        total = sum(self.split_us.values()) or 1.0
        for kind, time in self.split_us.items():
            if time > 0:
                share = f"{100 * time / total:.0f} %"
                each = _time(time / count)
                lines.append(f"{self._name(kind):<13}  {share:>5}  {each:>8}  {_time(time):>7}")
        lines += [
            f"slow: step {step.number} ({_time(step.duration_us)}), {self._name(step.kind)}"
            for step in self.slow
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Returns the same: one line of all steps would tell nobody anything."""
        return str(self)

    def _behind(self) -> list[str]:
        """Returns a line if the devices need longer for a step than the CPU."""
        if self.device_p50_us is None:
            return []
        return [
            f"The device sets the pace: its median step takes {_time(self.device_p50_us)}. "
            "These are times of the CPU"
        ]

    def _name(self, kind: str) -> str:
        """Returns the name of a class, as `mindprof steps` prints it."""
        if kind == "idle" and not self.has_python:
            return "Python or idle"
        return kind.replace("_", " ").replace("python", "Python")


def _time(microseconds: float) -> str:
    """Formats a time with three digits."""
    value, unit = microseconds, "us"
    for larger in ("ms", "s"):
        if value < 1e3:
            break
        value, unit = value / 1e3, larger
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {unit}"


def step_times(text: str) -> StepTimes:
    """Reads the engine's answer to the question `step_times`.

    Args:
        text: The answer, as JSON.
    """
    import json

    answer = json.loads(text)
    return StepTimes(
        steps=[
            StepTime(
                step["number"],
                step["start_us"],
                step["duration_us"],
                _split(step["split"]),
                step["is_slow"],
            )
            for step in answer["steps"]
        ],
        split_us=_split(answer["split"]),
        p50_us=answer["p50_us"],
        p90_us=answer["p90_us"],
        p99_us=answer["p99_us"],
        max_us=answer["max_us"],
        device_p50_us=answer["device_p50_us"],
        slow=[_slow(step) for step in answer["slow"]],
        has_python=answer["has_python"],
    )


def _split(split: dict[str, float]) -> dict[str, float]:
    return {key.removesuffix("_us"): time for key, time in split.items()}


def _slow(step: dict[str, Any]) -> SlowStep:
    function, operator = step["function"], step["operator"]
    return SlowStep(
        step["number"],
        step["duration_us"],
        step["excess_us"],
        step["class"],
        function and f"{function['file']}:{function['line']} {function['function']}",
        operator and operator["name"],
    )
