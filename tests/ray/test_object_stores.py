"""Files on object stores are read through fsspec."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest
from mindprof import ranks


def test_urls_give_the_same_bytes(folder: Path, expected: bytes) -> None:
    files = fsspec.filesystem("memory")
    for path in folder.iterdir():
        files.pipe(f"/job/{path.name}", path.read_bytes())
    for name in ("notes.txt", ".checkpoints/trace1.json", ".trace2.json"):
        files.pipe(f"/job/{name}", b"")
    for source in ("memory://job", "memory://job/*.json"):
        job = ranks.open(source)
        assert len(job.paths) == 6
        assert job.summarize().to_bytes() == expected
    assert ranks.open(f"file://{folder}").summarize().to_bytes() == expected
    assert ranks.open(f"file://{folder}").summarize(on="processes").to_bytes() == expected
    assert len(ranks.summarize("memory://job/trace0.json")) == 1


def test_missing_and_broken_objects_are_named(folder: Path) -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/broken/0.json", b"no trace")
    files.pipe("/broken/1.json", (folder / "trace1.json").read_bytes())
    job = ranks.open(["memory://broken/0.json", "memory://broken/1.json", "memory://broken/2.json"])
    with pytest.warns(ranks.RankWarning, match="2 files could not be read"):
        summary = job.summarize()
    assert len(summary) == 1
    with pytest.raises(FileNotFoundError, match="no traces found"):
        ranks.open("memory://nothing/*.json")
