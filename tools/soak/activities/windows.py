"""Profilers that nest, overlap, pause and restart: each has the events of its own window."""

from __future__ import annotations

from collections import Counter

from mindprof import ProfilerActivity, profile

from soak.accounts import Work, check_exact
from soak.rounds import Round


class Window:
    """A profiler, and the events put in while it recorded."""

    def __init__(self) -> None:
        self.prof = profile()
        self.expected: Counter[str] = Counter()
        self.is_paused = False

    def toggle(self) -> None:
        """Pauses or resumes the profiler."""
        self.prof.toggle_collection_dynamic(self.is_paused, [ProfilerActivity.CPU])
        self.is_paused = not self.is_paused


def overlap_profilers(given: Round) -> None:
    """Starts, pauses and stops profilers in random order, and puts in events between."""
    random = given.random
    is_open: list[Window] = []
    closed: list[Window] = []
    for _ in range(random.randrange(10, 80)):
        step = random.randrange(6)
        if step == 0 and len(is_open) < 6:
            # A stopped profiler may start again, without its earlier events.
            window = closed.pop() if closed and given.chance(0.3) else Window()
            window.expected.clear()
            window.is_paused = False
            window.prof.start()
            is_open.append(window)
        elif step == 1 and is_open:
            window = is_open.pop(random.randrange(len(is_open)))
            window.prof.stop()
            closed.append(window)
        elif step == 2 and is_open:
            random.choice(is_open).toggle()
        else:
            work = Work("window")
            work.mix(random, 2)
            for window in is_open:
                if not window.is_paused:
                    window.expected += work.put_in
    for window in is_open:
        window.prof.stop()
    for window in [*is_open, *closed]:
        given.watch(window.prof)
        check_exact(window.prof, window.expected)
