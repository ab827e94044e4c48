"""Backward nodes name their forward threads, however many threads the process has had."""

from __future__ import annotations

from tests.pytorch.test_forks import stress


def test_forward_threads_are_right_after_thousands_of_threads() -> None:
    found = stress("threads", "--count", "5120")
    assert found == "threads 5,120, backward nodes 10,260: 0 wrong, 0 missing, 0 lost\n"
