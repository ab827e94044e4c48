"""Stacks while other tools take the interpreter's hook away, in Python, from C, for all threads."""

from __future__ import annotations

import cProfile
import ctypes
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import coverage
import pyinstrument
import pytest
import viztracer  # type: ignore[import-untyped]
import yappi  # type: ignore[import-untyped]
from mindprof.profiler import profile

from tests.python.stack_frames import at, calls, record, stacks, tensor, where
from tests.workloads import torch

# The stacks that are expected here end at the line that calls an operator: those of the stand-in
# would go on with its own functions.
pytestmark = pytest.mark.runtime

#: A hook that can be had without a compiler: it does nothing and returns zero.
HOOK = ctypes.cast(ctypes.pythonapi.PyErr_CheckSignals, ctypes.c_void_p)


def set_hook(hook: ctypes.c_void_p | None, argument: object | None = None) -> None:
    """Sets the hook of this thread from C; without an argument Python does not see it."""
    ctypes.pythonapi.PyEval_SetProfile(hook, argument and ctypes.py_object(argument))


@pytest.fixture(autouse=True)
def _no_hook_is_left() -> Iterator[None]:
    yield
    assert sys.getprofile() is None
    assert threading.getprofile() is None


class FromPython:
    def start(self) -> None:
        sys.setprofile(lambda *_: None)

    def stop(self) -> None:
        sys.setprofile(None)


class FromC:
    def start(self) -> None:
        set_hook(HOOK)

    def stop(self) -> None:
        set_hook(None)


class FromCWithObject(FromC):
    def start(self) -> None:
        set_hook(HOOK, "object")


class Removal:
    """Takes the hook away and puts none in its place."""

    def start(self) -> None:
        set_hook(None)

    def stop(self) -> None:
        pass


class PutBack:
    """Puts back what it found, as well as Python lets it."""

    def start(self) -> None:
        self.found = sys.getprofile()
        set_hook(HOOK)

    def stop(self) -> None:
        sys.setprofile(self.found)


class CProfile:
    def start(self) -> None:
        self.profiler = cProfile.Profile()
        self.profiler.enable()

    def stop(self) -> None:
        self.profiler.disable()


class Pyinstrument:
    def start(self) -> None:
        self.profiler = pyinstrument.Profiler()
        self.profiler.start()

    def stop(self) -> None:
        self.profiler.stop()


class Yappi:
    threads = False

    def start(self) -> None:
        yappi.start(profile_threads=self.threads)

    def stop(self) -> None:
        yappi.stop()
        assert any(stat.name.endswith("operate") for stat in yappi.get_func_stats())
        yappi.clear_stats()


class YappiOfAllThreads(Yappi):
    threads = True


class VizTracer:
    def start(self) -> None:
        self.tracer = viztracer.VizTracer(verbose=0)
        self.tracer.start()

    def stop(self) -> None:
        self.tracer.stop()
        self.tracer.clear()
        # It leaves its hook for threads that are still to come.
        threading.setprofile(None)


class Coverage:
    def start(self) -> None:
        self.coverage = coverage.Coverage(data_file=None)
        self.coverage.start()

    def stop(self) -> None:
        self.coverage.stop()


class FromThread:
    """Starts and stops a tool in a thread that calls no operators.

    What the tool sees of other threads is its own affair: of all or of none.
    """

    def __init__(self, tool: Callable[[], Any]) -> None:
        self.tool = tool

    def __call__(self) -> FromThread:
        self.other = self.tool()
        return self

    def start(self) -> None:
        self.run(self.other.start)

    def stop(self) -> None:
        self.run(self.other.stop)

    def run(self, action: Callable[[], None]) -> None:
        failures: list[BaseException] = []

        def act() -> None:
            try:
                action()
            except BaseException as failure:
                failures.append(failure)

        thread = threading.Thread(target=act)
        thread.start()
        thread.join()
        assert failures == []

    @property
    def __name__(self) -> str:
        return f"{self.tool.__name__}FromAnotherThread"


class AllThreads:
    """Sets the hook of all threads from another thread."""

    def start(self) -> None:
        self.set(lambda *_: None)

    def stop(self) -> None:
        self.set(None)

    def set(self, function: Any) -> None:
        set_all: Callable[[Any], None] = vars(threading)["setprofile_all_threads"]
        thread = threading.Thread(target=set_all, args=(function,))
        thread.start()
        thread.join()


TOOLS: list[Callable[[], Any]] = [
    FromPython,
    FromC,
    FromCWithObject,
    Removal,
    PutBack,
    CProfile,
    Pyinstrument,
    Yappi,
    YappiOfAllThreads,
    VizTracer,
    Coverage,
    *map(FromThread, [CProfile, YappiOfAllThreads, VizTracer, Coverage]),
]
if sys.version_info >= (3, 12):
    TOOLS.append(AllThreads)


def walk() -> list[tuple[str, int]]:
    """Returns the names and lines of the frames up to `record`."""
    frames = []
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "record":
        frames.append((frame.f_code.co_name, frame.f_lineno))
        assert frame.f_back is not None
        frame = frame.f_back
    return frames


class Program:
    """Calls operators in functions that call each other in turn, so that frames take old places."""

    def __init__(self) -> None:
        self.operand = tensor()
        self.told: list[list[tuple[str, int]]] = []

    def operate(self) -> None:
        self.told.append(walk())
        self.operand + self.operand

    def left(self) -> None:
        self.operate()

    def right(self) -> None:
        self.left()
        self.operate()

    def work(self) -> None:
        for _ in range(10):
            self.left()
            self.right()
            self.operate()

    def check(self, prof: profile) -> None:
        """Compares with what Python told, one line above each operator."""
        found = [
            [frame for frame in stack if not frame.startswith("<built-in")]
            for stack in stacks(prof)
        ]
        expected = [[at(__file__, line, name) for name, line in frames] for frames in self.told]
        assert [stack[1:] for stack in found] == [stack[1:] for stack in expected]
        assert {stack[0].split(": ")[1] for stack in found} == {"operate"}


@pytest.mark.parametrize("tool", TOOLS)
class TestTools:
    def test_every_operator_has_the_stack_that_python_tells(self, tool: Callable[[], Any]) -> None:
        program, other = Program(), tool()

        def begin() -> None:
            other.start()
            program.operate()

        def step() -> None:
            program.work()
            begin()
            program.work()
            other.stop()
            program.work()

        prof = record(step)
        program.check(prof)

    def test_a_tool_that_was_there_first(self, tool: Callable[[], Any]) -> None:
        program, other = Program(), tool()

        def step() -> None:
            program.work()
            other.stop()
            program.work()

        other.start()
        prof = record(step)
        program.check(prof)

    def test_operators_that_run_without_the_lock_know_their_line(
        self, tool: Callable[[], Any]
    ) -> None:
        program, other = Program(), tool()
        leaf = torch.ones((2, 2), requires_grad=True)

        def step() -> None:
            loss = (leaf * leaf).sum()
            other.start()
            program.operate()
            loss.backward()
            other.stop()
            program.operate()

        prof = record(step)
        (line,) = where(step, "loss.backward()")
        inside = [
            event.stack or []
            for event in prof.events()
            if event.name.startswith("autograd::engine::evaluate_function")
        ]
        assert inside
        assert all(line in stack for stack in inside)


class TestLosses:
    def test_calls_that_a_hook_from_c_hides_are_counted(self) -> None:
        program = Program()

        def step() -> None:
            set_hook(HOOK)
            program.work()
            set_hook(None)

        prof = record(step)
        assert prof.lost_events > 0
        assert "in Python calls that another tool hides" in prof.key_averages().table()

    def test_a_hook_that_python_does_not_see_stays(self) -> None:
        events: list[int] = []
        callback = ctypes.PYFUNCTYPE(
            ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_int, ctypes.c_void_p
        )

        def note(_object: int, _frame: int, what: int, _argument: int) -> int:
            events.append(what)
            return 0

        hook = callback(note)
        program = Program()

        def step() -> None:
            set_hook(ctypes.cast(hook, ctypes.c_void_p))
            program.work()
            seen = len(events)
            program.work()
            assert len(events) == 2 * seen
            set_hook(None)

        program.check(record(step))

    def test_calls_end_when_their_end_is_not_seen(self) -> None:
        """A function in which the hook is lost is over when the next operator is called."""
        program = Program()

        def lose() -> None:
            program.operate()
            set_hook(None)

        def step() -> None:
            lose()
            program.operate()
            program.operate()

        prof = record(step)
        program.check(prof)
        (lost,) = (event for event in calls(prof) if event.name.endswith(": lose"))
        last = [event for event in prof.events() if event.name == "aten::add"][-1]
        assert lost.time_range.end <= last.time_range.start


def test_a_thread_whose_state_was_freed_reads_no_frames_of_another() -> None:
    """A thread of the C library calls Python twice, and has another state each time.

    In the first call the hook is lost; then the state is freed, a thread of Python gets one at its
    address, and the second call works without the lock while that thread runs.
    """
    script = """
    import ctypes, sys, threading
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import profile

    libc = ctypes.CDLL(None)
    Write = ctypes.CFUNCTYPE(ctypes.c_ssize_t, *[ctypes.c_void_p] * 2, ctypes.c_size_t)

    class Functions(ctypes.Structure):
        _fields_ = [(name, ctypes.c_void_p) for name in ("read", "write", "seek", "close")]

    libc.fopencookie.argtypes = [ctypes.c_void_p, ctypes.c_char_p, Functions]
    libc.fopencookie.restype = ctypes.c_void_p
    libc.fputc.argtypes = [ctypes.c_int, ctypes.c_void_p]
    libc.pthread_create.argtypes = [ctypes.c_void_p] * 4
    libc.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
    own_state = ctypes.pythonapi.PyGILState_GetThisThreadState
    own_state.restype = ctypes.c_void_p
    set_profile = ctypes.pythonapi.PyEval_SetProfile

    def address(function):
        return ctypes.cast(function, ctypes.c_void_p).value

    def open_file(write, cookie=None):
        # A file that has something to write, which it does by a function of ours.
        file = libc.fopencookie(cookie, b"w", Functions(None, address(write), None, None))
        libc.fputc(65, file)

    def callback(function):
        kept.append(Write(lambda cookie, data, count: (function(), count)[1]))
        return kept[-1]

    def first():
        x + x
        found["state"] = own_state()
        set_profile(None, None)
        is_left.set()

    def second():
        found["second"] = own_state()
        found["loss"].backward()
        found["done"] = True

    def chain():
        product = leaf
        for _ in range(1000):
            product = product * leaf
        return product.sum()

    def spin(depth):
        if depth:
            spin(depth - 1)

    def other(is_there):
        if own_state() == found["state"]:
            found["taken"] = True
            is_there.set()
            while "done" not in found:
                spin(9)
        is_there.set()
        is_over.wait()

    kept, found, hits = [], {}, 0
    is_left, is_over = threading.Event(), threading.Event()
    x, leaf = torch.ones((2, 2)), torch.ones((2, 2), requires_grad=True)
    sys.setswitchinterval(1e-4)
    with profile(with_stack=True) as prof:
        for _ in range(20):
            found.clear(), is_left.clear(), is_over.clear()
            found["loss"] = chain()
            # All files are flushed by one thread, those that were opened last first.
            open_file(callback(second))
            open_file(libc.usleep, 50_000)
            open_file(callback(first))
            thread = ctypes.c_ulong()
            libc.pthread_create(ctypes.byref(thread), None, address(libc.fflush), None)
            is_left.wait()
            others = []
            while len(others) < 60 and not found.keys() & {"taken", "second"}:
                is_there = threading.Event()
                others.append(threading.Thread(target=other, args=(is_there,)))
                others[-1].start()
                is_there.wait()
            libc.pthread_join(thread, None)
            found["done"] = True
            is_over.set()
            for each in others:
                each.join()
            hits += "taken" in found
    print(hits)
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)]
    # One heap for all threads, which hands out what was freed last.
    tunables = {"MALLOC_ARENA_MAX": "1", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **tunables},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().isdigit()
