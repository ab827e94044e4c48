"""Forks during a recording: the parent's goes on, the child has none and may start its own."""

from __future__ import annotations

import threading
from functools import partial
from random import Random

import mindtorch_v2 as torch
from mindprof import profile

from soak.accounts import Work, check_exact, check_some, total
from soak.children import fork, succeed
from soak.rounds import Round
from soak.traces import formats_of


def fork_while_recording(given: Round) -> None:
    """Forks while other threads record and run backward passes that call Python."""
    random = given.random
    prof = profile(with_stack=given.chance(0.3))
    given.watch(prof)
    stop = threading.Event()
    works = [Work(f"beside {number}") for number in range(random.randrange(4))]
    threads = [threading.Thread(target=go_on, args=(work, stop)) for work in works]
    trainer = threading.Thread(target=train_until, args=(stop,))
    own = Work("parent")
    with prof:
        for thread in [*threads, trainer]:
            thread.start()
        try:
            for _ in range(random.randrange(1, 5)):
                own.mix(random, 5)
                with own.range("around the fork"):
                    seed, depth = random.random(), random.randrange(2)
                    succeed(fork(partial(be_child, given, seed, depth)))
        finally:
            stop.set()
            for thread in [*threads, trainer]:
                thread.join()
    check_some(prof, total([own, *works]))


def be_child(given: Round, seed: float, depth: int) -> None:
    """Records in the child, writes a file, multiplies large matrices, and forks again."""
    random = Random(seed)
    work = Work("child")
    with profile() as prof:
        work.mix(random, 10)
    check_exact(prof, work.put_in)
    written = random.choice(formats_of(prof))
    path = given.folder / f"child {depth} {written.ending}"
    written.write(prof, path)
    written.check(path)
    side = 200
    large = torch.ones((side, side))
    assert (large @ large).sum().item() == side**3
    if depth:
        succeed(fork(lambda: be_child(given, random.random(), depth - 1)))


def go_on(work: Work, stop: threading.Event) -> None:
    """Puts in events until told to stop."""
    while not stop.is_set():
        work.nest(3)


def train_until(stop: threading.Event) -> None:
    """Runs backward passes with hooks until told to stop."""
    while not stop.is_set():
        leaf = torch.ones((2, 2), requires_grad=True)
        product = leaf
        for _ in range(5):
            product = product * leaf
            product.register_hook(lambda gradient: gradient * 1)
        product.sum().backward()
