"""Reports in a real browser: pages are written once, and each test opens them in its own tabs.

The tests are left to `make test-browser`, which sets BROWSER_TESTS.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.browser import Browser, chromium

if "BROWSER_TESTS" not in os.environ:
    collect_ignore_glob = ["test_*.py"]

ROOT = Path(__file__).parents[2]
PROGRAM = Path(os.environ.get("MINDPROF", ROOT / "target" / "debug" / "mindprof"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("no Chromium: install Debian's package chromium")
    with Browser() as found:
        yield found


@pytest.fixture(scope="session")
def mindprof() -> Callable[..., str]:
    """Runs a command of the program and returns its output."""

    def run(*arguments: str | Path) -> str:
        command = [str(PROGRAM), *map(str, arguments)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout

    return run


@pytest.fixture(scope="session")
def write_page(
    tmp_path_factory: pytest.TempPathFactory, mindprof: Callable[..., str]
) -> Callable[..., Path]:
    """Writes the report of a trace, given by its path or its events."""
    folder = tmp_path_factory.mktemp("pages")
    written: dict[str, Path] = {}

    def write(trace: Path | list[dict[str, Any]], *options: str | Path, name: str = "") -> Path:
        if isinstance(trace, list):
            events, trace = trace, folder / f"{name}.json"
            trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        key = f"{trace.parent.parent.name}-{trace.parent.name}-{trace.name}{options}"
        if key not in written:
            page = folder / f"{len(written)}.html"
            mindprof("report", trace, "--out", page, *options)
            written[key] = page
        return written[key]

    return write
