"""Every trace that a test writes is checked against what viewers need."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.trace_schema import check_file

if os.environ.get("CONTRACT_HOST", "mindtorch_v2") != "torch":
    from mindprof import _core

    @pytest.fixture(autouse=True)
    def every_written_trace_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
        """Reads each file back that the engine wrote."""
        write = _core.write_chrome_trace

        def write_and_check(profile: Any, path: Any, **options: Any) -> None:
            write(profile, path, **options)
            if ".pftrace" not in str(path) and os.path.isfile(path):
                check_file(path)

        monkeypatch.setattr(_core, "write_chrome_trace", write_and_check)
