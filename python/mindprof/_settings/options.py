"""`SessionOptions`: the options of one recording, as frameworks and the engine receive them."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from mindprof import _core

if TYPE_CHECKING:
    from dataclasses import dataclass

    from mindprof._settings.activity import ProfilerActivity
    from mindprof._settings.profiler_config import _ExperimentalConfig
else:
    from mindprof._dataclass import dataclass

DEFAULT_BUDGET_BYTES = 256 << 20
DEFAULT_STACK_DEPTH = 1000

# The engine counts in 64 bits.
_MOST = (1 << 63) - 1

#: The value of `with_stack` that asks for sampled stacks.
SAMPLED: Final = "sampled"


@dataclass(frozen=True)
class SessionOptions:
    """The options of one recording.

    A profiler creates them for each recording and passes them to its framework. The engine reads
    the attributes that it knows and ignores the rest.

    Args:
        record_shapes: Record the input shapes of operators.
        profile_memory: Record allocations and frees.
        with_stack: Record Python calls and the stacks of operators.
        sampled: Sample stacks in place of recording every call, where frames can be read.
        with_flops: Estimate floating-point operations from shapes.
        results: Record the results of operators, for execution traces.
        overloads: Keep the names of the operators' overloads.
        with_modules: Record calls of modules, which `with_stack` includes.
        budget_bytes: The maximum memory of the recording.
        keeps_last: Keep the last events if not all fit into the budget, and sum up the others.
        stack_depth: The maximum depth of recorded Python calls.
        all_threads: Record all threads, not only the one that starts the recording.
        source_roots: The prefixes that are removed from the names of source files.
        activities: The groups to record, for frameworks that have several.
        experimental_config: torch's experimental options, for torch's own collector.
        trace_id: The id of the trace.
        only: The words that limit the recorded operators; empty if all are recorded.
    """

    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    sampled: bool = False
    with_flops: bool = False
    results: bool = False
    overloads: bool = False
    with_modules: bool = False
    budget_bytes: int = DEFAULT_BUDGET_BYTES
    keeps_last: bool = False
    stack_depth: int = DEFAULT_STACK_DEPTH
    all_threads: bool = True
    source_roots: tuple[str, ...] = ()
    activities: frozenset[ProfilerActivity] = frozenset()
    experimental_config: _ExperimentalConfig | None = None
    trace_id: str = ""
    only: tuple[str, ...] = ()

    @property
    def records_inputs(self) -> bool:
        """Whether the inputs of operators are recorded."""
        return needs_shapes(self.record_shapes, self.with_flops)

    def without_stack(self) -> SessionOptions:
        """Returns the same options with `with_stack` off."""
        return self._with(with_stack=False)

    def for_devices(self) -> SessionOptions:
        """Returns the options of a collection of devices alone, for all threads."""
        return self._with(
            record_shapes=False,
            profile_memory=False,
            with_stack=False,
            with_flops=False,
            all_threads=True,
            activities=frozenset(group for group in self.activities if group.name != "CPU"),
        )

    def with_budget(self, budget_bytes: int) -> SessionOptions:
        """Returns the same options with another budget."""
        return self._with(budget_bytes=budget_bytes)

    def _with(self, **changed: Any) -> SessionOptions:
        given: dict[str, Any] = {name: getattr(self, name) for name in self.__match_args__}
        return SessionOptions(**{**given, **changed})


def checked_only(only: str | Iterable[str] | None, profile_memory: bool) -> tuple[str, ...]:
    """Validates a limit on the recorded operators, and returns its words.

    Args:
        only: The user's value: a word or several, or `None` for all operators.
        profile_memory: Whether memory is recorded.

    Raises:
        TypeError: A word is not a text.
        ValueError: The words make no sense, or not with the other options.
    """
    if only is None:
        return ()
    words = [only] if isinstance(only, str) else list(only)
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"only must be a text or several, got {word!r}")
    found = tuple(_core.checked_only(words))
    if profile_memory and any(word.startswith("share=") for word in found):
        raise ValueError(
            "only: memory cannot be estimated from a share of the operators: use "
            "profile_memory=False, or patterns in place of share="
        )
    return found


def is_sampled(with_stack: bool | str) -> bool:
    """Returns whether stacks are sampled.

    Args:
        with_stack: The flag of a profiler: `True`, `False` or `"sampled"`.

    Raises:
        ValueError: It is another text.
    """
    if isinstance(with_stack, str) and with_stack != SAMPLED:
        raise ValueError(f'with_stack is {with_stack!r}: use True, False or "{SAMPLED}"')
    return with_stack == SAMPLED


def needs_shapes(record_shapes: bool, with_flops: bool) -> bool:
    """Returns whether shapes are recorded: if requested, and always for FLOPs, which need them."""
    # In place, so that a flag of a wrong type fails with torch's message.
    record_shapes |= with_flops
    return record_shapes


def checked_count(name: str, value: object, unit: str) -> int:
    """Validates an option that is a count, and returns it as an integer.

    Args:
        name: The option.
        value: The user's value.
        unit: The unit of the count, for error messages.

    Raises:
        TypeError: The value is not an integer.
        ValueError: The value is negative or exceeds 63 bits.
    """
    try:
        count = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an integer number of {unit}, got {value!r}") from None
    if not 0 <= count <= _MOST:
        raise ValueError(f"{name} must be from 0 to {_MOST} {unit}, got {value!r}")
    return count
