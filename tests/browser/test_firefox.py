"""Every pane of a report works in Firefox, without a message on its console."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.firefox import Firefox, firefox
from tests.browser.test_report import GOLDENS, GPT, UNUSUAL, Write


@pytest.fixture(scope="module")
def fox() -> Iterator[Firefox]:
    if firefox() is None:
        pytest.skip("no Firefox: install Debian's package firefox-esr")
    with Firefox() as found:
        yield found


def visit_all(fox: Firefox) -> None:
    """Opens every pane, and sorts and filters its tables."""
    panes = fox.run("return [...document.querySelectorAll('nav a')].map((link) => link.hash)")
    for pane in [*panes, "#detail?kind=operator&name=aten::addmm", "#detail?kind=finding&name=0"]:
        fox.go(pane)
        shown = fox.run(
            "return [...document.querySelectorAll('.pane.shown')].map((one) => '#' + one.id)"
        )
        assert shown == [pane.partition("?")[0]]
        fox.run(
            "for (const head of document.querySelectorAll('.pane.shown th button')) head.click();"
            "for (const field of document.querySelectorAll('.pane.shown input[type=search]')) {"
            " field.value = 'aten'; field.dispatchEvent(new Event('input', { bubbles: true })); }"
        )
    assert fox.problems() == []


def test_the_console_is_read(fox: Firefox, write_page: Write) -> None:
    fox.open(write_page(GPT))
    before = fox.problems()
    fox.run("setTimeout(() => nothing.here, 0)")
    fox.go("#overview")
    new = fox.problems()[len(before) :]
    assert any("nothing is not defined" in text for text in new), new
    fox.call("Marionette:SetContext", value="chrome")
    fox.run("Services.console.reset()")
    fox.call("Marionette:SetContext", value="content")


@pytest.mark.parametrize("trace", [GPT, GOLDENS[0]], ids=["device", "cpu"])
def test_every_pane_works(fox: Firefox, write_page: Write, trace: object) -> None:
    fox.open(write_page(trace, "--compare", GOLDENS[1]))
    visit_all(fox)


@pytest.mark.parametrize("name", UNUSUAL)
def test_every_pane_of_an_unusual_trace_works(fox: Firefox, write_page: Write, name: str) -> None:
    fox.open(write_page(UNUSUAL[name], name=name))
    visit_all(fox)
    assert fox.run("return document.title") == f"{name}.json"
