"""Calls and times of a page are those of `mindprof table --json`, wherever it shows them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.browser.browser import Browser, Page
from tests.browser.test_report import GOLDENS, Command, Write, event

# The inner call of `x` is the only content of the outer one, and both are one call.
NESTED: list[dict[str, Any]] = [
    event("x", 0, 50),
    event("x", 5, 40),
    event("y", 10, 20),
    event("x", 100, 50),
    event("x", 105, 10),
    event("x", 120, 10),
    event("forward", 0, 60, cat="user_annotation"),
    event("forward", 5, 70, thread=7, cat="gpu_user_annotation", args={"device": 0, "stream": 7}),
]


class Row(NamedTuple):
    """Name, calls, and self CPU, CPU total and self device time in microseconds."""

    name: str
    calls: int
    self_cpu: float
    cpu: float
    device: float


def microseconds(text: str) -> float:
    """Returns a time of the page, which has three digits; empty cells count as zero."""
    if not text:
        return 0
    value, _, unit = text.partition(" ")
    return float(value) * {"": 1, "us": 1, "ms": 1e3, "s": 1e6}[unit]


def assert_same(rows: list[Row], others: list[Row]) -> None:
    """Compares sorted rows: names as far as the page has them, times as far as it has digits."""
    assert [(name[:4000], calls) for name, calls, *_ in rows] == [
        (name[:4000], calls) for name, calls, *_ in others
    ]
    for row, other in zip(rows, others, strict=True):
        assert row[2:] == pytest.approx(other[2:], rel=0.006, abs=0.0051), row.name


def rows_of_command(mindprof: Command, trace: Path) -> list[Row]:
    """Returns name, calls, self CPU, CPU total and self device time of each row of the command."""
    rows = json.loads(mindprof("table", trace, "--json", "--row-limit", "-1"))["rows"]
    found = [
        Row(
            row["key"],
            int(row["count"]),
            row["self_cpu_time_total"],
            row["cpu_time_total"],
            row["self_device_time_total"],
        )
        for row in rows
        # Memory records are no events, and the page lists steps by their numbers.
        if not row["key"].startswith(("[memory]", "ProfilerStep"))
    ]
    return sorted(found)


def rows_of_page(page: Page, selector: str) -> list[dict[str, str]]:
    """Returns the rows of a table on all of its pages, by column, with whole names."""
    table = json.dumps(selector)
    found: list[dict[str, str]] = page.run(
        f"""(() => {{
          const table = document.querySelector({table}), rows = [];
          const tools = table.previousElementSibling;
          const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
          for (;;) {{
            for (const row of table.querySelectorAll("tbody tr")) rows.push(Object.fromEntries(
              [...row.cells].map((cell, index) =>
                [heads[index], cell.querySelector("a")?.title || cell.textContent])));
            const next = tools.querySelector("[aria-label='Next page']");
            if (!next || next.disabled) return rows;
            next.click();
          }}
        }})()"""
    )
    return found


def rows_with(rows: list[dict[str, str]], device: str) -> list[Row]:
    # A range on a device has a length, but is no work of it.
    rows = [
        {**row, device: row["Device total"]} if row.get("Runs on") == "device, range" else row
        for row in rows
    ]
    columns = ("Name", "Calls", "Self CPU", "CPU total", device)
    shown = ([row.get(column, "0") for column in columns] for row in rows)
    found = (
        Row(row[0], int(row[1].replace(",", "")), *map(microseconds, row[2:])) for row in shown
    )
    return sorted(row for row in found if not row.name.startswith(("[memory]", "ProfilerStep")))


@pytest.fixture(params=[*GOLDENS, NESTED], ids=lambda path: getattr(path, "name", "nested"))
def trace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if isinstance(request.param, Path):
        return request.param
    path = tmp_path / "nested.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": request.param}))
    return path


def test_operators_are_those_of_the_table(
    browser: Browser, write_page: Write, mindprof: Command, trace: Path
) -> None:
    page = browser.open(write_page(trace), "#operators")
    rows = rows_of_page(page, "[data-table=operators]")
    assert_same(rows_with(rows, "Self device"), rows_of_command(mindprof, trace))
    page.close()


def test_a_selection_of_everything_is_the_table(
    browser: Browser, write_page: Write, mindprof: Command, trace: Path
) -> None:
    page = browser.open(write_page(trace), f"#step?chosen=0-{10**15}")
    page.settle()
    rows = rows_of_page(page, "#selection .wide")
    rows = [row for row in rows if row["Kind"] != "Python"]
    assert_same(rows_with(rows, "Device"), rows_of_command(mindprof, trace))
    page.close()


def test_a_saved_selection_has_the_same_table(
    browser: Browser, write_page: Write, mindprof: Command, trace: Path, tmp_path: Path
) -> None:
    page = browser.open(write_page(trace), f"#step?chosen=0-{10**15}")
    page.settle()
    # The page offers the trace as a file, which is taken before it is saved.
    page.run(
        "URL.createObjectURL = (blob) => { window.saved = blob.text(); return '#step'; };"
        "HTMLAnchorElement.prototype.click = () => {};"
        "[...document.querySelectorAll('#selection button')]"
        ".find((one) => one.textContent === 'Save as a trace')"
        ".dispatchEvent(new MouseEvent('click'))"
    )
    saved = tmp_path / "saved.json"
    saved.write_text(page.run("window.saved"))
    assert_same(rows_of_command(mindprof, saved), rows_of_command(mindprof, trace))
    page.close()


@pytest.mark.parametrize(
    ("view", "count"),
    [
        ("kind=operator&name=x", ["4"]),
        ("kind=event&name=forward", ["1", "1"]),
        ("kind=kernel&name=forward", ["1"]),
    ],
)
def test_a_detail_counts_calls_as_the_table_does(
    browser: Browser, write_page: Callable[..., Path], view: str, count: list[str]
) -> None:
    page = browser.open(write_page(NESTED, name="nested"), f"#detail?{view}")
    page.settle()
    tiles = "[...document.querySelectorAll('#detail-body .tiles li:first-child b')]"
    assert page.run(f"{tiles}.map((one) => one.textContent)") == count
    page.close()
