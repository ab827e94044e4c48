"""Every trace that a test writes is checked against what viewers need.

A build without the embedded runtime is tested too: tests that need the runtime are skipped here,
whether they are marked or import `mindtorch_v2`.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib.abc import MetaPathFinder
from typing import Any

import pytest

from tests.trace_schema import check_file

# A shell ignores Ctrl-C in what it runs in the background, and so would the programs of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

if os.environ.get("CONTRACT_HOST", "mindtorch_v2") != "torch":
    from mindprof import _core

    from tests.workloads import HAS_RUNTIME, REASON

    class RuntimeImports(MetaPathFinder):
        """Skips the test, or the module of tests, that imports the runtime."""

        def find_spec(self, name: str, *_: Any) -> None:
            if name.partition(".")[0] == "mindtorch_v2":
                pytest.skip(REASON, allow_module_level=True)

    if not HAS_RUNTIME:
        sys.meta_path.insert(0, RuntimeImports())
        # Its conftest imports the framework, where nothing can be skipped.
        collect_ignore = ["contract"]

    def pytest_runtest_setup(item: pytest.Item) -> None:
        """Skips tests that are marked, such as those that start a program which needs it."""
        if not HAS_RUNTIME and item.get_closest_marker("runtime") is not None:
            pytest.skip(REASON)

    @pytest.fixture(autouse=True)
    def every_written_trace_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
        """Reads each file back that the engine wrote."""
        write = _core.write_chrome_trace

        def write_and_check(profile: Any, path: Any, **options: Any) -> None:
            write(profile, path, **options)
            if ".pftrace" not in str(path) and os.path.isfile(path):
                check_file(path)

        monkeypatch.setattr(_core, "write_chrome_trace", write_and_check)
