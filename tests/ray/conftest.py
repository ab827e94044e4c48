"""A job whose ranks are read on real clusters.

The tests are left to `make test-ray`, which sets RAY_TESTS and has an environment of their own.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mindprof import ranks

from tests.python.rank_traces import write_job

if "RAY_TESTS" not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Writes the traces of a job."""
    write_job(tmp_path)
    return tmp_path


@pytest.fixture
def expected(folder: Path) -> bytes:
    """Returns the summary of the job, made by one thread of this process."""
    return ranks.open(folder).summarize(workers=1).to_bytes()
