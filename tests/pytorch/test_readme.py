"""The README's program for PyTorch runs, and shows what it is said to show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.python import documents


def test_the_first_program(tmp_path: Path) -> None:
    readme = documents.ROOT / "README.md"
    (program,) = (
        text
        for language, text in documents.blocks(readme)
        if language == "python" and text.startswith("import torch\nimport mindprof\n")
    )
    environment = {**os.environ, "PYTHONPATH": str(documents.ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=True,
    )
    rows = {line.split()[0]: line.split()[-1] for line in done.stdout.splitlines() if line.strip()}
    assert rows["aten::addmm"] == "20"
