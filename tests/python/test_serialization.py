"""`save` and `load`: what is written comes back, and nothing is run."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path

import mindtorch_v2 as torch
import pytest
from mindtorch_v2 import nn


def test_a_state_dict_comes_back(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    path = tmp_path / "model.pt"
    torch.save(model.state_dict(), path)
    found = torch.load(path, weights_only=True)
    assert isinstance(found, OrderedDict)
    other = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert str(other.load_state_dict(found)) == "<All keys matched successfully>"
    x = torch.randn(4, 2)
    assert other(x).tolist() == model(x).tolist()


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "int32", "int64", "bool"])
def test_every_type_of_elements_comes_back(name: str) -> None:
    dtype = getattr(torch, name)
    file = io.BytesIO()
    tensor = torch.tensor([[0.0, 1.0, -2.5]]).to(dtype)
    torch.save(tensor, file)
    found = torch.load(file)
    assert found.dtype == dtype
    assert found.tolist() == tensor.tolist()


def test_plain_values_come_back() -> None:
    value = {
        "epoch": 3,
        "loss": 0.1,
        "no number": float("inf"),
        1: [True, None, "text"],
        "sizes": (torch.Size([2, 3]), {1, 2}),
        "dtype": torch.float32,
        "empty": torch.zeros(0, 3),
        "parameter": nn.Parameter(torch.ones(2)),
    }
    file = io.BytesIO()
    torch.save(value, file)
    found = torch.load(file)
    assert {key: found[key] for key in list(value)[:6]} == {
        key: value[key] for key in list(value)[:6]
    }
    assert found["empty"].shape == (0, 3)
    assert isinstance(found["parameter"], nn.Parameter)


def test_one_tensor_in_two_places_stays_one() -> None:
    shared = torch.ones(2)
    file = io.BytesIO()
    torch.save([shared, shared], file)
    first, second = torch.load(file)
    assert first is second


def test_what_would_need_code_is_refused() -> None:
    with pytest.raises(TypeError, match=r"save its state_dict\(\) instead"):
        torch.save(nn.Linear(1, 1), io.BytesIO())


class Trap:
    """Notes that it was unpickled."""

    ran = False

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return spring, ()


def spring() -> None:
    """Is what a pickle would run."""
    Trap.ran = True


def test_files_of_torch_are_refused_and_nothing_is_run(tmp_path: Path) -> None:
    path = tmp_path / "torchs.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torchs/data.pkl", pickle.dumps(Trap()))
    with pytest.raises(RuntimeError, match=r"PyTorch's torch\.save"):
        torch.load(path)
    plain = tmp_path / "old.pt"
    plain.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(RuntimeError, match=r"not one that mindtorch_v2\.save\(\) wrote"):
        torch.load(plain)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "missing.pt")
    assert not Trap.ran


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt"
    torch.save([1], path)
    path.chmod(0o600)

    def fail(*_: object) -> None:
        raise OSError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(zipfile.ZipFile, "writestr", fail)
        with pytest.raises(OSError, match="no room"):
            torch.save([2], path)
    assert torch.load(path) == [1]
    torch.save([3], path)
    assert torch.load(path) == [3]
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["model.pt"]


TENSOR = {"tensor": 0, "size": [1], "dtype": "torch.float32", "requires_grad": False}
TENSOR["parameter"] = False


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "null",
        "no JSON",
        '{"format": "mindtorch_v2 1", "byteorder": "little"}',
        *(
            json.dumps({"format": "mindtorch_v2 1", "byteorder": "little", "content": value})
            for value in (
                {},
                [1],
                1.5,
                {"size": "abc"},
                {"list": "abc"},
                {"float": [1]},
                {"dict": [[{"list": []}, 1]]},
                {"tensor": 0},
                TENSOR | {"size": [2]},
                TENSOR | {"size": [-1]},
                TENSOR | {"size": ["1"]},
                TENSOR | {"size": [1] * 20_000},
                TENSOR | {"size": [2**62, 2**62, 0]},
                TENSOR | {"dtype": "torch.complex64"},
                TENSOR | {"tensor": 7},
                TENSOR | {"tensor": [1]},
            )
        ),
        '{"format": "mindtorch_v2 1", "byteorder": "little", "content": '
        + '{"list": [' * 50_000
        + "]}" * 50_000
        + "}",
    ],
)
def test_a_hostile_file_is_refused(content: str) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mindtorch_v2.json", content)
        archive.writestr("data/0", b"1234")
    with pytest.raises(RuntimeError, match=r"load\(\): "):
        torch.load(file)


def test_what_unpacks_to_more_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mindtorch_v2.json", " " * 10_000_000)
    with pytest.raises(RuntimeError, match="damaged"):
        torch.load(file)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(RuntimeError, match="not a regular file"):
        torch.load(path)
