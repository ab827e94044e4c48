"""Dask gives the same bytes as one thread, even if a worker is killed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client
from mindprof import ranks

from tests.held_file import HeldFile


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as found:
        yield found


@pytest.mark.usefixtures("client")
def test_dask_gives_the_same_bytes_although_a_worker_is_killed(
    folder: Path, expected: bytes
) -> None:
    job = ranks.open(folder)
    assert job.summarize(on="dask").to_bytes() == expected
    assert job.summarize(on="dask", send=True).to_bytes() == expected
    held, killed = HeldFile(folder / "trace3.json"), []

    def kill() -> None:
        reader = held.wait_for_reader()
        held.release()
        os.kill(reader, signal.SIGKILL)
        killed.append(reader)

    killer = threading.Thread(target=kill)
    killer.start()
    assert job.summarize(on="dask").to_bytes() == expected
    killer.join()
    held.close()
    assert len(killed) == 1


def test_a_cluster_is_started_if_there_is_none(folder: Path, expected: bytes) -> None:
    assert ranks.open(folder).summarize(on="dask", workers=2).to_bytes() == expected
