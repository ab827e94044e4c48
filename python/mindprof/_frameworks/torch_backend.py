"""By which way the torch of this process is recorded: decided once, and said in the log.

The observer is found in torch's libraries and checked on a few operators before it is used. Where
that fails, and where a device is to be recorded, torch's own collector does it, Kineto.
"""

from __future__ import annotations

import os
import sys
import threading
from types import ModuleType
from typing import Any, NamedTuple

from mindprof import _core
from mindprof._frameworks.plain_thread import PlainThread
from mindprof._results.logger import inform
from mindprof._settings.activity import DEVICE_NAMES

VARIABLE = "MINDPROF_TORCH_BACKEND"

_OLDEST = (2, 7)

# So many bytes as no other allocation is likely to have.
_CHECKED_BYTES = 12_345

_trial: PlainThread[Trial] | None = None
_said: set[Backend] = set()
_lock = threading.RLock()


class Backend(NamedTuple):
    """A way to record torch, and why it was taken.

    Args:
        name: `observer`, `kineto`, or `off` for none.
        reason: Why.
    """

    name: str
    reason: str


class Trial(NamedTuple):
    """What was found out about the observer by trying it.

    Args:
        backend: The observer, or `off` if it is not right for this torch.
        tells_memory: Whether it hears of memory.
    """

    backend: Backend
    tells_memory: bool


def chosen_backend(torch: ModuleType, device: str | None = None) -> Backend:
    """Returns by which way torch is recorded.

    The environment variable `MINDPROF_TORCH_BACKEND` forces one: `observer`, `kineto` or `off`.

    Args:
        torch: The module.
        device: The kind of device that is to be recorded too, by torch's name for it.

    Raises:
        RuntimeError: The forced way is not there.
        ValueError: There is no such way.
    """
    forced = os.environ.get(VARIABLE, "")
    if forced not in ("", "observer", "kineto", "off"):
        raise ValueError(f"{VARIABLE} must be observer, kineto or off, got {forced!r}")
    if forced == "off":
        return _say(Backend("off", f"{VARIABLE} says so"))
    if forced == "kineto":
        if not has_kineto(torch):
            raise RuntimeError(f"{VARIABLE}=kineto: this torch was built without it")
        return _say(Backend("kineto", f"{VARIABLE} says so"))
    # Also where the observer is not needed now: beside a recording it could not be tried.
    probed = _tried(torch).backend
    if not forced and device in recorded_devices(torch):
        return _say(Backend("kineto", f"{device} is among the activities"))
    if forced and probed.name != forced:
        raise RuntimeError(f"{VARIABLE}=observer: {probed.reason}")
    if probed.name == "off" and has_kineto(torch):
        return _say(Backend("kineto", f"the observer cannot be used: {probed.reason}"))
    return _say(probed)


def observer_works(torch: ModuleType) -> bool:
    """Returns whether the observer is right for this torch."""
    return _tried(torch).backend.name == "observer"


def has_kineto(torch: ModuleType) -> bool:
    """Returns whether torch has its own collector, with all that is asked of it here."""
    native = getattr(torch, "_C", None)
    autograd = getattr(native, "_autograd", None)
    names = ("_prepare_profiler", "_enable_profiler", "_disable_profiler")
    is_built = getattr(getattr(torch, "autograd", None), "kineto_available", lambda: False)
    return all(hasattr(autograd, name) for name in names) and bool(is_built())


def supported_devices(torch: ModuleType) -> set[str]:
    """Returns the kinds of devices that Kineto can record here, by torch's names for them."""
    found = {group.name for group in torch.autograd._supported_activities()}
    return {device for group, device in DEVICE_NAMES.items() if group.name in found}


def recorded_devices(torch: ModuleType) -> set[str]:
    """Returns the kinds of devices that are recorded here if they are asked for."""
    if os.environ.get(VARIABLE, "") in ("observer", "off") or not has_kineto(torch):
        return set()
    return supported_devices(torch)


def memory_is_told(torch: ModuleType) -> bool:
    """Returns whether torch tells the observer of memory."""
    return _tried(torch).tells_memory


def is_loaded(torch: ModuleType) -> bool:
    """Returns whether torch is there as a whole: while it is imported it runs no operators."""
    return not getattr(torch.__spec__, "_initializing", False)


def _tried(torch: ModuleType) -> Trial:
    """Returns whether the observer is right for this torch; what was found out once is kept.

    All that is tried is tried before the first recording, and whoever comes meanwhile waits for it:
    a recording beside it would hold operators that are not the program's.
    """
    global _trial
    with _lock:
        if _trial is None:
            _trial = PlainThread(lambda: _try_out(torch))
            _trial.start()
        trial = _trial
    return trial.result()


def _begin_child() -> None:
    """Has a forked child try for itself what a thread of its parent was trying."""
    global _trial, _lock
    _lock = threading.RLock()
    if _trial is not None and not _trial.is_done:
        _trial = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


def _try_out(torch: ModuleType) -> Trial:
    reason = _obstacle(torch) or _probe_failure(torch)
    if reason:
        return Trial(Backend("off", reason), tells_memory=False)
    _core.name_module_calls(torch.nn.Module.__call__)
    _core.name_torch_tensors([torch.Tensor, torch.nn.Parameter])
    observer = Backend("observer", "its layout was probed and is as expected")
    return Trial(observer, _try_memory(torch))


def _try_memory(torch: ModuleType) -> bool:
    """Returns whether the observer hears of an allocation."""
    empty, kind = torch.empty, torch.uint8
    try:
        _core.check_torch_memory(
            _CHECKED_BYTES, lambda: empty(_CHECKED_BYTES, dtype=kind, device="cpu")
        )
    except _core.ProfilerError as error:
        inform("torch's memory is not recorded: %s", error)
        return False
    return True


def _obstacle(torch: ModuleType) -> str | None:
    """Returns what speaks against the observer before anything is tried."""
    try:
        version = torch_version(torch)
        has_new_strings = torch.compiled_with_cxx11_abi()
    except (AttributeError, ValueError):
        return "it does not look like torch"
    if version < _OLDEST:
        return f"torch {torch.__version__} is older than {_OLDEST[0]}.{_OLDEST[1]}"
    return None if has_new_strings else "torch was built for the old strings of C++"


def torch_version(torch: ModuleType) -> tuple[int, ...]:
    """Returns the first two numbers of the version.

    Raises:
        ValueError: They are none.
    """
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def _probe_failure(torch: ModuleType) -> str | None:
    """Makes the observer. Returns why that failed, None if it did not."""
    try:
        probe(torch)
    # Whatever an unknown torch does to the probe's operators, the program goes on without it.
    except Exception as error:
        return str(error) or type(error).__name__
    return None


def probe(torch: ModuleType) -> None:
    """Runs operators whose facts are known, and has the observer made of what was seen of them.

    Raises:
        ProfilerError: libtorch is not as expected.
    """
    with torch.inference_mode(False), torch.enable_grad():
        options = {"dtype": torch.float32, "device": "cpu"}
        a, b = (torch.zeros(2, 3, requires_grad=True, **options) for _ in range(2))
        index = torch.zeros(1, dtype=torch.int64, device="cpu")
        plain, others = sample_tensors(torch), other_tensors(torch)
        large = torch.zeros([1] * 6, device="cpu")
        listener = _core.TorchProbe()
        with torch.autograd.profiler.record_function("mindprof::probe"):
            pass
        c = torch.add(a, b, alpha=3)
        d = torch.add(a, b, alpha=0.5)
        torch.cat([a, b], 1)
        torch.sum(a, [0, 1], True)
        torch.ops.aten.index(a, [index, index])
        torch.full([1], 3 + 4j, dtype=torch.complex64, device="cpu")
        with torch.no_grad():
            torch.neg(a)
        torch.autograd.grad([c.sum(), d.sum()], [a])
        samples = ([tensor._cdata for tensor in tensors] for tensors in (plain, others))
        if not listener.finish(*facts(a, b, c, d), next(samples), large._cdata, next(samples)):
            inform("where torch's tensors hold their sizes was not found: each of them is asked")


def sample_tensors(torch: ModuleType) -> list[Any]:
    """Returns tensors of several types, dimensions, strides, and beginnings in their storages."""
    of_numbers = [
        torch.zeros(shape, dtype=dtype, device="cpu")
        for shape, dtype in (
            ((), torch.float64),
            ((3,), torch.int64),
            ((2, 3), torch.float32),
            ((2, 3, 5), torch.bool),
            ((1, 2, 3, 4), torch.bfloat16),
            ((5, 4, 3, 2, 1), torch.int16),
        )
    ]
    views = [of_numbers[2].t(), of_numbers[3][1:, :, ::2]]
    # Its bytes belong to somebody else, who is not to be taken for them.
    borrowed = torch.frombuffer(bytearray(8), dtype=torch.uint8)
    return [*of_numbers, *views, borrowed]


def other_tensors(torch: ModuleType) -> list[Any]:
    """Returns a tensor elsewhere, and three of a class; Python says the shape of two of them."""

    class Wrapper(torch.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_dispatch__(cls, *_: object) -> object:
            return NotImplemented

    make = torch.Tensor._make_wrapper_subclass
    policies = (None, "sizes", "strides")
    wrappers = [make(Wrapper, (2, 3), dispatch_sizes_strides_policy=policy) for policy in policies]
    return [torch.empty(2, 3, device="meta"), *wrappers]


def facts(a: object, b: object, c: object, d: object) -> tuple[list[int], list[int]]:
    """Returns what is known of the probe's tensors: addresses of two, sequence numbers of two."""
    addresses = [tensor._cdata for tensor in (a, b)]  # type: ignore[attr-defined]
    return addresses, [tensor.grad_fn._sequence_nr() for tensor in (c, d)]  # type: ignore[attr-defined]


def _say(backend: Backend) -> Backend:
    """Says a choice in the log when it is first made."""
    if backend in _said:
        return backend
    _said.add(backend)
    version = getattr(sys.modules.get("torch"), "__version__", "?")
    inform("torch %s is recorded by: %s (%s)", version, backend.name, backend.reason)
    return backend
