"""The result folder of a run, and the lines that describe it on stderr."""

from __future__ import annotations

import itertools
import os
import shlex
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from mindprof import _core
from mindprof._results.event_list import EventList
from mindprof._run.arguments import Arguments
from mindprof._run.bounds import (
    expected_others,
    given_up_elsewhere,
    has_room,
    summary_text,
    table_text,
    traced_instead,
    whole_run,
    write_trace,
)
from mindprof._run.children import Children
from mindprof._run.compilations import compilations
from mindprof._run.garbage import GarbageTimes
from mindprof._run.job_ranks import JobRanks
from mindprof._run.marks import Marks
from mindprof._run.run_profile import RunProfile
from mindprof._run.sources import read_sources

#: The files of a window; the number of the window takes the place of the braces.
_NAMES = (
    "trace{}.json.gz",
    "summary{}.json",
    "table{}.txt",
    "stacks{}.folded",
    "flamegraph{}.svg",
    "report{}.html",
    "memory{}.html",
)

#: The size of the largest trace that a page is written of: a larger one would delay the end.
_LARGEST_FOR_REPORT = 4 << 20

#: The time after which a line reports the stage of the end of a run.
SILENT_SECONDS = 2.0

#: The width of the first screen.
_WIDTH = 80


class Results:
    """Writes the results of each window of a run."""

    def __init__(
        self,
        arguments: Arguments,
        folder: Path,
        terminal: TextIO,
        rank: int | None = None,
        job: JobRanks | None = None,
    ) -> None:
        self.arguments = arguments
        #: The rank of this process among several, and the ranks that share the folder.
        self.rank = rank
        self.job = job
        self.folder = folder
        #: The folder that the user started the program in, which the program may leave.
        self.started_in = Path.cwd()
        self.terminal = terminal
        self.windows = 0
        #: What the end of the run is busy with, and when the program began, in seconds.
        self.stage = "ending the recording"
        self.began_at = time.time()
        self.marks = Marks()
        self.garbage = GarbageTimes()
        self.children = Children()
        #: The share of the events that the trace has.
        self.kept = 1.0
        #: Why the page of the trace was left out, if it was.
        self.why_no_page: str | None = None
        #: The source files that changed while the program ran.
        self.changed: set[str] = set()
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
        if self.windows == 1:
            remove_results(self.folder)
        self.stage = "analyzing the recording"
        # A range of the program may have the name of an import, so only real modules count.
        report = prof.report(self.marks, self.marks.modules | sys.modules.keys())
        prof.recorded_steps = ()
        prof.add_metadata_json(*report.metadata())
        prof.add_metadata_json("cpu_cores", str(_cores()))
        facts = self._facts(report)
        prof.add_metadata_json(*report.functions(facts["sources"]))
        prof.add_metadata_json(*report.run_facts(facts))
        written: list[Path] = []
        trace = self._path("trace{}.json.gz")
        # The trace comes first: everything else follows from it.
        with self._writing(trace, self._trace_writer(prof), written):
            self.stage = "writing the trace and its summary"
            screen = report.screen(facts)
            for name, write in self._files(prof, report, screen):
                self._write(self._path(name), write, written)
        self._shorten(prof, trace, written)
        if trace in written:
            self._add_report(trace, written)
        if trace in written and self.job is not None:
            self.stage = "summing up this rank"
            with suppress(OSError, _core.ProfilerError):
                self.job.leave(trace)
        if self.arguments.memory:
            self._write(self._path("memory{}.html"), self._timeline_writer(prof), written)
        written.sort(key=lambda path: path != trace)
        if steps is not None and steps < self.arguments.active:
            wanted = f"{self.arguments.active} requested optimizer steps"
            self.say(f"the window has {steps} of {wanted}: {self._why_no_more(prof)}")
        for cause, count in _core.profile_loss(prof.recording).items():
            self.say(f"events lost: {count:,} {cause}")
        if why := traced_instead(prof.recording):
            self.say(why)
        for name in sorted(self.changed):
            self.say(f"{name} changed while the program ran: its lines are not shown")
        if self.arguments.quiet:
            for line in _what_is_kept(prof):
                self.say(line)
            for path in written:
                self.say(f"wrote {path} ({size_of(path)})")
            return
        text = screen.text(
            {
                "wrote": [*self._written(written, trace), *_what_is_kept(prof)],
                "program": shlex.join(self._program()),
                "trace": shlex.quote(self._near(trace)) if trace in written else None,
                "has_schedule": self.arguments.active > 0,
                "has_stacks": self.arguments.stacks,
            }
        )
        self._show(text.rstrip("\n"))
        if self.arguments.limit:
            self._show(self._table(report, self.arguments.limit, self._width()))

    def tell_job(self, *, waits: bool) -> None:
        """Prints the answers about all ranks, on rank 0.

        Args:
            waits: Whether to wait for ranks that have not ended yet.
        """
        if self.rank != 0 or self.arguments.quiet:
            return
        if self.job is None:
            self.say("name a folder with --out to see all ranks together")
            return
        self.stage = "waiting for the other ranks"
        with suppress(OSError, _core.ProfilerError):
            self.job.tell(self.say, self._show, waits=waits)

    def _path(self, name: str) -> Path:
        """Returns the path of a file of the current window."""
        many = self.arguments.active > 0 and self.arguments.repeat != 1
        return self.folder / name.format(f"-{self.windows}" if many else "")

    def _facts(self, report: _core.RunReport) -> dict[str, Any]:
        """Collects what the engine cannot know: sources, compilations, collections, children."""
        sources, self.changed = read_sources(report.own_files(), self.began_at)
        return {
            "sources": sources,
            "compiled": compilations(),
            "collections": self.garbage.outside(self.marks.imports),
            "children": self.children.not_recorded(self.marks.imports),
        }

    def _written(self, paths: list[Path], trace: Path) -> list[str]:
        if not paths:
            return []
        sizes = sum(path.stat().st_size for path in paths)
        wrote = f"wrote {self._near(self.folder)} ({size_text(sizes)}): "
        names = ", ".join(path.name.split(".")[0] for path in paths)
        if len(wrote) + len(names) > _WIDTH:
            names = f"{len(paths)} files"
        lines = [wrote + names]
        if self.kept < 1:
            lines.append(
                f"the trace has the last {self.kept:.0%} of these events: --keep all keeps them"
            )
        if self.why_no_page:
            command = f"mindprof report {shlex.quote(self._near(trace))}"
            lines.append(f"no report.html, {self.why_no_page}: {command} writes it")
        return lines

    def _program(self) -> list[str]:
        arguments = self.arguments
        start = ["-m", arguments.target] if arguments.is_module else [arguments.target]
        return [*start, *arguments.words]

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

    def say(self, text: str) -> None:
        """Prints a line beside the program's own output."""
        self._show(f"mindprof: {text}")

    def _show(self, text: str) -> None:
        # A closed terminal or a full disk is no reason to fail.
        if self.rank is not None:
            # Ranks share a terminal. Each text is one write, so that their lines do not mix.
            lines = (f"[rank {self.rank}] {line}".rstrip() for line in text.split("\n"))
            text = "\n".join(lines)
        with suppress(OSError):
            self.terminal.write(f"{text}\n")
            self.terminal.flush()

    def _files(
        self, prof: RunProfile, report: _core.RunReport, screen: _core.RunScreen
    ) -> list[tuple[str, Callable[[Path], Any]]]:
        def write_table(path: Path) -> None:
            stacks = self.arguments.stacks
            hints = report.hints(has_schedule=self.arguments.active > 0, has_stacks=stacks)
            lines = [*report.facts(), *(f"hint: {hint}" for hint in hints)]
            facts = "".join(f"{line}\n" for line in lines)
            table = table_text(lambda limit: self._table(report, limit), len(report.rows()))
            path.write_text(f"{table}\n{facts}", encoding="utf-8")

        def write_summary(path: Path) -> None:
            path.write_text(summary_text(screen.json(), prof.recording), encoding="utf-8")

        files: list[tuple[str, Callable[[Path], Any]]] = [
            ("summary{}.json", write_summary),
            ("table{}.txt", write_table),
        ]
        if self.arguments.stacks and report.has_paths():
            files.append(("stacks{}.folded", report.write_stacks))
            files.append(("flamegraph{}.svg", report.write_flamegraph))
        return files

    def _add_report(self, trace: Path, written: list[Path]) -> None:
        """Writes the page of a trace, as `mindprof report` does, unless it is large."""
        self.why_no_page = None
        if trace.stat().st_size > _LARGEST_FOR_REPORT:
            self.why_no_page = "to end quickly"
            return
        self.stage = "writing the report"
        others = sum(path.stat().st_size for path in written)

        def write(path: Path) -> None:
            title = f"{self._near(self.folder)}/{trace.name}"
            _core.write_report(_core.Profile.read(trace), path, title, None, [])

        page = self._path("report{}.html")
        self._write(page, write, written)
        if page in written and not self.arguments.keep_all and not has_room(page, others):
            written.remove(page)
            page.unlink()
            self.why_no_page = "to keep the folder small"

    def _trace_writer(self, prof: RunProfile) -> Callable[[Path], Any]:
        recording = prof.recording

        def write(path: Path) -> None:
            if self.arguments.keep_all:
                prof.write_trace(recording, path, {})
            else:
                self.kept = write_trace(prof, recording, path, expected_others())

        return write

    def _shorten(self, prof: RunProfile, trace: Path, written: list[Path]) -> None:
        """Writes a shorter trace if the other files are larger than expected."""
        others = sum(path.stat().st_size for path in written if path != trace)
        if trace not in written or self.arguments.keep_all or others <= expected_others():
            return
        if not has_room(trace, others):
            self.kept = write_trace(prof, prof.recording, trace, others)

    def _timeline_writer(self, prof: RunProfile) -> Callable[[Path], Any]:
        def write(path: Path) -> None:
            with warnings.catch_warnings():
                # torch deprecates this export; users of `run --memory` did not call it.
                warnings.simplefilter("ignore", FutureWarning)
                prof.export_memory_timeline(str(path))

        return write

    def _write(self, path: Path, write: Callable[[Path], Any], written: list[Path]) -> None:
        try:
            write(path)
        except Exception as error:
            # One failure must not prevent the other files, nor change how the program ends.
            self.say(f"could not write {path}: {error}")
        else:
            written.append(path)

    @contextmanager
    def _writing(
        self, path: Path, write: Callable[[Path], Any], written: list[Path]
    ) -> Iterator[None]:
        """Writes a file on another thread during a block, which may be interrupted."""
        thread = threading.Thread(
            target=self._write, args=(path, write, written), name="mindprof trace"
        )
        try:
            thread.start()
        except RuntimeError:
            # No threads are left.
            self._write(path, write, written)
        try:
            yield
        finally:
            if thread.ident is not None:
                thread.join()

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Reports the current stage if a block takes longer than users wait in silence."""
        done = threading.Event()

        def tell() -> None:
            if not done.wait(SILENT_SECONDS):
                self.say(f"the program has ended: {self.stage}")

        thread = threading.Thread(target=tell, name="mindprof end", daemon=True)
        with suppress(RuntimeError):
            thread.start()
        try:
            yield
        finally:
            done.set()

    def _near(self, path: Path) -> str:
        """Returns a path relative to the user's folder if it lies there, because it is shorter."""
        try:
            return str(path.relative_to(self.started_in))
        except ValueError:
            return str(path)


def _what_is_kept(prof: RunProfile) -> list[str]:
    """Describes the part of the run that is kept, if it is not the whole run."""
    lines = []
    if elsewhere := given_up_elsewhere(prof.recording):
        lines.append(
            f"data loader workers: the times are of their last part, {elsewhere:,} earlier records "
            "are in none"
        )
    sums = whole_run(prof.recording)
    if sums is None:
        return lines
    kept, whole = _seconds(sums["kept_us"]), _seconds(sums["duration_us"])
    # Without loss, everything from some moment on is there. Otherwise it has gaps.
    is_complete = not _core.profile_loss(prof.recording)
    part = f"all of this is the last {kept} of {whole}" if is_complete else "this is a small part"
    none = f", and {sums['in_no_sum']:,} memory records or calls are in none" * (
        sums["in_no_sum"] > 0
    )
    lines.append(
        f"{part}: {sums['only_in_sums']:,} earlier events are only in the sums of summary.json "
        f"(whole_run){none}; --budget 1GiB keeps more"
    )
    return lines


def _cores() -> int:
    """Returns the number of CPU cores that the process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _seconds(microseconds: float) -> str:
    if microseconds < 1e5:
        return f"{microseconds / 1e3:.1f} ms"
    return f"{microseconds / 1e6:.1f} s"


def remove_results(folder: Path) -> None:
    """Removes the results of an earlier run, which would be taken for those of this one.

    Args:
        folder: A result folder.
    """
    for name in _NAMES:
        stem, suffix = name.split("{}")
        for path in [folder / f"{stem}{suffix}", *folder.glob(f"{stem}-*{suffix}")]:
            number = path.name[len(stem) : -len(suffix)]
            if not number or number[1:].isdecimal():
                with suppress(OSError):
                    path.unlink()


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
    return size_text(path.stat().st_size)


def size_text(bytes_: int) -> str:
    """Formats a number of bytes."""
    size = float(bytes_)
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"
