"""Ranges that overlap without nesting, as requests of a server do; some are never closed."""

from __future__ import annotations

import asyncio

from mindprof import profile

from soak.accounts import AMPLE_BYTES, Work, check_exact
from soak.rounds import Round


def overlap_ranges(given: Round) -> None:
    """Runs coroutines that hold ranges open while others run."""
    random = given.random
    work = Work("request")
    flight, requests = random.randrange(2, 60), random.randrange(50, 1500)
    is_left_open = given.chance(0.5)
    prof = profile(budget_bytes=random.choice([AMPLE_BYTES, AMPLE_BYTES, 20_000]))
    given.watch(prof)

    async def request(turns: int) -> None:
        opened = work.open(f"request of {turns}")
        for _ in range(turns):
            work.operate()
            await asyncio.sleep(0)
        opened.__exit__(None, None, None)

    async def serve(numbers: list[int]) -> None:
        # One that stays open while all others come and go.
        guard = work.open("server")
        while numbers:
            running = [request(turns) for turns in numbers[:flight]]
            del numbers[:flight]
            await asyncio.gather(*running)
        if not is_left_open:
            guard.__exit__(None, None, None)

    with prof:
        asyncio.run(serve([random.randrange(6) for _ in range(requests)]))
        left = [work.open(f"open {number}") for number in range(random.randrange(30))]
    check_exact(prof, work.put_in)
    for opened in reversed(left):
        opened.__exit__(None, None, None)
