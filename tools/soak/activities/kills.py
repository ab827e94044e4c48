"""Children that are killed while they write or record: a file is complete or absent.

On a file system without unnamed files a killed writer leaves its partial file under a hidden name;
the next export to the same target ignores it.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from random import Random

from mindprof import profile, schedule

from soak.accounts import Work, check_exact
from soak.children import fork, kill_after, succeed
from soak.named_parts import use_named_parts
from soak.rounds import ALL_FLAGS, Round
from soak.traces import FORMATS, Format, formats_of


def kill_children(given: Round) -> None:
    """Kills a child that writes or records."""
    (kill_writer if given.chance(0.7) else kill_recorder)(given)


def kill_writer(given: Round) -> None:
    """Kills a child while it exports repeatedly, perhaps over an existing file."""
    random = given.random
    prof = profile(**(ALL_FLAGS if given.chance(0.5) else {}))
    given.watch(prof)
    with prof:
        Work("written").mix(random, random.randrange(1, 200))
    written = random.choice(formats_of(prof))
    path = given.folder / written.ending
    begun = time.monotonic()
    written.write(prof, path)
    seconds = time.monotonic() - begun
    is_replaced, is_named = given.chance(0.5), given.chance(0.5)
    if not is_replaced:
        path.unlink()

    def write() -> None:
        if is_named:
            use_named_parts()
        while True:
            written.write(prof, path)

    kill_after(fork(write), random.uniform(0, 3 * seconds))
    assert path.exists() or not is_replaced, "the existing file is gone"
    check_target(path, written)
    # On a file system without unnamed files, the next writer has none either.
    write_again(prof, path, written, is_named=is_named)


def kill_recorder(given: Round) -> None:
    """Kills a child that records and exports by a schedule; the parent's recording goes on."""
    random, written = given.random, FORMATS[0]
    path = given.folder / written.ending
    own = Work("parent of the killed")
    prof = profile()
    given.watch(prof)
    with prof:
        own.mix(random, 5)
        seed = random.random()
        child = fork(lambda: record_for_ever(path, seed))
        own.mix(random, 5)
        kill_after(child, random.uniform(0, 0.1))
        own.mix(random, 5)
    check_exact(prof, own.put_in)
    check_target(path, written)
    write_again(prof, path, written, is_named=False)


def check_target(path: Path, written: Format) -> None:
    """Checks that a target is absent or complete, with at most one partial file beside it."""
    if path.exists():
        written.check(path)
    others = [each.name for each in path.parent.iterdir() if each != path]
    parts = [each.name for each in path.parent.glob(f".{path.name}.*.part")]
    assert others == parts, f"beside {path.name} there is {others}"
    assert len(parts) <= 1, f"one killed writer left {parts}"


def write_again(prof: profile, path: Path, written: Format, *, is_named: bool) -> None:
    """Writes to the target of a killed writer, and removes the partial file that it left."""
    parts = list(path.parent.glob(f".{path.name}.*.part"))

    def write() -> None:
        use_named_parts()
        written.write(prof, path)

    if is_named:
        succeed(fork(write))
    else:
        written.write(prof, path)
    written.check(path)
    for part in parts:
        part.unlink()
    left = sorted(each.name for each in path.parent.iterdir())
    assert left == [path.name], f"after the next export there is {left}"


def record_for_ever(path: Path, seed: float) -> None:
    """Records on three threads and writes a trace for each cycle."""

    def mix() -> None:
        while True:
            Work("killed").mix(Random(seed), 5)

    def write(prof: profile) -> None:
        prof.export_chrome_trace(path)

    for _ in range(2):
        threading.Thread(target=mix, daemon=True).start()
    plan = schedule(wait=0, warmup=1, active=1)
    with profile(schedule=plan, on_trace_ready=write, **ALL_FLAGS) as prof:
        while True:
            Work("killed").mix(Random(seed), 5)
            prof.step()
