"""The README is true: its commands print what it shows, its program too, but for the times."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.python import documents

README = documents.ROOT / "README.md"
TRACE = documents.ROOT / "tests" / "goldens" / "h200-torch2.11" / "gpt-full.trace.json.gz"


def blocks(language: str) -> list[str]:
    return [text for found, text in documents.blocks(README) if found == language]


def without_numbers(table: str) -> list[list[str]]:
    """Returns the rows of a table as names and counts, in the order of the names."""
    lines = [line.split() for line in table.splitlines() if re.search(r"\d(us|ms)", line)]
    return sorted([line[0], line[-1]] for line in lines if line[0] != "Self")


def test_the_program_of_the_readme_prints_its_table(tmp_path: Path) -> None:
    (program,) = (block for block in blocks("python") if "export_chrome_trace" in block)
    (table,) = (block for block in blocks("text") if "aten::ones" in block)
    printed = documents.run("python", program, tmp_path)
    assert without_numbers(printed) == without_numbers(table)
    assert len(without_numbers(table)) > 5
    header = table.splitlines()[1].split()
    assert printed.splitlines()[1].split() == header

    # What follows the program works on its trace.
    (commands,) = (block for block in blocks("sh") if "mindprof table trace.json " in block)
    assert "aten::mm" in documents.run("sh", commands, tmp_path)


def test_the_first_screen_prints_what_it_shows(tmp_path: Path) -> None:
    shutil.copy(TRACE, tmp_path / "trace.json.gz")
    printed = ""
    compared = 0
    first_screen = README.read_text().partition("## Install")[0]
    for language, text in documents.blocks_of(first_screen):
        if language == "sh":
            printed = documents.run(language, text, tmp_path)
        else:
            line = documents.missing(text, printed)
            assert line is None, f"not printed: {line}\n{printed}"
            compared += 1
    assert compared == 3
