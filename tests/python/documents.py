"""Finds the code blocks of a document, runs them and compares their output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: Path) -> Iterator[tuple[str, str]]:
    """Yields the language and the text of each code block of a document."""
    yield from blocks_of(document.read_text())


def blocks_of(text: str) -> Iterator[tuple[str, str]]:
    """Yields the language and the text of each code block of a Markdown text."""
    for found in BLOCK.finditer(text):
        yield found[1], found[2]


def run(language: str, text: str, folder: Path) -> str:
    """Runs a code block in a folder and returns its output, stderr included."""
    if language == "sh":
        command = ["bash", "-euc", text]
    else:
        command = [sys.executable, "-W", "error", "-c", text]
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "mindprof"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mindprof "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"{text}{done.stdout}"
    return done.stdout


def missing(shown: str, printed: str) -> str | None:
    """Returns the first line of `shown` that is not in `printed`, or `None`.

    Lines are compared in order. A shown line may lack columns, and `...` stands for any lines.
    """
    lines = iter(printed.splitlines())
    for line in shown.splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if line.strip() != "..." and not any(has_cells(candidate, cells) for candidate in lines):
            return line
    return None


def has_cells(line: str, cells: list[str]) -> bool:
    """Returns whether a line contains these cells in this order."""
    found = iter(re.split(r"\s{2,}", line.strip()))
    return all(any(cell == candidate for candidate in found) for cell in cells)
