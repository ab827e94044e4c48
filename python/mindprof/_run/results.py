"""The folder that a run leaves, and what is said about it."""

from __future__ import annotations

import itertools
import os
import shlex
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from mindprof import _core
from mindprof._run.arguments import Arguments
from mindprof._run.imports import ImportLog
from mindprof._run.run_profile import RunProfile
from mindprof._run.summary import Summary
from mindprof._run.worker_times import WorkerTimes

#: The key under which a trace says that it is of a run.
_RUN_KEY = "mindprof_run"

#: A table for a file has every row.
_ALL_ROWS = -1

#: From how many packed bytes on viewers take long to open a trace: unpacked it is 10 to 30 times
#: as large.
_LARGE_TRACE = 10_000_000


class Results:
    """Writes what each window of a run recorded."""

    def __init__(self, arguments: Arguments, folder: Path, terminal: TextIO) -> None:
        self.arguments = arguments
        self.folder = folder
        self.terminal = terminal
        self.windows = 0
        self.import_log = ImportLog()
        self.worker_times = WorkerTimes()
        #: Whether the program came to its end by itself.
        self.is_program_done = False

    def save(self, prof: RunProfile) -> None:
        """Writes all files of one window, and shows its table.

        Args:
            prof: A profiler that has just stopped.
        """
        steps = self._steps_of(prof)
        if self.windows and self.is_program_done and steps == 0:
            self.say("the program ended without a further optimizer step: no window more")
            return
        self.windows += 1
        self.say(f"writing what was recorded to {self.folder}")
        many = self.arguments.active > 0 and self.arguments.repeat != 1
        end = f"-{self.windows}" if many else ""
        summary = Summary(prof, self.import_log, self.worker_times)
        prof.add_metadata_json(_RUN_KEY, summary.ranges_json())
        written = []
        for name, write in self._files(prof, summary):
            path = self.folder / name.format(end)
            try:
                write(path)
            except Exception as error:
                # One that fails keeps no other from being written, nor the program's own end.
                self.say(f"{path} was not written: {error}")
            else:
                written.append(path)
        if not self.arguments.quiet:
            self._show(self._table(summary, self.arguments.limit, self._width()))
        if steps is not None and steps < self.arguments.active:
            wanted = f"the {self.arguments.active} optimizer steps that were asked for"
            self.say(f"the window has {steps} of {wanted}: {self._why_no_more(prof)}")
        for cause, count in _core.profile_loss(prof.recording).items():
            self.say(f"events lost: {count:,} {cause}")
        for path in written:
            self.say(f"wrote {path} ({size_of(path)})")
        if not self.arguments.quiet:
            for fact in summary.facts():
                self.say(fact)
            self._hint(summary, written, end)
        prof.step_times.clear()

    def _steps_of(self, prof: RunProfile) -> int | None:
        """Returns how many optimizer steps the window has; None if it has no use for them."""
        return len(prof.step_times) if self.arguments.active else None

    def _why_no_more(self, prof: RunProfile) -> str:
        if not self.is_program_done:
            return "the program was ended"
        return "the first optimizer made no more" if prof.step_num else "no optimizer made one"

    def _table(self, summary: Summary, limit: int, width: int | None = None) -> str:
        return summary.rows.table(self.arguments.sort, row_limit=limit, max_width=width)

    def _width(self) -> int | None:
        """Returns how many columns the terminal has; None of a file, and of one that cannot say."""
        try:
            return os.get_terminal_size(self.terminal.fileno()).columns or None
        except OSError:
            return None

    def _hint(self, summary: Summary, written: list[Path], end: str) -> None:
        stacks = self.arguments.stacks
        for hint in summary.hints(has_schedule=self.arguments.active > 0, has_stacks=stacks):
            self._show(f"hint: {hint}")
        trace = self.folder / f"trace{end}.json.gz"
        if trace not in written:
            return
        if trace.stat().st_size >= _LARGE_TRACE and (ways := self._ways_to_record_less()):
            self._show(f"hint: the trace is large: {ways}")
        if stacks:
            place = shlex.quote(str(trace))
            command = f"mindprof table {place} --group-by stack:3"
            self._show(f"hint: for the lines that rows come from: {command}")

    def _ways_to_record_less(self) -> str:
        active = "" if self.arguments.active else "--active N records N optimizer steps alone"
        calls = "--no-stacks leaves Python's calls out" if self.arguments.stacks else ""
        return ", ".join(way for way in (active, calls) if way)

    def say(self, text: str) -> None:
        """Says a line beside the program's own output."""
        self._show(f"mindprof: {text}")

    def _show(self, text: str) -> None:
        # Nobody may be there to read it, or no room: that is no reason to fail.
        with suppress(OSError):
            print(text, file=self.terminal, flush=True)

    def _files(self, prof: RunProfile, summary: Summary) -> list[tuple[str, Callable[[Path], Any]]]:
        def write_table(path: Path) -> None:
            facts = "".join(f"{fact}\n" for fact in summary.facts())
            table = self._table(summary, _ALL_ROWS)
            path.write_text(f"{table}\n{facts}", encoding="utf-8")

        def write_stacks(path: Path) -> None:
            # The paths of the flame graph, a line each.
            _core.write_paths(prof.recording, path, "self_cpu_time_total")

        def write_timeline(path: Path) -> None:
            with warnings.catch_warnings():
                # Of torch's deprecation, which is nothing to someone who asked for the page.
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
    """Makes a folder that is not there yet, unless one was asked for.

    Args:
        name: The name of the program.
        wanted: What was asked for. All ranks are asked for the same one.
        rank: Which of several processes this is.

    Raises:
        OSError: It cannot be made.
    """
    if wanted is not None:
        folder = wanted if rank is None else wanted / f"rank{rank}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    for number in itertools.count(1):
        folder = Path(f"mindprof-{name}" if number == 1 else f"mindprof-{name}-{number}")
        # Another rank may make it at this very moment.
        with suppress(FileExistsError):
            folder.mkdir()
            break
    return folder


def size_of(path: Path) -> str:
    """Returns how large a file is, in words."""
    size = float(path.stat().st_size)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
