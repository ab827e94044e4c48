"""The memory snapshot that `mindprof run --memory` keeps of a program that runs out of memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mindprof._run.allocator_history import AllocatorHistory


class OutOfMemoryError(RuntimeError):
    """Stands in for torch's error."""


class Torch:
    """Stands in for a torch with a CUDA device, which the program has not used yet."""

    def __init__(self) -> None:
        self.OutOfMemoryError = OutOfMemoryError
        self.waiting: list[Callable[[], None]] = []
        self.recordings: list[dict[str, Any]] = []
        memory = SimpleNamespace(
            _record_memory_history=lambda **options: self.recordings.append(options),
            _dump_snapshot=self.dump,
        )
        self.cuda = SimpleNamespace(_lazy_call=self.waiting.append, memory=memory)

    def dump(self, path: str) -> None:
        Path(path).write_bytes(b"snapshot")

    def use_device(self) -> None:
        for call in self.waiting:
            call()


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    found = Torch()
    monkeypatch.setitem(sys.modules, "torch", found)
    return found


def history(folder: Path, said: list[str], is_wanted: bool = True) -> AllocatorHistory:
    found = AllocatorHistory(folder, is_wanted, said.append)
    found.meet_torch()
    return found


def test_a_snapshot_is_kept_when_memory_runs_out(tmp_path: Path, torch: Torch) -> None:
    said: list[str] = []
    found = history(tmp_path, said)
    found.meet_torch()
    assert not torch.recordings, "CUDA must not be initialized before the program uses it"
    torch.use_device()
    assert [options["stacks"] for options in torch.recordings] == ["python"]
    found.keep(OutOfMemoryError("CUDA out of memory"))
    found.tell()
    snapshot = tmp_path / "snapshot.pickle"
    assert snapshot.read_bytes() == b"snapshot"
    assert len(said) == 1
    assert said[0].endswith(f"mindprof memory {snapshot}")


def test_an_error_that_memory_caused_counts(tmp_path: Path, torch: Torch) -> None:
    found = history(tmp_path, [])
    torch.use_device()
    error = RuntimeError("step failed")
    error.__cause__ = OutOfMemoryError("CUDA out of memory")
    found.keep(error)
    assert (tmp_path / "snapshot.pickle").exists()


def test_nothing_is_kept_of_other_ends(tmp_path: Path, torch: Torch) -> None:
    said: list[str] = []
    found = history(tmp_path, said)
    # The device was never used.
    found.keep(OutOfMemoryError("CUDA out of memory"))
    torch.use_device()
    error = RuntimeError("another")
    error.__context__ = error
    found.keep(error)
    found.tell()
    assert not said
    assert not list(tmp_path.iterdir())


def test_nothing_is_recorded_unless_memory_is_asked_for(tmp_path: Path, torch: Torch) -> None:
    history(tmp_path, [], is_wanted=False)
    assert not torch.waiting


@pytest.mark.usefixtures("torch")
def test_a_snapshot_of_an_earlier_run_is_removed(tmp_path: Path) -> None:
    (tmp_path / "snapshot.pickle").write_bytes(b"old")
    history(tmp_path, [], is_wanted=False)
    assert not list(tmp_path.iterdir())


def test_failures_stay_out_of_the_program(
    tmp_path: Path, torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("not supported")

    said: list[str] = []
    found = history(tmp_path, said)
    torch.use_device()
    monkeypatch.setattr(torch.cuda.memory, "_dump_snapshot", fail)
    found.keep(OutOfMemoryError("CUDA out of memory"))
    assert said == ["no memory snapshot was written: not supported"]
    monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", fail)
    other = history(tmp_path, said)
    torch.use_device()
    other.keep(OutOfMemoryError("CUDA out of memory"))
    other.tell()
    assert len(said) == 1
