"""Recordings that exhaust their budget: the newest events are dropped, and every one is counted."""

from __future__ import annotations

import threading
from typing import Any

from mindprof import profile

from soak.accounts import Work, check_exact, check_some, total
from soak.rounds import Round


def spend_budgets(given: Round) -> None:
    """Records more than the budget holds, on one thread or on several."""
    random = given.random
    budget_bytes = random.choice([0, 1, 31, 32, 64, 640, 3200, 32_000, 320_000])
    works = [Work(f"budget {number}") for number in range(random.choice([1, 1, 2, 4]))]
    seeds = [random.random() for _ in works]
    exact: dict[str, Any] = {"record_shapes": given.chance(0.5), "with_modules": given.chance(0.2)}
    more: dict[str, Any] = {"profile_memory": given.chance(0.2), "with_stack": given.chance(0.2)}
    prof = profile(budget_bytes=budget_bytes, **exact, **more)
    given.watch(prof)

    def run(work: Work, seed: float) -> None:
        work.mix(type(random)(seed), 60)

    with prof:
        threads = [
            threading.Thread(target=run, args=(work, seed))
            for work, seed in zip(works[1:], seeds[1:], strict=True)
        ]
        for thread in threads:
            thread.start()
        run(works[0], seeds[0])
        for thread in threads:
            thread.join()
    (check_some if any(more.values()) else check_exact)(prof, total(works))
