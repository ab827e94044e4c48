"""The result folder of a run, and the lines that describe it on stderr."""

from __future__ import annotations

import itertools
import os
import shlex
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from mindprof import _core
from mindprof._results.event_list import EventList
from mindprof._run.arguments import Arguments
from mindprof._run.marks import Marks
from mindprof._run.run_profile import RunProfile

#: The row limit of the table in the folder: none.
_ALL_ROWS = -1

#: The compressed size from which on viewers are slow to open a trace. Decompressed, it is 10 to 30
#: times as large.
_LARGE_TRACE = 10_000_000


class Results:
    """Writes the results of each window of a run."""

    def __init__(self, arguments: Arguments, folder: Path, terminal: TextIO) -> None:
        self.arguments = arguments
        self.folder = folder
        self.terminal = terminal
        self.windows = 0
        self.marks = Marks()
        #: Whether the program ended by itself.
        self.is_program_done = False

    def save(self, prof: RunProfile) -> None:
        """Writes all files of one window and prints its table.

        Args:
            prof: A profiler that has just stopped.
        """
        steps = len(prof.recorded_steps) if self.arguments.active else None
        if self.windows and self.is_program_done and steps == 0:
            self.say("no further window was written: the program made no more optimizer steps")
            return
        self.windows += 1
        self.say(f"writing results to {self.folder}")
        many = self.arguments.active > 0 and self.arguments.repeat != 1
        end = f"-{self.windows}" if many else ""
        # A range of the program may have the name of an import, so only real modules count.
        report = prof.report(self.marks, self.marks.modules | sys.modules.keys())
        prof.recorded_steps = ()
        prof.add_metadata_json(*report.metadata())
        written = []
        for name, write in self._files(prof, report):
            path = self.folder / name.format(end)
            try:
                write(path)
            except Exception as error:
                # One failure must not prevent the other files, nor change how the program ends.
                self.say(f"could not write {path}: {error}")
            else:
                written.append(path)
        if not self.arguments.quiet:
            self._show(self._table(report, self.arguments.limit, self._width()))
        if steps is not None and steps < self.arguments.active:
            wanted = f"{self.arguments.active} requested optimizer steps"
            self.say(f"the window has {steps} of {wanted}: {self._why_no_more(prof)}")
        for cause, count in _core.profile_loss(prof.recording).items():
            self.say(f"events lost: {count:,} {cause}")
        for path in written:
            self.say(f"wrote {path} ({size_of(path)})")
        if not self.arguments.quiet:
            for fact in report.facts():
                self.say(fact)
            self._hint(report, written, end)

    def _why_no_more(self, prof: RunProfile) -> str:
        if not self.is_program_done:
            return "the program was stopped"
        return "the first optimizer made no more" if prof.step_num else "no optimizer made a step"

    def _table(self, report: _core.RunReport, limit: int, width: int | None = None) -> str:
        rows: EventList[Any] = EventList(report.rows())
        return rows.table(self.arguments.sort, row_limit=limit, max_width=width)

    def _width(self) -> int | None:
        """Returns the width of the terminal, or `None` if stderr is not one."""
        try:
            return os.get_terminal_size(self.terminal.fileno()).columns or None
        except OSError:
            return None

    def _hint(self, report: _core.RunReport, written: list[Path], end: str) -> None:
        stacks = self.arguments.stacks
        for hint in report.hints(has_schedule=self.arguments.active > 0, has_stacks=stacks):
            self._show(f"hint: {hint}")
        trace = self.folder / f"trace{end}.json.gz"
        if trace not in written:
            return
        if trace.stat().st_size >= _LARGE_TRACE and (ways := self._ways_to_record_less()):
            self._show(f"hint: the trace is large: {ways}")
        if stacks:
            place = shlex.quote(str(trace))
            command = f"mindprof table {place} --group-by stack:3"
            self._show(f"hint: to see the lines that rows come from: {command}")

    def _ways_to_record_less(self) -> str:
        active = "" if self.arguments.active else "record only N optimizer steps with --active N"
        calls = "leave out Python calls with --no-stacks" if self.arguments.stacks else ""
        return ", or ".join(way for way in (active, calls) if way)

    def say(self, text: str) -> None:
        """Prints a line beside the program's own output."""
        self._show(f"mindprof: {text}")

    def _show(self, text: str) -> None:
        # A closed terminal or a full disk is no reason to fail.
        with suppress(OSError):
            print(text, file=self.terminal, flush=True)

    def _files(
        self, prof: RunProfile, report: _core.RunReport
    ) -> list[tuple[str, Callable[[Path], Any]]]:
        def write_table(path: Path) -> None:
            facts = "".join(f"{fact}\n" for fact in report.facts())
            table = self._table(report, _ALL_ROWS)
            path.write_text(f"{table}\n{facts}", encoding="utf-8")

        def write_stacks(path: Path) -> None:
            # One line per path of the flame graph.
            _core.write_paths(prof.recording, path, "self_cpu_time_total")

        def write_timeline(path: Path) -> None:
            with warnings.catch_warnings():
                # torch deprecates this export; users of `run --memory` did not call it.
                warnings.simplefilter("ignore", FutureWarning)
                prof.export_memory_timeline(str(path))

        files: list[tuple[str, Callable[[Path], Any]]] = [
            ("trace{}.json.gz", prof.export_chrome_trace),
            ("table{}.txt", write_table),
        ]
        if self.arguments.stacks:
            files.append(("stacks{}.folded", write_stacks))
            files.append(("flamegraph{}.svg", lambda path: prof.export_flamegraph(str(path))))
        if self.arguments.memory:
            files.append(("memory{}.html", write_timeline))
        return files


def make_folder(name: str, wanted: Path | None, rank: int | None) -> Path:
    """Creates the result folder: a new one, unless the user names one.

    Args:
        name: The name of the program.
        wanted: The folder that the user names; the same for all ranks.
        rank: The rank of this process among several.

    Raises:
        OSError: The folder cannot be created.
    """
    if wanted is not None:
        folder = wanted if rank is None else wanted / f"rank{rank}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    for number in itertools.count(1):
        folder = Path(f"mindprof-{name}" if number == 1 else f"mindprof-{name}-{number}")
        # Another rank may create it at the same time.
        with suppress(FileExistsError):
            folder.mkdir()
            break
    return folder


def size_of(path: Path) -> str:
    """Formats the size of a file."""
    size = float(path.stat().st_size)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
