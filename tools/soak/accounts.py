"""Bookkeeping of events: those put into a recording must come out or be counted as lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import mindtorch_v2 as torch
from mindprof import _core, profile, record_function

#: The cause of loss that concerns Python calls only, which no account counts.
UNSEEN = "in Python calls that another tool hides or that had begun before"
#: A budget that no round exhausts.
AMPLE_BYTES = 256 << 20
#: Created at import, so that no recording contains the operators that create it.
OPERAND = torch.ones((2, 2))


class Work:
    """Calls operators and opens ranges, and counts them. Belongs to one thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.put_in: Counter[str] = Counter()

    def operate(self, times: int = 1) -> None:
        """Calls operators that are one event each and that nothing else here calls."""
        for _ in range(times):
            torch.maximum(OPERAND, OPERAND)
            torch.minimum(OPERAND, OPERAND)
        self.put_in["aten::maximum"] += times
        self.put_in["aten::minimum"] += times

    def open(self, name: str) -> record_function:
        """Opens a range, which the caller may leave open."""
        opened = record_function(name)
        opened.__enter__()
        self.put_in[name] += 1
        return opened

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        """Holds a range open for the body of a `with` statement."""
        opened = self.open(name)
        try:
            yield
        finally:
            opened.__exit__(None, None, None)

    def nest(self, depth: int) -> None:
        """Calls operators in nested ranges."""
        if depth:
            with self.range(f"{self.name} {depth}"):
                self.operate()
                self.nest(depth - 1)

    def mix(self, random: Random, units: int) -> None:
        """Calls operators and opens ranges in random order."""
        for _ in range(units):
            match random.randrange(3):
                case 0:
                    self.operate(random.randrange(1, 20))
                case 1:
                    self.nest(random.randrange(1, 12))
                case _:
                    with self.range(self.name):
                        self.operate()


def total(works: Iterable[Work]) -> Counter[str]:
    """Returns the sum of the events that several works put in."""
    return sum((work.put_in for work in works), Counter())


def names_in(recorded: Any) -> Counter[str]:
    """Returns the number of events of a profile by name."""
    return Counter(event.name for event in recorded.events())


def loss_of(prof: profile) -> int:
    """Returns the number of lost events that the recorder had seen."""
    assert prof.profiler is not None
    assert prof.profiler.kineto_results is not None
    loss = _core.profile_loss(prof.profiler.kineto_results)
    assert sum(loss.values()) == prof.lost_events
    return sum(count for cause, count in loss.items() if cause != UNSEEN)


def check_exact(prof: profile, put_in: Counter[str]) -> None:
    """Checks a recording of these events alone: each came out or was counted as lost."""
    out = names_in(prof)
    assert not out - put_in, f"more came out than was put in: {brief(out - put_in)}"
    missing, lost = put_in.total() - out.total(), prof.lost_events
    assert missing == lost, (
        f"in {put_in.total()}, out {out.total()}, lost {lost}: {brief(put_in - out)} missing"
    )
    check_rows(prof, out)


def check_some(prof: profile, put_in: Counter[str]) -> None:
    """Checks a recording of these and other events: every missing one was counted as lost."""
    out = names_in(prof)
    found = Counter({name: out[name] for name in put_in})
    assert not found - put_in, f"more came out than was put in: {brief(found - put_in)}"
    missing, lost = (put_in - found).total(), loss_of(prof)
    assert missing <= lost, f"missing {brief(put_in - found)}, lost {lost}"
    check_rows(prof, out)


def check_rows(prof: profile, out: Counter[str]) -> None:
    """Checks that rows count no more than the list of events contains."""
    rows = Counter({row.key: row.count for row in prof.key_averages(include_python_functions=True)})
    assert not rows - out, f"rows count more: {brief(rows - out)}"


def brief(counts: Counter[str]) -> str:
    """Returns the largest counts on one line."""
    shown = ", ".join(f"{name[:40]!r} {count}" for name, count in counts.most_common(5))
    return f"{counts.total()} of {len(counts)} names ({shown})"
