"""Checks the guide: its commands run, in order, and print what it shows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.python.documents import ROOT, blocks, missing, run

GUIDE = ROOT / "docs" / "guide.md"
TRACE = ROOT / "tests" / "goldens" / "h200-torch2.11" / "gpt-full.trace.json.gz"
FILES = {
    "trace.pftrace",
    "memory.html",
    "own-memory.html",
    "small.json.gz",
    "mail.json.gz",
    "flames.svg",
    "kernels.svg",
    "trace.speedscope.json",
    "program.svg",
    "trace.parquet",
}


@pytest.mark.runtime
def test_every_command_of_the_guide_runs_and_prints_what_it_shows(tmp_path: Path) -> None:
    shutil.copy(TRACE, tmp_path / "trace.json.gz")
    printed = ""
    ran = compared = 0
    for language, text in blocks(GUIDE):
        if language in ("sh", "python"):
            printed = run(language, text, tmp_path)
            ran += 1
        elif language == "text":
            line = missing(text, printed)
            assert line is None, f"not printed: {line}\n{printed}"
            compared += 1
    assert ran > 15
    assert compared > 8
    for name in FILES:
        assert (tmp_path / name).stat().st_size > 100, name
    assert (tmp_path / "mail.json.gz").stat().st_size <= 100_000


def test_the_guides_rust_is_that_of_an_example() -> None:
    example = (ROOT / "crates" / "mindprof" / "examples" / "read.rs").read_text()
    stripped = [line.strip() for line in example.splitlines()]
    (shown,) = (text for language, text in blocks(GUIDE) if language == "rust")
    lines = [line.strip() for line in shown.splitlines()]
    start = stripped.index(lines[0])
    assert stripped[start : start + len(lines)] == lines


def test_a_line_that_was_not_printed_is_found() -> None:
    printed = "Name     A   B\n----\nadd      1   2\nmul      3   4\n"
    assert missing("Name    B\n...\nmul   4\n", printed) is None
    assert missing("add   3\n", printed) == "add   3"
    assert missing("mul   3\nadd   1\n", printed) == "add   1"
    assert missing("add   2   1\n", printed) == "add   2   1"
