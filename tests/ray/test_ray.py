"""A Ray cluster of two nodes gives the same bytes as one thread, even if workers are lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import ray
from mindprof import ranks
from ray.cluster_utils import Cluster

from tests.held_file import HeldFile


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Starts two nodes with one processor each, and connects to them."""
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    found.add_node(num_cpus=1)
    found.wait_for_nodes()
    ray.init(address=found.address, log_to_driver=False)
    yield found
    ray.shutdown()
    found.shutdown()


def beside(work: Callable[[], None]) -> threading.Thread:
    """Does something while the job is read."""
    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.usefixtures("cluster")
def test_two_nodes_give_the_same_bytes_although_a_worker_is_killed(
    folder: Path,
    expected: bytes,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = ranks.open(folder)
    assert job.summarize(on="ray").to_bytes() == expected

    held, killed = HeldFile(folder / "trace3.json"), []

    def kill() -> None:
        reader = held.wait_for_reader()
        held.release()
        os.kill(reader, signal.SIGKILL)
        killed.append(reader)

    killer = beside(kill)
    assert job.summarize(on="ray", progress=True).to_bytes() == expected
    killer.join()
    held.close()
    assert len(killed) == 1
    assert "6/6" in capsys.readouterr().err

    # Workers have another current folder, and may have no access to the files at all.
    monkeypatch.chdir(folder.parent)
    relative = ranks.open(folder.name)
    assert relative.summarize(on="ray").to_bytes() == expected
    assert relative.summarize(on="ray", send=True).to_bytes() == expected


def test_a_lost_node_costs_nothing(folder: Path, expected: bytes, cluster: Cluster) -> None:
    job = ranks.open(folder)  # It leaves out pipes, which the two files become.
    held = [HeldFile(folder / "trace0.json"), HeldFile(folder / "trace1.json")]
    other = next(node for node in cluster.list_all_nodes() if not node.is_head())
    raylet = other.all_processes["raylet"][0].process.pid
    lost: list[int] = []

    def lose() -> None:
        readers = [file.wait_for_reader() for file in held]
        lost.extend(one for one in readers if raylet in map(_id, psutil.Process(one).parents()))
        for file in held:
            file.release()
        cluster.remove_node(other, allow_graceful=False)
        for file in held:
            file.finish()

    loser = beside(lose)
    assert job.summarize(on="ray").to_bytes() == expected
    loser.join()
    # Each node read one of the two.
    assert len(lost) == 1


def _id(process: psutil.Process) -> int:
    return int(process.pid)


@pytest.mark.usefixtures("cluster")
def test_a_file_that_costs_every_worker_is_named_and_the_rest_is_answered(folder: Path) -> None:
    held, killed = HeldFile(folder / "trace2.json"), list[int]()

    def kill_all() -> None:
        killed.extend(held.kill_reader() for _ in range(4))

    killer = beside(kill_all)
    job = ranks.open(folder / "trace*.json")
    with pytest.warns(ranks.RankWarning, match="1 files could not be read"):
        summary = job.summarize(on="ray")
    killer.join()
    # The first try and three more, each by another worker.
    assert len(set(killed)) == 4
    assert [Path(path).name for path in job.failures] == ["trace2.json"]
    assert "WorkerCrashedError" in next(iter(job.failures.values()))
    assert summary.roster()["missing"] == "2"


@pytest.mark.usefixtures("cluster")
def test_unreadable_files_are_named(folder: Path) -> None:
    (folder / "trace0.json").write_text("no trace")
    job = ranks.open(folder)
    (folder / "trace5.json").unlink()
    for send in (False, True):
        with pytest.warns(ranks.RankWarning, match="2 files could not be read"):
            summary = job.summarize(on="ray", send=send)
        assert [Path(path).name for path in job.failures] == ["trace0.json", "trace5.json"]
        assert summary.roster()["missing"] == "0-5:5"


@pytest.mark.usefixtures("cluster")
def test_a_worker_has_one_file_at_a_time(folder: Path, expected: bytes) -> None:
    job = ranks.open(folder)
    held = HeldFile(folder / "trace0.json")
    read: list[str] = []

    def look() -> None:
        reader = held.wait_for_reader()
        # The other node reads the rest meanwhile. This reader must not have taken a second file.
        paths = [os.readlink(one) for one in Path(f"/proc/{reader}/fd").iterdir()]
        read.extend(path for path in paths if path.startswith(str(folder)))
        held.release()
        held.finish()

    looker = beside(look)
    assert job.summarize(on="ray").to_bytes() == expected
    looker.join()
    assert read == [str(held.path)]
