"""Schedules: each cycle delivers the events of its active steps and of no others."""

from __future__ import annotations

from collections import Counter

from mindprof import ProfilerAction, profile, schedule, tensorboard_trace_handler

from soak.accounts import Work, check_some, names_in
from soak.rounds import Round


def follow_schedule(given: Round) -> None:
    """Steps through cycles of random length, and writes a trace for each."""
    random = given.random
    plan = schedule(
        wait=random.randrange(3),
        warmup=random.randrange(3),
        active=random.randrange(1, 4),
        repeat=random.randrange(4),
        skip_first=random.randrange(3),
        skip_first_wait=random.randrange(2),
    )
    put_in: list[Counter[str]] = []
    write = tensorboard_trace_handler(str(given.folder), use_gzip=given.chance(0.5))
    cycles = 0

    def ready(prof: profile) -> None:
        nonlocal cycles
        expected = Counter[str]()
        # The cycle that ends is the run of recorded steps before this one.
        step = prof.step_num - 1 if len(put_in) == prof.step_num else prof.step_num
        while step >= 0 and plan(step) in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            expected += put_in[step]
            expected["ProfilerStep*"] += 1
            step -= 1
            if step >= 0 and plan(step) == ProfilerAction.RECORD_AND_SAVE:
                break
        check_some(prof, expected)
        assert names_in(prof).total() == expected.total()
        write(prof)
        cycles += 1

    prof = profile(schedule=plan, on_trace_ready=ready, record_shapes=given.chance(0.5))
    given.watch(prof)
    with prof:
        for _ in range(random.randrange(1, 15)):
            work = Work("step")
            work.mix(random, 3)
            put_in.append(work.put_in)
            prof.step()
        put_in.append(Counter())
    assert len(list(given.folder.iterdir())) == cycles
