"""Arrays of numpy and tensors over the same memory."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import Any

import mindtorch_v2 as torch
import numpy as np
import pytest
from mindprof import _core


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
def test_both_sides_see_each_others_writes(dtype: str) -> None:
    array = np.zeros((2, 3), dtype=dtype)
    tensor = torch.from_numpy(array)
    assert tensor.dtype == getattr(torch, dtype)
    array[1, 2] = 1
    assert tensor[1, 2].item() == 1
    tensor[0, 1] = 1
    assert array[0, 1] == 1
    assert tensor.data_ptr() == array.ctypes.data
    assert np.shares_memory(tensor.numpy(), array)


@pytest.mark.parametrize(
    "view",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0).reshape(3, 4)[:, 1:3],
        np.arange(12.0)[::3],
        np.arange(12.0)[2:],
        np.broadcast_to(np.arange(3.0), (2, 3)).copy()[:, :0],
        np.array(3.5),
    ],
)
def test_views_keep_their_strides(view: Any) -> None:
    tensor = torch.from_numpy(view)
    assert tensor.tolist() == view.tolist()
    assert tuple(tensor.shape) == view.shape
    assert (tensor + 1).tolist() == (view + 1).tolist()
    if view.size:
        assert tensor.data_ptr() == view.ctypes.data
        assert [8 * stride for stride in tensor.stride()] == list(view.strides)


def test_the_array_lives_as_long_as_a_tensor_over_it() -> None:
    class Array(np.ndarray[Any, Any]):
        """An array that can be watched."""

    array = np.arange(6.0).view(Array)
    alive = weakref.ref(array)
    tensor = torch.from_numpy(array)
    part = tensor[2:]
    del array, tensor
    gc.collect()
    assert alive() is not None
    assert part.tolist() == [2.0, 3.0, 4.0, 5.0]
    del part
    gc.collect()
    assert alive() is None


def test_memory_of_an_array_is_not_counted_as_the_runtimes() -> None:
    gc.collect()
    before = _core._live_bytes()
    tensor = torch.from_numpy(np.zeros(1000))
    assert _core._live_bytes() == before
    del tensor
    assert _core._live_bytes() == before


def test_gradients_flow_through_shared_memory() -> None:
    weight = torch.from_numpy(np.ones((2, 2), dtype="float32")).requires_grad_()
    (weight * 3).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (
            np.arange(4)[::-1],
            ValueError,
            "At least one stride in the given numpy array is negative",
        ),
        (np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_"),
        (np.array([1j]), TypeError, "can't convert np.ndarray of type numpy.complex128"),
        (np.zeros(3, dtype=">f4"), ValueError, "byte order different from the native byte order"),
        (
            np.zeros(3, dtype=[("x", "f4"), ("y", "i1")])["x"],
            ValueError,
            "strides not a multiple of the element byte size",
        ),
        ([1, 2], TypeError, r"expected np.ndarray \(got list\)"),
        (np.float32(3), TypeError, r"expected np.ndarray \(got numpy.float32\)"),
    ],
)
def test_what_cannot_be_shared_raises_as_in_torch(
    array: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        torch.from_numpy(array)


def test_an_array_that_cannot_be_written_warns_once() -> None:
    code = (
        "import warnings, numpy as np, mindtorch_v2 as torch\n"
        "array = np.zeros(3); array.flags.writeable = False\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    torch.from_numpy(array); torch.from_numpy(array)\n"
        "print([str(warning.message)[:39] for warning in caught])\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert told.stdout == "['The given NumPy array is not writable, ']\n"


def test_truth_values_may_be_any_byte() -> None:
    """What numpy writes into the memory of truth values is compared with zero, nothing else."""
    tensor = torch.zeros(64, dtype=torch.bool)
    tensor.numpy().view("u1")[:] = 255
    ones = torch.ones(64, dtype=torch.bool)
    assert tensor.sum().item() == 64
    assert tensor.equal(ones)
    assert not (~tensor).any()
    assert not (tensor ^ ones).any()
    assert (tensor & ones).sum().item() == 64
    assert tensor.tolist() == [True] * 64
    assert tensor.to(torch.float32).sum().item() == 64
    assert torch.where(tensor, 3.0, 4.0).sum().item() == 192
    assert torch.arange(64)[tensor].shape == (64,)
    assert tensor.clone().max().item() is True
    assert repr(tensor[:2]) == "tensor([True, True])"


def test_truth_values_of_an_array_may_be_any_byte_and_are_shared() -> None:
    array = np.full(3, 7, dtype="u1")
    tensor = torch.from_numpy(array.view("bool"))
    assert tensor.tolist() == [True, True, True]
    array[1] = 0
    assert tensor.tolist() == [True, False, True]
    tensor[0] = True
    assert array.tolist() == [1, 0, 7]


def liar() -> Any:
    """Returns a class of arrays that say of themselves what is not so."""
    told: dict[str, Any] = {
        "shape": (1_000_000,),
        "strides": (4096,),
        "dtype": np.dtype("int64"),
        "size": 1_000_000,
        "flags": None,
        "ctypes": None,
        "view": None,
        "__array_interface__": None,
    }
    return type("Liar", (np.ndarray,), told)


def test_a_subclass_cannot_lie_about_its_memory() -> None:
    array = np.arange(6, dtype="float32").reshape(2, 3)
    tensor = torch.from_numpy(np.ndarray.view(array, liar()))
    assert (tensor.dtype, tensor.shape, tensor.stride()) == (torch.float32, (2, 3), (3, 1))
    assert tensor.data_ptr() == array.ctypes.data
    array[1, 2] = 9
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 9]]
