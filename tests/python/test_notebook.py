"""What a notebook shows: tables that sort at a click, in which every name is escaped."""

from __future__ import annotations

import re
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
    for item in (rows, rows[0], events, events[0], prof, mindprof.diff(prof, prof)):
        assert shown(item).startswith("<table>")
    assert "&lt;script&gt;" in shown(prof)
    assert shown(prof) == shown(prof.key_averages())
    assert mindprof.profile()._repr_html_() is None


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
