"""Threads that come and go while others record, and ranges that change threads."""

from __future__ import annotations

import queue
import threading
from random import Random

from mindprof import profile, record_function

from soak.accounts import Work, check_exact, check_some, total
from soak.rounds import Round


def record_threads(given: Round) -> None:
    """Records work of several generations of threads."""
    random = given.random
    with_stack = given.chance(0.3)
    prof = profile(with_stack=with_stack, record_shapes=given.chance(0.3))
    given.watch(prof)
    works: list[Work] = []
    with prof:
        for generation in range(random.randrange(1, 5)):
            present = [Work(f"thread {generation}") for _ in range(random.randrange(1, 9))]
            works += present
            run_all(random, present)
        works.append(hand_over(random.randrange(1, 40)))
    (check_some if with_stack else check_exact)(prof, total(works))


def run_all(random: Random, works: list[Work]) -> None:
    """Runs each work on its own thread, all at once."""
    begin = threading.Barrier(len(works))

    def run(work: Work, seed: float) -> None:
        begin.wait()
        work.mix(Random(seed), 12)

    threads = [threading.Thread(target=run, args=(work, random.random())) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def hand_over(count: int) -> Work:
    """Opens ranges on this thread that another one closes."""
    work = Work("handed over")
    ranges: queue.Queue[record_function | None] = queue.Queue()

    def close() -> None:
        while (opened := ranges.get()) is not None:
            opened.__exit__(None, None, None)

    thread = threading.Thread(target=close)
    thread.start()
    for number in range(count):
        ranges.put(work.open(f"handed over {number}"))
        work.operate()
    ranges.put(None)
    thread.join()
    return work
