"""Names of users: long, many, in any script; their memory is charged to the recording."""

from __future__ import annotations

from random import Random

import mindprof
from mindprof import profile

from soak.accounts import AMPLE_BYTES, Work, check_exact, names_in
from soak.rounds import Round
from soak.traces import check_trace

LETTERS = ["a", "\u00e9", "\u8a9e", "\U0001f40d", " ", '"', "\\", "<", "\n", "\x07", "\u2028"]


def record_names(given: Round) -> None:
    """Records ranges with names of any length, with a budget that may be too small for them."""
    random = given.random
    budget_bytes = random.choice([1000, 100_000, 1_000_000, AMPLE_BYTES])
    work = Work("names")
    prof = profile(budget_bytes=budget_bytes)
    given.watch(prof)
    with prof:
        for number in range(random.choice([5, 50, 2000])):
            with work.range(f"{number} {name(random)}"):
                work.operate()
    check_exact(prof, work.put_in)
    path = given.folder / "names.json"
    prof.export_chrome_trace(path)
    check_trace(path)
    loaded = mindprof.load(path)
    assert names_in(loaded) == names_in(prof), "the file has other names"
    assert loaded.lost_events == prof.lost_events


def name(random: Random) -> str:
    """Returns a name, usually a short one."""
    length = random.choice([0, 3, 30, 30, 300, random.choice([3000, 1_000_000])])
    return "".join(random.choices(LETTERS, k=min(length, 20))) * (length // 20 or 1)
