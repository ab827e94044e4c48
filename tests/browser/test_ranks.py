"""The page about all ranks of a job, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.browser import Browser
from tests.browser.test_report import panes, short_time, table_cells, visit_all
from tests.python.rank_traces import RANKS, SLOW, STEPS, write_job

Command = Callable[..., str]


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory, mindprof: Command) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    write_job(folder)
    path = folder / "job.html"
    mindprof("ranks", folder, "--html", path)
    return path


def test_every_pane_works_and_nothing_is_requested(browser: Browser, page_path: Path) -> None:
    page = browser.open(page_path)
    assert panes(page)[:3] == ["#overview", "#ranks", "#steps"]
    visit_all(page)
    page.close()


def test_numbers_are_those_of_the_command(
    browser: Browser, page_path: Path, mindprof: Command
) -> None:
    answers = json.loads(mindprof("ranks", page_path.parent, "--json"))
    page = browser.open(page_path)
    assert page.run("document.querySelectorAll('.heat rect').length") == RANKS * STEPS
    slow = table_cells(page, '[data-table="slow-ranks"]')
    assert [row[0] for row in slow] == [f"rank {SLOW}"]
    excess = answers["stragglers"]["ranks"][0]["excess_us"]
    assert short_time(excess) in slow[0]
    page.go("#steps")
    steps = table_cells(page, '[data-table="steps"]')
    expected = [short_time(step["duration_us"]) for step in answers["steps"]["each"]]
    assert [row[1] for row in steps] == expected
    assert len(table_cells(page, '[data-table="rank-steps"]')) == RANKS * STEPS
    page.close()


def test_the_page_fits_a_phone_in_both_schemes(browser: Browser, page_path: Path) -> None:
    for dark in (False, True):
        page = browser.open(page_path, width=360, height=740, dark=dark)
        for pane in panes(page):
            page.go(pane)
            assert page.run("document.documentElement.scrollWidth") <= 360, pane
        page.close()


def test_names_are_text_only(browser: Browser, tmp_path: Path, mindprof: Command) -> None:
    write_job(tmp_path)
    for path in tmp_path.glob("*.json"):
        hostile = "<img src=x onerror=\\\"document.title = 'hacked'\\\">"
        path.write_text(path.read_text().replace("gemm", hostile))
    page_path = tmp_path / "job.html"
    mindprof("ranks", tmp_path, "--html", page_path)
    page = browser.open(page_path)
    visit_all(page)
    assert page.run("document.title") == "All ranks of a job"
    assert page.run("document.querySelectorAll('main script, main img, main iframe').length") == 0
    page.go("#kernels")
    assert any("<img" in row[0] for row in table_cells(page, '[data-table="kernels"]'))
    page.close()
