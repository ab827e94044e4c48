"""`diff`: compares two profiles row by row.

Profiles come from trace files, loaded profiles or finished recordings. The engine compares them;
this module presents the result.
"""

from __future__ import annotations

import math
import os
import warnings
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from mindprof import _core, _load
from mindprof._profiler import autograd_profile, kineto_profile
from mindprof._results import notebook
from mindprof._results.format import _format_time

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from mindprof._dataclass import dataclass

Measure = Literal["self", "total", "count"]

Comparable = (
    str
    | os.PathLike[str]
    | _load.LoadedProfile
    | kineto_profile._KinetoProfile
    | autograd_profile.profile
)

# The columns that a notebook shows.
_COLUMNS: tuple[notebook.Column, ...] = (
    ("name", attrgetter("key"), str),
    ("device", attrgetter("device"), str),
    ("state", attrgetter("state"), str),
    ("calls before", attrgetter("count_before"), str),
    ("calls after", attrgetter("count_after"), str),
    ("self before", attrgetter("self_time_before"), _format_time),
    ("self after", attrgetter("self_time_after"), _format_time),
    ("self change", attrgetter("self_time_change"), _format_time),
    ("growth", attrgetter("growth"), "{:+.1%}".format),
)


@dataclass(frozen=True)
class DiffRow:
    """The events of one name (and one set of input shapes) in both profiles.

    Times are microseconds. A side that has no such events counts as zero; `state` is `new`, `gone`,
    `changed` or `same`.
    """

    key: str
    input_shapes: list[list[int]] | None
    device: str
    is_user_annotation: bool
    state: str
    count_before: int
    count_after: int
    self_time_before: float
    self_time_after: float
    total_time_before: float
    total_time_after: float
    growth: float
    """The row's growth as a fraction of the whole first profile: 0.05 for five percent."""

    def _repr_html_(self) -> str:
        """Returns the notebook representation: a table of the attributes."""
        return notebook.pairs((name, getattr(self, name)) for name in self.__match_args__)

    @property
    def count_change(self) -> int:
        """The change of the number of events."""
        return self.count_after - self.count_before

    @property
    def self_time_change(self) -> float:
        """The change of the self time."""
        return self.self_time_after - self.self_time_before

    @property
    def total_time_change(self) -> float:
        """The change of the total time, which includes children."""
        return self.total_time_after - self.total_time_before


@dataclass(frozen=True)
class DiffWhole:
    """The totals of one profile in a comparison. Times are microseconds."""

    count: int
    self_cpu_time: float
    self_device_time: float
    span: float


@dataclass(frozen=True)
class DiffVerdict:
    """The verdict of a comparison, which is true only if nothing grew beyond the limit."""

    outcome: str
    """`within`, `exceeded`, or `refused` if a profile cannot be judged."""
    reason: str
    """A sentence about what grew, or why a profile was refused."""
    growth: float | None
    """The growth of what grew most: 0.05 for five percent; `None` if refused."""
    warnings: tuple[str, ...] = ()
    """Differences other than speed that the times may be due to, such as shapes on one side, and a
    limit that may be meant as a percentage."""

    def __bool__(self) -> bool:
        return self.outcome == "within"

    def __str__(self) -> str:
        return self.reason


class ProfileDiff:
    """The differences between two profiles, as `diff` returns them.

    It is true if anything changed, and prints as a table of the changed rows.
    """

    def __init__(self, found: _core.Diff) -> None:
        self._found = found

    @cached_property
    def rows(self) -> list[DiffRow]:
        """The rows of both profiles, largest change first."""
        return [DiffRow(**attributes) for attributes in self._found.rows()]

    @property
    def by_shapes(self) -> bool:
        """Whether rows are grouped by input shapes too, which needs shapes on both sides."""
        return self._found.by_shapes()

    @property
    def before(self) -> DiffWhole:
        """The totals of the first profile."""
        return DiffWhole(**self._found.wholes()[0])

    @property
    def after(self) -> DiffWhole:
        """The totals of the second profile."""
        return DiffWhole(**self._found.wholes()[1])

    @property
    def growth(self) -> float:
        """The growth of CPU time or of device time, whichever grew more.

        With `measure="count"`, it is the growth of the number of events. 0.05 means five percent,
        and the growth is infinite if the first profile has zero.
        """
        return self._found.growth()

    def verdict(
        self,
        fail_over: float | str,
        *,
        fail_on: Literal["total", "row"] = "total",
        allow_incomplete: bool = False,
    ) -> DiffVerdict:
        """Judges the growth against a limit, as `mindprof diff --fail-over` does.

        Profiles that cannot be judged are refused: a damaged, cut or empty trace looks faster than
        the program was, so a gate must not pass it.

        Args:
            fail_over: The growth that is still accepted: 0.05 or `"5%"` for five percent. A number
                of 1 or more causes a `UserWarning`, because it may be meant as a percentage.
            fail_on: Judge the profile as a whole (`total`), or each row, whose growth is a share of
                the whole of the first profile (`row`).
            allow_incomplete: Judge profiles with lost events, of damaged or cut traces, and with
                fewer steps, ranks or devices than the first; `warnings` of the verdict name them.

        Raises:
            TypeError: `fail_over` is neither a number nor a string.
            ValueError: `fail_over` is negative, infinite, not a number or a string without a
                percent sign, or `fail_on` does not exist.

        Example:
            >>> import mindprof
            >>> with mindprof.profile() as prof:
            ...     with mindprof.record_function("step"):
            ...         pass
            >>> assert mindprof.diff(prof, prof).verdict(0.05)
        """
        share = _share(fail_over)
        outcome, reason, growth, doubts = self._found.verdict(share, fail_on, allow_incomplete)
        doubt = None if isinstance(fail_over, str) else _doubt(share)
        if doubt is not None and outcome != "refused":
            warnings.warn(doubt, UserWarning, stacklevel=2)
            doubts = [doubt, *doubts]
        return DiffVerdict(outcome, reason, growth, tuple(doubts))

    def worst(self) -> DiffRow | None:
        """Returns the row that grew most, or `None` if none grew."""
        position = self._found.worst()
        return None if position is None else self.rows[position]

    def table(
        self,
        row_limit: int = 100,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 40,
    ) -> str:
        """Returns the changed rows as a text table with the totals below.

        Lines that begin with `note:` follow for each fact that makes the comparison unfair, such as
        lost events. The columns of the first profile are `A`, those of the second are `B`.

        Args:
            row_limit: The maximum number of rows; all if negative.
            max_name_column_width: The maximum width of names; `None` for no limit.
            max_shapes_column_width: The maximum width of shapes; `None` for no limit.
        """
        return self._found.table(row_limit, max_name_column_width, max_shapes_column_width)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Returns the rows as dicts of plain values."""
        from dataclasses import asdict

        return [asdict(row) for row in self.rows]

    def to_json(self) -> str:
        """Returns the comparison as the JSON that `mindprof diff --json` prints."""
        return self._found.json()

    def _repr_html_(self) -> str:
        """Returns the notebook representation: the changed rows, largest change first.

        Notes follow about facts that make the comparison unfair, as in the text.
        """
        changed = [row for row in self.rows if row.state != "same"]
        caption = f"{len(changed)} of {len(self)} rows changed, largest growth {self.growth:+.1%}"
        rows = notebook.table(_COLUMNS, changed, len(changed), caption)
        return rows + notebook.paragraphs(f"note: {note}" for note in self._found.notes())

    def __len__(self) -> int:
        return len(self._found)

    def __bool__(self) -> bool:
        """Whether anything changed."""
        return not self._found.is_none()

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<mindprof.ProfileDiff of {len(self)} rows, {self.growth:+.1%}>"


def diff(
    before: Comparable,
    after: Comparable,
    *,
    by_shapes: bool = True,
    include_python_functions: bool = False,
    measure: Measure = "self",
) -> ProfileDiff:
    """Compares two profiles row by row: trace files, loaded profiles or finished recordings.

    Args:
        before: The baseline.
        after: The profile to compare with the baseline.
        by_shapes: Group rows by input shapes too, if both profiles have them.
        include_python_functions: Compare calls of Python functions too.
        measure: What to compare and sort by: self time (`self`), total time (`total`) or the number
            of events (`count`). It also decides `growth` and `verdict()`.

    Raises:
        TypeError: An argument has an unsupported type.
        ValueError: The measure does not exist, or a profiler has no finished recording.
        OSError: A file cannot be read.
        ProfilerError: A file is not a trace.

    Example:
        >>> import mindprof
        >>> with mindprof.profile() as prof:
        ...     with mindprof.record_function("step"):
        ...         pass
        >>> bool(mindprof.diff(prof, prof))
        False
    """
    return ProfileDiff(
        _core.diff_profiles(
            _recording(before),
            _recording(after),
            by_shapes=by_shapes,
            include_python_functions=include_python_functions,
            measure=measure,
            names=(_name(before, "the first profile"), _name(after, "the second profile")),
        )
    )


def _name(profile: Comparable, otherwise: str) -> str:
    """Returns the path of a profile that comes from a file, for sentences about it."""
    if isinstance(profile, (str, os.PathLike)):
        return os.fspath(profile)
    path = profile.path if isinstance(profile, _load.LoadedProfile) else "<"
    # A trace that was read from bytes or an unnamed stream has a description for a path.
    return otherwise if path.startswith("<") else path


def _share(limit: float | str) -> float:
    """Returns the limit of a verdict as a fraction, or raises an error with the expected form.

    Args:
        limit: A fraction, or a percentage as a string with a percent sign.
    """
    wanted = 'a fraction such as 0.05, or a percentage such as "5%"'
    if isinstance(limit, bool):
        raise TypeError(f"fail_over must be {wanted}, got {limit}")
    try:
        share = _percentage(limit) if isinstance(limit, str) else float(limit)
    except ValueError:
        raise ValueError(f"fail_over must be {wanted}, got {limit!r}") from None
    except TypeError:
        raise TypeError(f"fail_over must be {wanted}, got {type(limit).__name__}") from None
    if not share >= 0:
        raise ValueError(f"fail_over must be zero or more, got {limit}")
    if math.isinf(share):
        raise ValueError(f"fail_over must be finite, got {limit}: nothing would exceed it")
    return share


def _percentage(text: str) -> float:
    number = text.strip()
    if not number.endswith("%"):
        raise ValueError(text)
    return float(number[:-1]) / 100


def _doubt(share: float) -> str | None:
    """Returns a warning if a fraction looks like a percentage."""
    if share < 1:
        return None
    return f"the limit is {share * 100:g}%; pass {share / 100:g} if you meant {share:g}%"


def _recording(profile: Comparable) -> _core.Profile:
    """Returns the engine's profile behind an argument of `diff`."""
    if isinstance(profile, (str, os.PathLike)):
        profile = _load.load(profile)
    if isinstance(profile, _load.LoadedProfile):
        return profile._recording
    if not isinstance(profile, (kineto_profile._KinetoProfile, autograd_profile.profile)):
        raise TypeError(_foreign(profile))
    inner = profile.profiler if isinstance(profile, kineto_profile._KinetoProfile) else profile
    recording = None if inner is None or not inner.enabled else inner._recording()
    if recording is None:
        raise ValueError("no finished recording: stop the profiler before comparing it")
    return recording


def _foreign(given: object) -> str:
    """Returns the error message for an object that cannot be compared."""
    kind = f"{type(given).__module__}.{type(given).__qualname__}".removeprefix("builtins.")
    text = f"expected a trace path, a loaded profile or a finished recording, found {kind}"
    if hasattr(given, "export_chrome_trace"):
        return f"{text}: write it with export_chrome_trace(path) and pass the path"
    return text
