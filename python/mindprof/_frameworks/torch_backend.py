"""The choice of the backend that records torch: the observer, with or without Kineto, or Kineto.

Before the observer is used, the functions that it needs are looked up in torch's libraries, and the
layout of torch's objects is probed with a few operators. If that fails, torch's own collector,
Kineto, records torch. If a device is to be recorded, Kineto records that beside the observer. The
choice is logged.
"""

from __future__ import annotations

import os
import sys
import threading
from types import ModuleType
from typing import Any, NamedTuple

from mindprof import _core
from mindprof._frameworks.plain_thread import PlainThread
from mindprof._frameworks.torch_names import can_hide_slot
from mindprof._results.logger import inform
from mindprof._settings.activity import DEVICE_NAMES, own_activity

VARIABLE = "MINDPROF_TORCH_BACKEND"

_OLDEST = (2, 7)

# A size that no other allocation is likely to have.
_CHECKED_BYTES = 12_345

_trial: PlainThread[Trial] | None = None
_logged: set[Backend] = set()
_lock = threading.RLock()


class Backend(NamedTuple):
    """A way to record torch, and why it was chosen.

    Args:
        name: `observer`, `devices` for the observer with Kineto for devices, `kineto`, or `off`.
        reason: The reason for the choice, for the log.
    """

    name: str
    reason: str


class Trial(NamedTuple):
    """The result of probing the observer.

    Args:
        backend: The observer, or `off` if it does not work with this torch.
        reports_memory: Whether torch reports memory to the observer.
    """

    backend: Backend
    reports_memory: bool


def chosen_backend(torch: ModuleType, device: str | None = None) -> Backend:
    """Returns the backend that records torch.

    The environment variable `MINDPROF_TORCH_BACKEND` forces one: `observer`, `kineto` or `off`.

    Args:
        torch: The module.
        device: The device to record besides the CPU, by torch's name for it.

    Raises:
        RuntimeError: The forced backend is not available.
        ValueError: The forced backend does not exist.
    """
    forced = os.environ.get(VARIABLE, "")
    if forced not in ("", "observer", "kineto", "off"):
        raise ValueError(f"{VARIABLE} must be observer, kineto or off, got {forced!r}")
    if forced == "off":
        return _log_once(Backend("off", f"disabled by {VARIABLE}"))
    if forced == "kineto":
        if not has_kineto(torch):
            raise RuntimeError(f"{VARIABLE}=kineto: this torch was built without Kineto")
        return _log_once(Backend("kineto", f"set by {VARIABLE}"))
    # Probed even if it is not needed now, because it cannot be probed during a recording.
    probed = _tried(torch).backend
    if not forced and device in recorded_devices(torch) and probed.name == "observer":
        return _log_once(Backend("devices", f"{device} is among the activities"))
    if forced and probed.name != forced:
        raise RuntimeError(f"{VARIABLE}=observer: {probed.reason}")
    if probed.name == "off" and has_kineto(torch):
        return _log_once(Backend("kineto", f"the observer cannot be used: {probed.reason}"))
    return _log_once(probed)


def observer_works(torch: ModuleType) -> bool:
    """Returns whether the observer works with this torch."""
    return _tried(torch).backend.name == "observer"


def has_kineto(torch: ModuleType) -> bool:
    """Returns whether torch has Kineto, with all functions that are needed."""
    native = getattr(torch, "_C", None)
    autograd = getattr(native, "_autograd", None)
    names = ("_prepare_profiler", "_enable_profiler", "_disable_profiler")
    is_built = getattr(getattr(torch, "autograd", None), "kineto_available", lambda: False)
    return all(hasattr(autograd, name) for name in names) and bool(is_built())


def supported_devices(torch: ModuleType) -> set[str]:
    """Returns the kinds of devices that Kineto can record, by torch's names for them."""
    found = {own_activity(group) for group in torch.autograd._supported_activities()}
    return {device for group, device in DEVICE_NAMES.items() if group in found}


def recorded_devices(torch: ModuleType) -> set[str]:
    """Returns the kinds of devices that are recorded if the user selects them."""
    if os.environ.get(VARIABLE, "") in ("observer", "off") or not has_kineto(torch):
        return set()
    return supported_devices(torch)


def reports_memory(torch: ModuleType) -> bool:
    """Returns whether torch reports memory to the observer."""
    return _tried(torch).reports_memory


def is_loaded(torch: ModuleType) -> bool:
    """Returns whether the import of torch has finished."""
    return not getattr(torch.__spec__, "_initializing", False)


def _tried(torch: ModuleType) -> Trial:
    """Returns the result of probing the observer, which happens once per process.

    The probe runs before the first recording, and other threads wait for it: a recording at the
    same time would contain the probe's operators.
    """
    global _trial
    with _lock:
        if _trial is None:
            _trial = PlainThread(lambda: _try_out(torch))
            _trial.start()
        trial = _trial
    return trial.result()


def _begin_child() -> None:
    """Makes a forked child repeat a probe that its parent had not finished."""
    global _trial, _lock
    _lock = threading.RLock()
    if _trial is not None and not _trial.is_done:
        _trial = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


def _try_out(torch: ModuleType) -> Trial:
    reason = _obstacle(torch) or _probe_failure(torch)
    if reason:
        return Trial(Backend("off", reason), reports_memory=False)
    _core.name_module_calls(torch.nn.Module.__call__)
    _core.name_torch_tensors(torch._C.TensorBase, [torch.Tensor, torch.nn.Parameter])
    if not _core.torch_forks_are_safe():
        inform("torch's lock of callbacks was not found: fork before the first recording")
    _name_for_event_tree(torch)
    observer = Backend("observer", "its layout was probed and is as expected")
    return Trial(observer, _try_memory(torch))


def _name_for_event_tree(torch: ModuleType) -> None:
    """Registers the function by which event trees find the tensors of optimizers."""
    step = getattr(torch.optim.Optimizer, "_optimizer_step_code", None)
    if step is not None and hasattr(step, "__code__"):
        _core.name_optimizer_steps(step)


def _try_memory(torch: ModuleType) -> bool:
    """Returns whether torch reports an allocation to the observer."""
    empty, kind = torch.empty, torch.uint8
    if not can_hide_slot(torch):
        inform("torch's memory is not recorded: its functions cannot be interposed in")
        return False
    try:
        _core.check_torch_memory(
            _CHECKED_BYTES, lambda: empty(_CHECKED_BYTES, dtype=kind, device="cpu")
        )
    except _core.ProfilerError as error:
        inform("torch's memory is not recorded: %s", error)
        return False
    return True


def _obstacle(torch: ModuleType) -> str | None:
    """Returns why the observer cannot work with this torch, or `None` if it may."""
    try:
        version = torch_version(torch)
        has_new_strings = torch.compiled_with_cxx11_abi()
    except (AttributeError, ValueError):
        return "it does not look like torch"
    if version < _OLDEST:
        return f"torch {torch.__version__} is older than {_OLDEST[0]}.{_OLDEST[1]}"
    return None if has_new_strings else "torch was built with the old C++ string ABI"


def torch_version(torch: ModuleType) -> tuple[int, ...]:
    """Returns the major and minor version.

    Raises:
        ValueError: The version has no such numbers.
    """
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def _probe_failure(torch: ModuleType) -> str | None:
    """Creates the observer, and returns why that failed, or `None` if it did not."""
    try:
        probe(torch)
    # Whatever an unknown torch does with the probe's operators, the program continues without it.
    except Exception as error:
        return str(error) or type(error).__name__
    return None


def probe(torch: ModuleType) -> None:
    """Runs operators with known inputs and results, and creates the observer from what it saw.

    Raises:
        ProfilerError: The layout of libtorch is not as expected.
    """
    with torch.inference_mode(False), torch.enable_grad():
        options = {"dtype": torch.float32, "device": "cpu"}
        a, b = (torch.zeros(2, 3, requires_grad=True, **options) for _ in range(2))
        index = torch.zeros(1, dtype=torch.int64, device="cpu")
        plain, others, wrapper = sample_tensors(torch), other_tensors(torch), wrapper_tensors(torch)
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
        known, samples = facts(a, b, c, d), _addresses([large, *plain])
        of_others, of_wrapper = _addresses(others), _addresses(wrapper) or [0, 0]
        if not listener.finish(*known, samples[1:], samples[0], of_others, of_wrapper):
            inform("the layout of torch's tensors is unknown: their sizes are read by calls")


def sample_tensors(torch: ModuleType) -> list[Any]:
    """Returns tensors with various dtypes, dimensions, strides and storage offsets."""
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
    # Its storage is owned by another object, whose address must not be mistaken for the data.
    borrowed = torch.frombuffer(bytearray(8), dtype=torch.uint8)
    return [*of_numbers, *views, borrowed]


def other_tensors(torch: ModuleType) -> list[Any]:
    """Returns a meta tensor and three tensors of a wrapper subclass.

    Two of these let Python code compute their sizes or strides. The probe finds the bits that mark
    such tensors.
    """

    class Wrapper(torch.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_dispatch__(cls, *_: object) -> object:
            return NotImplemented

    make = torch.Tensor._make_wrapper_subclass
    policies = (None, "sizes", "strides")
    wrappers = [make(Wrapper, (2, 3), dispatch_sizes_strides_policy=policy) for policy in policies]
    return [torch.empty(2, 3, device="meta"), *wrappers]


def wrapper_tensors(torch: ModuleType) -> list[Any]:
    """Returns a tensor of `torch.func.functionalize` and the one it wraps, if torch has them."""
    wrapped = torch.zeros(2, 3, device="cpu")
    try:
        return [torch._to_functional_tensor(wrapped), wrapped]
    except (AttributeError, RuntimeError, TypeError):
        return []


def facts(a: Any, b: Any, c: Any, d: Any) -> tuple[list[int], list[int]]:
    """Returns the addresses of two tensors and the sequence numbers of the other two."""
    return _addresses([a, b]), [tensor.grad_fn._sequence_nr() for tensor in (c, d)]


def _addresses(tensors: list[Any]) -> list[int]:
    """Returns the addresses of tensors, even if a program has replaced `_cdata` in their class.

    Raises:
        TypeError: torch's base class is not the one of its C code.
    """
    base = sys.modules["torch"]._C.TensorBase
    return [_core.torch_tensor_address(base, tensor) for tensor in tensors]


def _log_once(backend: Backend) -> Backend:
    """Logs a choice the first time that it is made."""
    if backend in _logged:
        return backend
    _logged.add(backend)
    version = getattr(sys.modules.get("torch"), "__version__", "?")
    inform("torch %s is recorded by: %s (%s)", version, backend.name, backend.reason)
    return backend
