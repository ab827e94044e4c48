"""Checks docs/cli.md: its Python example runs on real traces."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "goldens" / "cpu-torch2.15" / "mlp-full.trace.json.gz"


def test_the_example_in_python_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = re.findall(r'"([^"]*\.json\.gz)"', example)
    assert len(names) > 1
    for name in names:
        shutil.copy(GOLDEN, tmp_path / name)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    # It prints the rows and the metadata of the trace, and two copies do not differ.
    assert "aten::addmm" in run.stdout
    assert "'with_stack'" in run.stdout
    assert run.stderr == ""
