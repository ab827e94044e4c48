"""`import mindprof` brings nothing along that is expensive and not needed yet."""

from __future__ import annotations

import subprocess
import sys

EXPENSIVE = ("dataclasses", "inspect", "json", "socket", "uuid", "concurrent.futures", "pathlib")


def test_expensive_modules_come_when_they_are_needed() -> None:
    program = (
        "import sys; before = set(sys.modules); import mindprof; "
        f"print(*(set({EXPENSIVE}) & (set(sys.modules) - before)))"
    )
    # Without `site`, whose hooks may have imported them before.
    paths = [path for path in sys.path if path.endswith("site-packages")]
    program = f"import sys; sys.path.extend({[*paths, 'python']!r}); {program}"
    said = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == ""
