"""Exports in every format, to new and existing files, and loads of the exported files."""

from __future__ import annotations

import copy
import pickle
import threading

import mindprof
from mindprof import profile

from soak.accounts import Work, names_in, total
from soak.rounds import ALL_FLAGS, Round
from soak.traces import Format, formats_of


def export_everything(given: Round) -> None:
    """Writes a recording in every format, one by one or from several threads at once."""
    random = given.random
    works = [Work(f"exported {number}") for number in range(random.randrange(1, 4))]
    prof = profile(**(ALL_FLAGS if given.chance(0.5) else {}))
    given.watch(prof)
    with prof:
        for work in works:
            thread = threading.Thread(target=work.mix, args=(random, random.randrange(1, 40)))
            thread.start()
            thread.join()
    found = formats_of(prof)
    random.shuffle(found)
    if given.chance(0.5):
        for written in found:
            write(given, prof, written)
    else:
        write_at_once(given, prof, found)
    expected = {written.ending for written in found}
    assert {path.name for path in given.folder.iterdir()} == expected
    read_again(given, prof)
    assert total(works).total() <= names_in(prof).total()


def write(given: Round, prof: profile, written: Format) -> None:
    """Writes a file, perhaps over an existing one, and checks it."""
    path = given.folder / written.ending
    for _ in range(given.random.randrange(1, 3)):
        written.write(prof, path)
        written.check(path)


def write_at_once(given: Round, prof: profile, found: list[Format]) -> None:
    """Writes all files at once, each from two threads; one of the two versions must remain."""
    threads = [
        threading.Thread(target=written.write, args=(prof, given.folder / written.ending))
        for written in found * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for written in found:
        written.check(given.folder / written.ending)


def read_again(given: Round, prof: profile) -> None:
    """Loads the traces and pickled events: all have the events of the recording."""
    names = names_in(prof)
    for ending in ("trace.json", "trace.json.gz"):
        loaded = mindprof.load(given.folder / ending)
        given.watch(loaded)
        assert names_in(loaded) - names_in(prof) == type(names)(), "more events in the file"
        assert loaded.lost_events == prof.lost_events
        again = given.folder / f"again {ending}"
        loaded.export_chrome_trace(again)
        assert names_in(mindprof.load(again)) == names_in(loaded)
    events = prof.events()
    for copied in (pickle.loads(pickle.dumps(events)), copy.deepcopy(events)):
        assert type(names)(event.name for event in copied) == names
