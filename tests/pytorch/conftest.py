"""What is tested with the real torch: `make test-pytorch` runs it, elsewhere it is left out."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]


def pytest_configure(config: pytest.Config) -> None:
    """Lets pass what some torches say of every second recording, and of themselves."""
    told = (
        "ignore:Warning. Profiler clears events:UserWarning",
        "ignore:.torch.jit.*is deprecated:DeprecationWarning",
        # With CUDA, of all but the first of several recordings.
        "ignore:device events are recorded exclusively:UserWarning",
    )
    for warning in told:
        config.addinivalue_line("filterwarnings", warning)
