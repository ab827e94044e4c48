"""`Marks`: what the launcher sees of a program beside its recording."""

from __future__ import annotations

from typing import NamedTuple

from mindprof._run.span import Span


class WorkersStart(NamedTuple):
    """A data loader that starts its workers.

    Args:
        span: When it did.
        workers: How many workers it starts.
    """

    span: Span
    workers: int


class Marks:
    """The times of imports and of data loader workers.

    The engine lays them beside the recording: imports are no part of what a program does, and a
    loop that waits for workers to start does not wait for late data.
    """

    def __init__(self) -> None:
        #: The modules whose imports are ranges of the recording.
        self.modules: set[str] = set()
        #: When the program's main thread imported.
        self.imports: list[Span] = []
        #: When other threads imported.
        self.other_imports: list[Span] = []
        #: When data loaders started their workers.
        self.worker_starts: list[WorkersStart] = []
        #: When a loop that asked for a batch found none and ended its workers.
        self.worker_ends: list[Span] = []
