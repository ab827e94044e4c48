"""A plugin of pytest that selects tests by name and writes a line per outcome.

`run.py` loads it into the interpreter that runs torch's tests and passes a plan by the environment.
A line is written when a test begins too, so that the reader knows which test ended the process.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
from collections.abc import Generator, Mapping
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

PLAN: dict[str, Any] = json.loads(os.environ["TORCH_SUITES_PLAN"])
#: How long a test may continue after its time is over and before the process is ended.
GRACE_SECONDS = 20


def end_process_later(seconds: int) -> None:
    """Ends the process, also one that runs no Python code, unless it is called again in time."""
    faulthandler.dump_traceback_later(seconds, exit=True)


# Covers the import of the tests, and below the time between two tests and the end.
end_process_later(5 * PLAN["seconds"])


class OutOfTimeError(BaseException):
    """Raised in a test that runs for too long; no handler for exceptions catches it."""


def pytest_configure() -> None:
    """Sets the options of torch's test library, which reads them from the command line."""
    options = import_module("torch.testing._internal.common_utils")
    words, sys.argv = sys.argv, sys.argv[:1]
    options.parse_cmd_line_args()
    sys.argv = words


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = [item for item in items if is_wanted(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
    items[:] = wanted


def is_wanted(item: pytest.Item) -> bool:
    """Reports whether a test is selected, and not yet run by a process that ended early."""
    name = identifier(item.nodeid)
    if name in PLAN["done"]:
        return False
    if PLAN["only"] is not None:
        return name in PLAN["only"]
    # A decorator may append a device and a dtype to the name that the file has.
    longest = max((one for one in PLAN["names"] if item.name.startswith(one)), key=len, default="")
    return bool(PLAN["names"].get(longest))


def identifier(node: str) -> str:
    """Returns the path of the file below the folder of tests, with the class and the test."""
    return f"{PLAN['file']}::{node.split('::', 1)[1]}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    write(identifier(item.nodeid), "began")
    signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(PLAN["seconds"])
    end_process_later(PLAN["seconds"] + GRACE_SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        end_process_later(PLAN["seconds"])
        write(identifier(item.nodeid), "ended")


def out_of_time(_number: int, _frame: FrameType | None) -> None:
    raise OutOfTimeError(f"longer than {PLAN['seconds']} seconds")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.outcome == "failed" or report.when == "call" or report.outcome == "skipped":
        write(identifier(report.nodeid), report.outcome, last_line(report))


def last_line(report: pytest.TestReport) -> str:
    """Returns the line of a report that names the error, or the reason of a skipped test."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    message = str(crash.message if crash else report.longrepr or "").strip()
    lines = [line for line in message.splitlines() if line.strip()]
    return " / ".join(lines[:3])[:400]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.outcome == "failed":
        error = str(report.longrepr).strip().splitlines()
        write(PLAN["file"], "not collected", error[-1] if error else "")


def write(name: str, outcome: str, error: str = "") -> None:
    line: Mapping[str, Any] = {"test": name, "outcome": outcome, "error": error}
    with Path(PLAN["outcomes"]).open("a") as file:
        file.write(json.dumps(line) + "\n")
