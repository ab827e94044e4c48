"""The folder that a run leaves, and what is said about it."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from mindprof import _core
from mindprof._results.event_list import EventList
from mindprof._run.arguments import Arguments
from mindprof._run.imports import IMPORT

#: A table for a file has every row.
_ALL_ROWS = -1


class Results:
    """Writes what each window of a run recorded."""

    def __init__(self, arguments: Arguments, folder: Path, terminal: TextIO) -> None:
        self.arguments = arguments
        self.folder = folder
        self.terminal = terminal
        self.windows = 0

    def save(self, prof: Any) -> None:
        """Writes all files of one window, and shows its table.

        Args:
            prof: A profiler that has just stopped.
        """
        self.windows += 1
        self.say(f"writing what was recorded to {self.folder}")
        many = self.arguments.active > 0 and self.arguments.repeat != 1
        end = f"-{self.windows}" if many else ""
        rows = rows_of(prof)
        sort = self.arguments.sort
        written = []
        for name, write in self._files(prof, rows):
            path = self.folder / name.format(end)
            try:
                write(path)
            except Exception as error:
                # One that fails keeps no other from being written, nor the program's own end.
                self.say(f"{path} was not written: {error}")
            else:
                written.append(path)
        if not self.arguments.quiet:
            self._show(rows.table(sort_by=sort, row_limit=self.arguments.limit))
        if prof.lost_events:
            self.say(f"{prof.lost_events:,} events were lost; the table says why")
        for path in written:
            self.say(f"wrote {path} ({size_of(path)})")
        trace = self.folder / f"trace{end}.json.gz"
        if trace in written and self.arguments.stacks and not self.arguments.quiet:
            place = shlex.quote(str(trace))
            self.say(
                f"for the lines that rows come from: mindprof table {place} --group-by stack:3"
            )

    def say(self, text: str) -> None:
        """Says a line beside the program's own output."""
        self._show(f"mindprof: {text}")

    def _show(self, text: str) -> None:
        # Nobody may be there to read it, or no room: that is no reason to fail.
        with suppress(OSError):
            print(text, file=self.terminal, flush=True)

    def _files(self, prof: Any, rows: EventList[Any]) -> list[tuple[str, Callable[[Path], Any]]]:
        def write_table(path: Path) -> None:
            table = rows.table(sort_by=self.arguments.sort, row_limit=_ALL_ROWS)
            path.write_text(table + "\n", encoding="utf-8")

        def write_stacks(path: Path) -> None:
            # The paths of the flame graph, a line each.
            _core.write_paths(prof.profiler.kineto_results, path, "self_cpu_time_total")

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


def rows_of(prof: Any) -> EventList[Any]:
    """Returns the rows of operators and ranges, of Python's functions too if there are none."""
    rows: EventList[Any] = prof.key_averages()
    is_telling = any(not row.key.startswith(IMPORT) for row in rows)
    return rows if is_telling else prof.key_averages(include_python_functions=True)


def folder_for(name: str, wanted: Path | None) -> Path:
    """Returns a folder that is not there yet, unless one was asked for.

    Args:
        name: The name of the program.
        wanted: What was asked for.
    """
    if wanted is not None:
        return wanted
    folder, number = Path(f"mindprof-{name}"), 1
    while folder.exists():
        number += 1
        folder = Path(f"mindprof-{name}-{number}")
    return folder


def size_of(path: Path) -> str:
    """Returns how large a file is, in words."""
    size = float(path.stat().st_size)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
