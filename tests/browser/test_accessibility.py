"""axe finds nothing serious in any pane, in the light and in the dark theme."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.browser import Browser

ROOT = Path(__file__).parents[2]
GPT = ROOT / "tests" / "goldens" / "h200-torch2.11" / "gpt-full.trace.json.gz"
AXE = Path(os.environ.get("AXE", ROOT / "target" / "axe"))


@pytest.mark.skipif(not AXE.is_file(), reason="axe is not installed: make test-browser installs it")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(
    browser: Browser, write_page: Callable[..., Path], dark: bool
) -> None:
    page = browser.open(write_page(GPT), dark=dark)
    page.run(AXE.read_text())
    panes = page.run("[...document.querySelectorAll('nav a')].map((link) => link.hash)")
    for pane in [*panes, "#detail?kind=operator&name=aten::addmm"]:
        page.go(pane)
        found = page.run(
            "axe.run(document, { resultTypes: ['violations'] }).then((result) => result.violations"
            ".filter((one) => ['serious', 'critical'].includes(one.impact))"
            ".map((one) => `${one.id}: ${one.help}: ${one.nodes[0].html.slice(0, 200)}`))"
        )
        assert found == [], pane
    page.close()
