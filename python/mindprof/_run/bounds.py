"""Keeps the results of a run small: the last part of a trace, the first rows of a table.

`Results` asks how much to write. The engine cuts traces; the rest is cut here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mindprof import _core
from mindprof._run.run_profile import RunProfile

#: The largest size of a result folder, and the size of a trace that is written in any case.
MOST_BYTES = 30_000_000
_LEAST_TRACE_BYTES = 5_000_000

#: The largest number of events and memory records of a trace, which bounds the time to write it.
_MOST_RECORDS = 400_000

#: The largest size of the table, and the largest number of steps in the summary.
_MOST_TABLE_BYTES = 2_000_000
_MOST_STEPS = 1_000

#: The key of the sums that a recording has if its first events made room for the last ones.
_WHOLE_RUN_KEY = "mindprof_whole_run"
_ELSEWHERE_KEY = "mindprof_given_up_elsewhere"
_TRACED_INSTEAD_KEY = "mindprof_traced_instead"


def expected_others() -> int:
    """Returns the room for the other files, whose sizes are unknown: the trace comes first."""
    return MOST_BYTES // 6


def has_room(path: Path, others: int) -> bool:
    """Returns whether a file and the others fit into the folder."""
    return path.stat().st_size + others <= MOST_BYTES


def write_trace(prof: RunProfile, whole: _core.Profile, path: Path, others: int) -> float:
    """Writes the last part of a recording that fits into the folder.

    Args:
        prof: A profiler that has stopped.
        whole: Its recording.
        path: The trace.
        others: The bytes of the other files.

    Returns:
        The share of the events that the trace has.
    """
    allowed = max(MOST_BYTES - others, _LEAST_TRACE_BYTES)
    most = _MOST_RECORDS
    while True:
        part = _core.last_part(whole, most)
        if part is None:
            written = whole
            prof.write_trace(whole, path, {})
        else:
            written, key, report = part
            prof.write_trace(written, path, {key: report})
        size = path.stat().st_size
        if size <= allowed or most <= 1:
            return len(written) / len(whole) if len(whole) else 1.0
        # A little less than what fits: the beginning of a step decides.
        most = int(min(most, len(written)) * allowed / size * 0.9)


def table_text(table: Callable[[int], str], rows: int) -> str:
    """Returns a table with all rows, or with the first ones if it would be too large.

    Args:
        table: Lays out the table with at most so many rows.
        rows: The number of rows.
    """
    limit = rows
    # The widths of columns are not known before: names may be long.
    text = table(min(limit, 1_000))
    if rows > 1_000:
        limit = int(1_000 * _MOST_TABLE_BYTES / max(len(text), 1))
        text = table(min(limit, rows))
    if len(text) > _MOST_TABLE_BYTES:
        limit = int(min(limit, 1_000) * _MOST_TABLE_BYTES / len(text))
        text = table(limit)
    if limit < rows:
        text += f"\nthe table has the first {limit:,} of {rows:,} rows\n"
    return text


def summary_text(screen: str, recording: _core.Profile) -> str:
    """Returns the summary as JSON: the contents of the screen, and the sums of the whole run.

    Args:
        screen: The contents of the screen as JSON.
        recording: The recording.
    """
    contents: dict[str, Any] = json.loads(screen)
    steps = contents.get("steps")
    if steps and len(steps.get("steps", ())) > _MOST_STEPS:
        steps["left_out"] = len(steps["steps"]) - _MOST_STEPS
        steps["steps"] = steps["steps"][-_MOST_STEPS:]
    contents["whole_run"] = whole_run(recording)
    return json.dumps(contents, ensure_ascii=False)


def whole_run(recording: _core.Profile) -> dict[str, Any] | None:
    """Returns the sums over a recording whose first events were given up, otherwise `None`.

    Args:
        recording: The recording, which has the last events.
    """
    found = dict(_core.profile_metadata(recording)).get(_WHOLE_RUN_KEY)
    if found is None:
        return None
    sums: dict[str, Any] = json.loads(found)
    # Imports are no work of the program.
    imports = {f"import {module}" for module in sys.modules}
    sums["names"] = [row for row in sums["names"] if row["name"] not in imports]
    return sums


def given_up_elsewhere(recording: _core.Profile) -> int:
    """Returns the number of records that other processes, such as data loader workers, gave up.

    Args:
        recording: The recording.
    """
    return int(dict(_core.profile_metadata(recording)).get(_ELSEWHERE_KEY, 0))


def traced_instead(recording: _core.Profile) -> str | None:
    """Returns why calls were traced although samples were requested, otherwise `None`.

    Args:
        recording: The recording.
    """
    found = dict(_core.profile_metadata(recording)).get(_TRACED_INSTEAD_KEY)
    return None if found is None else str(json.loads(found))
