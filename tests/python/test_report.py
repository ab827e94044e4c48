"""The report of a profile: one page, from Python."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import mindprof
import pytest
from mindprof._results.source_lines import source_lines

from tests.workloads import torch


@pytest.fixture
def prof() -> mindprof.profile:
    with mindprof.profile(with_stack=True) as found:
        for _ in range(3):
            with mindprof.record_function("<b>work</b>"):
                torch.ones(4) + 1
            found.step()
    return found


def unpacked(page: str) -> dict[str, Any]:
    """Returns the document of the data block."""
    found = re.search(r'id="data">(.*?)</script>', page, re.S)
    assert found is not None
    plain = gzip.decompress(base64.b64decode(json.loads(found[1])["packed"]))
    length = int.from_bytes(plain[:4], "little")
    document: dict[str, Any] = json.loads(plain[4 : 4 + length])
    return document


def test_a_report_is_one_page_without_links(prof: mindprof.profile, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    prof.export_html(path)
    page = path.read_text()
    assert page.startswith("<!doctype html>")
    assert "<b>work</b>" not in page
    assert "&lt;b&gt;work&lt;/b&gt;" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_the_rows_are_those_of_key_averages(prof: mindprof.profile, tmp_path: Path) -> None:
    prof.export_html(tmp_path / "report.html")
    tables = unpacked((tmp_path / "report.html").read_text())["tables"]
    table = next(table for table in tables if table["id"] == "operators")
    titles = [column["title"] for column in table["columns"]]
    shown = {row[0][0]: row for row in table["rows"]}
    for row in prof.key_averages():
        cells = shown[row.key]
        assert cells[titles.index("Calls")] == row.count
        own = cells[titles.index("Self CPU")]
        assert own == pytest.approx(row.self_cpu_time_total * 1000, abs=0.5)


def test_a_loaded_profile_has_the_same_report(prof: mindprof.profile, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    prof.export_chrome_trace(trace)
    mindprof.load(trace).export_html(tmp_path / "loaded.html", compare=prof)
    page = (tmp_path / "loaded.html").read_text()
    assert "Compared with the other profile" in page
    prof.export_html(tmp_path / "again.html", compare=trace)
    assert "Compared with trace.json" in (tmp_path / "again.html").read_text()


def test_source_lines_are_shown_on_request_and_only_from_below_the_folder(
    prof: mindprof.profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    prof.export_html(path)
    assert unpacked(path.read_text())["source"] == {}
    monkeypatch.chdir(tmp_path)
    prof.export_html(path, source=True)
    assert unpacked(path.read_text())["source"] == {}
    monkeypatch.chdir(Path(__file__).parents[2])
    prof.export_html(path, source=True)
    lines = [
        text for file in unpacked(path.read_text())["source"].values() for text in file.values()
    ]
    assert any("torch.ones(4) + 1" in line for line in lines)


def test_other_files_than_python_code_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("train.py", "secret.txt", "../other.py"):
        (folder / name).write_text("first\nsecond\n")
    (folder / "large.py").write_bytes(b"\n" * ((4 << 20) + 1))
    (folder / "disguised.py").symlink_to("secret.txt")
    (folder / "outside.py").symlink_to("../other.py")
    named = ("train.py", "secret.txt", "large.py", "disguised.py", "outside.py", "/etc/passwd")
    found = source_lines({"file": name} for name in named)
    assert found == [("train.py", ["first", "second"])]


def test_a_page_does_not_replace_the_trace_it_is_compared_with(
    prof: mindprof.profile, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.json"
    prof.export_chrome_trace(str(trace))
    before = trace.read_bytes()
    with pytest.raises(ValueError, match="would replace the trace"):
        prof.export_html(trace, compare=trace)
    assert trace.read_bytes() == before


def test_without_a_recording_there_is_no_report(tmp_path: Path) -> None:
    with pytest.raises((AttributeError, AssertionError)):
        mindprof.profile().export_html(tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
