"""What a notebook shows: tables that sort at a click, in which every name is escaped."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import mindprof
import pytest
from mindprof import EventList, FunctionEvent

from tests.workloads import torch


@pytest.fixture
def prof() -> mindprof.profile:
    with mindprof.profile() as found, mindprof.record_function("<script>alert('x')</script>"):
        torch.ones(4) + 1
    return found


def shown(item: Any) -> str:
    text: str = item._repr_html_()
    # The only markup is ours, and it is whole.
    assert "<script" not in text
    for tag in ("table", "tbody", "tr", "td", "th"):
        assert len(re.findall(f"<{tag}[ >]", text)) == text.count(f"</{tag}>")
    return text


def test_lists_rows_events_diffs_and_profiles_are_tables(prof: mindprof.profile) -> None:
    rows, events = prof.key_averages(), prof.events()
    for item in (rows, rows[0], events, events[0], mindprof.diff(prof, prof)):
        assert shown(item).startswith("<table>")
    assert "&lt;script&gt;" in shown(prof)
    # A profile shows the overview of its report in a frame without scripts, and its rows.
    assert shown(prof).startswith("<iframe sandbox ")
    assert shown(prof).endswith(f"</iframe>{shown(prof.key_averages())}")
    assert mindprof.profile()._repr_html_() is None


def test_a_diff_has_the_notes_of_its_text(prof: mindprof.profile, tmp_path: Path) -> None:
    whole, cut = tmp_path / "<whole>.json", tmp_path / "cut.json"
    prof.export_chrome_trace(whole)
    trace = json.loads(whole.read_text())
    trace["mindprof_slim"] = {"events": 9, "kept": 2, "clipped": 0}
    cut.write_text(json.dumps(trace))
    assert "note:" not in shown(mindprof.diff(whole, whole))
    for before, after in ((whole, cut), (cut, whole)):
        found = mindprof.diff(before, after)
        assert "note: " in found.table()
        name = html.escape(str(cut))
        assert f"<p>note: {name} was cut by `mindprof slim` to 2 of 9 events</p>" in shown(found)


def test_rows_come_by_their_own_time_and_sort_by_numbers(prof: mindprof.profile) -> None:
    rows = prof.key_averages()
    text = shown(rows)
    names = re.findall(r'<tr><td style="text-align:left" data-value="([^"]*)"', text)
    by_time = sorted(rows, key=lambda row: row.self_cpu_time_total, reverse=True)
    assert names[0] in (by_time[0].key, "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;")
    assert f'data-value="{by_time[0].self_cpu_time_total}"' in text
    assert text.count("onclick=") == text.count("<th ")
    assert "device" not in text


def test_of_many_events_some_are_shown_and_the_rest_is_told() -> None:
    events = EventList([FunctionEvent(n, f"op{n}", 1, n, n + 1) for n in range(130)])
    text = shown(events)
    assert text.count("<tr>") == 101
    assert text.endswith("<p>and 30 more</p>")
