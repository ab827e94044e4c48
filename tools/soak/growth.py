"""Checks that memory stays flat, by the slope of the resident memory over the rounds."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median

from soak.surroundings import resident_bytes

#: The first rounds fill caches and pools; they are at most this share of all.
WARM_UP_ROUNDS, WARM_UP_SHARE = 200, 0.25
#: With fewer rounds after the warm-up, a slope means nothing.
LEAST_ROUNDS = 100
#: Memory varies this much with the heaps of threads and the order of rounds.
BOUND_BYTES, BOUND_SHARE = 24 << 20, 0.15
#: The number of samples whose pairs are compared.
SAMPLES = 200


@dataclass
class Growth:
    """The resident memory after each round."""

    resident: list[int] = field(default_factory=list)

    def sample(self) -> None:
        """Samples the resident memory, after the allocator has released unused pages."""
        trim()
        self.resident.append(resident_bytes())

    def check(self) -> str:
        """Returns a description of the slope.

        Raises:
            AssertionError: If memory grew more over the run than noise explains.
        """
        begin = min(WARM_UP_ROUNDS, int(len(self.resident) * WARM_UP_SHARE))
        measured = self.resident[begin:]
        if len(measured) < 2:
            return "memory: too few rounds for a slope"
        slope = slope_of(measured)
        gained, base = slope * len(measured), measured[0]
        bound = max(BOUND_BYTES, BOUND_SHARE * base)
        text = (
            f"memory: {base / 2**20:.1f} MiB after {begin} rounds, slope {slope / 1024:+.2f} KiB a "
            f"round over {len(measured)} rounds: {gained / 2**20:+.1f} MiB, at most "
            f"{bound / 2**20:.1f} allowed"
        )
        if len(measured) >= LEAST_ROUNDS:
            assert gained <= bound, text
        return text


def slope_of(values: list[int]) -> float:
    """Returns the median of the slopes of all pairs, which is robust against single jumps."""
    step = max(1, len(values) // SAMPLES)
    points = list(enumerate(values))[::step]
    return median((y - b) / (x - a) for (a, b), (x, y) in combinations(points, 2))


def trim() -> None:
    """Makes the C library release unused memory to the system, if it can."""
    function = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if function is not None:
        function(0)
