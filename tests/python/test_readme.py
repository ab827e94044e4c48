"""The README is true: its program prints the table it shows, but for the times."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


def without_numbers(table: str) -> list[list[str]]:
    """Returns the rows of a table as names and counts, in the order of the names."""
    lines = [line.split() for line in table.splitlines() if re.search(r"\d(us|ms)", line)]
    return sorted([line[0], line[-1]] for line in lines if line[0] != "Self")


def test_the_program_of_the_readme_prints_its_table(tmp_path: Path) -> None:
    (program,) = (block for block in blocks("python") if "export_chrome_trace" in block)
    (table,) = (block for block in blocks("text") if "Self CPU %" in block)
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert without_numbers(run.stdout) == without_numbers(table)
    assert len(without_numbers(table)) > 5
    header = table.splitlines()[1].split()
    assert run.stdout.splitlines()[1].split() == header
    assert (tmp_path / "trace.json").exists()
