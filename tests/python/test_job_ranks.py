"""Ranks of a job under `mindprof run`: labelled output, and one answer about all of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mindprof._run import job_ranks
from mindprof._run.job_ranks import JobRanks

from tests.python.rank_traces import RANKS, write_job

PROGRAM = """
import mindprof
for step in range(4):
    with mindprof.record_function(f"ProfilerStep#{step}"):
        sum(range(20000))
"""


def started(folder: Path, rank: int, world_size: int) -> subprocess.Popen[str]:
    """Starts a rank as a launcher does."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mindprof", "run", "--out", str(folder / "out"), str(program)]
    environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world_size)}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def test_ranks_are_labelled_and_the_first_tells_about_all(tmp_path: Path) -> None:
    first = started(tmp_path, 0, 2)
    # The first rank removes what earlier runs left. This program is so short that the other rank
    # might have ended by then.
    while not (tmp_path / "out/rank0").exists():
        assert first.poll() is None
        time.sleep(0.01)
    processes = [first, started(tmp_path, 1, 2)]
    texts = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    for rank, text in enumerate(texts):
        assert {line[:8] for line in text.splitlines()} == {f"[rank {rank}]"}
    assert "[rank 0] 2 ranks, 4 steps of " in texts[0]
    assert "ranks, 4 steps" not in texts[1]
    assert (tmp_path / "out/job.ranks").exists()


def test_summaries_of_an_earlier_run_are_removed(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"rank{rank}").mkdir()
        (tmp_path / f"rank{rank}/summary.ranks").write_bytes(b"of an earlier run")
    JobRanks(tmp_path, 1, 2).begin()
    assert (tmp_path / "rank0/summary.ranks").exists()
    assert not (tmp_path / "rank1/summary.ranks").exists()
    JobRanks(tmp_path, 0, 2).begin()
    assert not (tmp_path / "rank0/summary.ranks").exists()


def test_missing_ranks_are_named_and_not_waited_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_job(tmp_path)
    for rank in range(RANKS):
        (tmp_path / f"rank{rank}").mkdir()
    for rank in (0, 1, 4):
        JobRanks(tmp_path, rank, RANKS).leave(tmp_path / f"trace{rank}.json")
    monkeypatch.setattr(job_ranks, "_PATIENCE", 0.0)
    said: list[str] = []
    shown: list[str] = []
    JobRanks(tmp_path, 0, RANKS).tell(said.append, shown.append, waits=True)
    assert said[0] == "ranks 2, 3, 5 left no summary: the job is told without"
    assert shown[0].startswith("3 ranks, 6 steps of 1.60 ms: rank 4 is slow")
    assert "3 of 6 ranks are missing" in shown[0]


def test_a_lone_rank_has_nothing_to_compare(tmp_path: Path) -> None:
    said: list[str] = []
    shown: list[str] = []
    JobRanks(tmp_path, 0, 2).tell(said.append, shown.append, waits=False)
    assert said == ["ranks 0, 1 left no summary: the job is told without"]
    assert shown == []
