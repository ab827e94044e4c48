"""`mindprof.ranks`: summaries of ranks, however they are made and merged."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import mindprof
import pytest
from mindprof import ProfilerError, ranks
from mindprof._command import main

from tests.held_file import HeldFile
from tests.python.rank_traces import RANKS, SLOW, STEPS, write_job

FILE_OF_PROCESS = f"process {os.getpid()}"


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


def test_a_script_without_a_guard_is_named(folder: Path) -> None:
    script = folder / "script.py"
    script.write_text(
        "from mindprof import ranks\n"
        f"summary = ranks.open({str(folder)!r}).summarize(on='processes', workers=2)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    # Processes that ended halfway may leave warnings of Python's after it.
    lines = done.stderr.splitlines()
    told = [line for line in lines if line.startswith("mindprof._core.ProfilerError: ")]
    assert told[-1].split(": ", 1)[1].startswith("none of 6 files could be read"), told
    assert f"each process runs {script} again" in told[-1]
    assert 'put its code below `if __name__ == "__main__":`' in told[-1]


def test_sizes_of_messages_that_are_not_known_are_no_zeros(folder: Path) -> None:
    summary = ranks.open(folder).summarize()
    communication = summary.collectives()
    assert [row["bytes"] for row in communication["rows"]] == [None]
    assert {worst["bytes"] for worst in communication["worst"]} == {None}
    (line,) = [line for line in str(summary).splitlines() if line.startswith("all-reduce")]
    assert line.split()[3] == "-"


def test_a_slow_rank_may_wait_for_a_missing_one(folder: Path) -> None:
    (folder / "trace1.json").unlink()
    summary = ranks.open(folder).summarize()
    (found,) = [one for one in summary.findings()["found"] if one["rule"] == "slow-rank"]
    assert (found["low"], found["confidence"]) == (0.0, "low")
    text = " ".join(str(summary).split())
    assert "the others wait for it, at most 31 % of each step. Ranks are missing, and the" in text


def test_results_of_a_run_are_their_traces_alone(folder: Path) -> None:
    whole = ranks.open(folder).summarize()
    out = folder / "out"
    for rank in range(RANKS):
        results = out / f"rank{rank}"
        results.mkdir(parents=True)
        trace = (folder / f"trace{rank}.json").read_bytes()
        (results / "trace.json.gz").write_bytes(gzip.compress(trace))
        for name in ("summary.json", "functions.json", "summary.ranks", "report.html"):
            (results / name).write_text("no trace")
    (out / "job.ranks").write_bytes(whole.to_bytes())
    job = ranks.open(out)
    assert job.paths == tuple(str(out / f"rank{rank}/trace.json.gz") for rank in range(RANKS))
    found = job.summarize()
    assert found.roster()["repeated"] == []
    assert found.steps() == whole.steps() | {"each": found.steps()["each"]}
    rules = [(one["rule"], one["share"]) for one in found.findings()["found"]]
    assert rules == [(one["rule"], one["share"]) for one in whole.findings()["found"]]


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


def test_hidden_and_compressed_files(folder: Path) -> None:
    whole = ranks.open(folder).summarize()
    hidden = folder / ".checkpoints"
    hidden.mkdir()
    for path in (hidden / "trace1.json", folder / ".trace2.json", folder / "notes.txt"):
        path.write_text("no trace")
    os.mkfifo(folder / "pipe.json")
    node = folder / "node1"
    node.mkdir()
    (folder / "trace4.json").rename(node / "trace4.json")
    data = ranks.summarize(folder / "trace5.json").to_bytes()
    (folder / "trace5.json").unlink()
    (folder / "5.ranks.gz").write_bytes(gzip.compress(data))
    job = ranks.open(folder)
    assert len(job.paths) == RANKS
    assert job.summarize() == whole
    # A folder that is named is searched, hidden or not.
    assert len(ranks.open(hidden)) == 1
    assert ranks.summarize_bytes(gzip.compress(data), "5.ranks.gz").to_bytes() == data
    assert ranks.RankSummary.from_bytes(data) == ranks.summarize(folder / "5.ranks.gz")


def test_errors_are_clear(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no traces found"):
        ranks.open(tmp_path)
    with pytest.raises(FileNotFoundError, match="no traces were named"):
        ranks.open([])
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


def test_the_page_has_everything_and_nothing_else_runs(folder: Path) -> None:
    page = folder / "job.html"
    ranks.open(folder).summarize().export_html(page)
    text = page.read_text()
    assert "rank 4 is slow" in text
    assert text.count('<rect class="heat-') == RANKS * STEPS
    assert "http:" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https:" not in text


def test_one_trace_has_all_ranks_on_one_clock(folder: Path) -> None:
    # The clock of rank 2 is ahead, which the ends of its collectives give away.
    path = folder / "trace2.json"
    ahead = json.loads(path.read_text())
    for event in ahead["traceEvents"]:
        event["ts"] += 700.0
    path.write_text(json.dumps(ahead))
    job = ranks.open(folder)
    job.export_trace(folder / "merged.json", ranks=[2, 5])
    merged = json.loads((folder / "merged.json").read_text())["traceEvents"]
    names = {
        event["pid"]: event["args"]["name"] for event in merged if event["name"] == "process_name"
    }
    assert {name.partition(":")[0] for name in names.values()} == {"rank 2", "rank 5"}
    ends: dict[str, list[float]] = {"rank 2": [], "rank 5": []}
    for event in merged:
        if event["name"].startswith("nccl"):
            rank = names[event["pid"]].partition(":")[0]
            ends[rank].append(round(event["ts"] + event["dur"], 3))
    assert len(ends["rank 2"]) == STEPS
    assert ends["rank 2"] == ends["rank 5"]
    with pytest.raises(ValueError, match="there is no trace of rank 9"):
        job.export_trace(folder / "other.json", ranks=[9])


def test_an_archive_for_perfetto_has_each_rank_and_the_offsets_of_clocks(folder: Path) -> None:
    # The clock of rank 2 is ahead by 700 us, so that its recording seems to begin later.
    path = folder / "trace2.json"
    ahead = json.loads(path.read_text())
    for event in ahead["traceEvents"]:
        event["ts"] += 700.0
    path.write_text(json.dumps(ahead))
    ranks.open(folder).export_trace(folder / "job.tar", ranks=[2, 5])
    with tarfile.open(folder / "job.tar") as archive:
        names = archive.getnames()
        member = archive.extractfile("perfetto_manifest.json")
        assert member is not None
        manifest = json.load(member)["perfetto_manifest"]
    assert names == ["rank2.pftrace", "rank5.pftrace", "perfetto_manifest.json"]
    assert manifest["version"] == 1
    machines = [entry["machine"]["name"] for entry in manifest["files"]]
    assert machines == ["rank 2", "rank 5"]
    # Both begin at the same time, once the clocks agree.
    offsets = [entry["clocks"]["offset_ns"] for entry in manifest["files"] if "clocks" in entry]
    assert offsets == [0]


def test_parquet_is_partitioned_by_rank(folder: Path) -> None:
    written = ranks.open(folder).export_parquet(folder / "parquet")
    assert written == [str(folder / f"parquet/rank={rank}/part.parquet") for rank in range(RANKS)]
    assert all(Path(path).read_bytes()[:4] == b"PAR1" for path in written)
    (folder / "summary.ranks").write_bytes(ranks.summarize(folder / "trace0.json").to_bytes())
    with pytest.raises(ProfilerError, match="the trace has no events"):
        ranks.open(folder / "summary.ranks").export_parquet(folder / "parquet")


def test_the_command_reads_on_processes(
    folder: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["ranks", str(folder), "--json"]) == 0
    threads = capfd.readouterr().out
    assert main(["ranks", str(folder), "--json", "--on", "processes", "--threads", "2"]) == 0
    assert capfd.readouterr().out == threads
    (folder / "trace1.json").write_text("no trace")
    page = str(tmp_path / "job.html")
    assert main(["ranks", str(folder), "--on=processes", "--row-limit", "1", "--html", page]) == 1
    captured = capfd.readouterr()
    assert captured.out.startswith("5 ranks, 6 steps of 1.60 ms: rank 4 is slow")
    assert captured.err.startswith("warning: ")
    assert "trace1.json: " in captured.err
    assert Path(page).exists()
    with pytest.raises(SystemExit) as ended:
        main(["ranks", str(folder), "--on", "processes", "--trace", "all.pftrace"])
    assert ended.value.code == 2
    assert "--trace reads the traces on this machine" in capfd.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["ranks", "-", "--on", "processes"])
    assert ended.value.code == 2
    assert "stdin is read on this machine" in capfd.readouterr().err


def test_a_profiler_sums_up_its_rank_without_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    with mindprof.profile() as prof, mindprof.record_function("work"):
        pass
    live = prof.rank_summary()
    assert live.roster()["ranks"] == "3"
    assert live.roster()["world_size"] == 8
    written = ranks.summarize(prof.export_chrome_trace(str(tmp_path / "trace.json")))
    one, other = (summary.answers() for summary in (live, written))
    for answers in (one, other):
        # Of the two, only the name of the file differs.
        text = json.dumps(answers).replace("trace.json", "FILE").replace(FILE_OF_PROCESS, "FILE")
        answers["text"] = text
    assert one["text"] == other["text"]
