"""Checks what the README shows of PyTorch: its program runs, its output is that of `mindprof run`.

`tools/readme.py` refreshes the output and the flame graphs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.python import documents

README = documents.ROOT / "README.md"
NUMBER = re.compile(r"-?\d[\d.,]*\s?(?:%|ns|us|ms|s|kB|MB|GB)?(?!\w)")


def words(line: str) -> list[str]:
    """Returns the words of a line without its numbers, in an order that does not depend on them."""
    return sorted(re.findall(r"[^\s(),;]+", NUMBER.sub("N", line)))


def run(arguments: list[str], folder: Path) -> str:
    """Runs Python with the package in a folder, and returns what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(documents.ROOT / "python")},
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_first_program_and_the_commands_for_its_trace(tmp_path: Path) -> None:
    (program,) = (
        text
        for language, text in documents.blocks(README)
        if language == "python" and text.startswith("import torch\nimport mindprof\n")
    )
    printed = run(["-c", program], tmp_path)
    (commands,) = (
        text
        for language, text in documents.blocks(README)
        if language == "sh" and "mindprof info" in text
    )
    documents.run("sh", commands, tmp_path)
    for name in ("memory.html", "small.json.gz", "trace.parquet"):
        assert (tmp_path / name).stat().st_size > 100, name
    rows = {line.split()[0]: line.split()[-1] for line in printed.splitlines() if line.strip()}
    assert rows["aten::addmm"] == "20"
    assert (tmp_path / "trace.json.gz").stat().st_size > 100


def test_the_output_of_run(tmp_path: Path) -> None:
    found = list(documents.blocks(README))
    (number,) = (n for n, (_, text) in enumerate(found) if text.startswith("mindprof run "))
    command, shown = found[number][1].split(), found[number + 1][1]
    shutil.copytree(documents.ROOT / "examples", tmp_path / "examples")
    printed = run(["-m", "mindprof", *command[1:]], tmp_path).replace(f"{tmp_path}/", "")
    # Shares differ from run to run, and with them the order of rows and what is worth a row.
    headers = [line for line in shown.splitlines() if "Your code" in line or "Operator" in line]
    assert len(headers) == 2
    assert all(words(header) in map(words, printed.splitlines()) for header in headers)
    summary = json.loads((tmp_path / "mindprof-pytorch_train" / "summary.json").read_text())
    known = {path["function"] for path in summary["functions"]["paths"]}
    rows, _, rest = shown.partition(headers[0])[2].partition(headers[1])
    functions = [re.match(r"\s*\d+ %\s+\d+ %\s+(\S+)", line) for line in rows.splitlines() if line]
    assert functions, rows
    assert all(found and found[1] in known for found in functions), rows
    operators = {operator["name"] for operator in summary["operators"]}
    named = [line.split()[3].removesuffix("...") for line in rest.splitlines() if " % " in line[:6]]
    assert named, rest
    assert all(any(name.startswith(one) for name in operators) for one in named), rest
    assert "next: mindprof " in printed
    assert "next: mindprof " in shown
