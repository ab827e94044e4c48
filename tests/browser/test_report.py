"""Every pane of every report works in a real browser, and shows the numbers of the engine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.report_page import make_trace
from tests.browser.browser import Browser, Page

ROOT = Path(__file__).parents[2]
PLANTED = Path(os.environ.get("PLANTED", ROOT.parent / "shared" / "planted"))
GOLDENS = sorted((ROOT / "tests" / "goldens").glob("*/*.trace.json.gz"))
TRACES = [*GOLDENS, *sorted(PLANTED.glob("*/*.trace.json.gz"))]
GPT = ROOT / "tests" / "goldens" / "h200-torch2.11" / "gpt-full.trace.json.gz"

Write = Callable[..., Path]
Command = Callable[..., str]


def event(name: str, start: float, duration: float, thread: int = 1, **more: Any) -> dict[str, Any]:
    found = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": thread}
    return {**found, "ts": start, "dur": duration, **more}


def short_time(microseconds: float) -> str:
    """Returns a time as the page shows it."""
    if microseconds == 0:
        return "0"
    for size, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "us")):
        value = microseconds / size
        if microseconds >= size or unit == "us":
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:.{digits}f} {unit}"
    raise AssertionError


def panes(page: Page) -> list[str]:
    found: list[str] = page.run("[...document.querySelectorAll('nav a')].map((link) => link.hash)")
    return found


def table_cells(page: Page, selector: str) -> list[list[str]]:
    cells: list[list[str]] = page.run(
        f"[...document.querySelectorAll('{selector} tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    return cells


def column_times(page: Page, selector: str, column: int) -> list[float]:
    """Returns the times of a column in microseconds."""
    units = {"us": 1.0, "ms": 1e3, "s": 1e6}
    texts = [cells[column].replace("\u2212", "-") for cells in table_cells(page, selector)]
    parts = [text.split(" ") for text in texts]
    return [float(part[0]) * units.get(part[-1], 1.0) for part in parts]


def visit_all(page: Page) -> None:
    """Opens every pane, and sorts and filters its tables."""
    for pane in panes(page):
        page.go(pane)
        shown = page.run("[...document.querySelectorAll('.pane.shown')].map((one) => '#' + one.id)")
        assert shown == [pane]
        page.run(
            "for (const head of document.querySelectorAll('.pane.shown th button')) head.click()"
        )
        page.run(
            "for (const field of document.querySelectorAll('.pane.shown input[type=search]')) {"
            " field.value = 'aten'; field.dispatchEvent(new Event('input', { bubbles: true }));"
            " field.value = ''; field.dispatchEvent(new Event('input', { bubbles: true })); }"
        )
        page.settle()
    assert page.problems() == []


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: f"{path.parent.name}-{path.name[:-14]}")
def test_every_pane_of_a_recorded_trace_works(
    browser: Browser, write_page: Write, trace: Path
) -> None:
    page = browser.open(write_page(trace))
    visit_all(page)
    page.close()


UNUSUAL: dict[str, list[dict[str, Any]]] = {
    "empty": [],
    "one": [event("aten::mm", 10, 5)],
    "instant": [event("aten::mm", 10, 0)],
    "threads": [event(f"op{n % 7}", n, 50, thread=n) for n in range(300)],
    "hostile": [
        event("<script>document.title = 'hacked'</script>", 0, 10),
        event("</script><img src=x onerror=\"document.title = 'hacked'\">", 20, 10),
        event("\u202eright to left \u05e9\u05dc\u05d5\u05dd", 40, 10),
        event("\U0001f525" * 200, 60, 10),
        event("=HYPERLINK(1)", 80, 10),
        event("", 100, 10),
        event("javascript:alert(1)", 120, 10),
    ],
    "deep": [event(f"level{n}", n, 4000 - 2 * n) for n in range(1500)],
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_every_pane_of_an_unusual_trace_works(
    browser: Browser, write_page: Write, name: str
) -> None:
    page = browser.open(write_page(UNUSUAL[name], name=name))
    visit_all(page)
    assert page.run("document.title") == f"{name}.json"
    assert page.run("document.querySelectorAll('main script, main img, main iframe').length") == 0
    page.close()


def test_steps_and_findings_have_the_numbers_of_the_commands(
    browser: Browser, write_page: Write, mindprof: Command
) -> None:
    page = browser.open(write_page(GPT), "#step")
    steps = json.loads(mindprof("steps", GPT, "--json"))["steps"]
    shown = table_cells(page, "[data-table=steps]")
    assert [row[:2] for row in shown] == [
        [str(step["number"]), short_time(step["duration_us"])] for step in steps
    ]
    page.go("#overview")
    advice = json.loads(mindprof("advise", GPT, "--json"))
    rules = page.run(
        "[...document.querySelectorAll('.findings code')].map((one) => one.textContent)"
    )
    assert rules == [finding["rule"] for finding in advice["findings"]]
    page.close()


def test_a_selected_range_is_summed_up_and_its_address_shows_it_again(
    browser: Browser, write_page: Write, mindprof: Command
) -> None:
    path = write_page(GPT)
    page = browser.open(path, "#step")
    box = page.box("#timeline canvas")
    y = box["y"] + box["height"] - 30
    page.drag((box["x"] + 1, y), (box["x"] + box["width"] - 1, y))
    assert page.run("document.querySelector('#selection h2').textContent").startswith("Selected ")
    rows = json.loads(mindprof("table", GPT, "--json", "--row-limit", "-1"))["rows"]
    known = {row["key"]: row for row in rows}
    page.type("#selection input[type=search]", "aten::addmm")
    cells = next(row for row in table_cells(page, "#selection") if row[0] == "aten::addmm")
    assert cells[5] == str(known["aten::addmm"]["count"])
    assert cells[2] == short_time(known["aten::addmm"]["self_cpu_time_total"])
    assert cells[4] == short_time(known["aten::addmm"]["self_device_time_total"])
    view = page.run("location.hash")
    assert "chosen=" in view
    again = browser.open(path, view)
    again.settle()
    title = "document.querySelector('#selection h2').textContent"
    assert again.run(title) == page.run(title)
    page.go("#operators")
    assert "of the selected" in page.run("document.getElementById('operators-range').textContent")
    assert page.problems() == again.problems() == []
    page.close()
    again.close()


STRANGE = [
    "#",
    "#nothing",
    "#__proto__",
    "#%E0%A4%A",
    "#step?event=-1",
    "#step?event=1.5",
    "#step?event=NaN",
    "#step?event=999999999999",
    f"#step?at=0-{'9' * 400}",
    "#step?at=5-5&chosen=9-3&step=__proto__",
    "#step?chosen=99999999999999-999999999999999",
    "#flames?node=-1",
    "#flames?node=1.5",
    "#flames?node=1e9&by=constructor",
    "#operators?by=nothing&sort=.up",
    "#operators?by=%22%5D&sort=Name.sideways&filter=(",
    "#detail",
    "#detail?kind=finding&name=-1",
    "#detail?kind=finding&name=toString",
    "#detail?kind=__proto__&name=__proto__",
    "#detail?kind=function&name=constructor:1:x",
    "#detail?kind=module",
    "#detail?name=%",
]


def test_a_strange_address_shows_a_pane(browser: Browser, write_page: Write) -> None:
    page = browser.open(write_page(GPT))
    for view in STRANGE:
        page.go(view)
        assert page.run("document.querySelectorAll('.pane.shown').length") == 1, view
        assert page.run("document.querySelector('.pane.shown').innerText.trim().length") > 10, view
        assert page.problems() == [], view
    page.go("#operators?by=nothing")
    assert page.run("document.querySelector('[data-member=operators]').hidden") is False
    page.close()


def test_the_timeline_obeys_the_keyboard(browser: Browser, write_page: Write) -> None:
    page = browser.open(write_page(GPT), "#step")
    page.run("document.getElementById('timeline').focus()")
    page.press("ArrowRight")
    first = page.run("document.querySelector('#selection .card h2').textContent")
    assert first
    page.press("ArrowDown")
    assert page.run("document.querySelector('#selection .card h2').textContent") != first
    page.press("w")
    assert "at=" in page.run("location.hash")
    page.press("Enter")
    assert page.run("location.hash").startswith("#detail?kind=event")
    assert page.run("document.querySelector('#detail-body h1').textContent")
    page.press("1")
    assert page.run("location.hash") == "#overview"
    page.press("2")
    page.press("/")
    assert page.run("document.activeElement.id") == "find"
    assert page.problems() == []
    page.close()


def test_a_search_marks_events_and_goes_to_them(browser: Browser, write_page: Write) -> None:
    page = browser.open(write_page(GPT), "#step")
    page.type("#find", "aten::addmm")
    assert page.run("document.getElementById('found').textContent").endswith(" events")
    page.click("#find-next")
    assert page.run("document.querySelector('#selection .card h2').textContent") == "aten::addmm"
    assert "event=" in page.run("location.hash")
    page.close()


def test_details_lead_from_findings_and_names_to_events(
    browser: Browser, write_page: Write
) -> None:
    trace = PLANTED / "cuda" / "tiny-kernels.trace.json.gz"
    if not trace.exists():
        pytest.skip("the planted traces are not here")
    page = browser.open(write_page(trace))
    page.click(".findings a")
    assert page.run("document.querySelector('#detail-body h1').textContent").startswith(
        "The device"
    )
    page.click("#detail-body table a")
    view = page.run("location.hash")
    assert view.startswith("#step?")
    assert "event=" in view
    # The heading is short, and its tip is the whole name.
    shown, whole = page.run(
        "(({textContent, title}) => [textContent, title])"
        "(document.querySelector('#selection .card h2 a'))"
    )
    assert shown
    assert shown.partition("<")[0].partition("(")[0] in whole
    for name in ("kind=operator&name=aten::mm", "kind=module&name=Linear", "kind=nothing&name=x"):
        page.go(f"#detail?{name}")
        assert page.run("document.querySelector('#detail-body h1').textContent")
    assert page.problems() == []
    page.close()


def test_the_flame_graph_zooms_turns_around_and_is_searched(
    browser: Browser, write_page: Write
) -> None:
    page = browser.open(write_page(GPT), "#flames")
    total = "document.querySelector('#flame-table tbody tr').textContent"
    assert page.run(total)
    box = page.box("#flame-graph canvas")
    page.drag((box["x"] + 40, box["y"] + 45), (box["x"] + 40, box["y"] + 45))
    assert "node=" in page.run("location.hash")
    page.click("#flame-inverted")
    assert "inverted=yes" in page.run("location.hash")
    page.type("#flame-find", "addmm")
    assert "%" in page.run("document.getElementById('flame-found').textContent")
    assert page.problems() == []
    page.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_narrow_window_has_no_sideways_scroll(
    browser: Browser, write_page: Write, dark: bool
) -> None:
    page = browser.open(write_page(GPT), width=360, height=740, dark=dark)
    for pane in panes(page):
        page.go(pane)
        assert page.run("document.documentElement.scrollWidth") <= 360, pane
        link = page.box("nav a[aria-current]")
        assert 0 <= link["x"] <= 360 - link["width"], pane
        outside = page.run(
            "[...document.querySelectorAll('.pane.shown .tools button, .pane.shown .tools input')]"
            ".map((one) => one.getBoundingClientRect())"
            ".filter((box) => box.width > 0 && (box.left < 0 || box.right > 360)).length"
        )
        assert outside == 0, pane
    page.close()


def test_without_scripts_every_table_is_there(browser: Browser, write_page: Write) -> None:
    page = browser.open(write_page(GPT), scripts=False)
    document = page.call("DOM.getDocument", depth=0)["root"]["nodeId"]
    for selector in ("#operators table tbody tr", "#code table tbody tr", "#memory table tbody tr"):
        found = page.call("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
        box = page.call("DOM.getBoxModel", nodeId=found)["model"]
        assert box["height"] > 0, f"{selector} is not visible"
    page.close()


def test_a_comparison_says_what_grew(browser: Browser, write_page: Write) -> None:
    other = ROOT / "tests" / "goldens" / "h200-torch2.11" / "mlp-plain.trace.json.gz"
    page = browser.open(write_page(GPT, "--compare", other), "#compare")
    heading = page.run("document.querySelector('#compare h1').textContent")
    assert heading == "Compared with mlp-plain.trace.json.gz"
    assert len(table_cells(page, "[data-table=compare]")) > 10
    order = [abs(change) for change in column_times(page, "[data-table=compare]", 2)]
    assert order == sorted(order, reverse=True)
    visit_all(page)
    page.close()


def test_the_memory_page_of_its_own_works(
    browser: Browser, mindprof: Command, tmp_path: Path
) -> None:
    path = tmp_path / "memory.html"
    mindprof("memory", GPT, "--out", path)
    page = browser.open(path)
    page.wait("document.querySelector('.memory svg')")
    page.run("document.querySelector('.memory .chart').focus()")
    page.press("p")
    assert "MB" in page.run("document.querySelector('.memory .reading').textContent")
    assert page.problems() == []
    page.close()


def test_a_million_events_are_drawn(browser: Browser, write_page: Write, tmp_path: Path) -> None:
    trace = tmp_path / "million.json"
    make_trace(trace, 1_000_000)
    path = write_page(trace)
    assert path.stat().st_size < 7_000_000
    page = browser.open(path)
    visit_all(page)
    page.go("#step")
    page.type("#find", "aten::relu_1")
    assert page.run("document.getElementById('found').textContent").endswith(" events")
    page.go("#detail?kind=operator&name=aten::relu_1")
    assert page.run("document.querySelector('#detail-body .tiles').textContent")
    assert page.problems() == []
    page.close()
