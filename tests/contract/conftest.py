"""What the contract's tests share: markers for what only one of the two hosts does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from host import CLEARS_EVENTS, IS_TORCH, torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expects torch to fail where it is known to differ, so that a fault it mends is noticed."""
    for item in items:
        differs = item.get_closest_marker("differs")
        if IS_TORCH and differs is not None:
            reason = f"torch differs: {differs.args[0]}"
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(autouse=True)
def clean_state() -> Iterator[None]:
    """Keeps what one test does to the process from the next one."""
    torch.profiler.profiler._WARNINGS_SHOWN.add(CLEARS_EVENTS)
    yield
    left_on = torch.autograd._profiler_enabled()
    if left_on and IS_TORCH:
        torch.autograd._disable_profiler()
    assert not left_on, "the test left a profiler on"
