"""Other tools that take over the profile hook: no operator may have a wrong frame."""

from __future__ import annotations

import cProfile
import functools
import importlib.util
import sys
import threading
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch
from mindprof import profile

from soak.rounds import Round

Frames = list[tuple[str, int]]


def change_hooks(given: Round) -> None:
    """Records with stacks while tools start and stop, and compares with Python's own frames."""
    random = given.random
    program = Program()
    prof = profile(with_stack=True)
    given.watch(prof, program)
    tools = [random.choice(TOOLS) for _ in range(random.randrange(1, 4))]
    with prof:
        program.work(random.randrange(1, 6))
        for start in tools:
            stop = start()
            program.work(random.randrange(1, 6))
            stop()
            program.work(random.randrange(1, 6))
    program.check(prof)


class Program:
    """Calls operators in nested functions, and records the frames that Python reports."""

    def __init__(self) -> None:
        self.operand = torch.ones((2, 2))
        self.noted: list[Frames] = []

    def operate(self) -> None:
        """Calls an operator."""
        self.noted.append(walk())
        self.operand + self.operand

    def left(self) -> None:
        """Calls the operator one frame deeper."""
        self.operate()

    def right(self) -> None:
        """Calls the operator at two depths."""
        self.left()
        self.operate()

    def work(self, times: int) -> None:
        """Calls the operator at every depth."""
        for _ in range(times):
            self.left()
            self.right()
            self.operate()

    def check(self, prof: profile) -> None:
        """Compares the stack of each operator with the frames that Python reported just before."""
        stacks = [event.stack or [] for event in prof.events() if event.name == "aten::add"]
        assert len(stacks) == len(self.noted)
        for stack, noted in zip(stacks, self.noted, strict=True):
            found = [place(frame) for frame in stack if not frame.startswith("<built-in")]
            ours = found[: len(noted)]
            assert ours[1:] == noted[1:], f"stack {found}, in truth {noted}"
            assert ours[0][0] == noted[0][0] == "operate"


def walk() -> Frames:
    """Returns the names and lines of the frames up to the one that opened the profiler."""
    frames, frame = [], sys._getframe(1)
    while frame.f_code is not change_hooks.__code__:
        frames.append((frame.f_code.co_name, frame.f_lineno))
        assert frame.f_back is not None
        frame = frame.f_back
    return frames


def place(frame: str) -> tuple[str, int]:
    """Returns the name and the line of a frame that is written as `file(line): name`."""
    head, _, name = frame.rpartition(": ")
    return name, int(head.rpartition("(")[2].rstrip(")"))


Stop = Callable[[], Any]


def use_hook() -> Stop:
    """Sets a hook from Python."""
    sys.setprofile(lambda *_: None)
    return lambda: sys.setprofile(None)


def use_trace() -> Stop:
    """Sets a trace function from Python, beside the hook."""
    sys.settrace(lambda *_: None)
    return lambda: sys.settrace(None)


def use_cprofile() -> Stop:
    """Enables the interpreter's own profiler."""
    tool = cProfile.Profile()
    tool.enable()
    return tool.disable


def use_all_threads() -> Stop:
    """Sets the hook of all threads from another one."""

    def set_all(function: Any) -> None:
        setter: Callable[[Any], None] = vars(threading)["setprofile_all_threads"]
        thread = threading.Thread(target=setter, args=(function,))
        thread.start()
        thread.join()

    set_all(lambda *_: None)
    return lambda: set_all(None)


def use_yappi() -> Stop:
    """Sets the hook from C."""
    import yappi  # type: ignore[import-untyped]

    yappi.start(profile_threads=False)

    def stop() -> None:
        yappi.stop()
        yappi.clear_stats()

    return stop


def use_pyinstrument() -> Stop:
    """Sets the hook from C, with a sampling timer."""
    import pyinstrument

    tool = pyinstrument.Profiler()
    tool.start()
    return tool.stop


@functools.cache
def viztracer_of_process() -> Any:
    """Returns the tracer of the process, shared because each leaks a thread-local key."""
    import viztracer  # type: ignore[import-untyped]

    return viztracer.VizTracer(verbose=0)


def use_viztracer() -> Stop:
    """Sets the hook from C, or watches by `sys.monitoring`."""
    tool = viztracer_of_process()
    tool.start()

    def stop() -> None:
        tool.stop()
        tool.clear()
        # It leaves its hook installed for new threads.
        threading.setprofile(None)

    return stop


@functools.cache
def coverage_of_process() -> Any:
    """Returns the coverage of the process, shared because each lives until the process ends."""
    import coverage

    return coverage.Coverage(data_file=None)


def use_coverage() -> Stop:
    """Sets a trace function from C, or watches by `sys.monitoring`."""
    tool = coverage_of_process()
    tool.start()

    def stop() -> None:
        tool.stop()
        tool.erase()

    return stop


TOOLS: list[Callable[[], Stop]] = [use_hook, use_trace, use_cprofile]
if sys.version_info >= (3, 12):
    TOOLS.append(use_all_threads)
TOOLS += [
    use
    for name, use in [
        ("yappi", use_yappi),
        ("pyinstrument", use_pyinstrument),
        ("viztracer", use_viztracer),
        ("coverage", use_coverage),
    ]
    if importlib.util.find_spec(name) is not None
]
