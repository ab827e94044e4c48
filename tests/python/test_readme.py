"""Checks the README: its commands run and its links lead somewhere.

What it shows of PyTorch is checked by `tests/pytorch/test_readme.py`.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.python import documents

README = documents.ROOT / "README.md"
TRACE = documents.ROOT / "tests" / "goldens" / "h200-torch2.11" / "gpt-full.trace.json.gz"


def test_the_commands_for_traces_run(tmp_path: Path) -> None:
    shutil.copy(TRACE, tmp_path / "trace.json.gz")
    (commands,) = (
        text
        for language, text in documents.blocks(README)
        if language == "sh" and "mindprof info" in text
    )
    printed = documents.run("sh", commands, tmp_path)
    assert "Span: 21.897ms" in printed
    assert "aten::mm" in printed
    for name in ("memory.html", "small.json.gz", "trace.parquet"):
        assert (tmp_path / name).stat().st_size > 100, name


def test_links_and_pictures_are_there() -> None:
    text = README.read_text()
    targets = re.findall(r'\]\(([^)]+)\)|(?:src|srcset)="([^"]+)"', text)
    paths = [link or picture for link, picture in targets]
    local = [path for path in paths if not path.startswith("https://")]
    assert len(local) > 8
    for path in local:
        assert (documents.ROOT / path).exists(), path


def test_the_benchmarks_that_figures_name_are_there() -> None:
    text = README.read_text().partition("## What it costs")[2]
    scripts = re.findall(r"`(benchmarks/\w+\.py)`", text)
    targets = re.findall(r"`make ([\w-]+)`", text)
    assert len(scripts) > 3
    assert all((documents.ROOT / script).exists() for script in scripts)
    makefile = (documents.ROOT / "Makefile").read_text()
    assert all(f"\n{target}:" in makefile for target in targets)
