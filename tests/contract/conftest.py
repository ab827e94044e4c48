"""What the contract's tests share: markers for what only one of the two hosts does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from host import CLEARS_EVENTS, IS_TORCH, torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves out what a host is known not to do."""
    for item in items:
        differs = item.get_closest_marker("differs")
        if IS_TORCH and differs is not None:
            item.add_marker(pytest.mark.skip(f"torch differs: {differs.args[0]}"))


@pytest.fixture(autouse=True)
def clean_state() -> Iterator[None]:
    """Keeps what one test does to the process from the next one."""
    torch.profiler.profiler._WARNINGS_SHOWN.add(CLEARS_EVENTS)
    yield
    assert not torch.autograd._profiler_enabled(), "the test left a profiler on"
