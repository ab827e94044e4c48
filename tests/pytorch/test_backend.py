"""By which way a real torch is recorded, and what happens where none can be taken."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import logging, warnings
warnings.simplefilter("always")
logging.basicConfig(level=logging.INFO)
{before}
import mindprof, torch
x = torch.ones(2, 2)
{middle}
with warnings.catch_warnings(record=True) as told:
    with mindprof.profile() as prof:
        with mindprof.record_function("mine"):
            x + x
print("rows", sorted(row.key for row in prof.key_averages()))
for warning in told:
    print("warned", warning.message)
"""


def run(before: str = "", middle: str = "", backend: str | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.pop("MINDPROF_TORCH_BACKEND", None)
    if backend is not None:
        environment["MINDPROF_TORCH_BACKEND"] = backend
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before, middle=middle)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode >= 0, done.stderr
    return done.stdout + done.stderr


RECORDED = "rows ['aten::add', 'mine']"
NOT_RECORDED = "rows ['mine']"


@pytest.mark.parametrize("before", ["", "import torch", "import mindprof"])
def test_torch_is_recorded_in_whichever_order_it_is_imported(before: str) -> None:
    said = run(before)
    assert RECORDED in said
    assert "INFO:mindprof:torch " in said
    assert "is recorded by: observer (its layout was probed and is as expected)" in said
    assert "warned" not in said


IN_A_MODE = """
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise AssertionError(func)

class Function(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise AssertionError(func)

def record():
    prof = mindprof.profile(profile_memory=True, record_shapes=True)
    prof.start()
    prof.stop()

def first(values):
    record()
    return values.sum()

def inside(mode):
    with mode:
        record()

{enter}
with mindprof.profile(profile_memory=True) as prof:
    kept = torch.ones(100)
print("bytes", sum(row.self_cpu_memory_usage for row in prof.key_averages()))
"""


FAKE, DISPATCH, FUNCTION, VMAP, GRAD, FUNCTIONALIZE = (
    "inside(FakeTensorMode())",
    "inside(Dispatch())",
    "inside(Function())",
    "torch.vmap(first)(x)",
    "torch.func.grad(first)(x)",
    "torch.func.functionalize(first)(x)",
)


@pytest.mark.parametrize(
    ("backend", "enter"),
    [
        *((None, mode) for mode in (FAKE, DISPATCH, FUNCTION, VMAP, GRAD, FUNCTIONALIZE)),
        *(("kineto", mode) for mode in (DISPATCH, FUNCTIONALIZE)),
    ],
)
def test_a_first_profiler_inside_of_a_mode_finds_the_same(backend: str | None, enter: str) -> None:
    said = run(middle=IN_A_MODE.format(enter=enter), backend=backend)
    assert RECORDED in said
    assert f"is recorded by: {backend or 'observer'} (" in said
    assert "bytes 400" in said
    assert "is not recorded" not in said
    assert "are read through Python accessors" not in said


def test_the_way_is_told_without_a_line_of_code() -> None:
    program = "import torch, mindprof; mindprof.supported_activities()"
    for log, told in (("info", True), ("", False)):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "MINDPROF_LOG": log,
            "MINDPROF_TORCH_BACKEND": "kineto",
        }
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        )
        line = "is recorded by: kineto (set by MINDPROF_TORCH_BACKEND)\n"
        assert done.returncode == 0, done.stderr
        assert (line in done.stderr) == told
        assert ("mindprof: torch " in done.stderr) == told


def test_off_leaves_torch_out_and_says_so() -> None:
    said = run(backend="off")
    assert NOT_RECORDED in said
    assert "its operators are not in this recording: disabled by MINDPROF_TORCH_BACKEND" in said


def test_kineto_can_be_forced() -> None:
    said = run(backend="kineto")
    assert RECORDED in said
    assert "is recorded by: kineto (set by MINDPROF_TORCH_BACKEND)" in said
    assert "warned" not in said


def test_a_torch_without_kineto_cannot_be_recorded_by_it() -> None:
    said = run(middle="torch.autograd.kineto_available = lambda: False", backend="kineto")
    reason = "MINDPROF_TORCH_BACKEND=kineto: this torch was built without Kineto"
    assert f"RuntimeError: {reason}" in said


def test_a_device_is_recorded_beside_the_observer() -> None:
    middle = """
from mindprof._frameworks import torch_backend
torch_backend.supported_devices = lambda torch: {"cuda"}
print("choice", torch_backend.chosen_backend(torch, "cuda"))
print("choice", torch_backend.chosen_backend(torch))
"""
    said = run(middle=middle)
    assert "choice Backend(name='devices', reason='cuda is among the activities')" in said
    assert "choice Backend(name='observer'" in said
    forced = run(middle=middle, backend="observer")
    assert "name='devices'" not in forced


def test_what_is_tried_of_memory_is_in_no_recording() -> None:
    middle = """
with mindprof.profile() as outer:
    with mindprof.profile(profile_memory=True):
        x * x
print("outer", [event.name for event in outer.events()])
"""
    assert "outer ['aten::mul']" in run(middle=middle)


SLOW_PROBE = """
import os, threading, time
from mindprof._frameworks import torch_backend
begun, calls, probe = threading.Event(), [], torch_backend.probe
def slow_probe(torch):
    calls.append(os.getpid())
    begun.set()
    # Time enough for the others to come, if they do not wait.
    time.sleep(0.2)
    probe(torch)
torch_backend.probe = slow_probe
"""


def test_torch_is_probed_before_anything_is_recorded() -> None:
    middle = """
torch_backend.supported_devices = lambda torch: {"cuda"}
torch_backend.chosen_backend(torch, "cuda")
print("probed", len(calls))
"""
    assert "probed 1" in run(middle=SLOW_PROBE + middle)


def test_two_first_profilers_wait_for_one_probe() -> None:
    middle = """
def work():
    with mindprof.profile() as prof:
        barrier.wait()
        x * x
        barrier.wait()
    found.append(sorted(event.name for event in prof.events()))
found, barrier = [], threading.Barrier(2)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("found", found, len(calls))
"""
    both = ["aten::mul", "aten::mul"]
    assert f"found {[both, both]} 1" in run(middle=SLOW_PROBE + middle)


def test_a_child_that_is_forked_during_the_probe_has_its_own() -> None:
    middle = """
prober = threading.Thread(target=mindprof.supported_activities)
prober.start()
begun.wait()
child = os.fork()
if child == 0:
    with mindprof.profile() as prof:
        x * x
    print("child", [event.name for event in prof.events()], flush=True)
    os._exit(0)
os.waitpid(child, 0)
prober.join()
"""
    said = run(
        before="import warnings; warnings.simplefilter('ignore')", middle=SLOW_PROBE + middle
    )
    assert "child ['aten::mul']" in said
    assert RECORDED in said


def test_a_signal_handler_waits_for_the_probe_that_it_interrupted() -> None:
    middle = """
import signal
handled = []
def handle(*_):
    handled.append(mindprof.profile())
    handled[0].start()
signal.signal(signal.SIGUSR1, handle)
unsignalled = torch_backend.probe
def signalling_probe(torch):
    os.kill(os.getpid(), signal.SIGUSR1)
    unsignalled(torch)
torch_backend.probe = signalling_probe
mindprof.supported_activities()
x * x
handled[0].stop()
print("handled", [event.name for event in handled[0].events()], len(calls))
"""
    assert "handled ['aten::mul'] 1" in run(middle=SLOW_PROBE + middle)


def test_a_torch_that_is_half_imported_is_not_probed() -> None:
    middle = """
said = torch.compiled_with_cxx11_abi
del torch.compiled_with_cxx11_abi
torch.__spec__._initializing = True
with mindprof.profile():
    pass
torch.__spec__._initializing = False
torch.compiled_with_cxx11_abi = said
"""
    said = run(middle=middle)
    assert "is recorded by: observer" in said
    assert RECORDED in said


def test_an_unknown_way_is_refused() -> None:
    expected = "ValueError: MINDPROF_TORCH_BACKEND must be observer, kineto or off, got 'cuda'"
    assert expected in run(backend="cuda")


WRONG_FACTS = """
from mindprof._frameworks import torch_backend
right = torch_backend.facts
def wrong(*tensors):
    addresses, sequences = right(*tensors)
    return {result}
torch_backend.facts = wrong
"""


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("[addresses[0] + 16, addresses[1]], sequences", "the inputs was not found"),
        ("addresses[::-1], sequences", "the inputs was not found"),
        ("addresses, [number + 1 for number in sequences]", "the sequence number was not found"),
    ],
)
def test_a_layout_that_is_not_as_expected_is_not_used(result: str, reason: str) -> None:
    said = run(middle=WRONG_FACTS.format(result=result))
    assert RECORDED in said
    assert "is recorded by: kineto (the observer cannot be used: the layout" in said
    assert f"the layout of torch's objects is not as expected: {reason}" in said


def test_where_neither_works_torch_is_not_recorded_and_whoever_asks_is_told_so() -> None:
    wrong = WRONG_FACTS.format(result="addresses, [0, 0]")
    said = run(middle=f"{wrong}\ntorch.autograd.kineto_available = lambda: False")
    assert NOT_RECORDED in said
    assert "its operators are not in this recording: the layout" in said


def test_a_forced_observer_that_fails_is_an_error() -> None:
    wrong = WRONG_FACTS.format(result="addresses, [0, 0]")
    said = run(middle=wrong, backend="observer")
    assert "RuntimeError: MINDPROF_TORCH_BACKEND=observer: the layout" in said


def test_a_torch_that_is_too_old_is_recorded_by_kineto() -> None:
    said = run(middle="torch.__version__ = '2.6.0'")
    assert RECORDED in said
    assert "by: kineto (the observer cannot be used: torch 2.6.0 is older than 2.7)" in said


def test_a_torch_without_the_new_strings_is_recorded_by_kineto() -> None:
    said = run(middle="torch.compiled_with_cxx11_abi = lambda: False")
    assert RECORDED in said
    assert "built with the old C++ string ABI" in said


def test_operators_of_the_probe_that_fail_are_no_failure_of_the_program() -> None:
    said = run(middle="torch.cat = None")
    assert RECORDED in said
    assert "'NoneType' object is not callable" in said


def test_a_torch_that_is_imported_while_recording_is_told_of() -> None:
    late = """
import mindprof, warnings
prof = mindprof.profile()
with warnings.catch_warnings(record=True) as early:
    warnings.simplefilter("always")
    with prof:
        import torch
        torch.ones(2)
print("early", [str(warning.message) for warning in early])
"""
    said = run(before=late)
    assert "it was imported after the recording started" in said
    assert RECORDED in said


def test_the_next_recording_of_a_profiler_sees_a_torch_that_came_late() -> None:
    late = """
import mindprof, warnings
early = mindprof.profile()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    with early:
        pass
    import torch
    with early:
        torch.ones(2)
print("early", [row.key for row in early.key_averages()])
"""
    assert "early ['aten::ones', 'aten::empty', 'aten::fill_']" in run(before=late)
