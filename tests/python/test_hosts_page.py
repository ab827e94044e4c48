"""The page about frameworks is true: its program runs and prints what it shows."""

from __future__ import annotations

from pathlib import Path

from tests.python.documents import ROOT, blocks, missing, run


def test_the_program_of_the_page_prints_what_it_shows(tmp_path: Path) -> None:
    (_, program), (_, shown) = blocks(ROOT / "docs" / "hosts.md")
    printed = run("python", program, tmp_path)
    assert missing(shown, printed) is None, printed
