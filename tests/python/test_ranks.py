"""`mindprof.ranks`: summaries of ranks, however they are made and merged."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pytest
from mindprof import ProfilerError, ranks

from tests.held_file import HeldFile
from tests.python.rank_traces import RANKS, SLOW, write_job


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Writes the traces of a job."""
    write_job(tmp_path)
    return tmp_path


def test_the_slow_rank_is_found(folder: Path) -> None:
    summary = ranks.open(folder).summarize()
    assert len(summary) == RANKS
    (slow,) = summary.stragglers()["ranks"]
    assert (slow["rank"], slow["cause"]) == (SLOW, "computing")
    assert summary.findings()["found"][0]["rule"] == "slow-rank"
    assert summary.roster()["missing"] == ""
    assert str(summary).startswith("6 ranks, 6 steps of 1.60 ms: rank 4 is slow")
    assert set(summary.answers()) >= {"clocks", "communication", "devices", "kernels", "memory"}


def test_every_way_gives_the_same_bytes(folder: Path) -> None:
    job = ranks.open(f"{folder}/*.json")
    threads = job.summarize(on="threads", workers=3).to_bytes()
    assert job.summarize(on="processes", workers=2).to_bytes() == threads
    parts = [ranks.summarize(path) for path in reversed(job.paths)]
    assert ranks.merge(parts).to_bytes() == threads
    halves = ranks.merge(parts[:2]) | ranks.merge(parts[2:])
    assert halves.to_bytes() == threads
    again = pickle.loads(pickle.dumps(halves))
    assert again == halves
    assert hash(again) == hash(halves)
    assert ranks.RankSummary.from_bytes(threads) == halves
    read = [ranks.summarize_bytes(Path(path).read_bytes(), path) for path in job.paths]
    assert ranks.merge(read).to_bytes() == threads


def test_a_lost_process_costs_its_own_file_only(folder: Path) -> None:
    job = ranks.open(folder)
    whole = job.summarize()
    held = HeldFile(folder / "trace1.json")

    def kill_readers() -> None:
        # It is read a second time, in a process of its own.
        held.kill_reader()
        held.kill_reader()

    killer = threading.Thread(target=kill_readers)
    killer.start()
    with pytest.warns(ranks.RankWarning, match="1 files could not be read"):
        summary = job.summarize(on="processes", workers=2)
    killer.join()
    assert list(job.failures) == [str(held.path)]
    assert "was lost" in job.failures[str(held.path)]
    assert summary.roster()["missing"] == "1"
    assert len(summary) == len(whole) - 1


def test_unusable_files_are_named_and_the_rest_is_answered(folder: Path) -> None:
    (folder / "trace1.json").write_text("no trace")
    (folder / "trace2.json").write_bytes(b"")
    job = ranks.open(folder)
    (folder / "trace3.json").unlink()
    with pytest.warns(ranks.RankWarning, match="3 files could not be read"):
        summary = job.summarize()
    assert sorted(Path(path).name for path in job.failures) == [
        "trace1.json",
        "trace2.json",
        "trace3.json",
    ]
    assert summary.roster()["missing"] == "1-3"


def test_errors_are_clear(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no traces found"):
        ranks.open(tmp_path)
    (tmp_path / "a.json").write_text("no trace")
    with pytest.raises(ProfilerError, match="none of 1 files could be read"):
        ranks.open(tmp_path).summarize()
    with pytest.raises(FileNotFoundError):
        ranks.summarize(tmp_path / "b.json")
    with pytest.raises(ProfilerError, match="not a summary of ranks"):
        ranks.RankSummary.from_bytes(b"no summary")
    with pytest.raises(ValueError, match="on should be one of: threads"):
        ranks.open(tmp_path).summarize(on="fibers")  # type: ignore[arg-type]


def test_a_progress_bar_is_shown_on_request(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ranks.open(folder).summarize(progress=True)
    assert "6/6" in capsys.readouterr().err
    ranks.open(folder).summarize()
    assert capsys.readouterr().err == ""
