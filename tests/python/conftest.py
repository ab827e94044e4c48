"""What tests of the door for frameworks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from mindprof import hosts


@pytest.fixture(name="register")
def _register() -> Iterator[Callable[[hosts.Framework], None]]:
    """Registers frameworks for the time of a test."""
    registered = []

    def register(framework: hosts.Framework) -> None:
        hosts.register(framework)
        registered.append(framework)

    yield register
    for framework in registered:
        hosts.unregister(framework)
