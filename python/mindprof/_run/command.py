"""`mindprof run`: profiles a program and writes the results, however the program ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, TextIO

from mindprof import _core
from mindprof._install.install import install, uninstall
from mindprof._profiler.metadata import several_ranks
from mindprof._profiler.schedule import ProfilerAction, schedule
from mindprof._run.allocator_history import AllocatorHistory
from mindprof._run.arguments import Arguments, parse
from mindprof._run.children import Children
from mindprof._run.garbage import GarbageTimes
from mindprof._run.imports import Imports
from mindprof._run.job_ranks import JobRanks
from mindprof._run.optimizer_steps import OptimizerSteps
from mindprof._run.program import Program, ProgramError
from mindprof._run.results import Results, make_folder
from mindprof._run.run_profile import RunProfile
from mindprof._run.termination import (
    SIGNALLED,
    Patience,
    Terminated,
    end_as_alone,
    exit_on_termination,
)
from mindprof._run.worker_times import WorkerTimes
from mindprof._settings.options import SAMPLED


def run(words: Sequence[str]) -> int:
    """Runs a program under the profiler and returns the exit status.

    Args:
        words: The arguments after `mindprof run`.
    """
    arguments = parse(words)
    try:
        program = Program(arguments.target, arguments.is_module, arguments.words)
    except ProgramError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        # A bad folder should fail now, not after hours of training.
        several = several_ranks()
        rank = None if several is None else several[0]
        folder = make_folder(program.name, arguments.out, rank).absolute()
    except OSError as error:
        place = os.path.abspath(error.filename or os.curdir)
        print(f"error: cannot write to {place}: {error.strerror}", file=sys.stderr)
        return 2
    terminal = _terminal()
    job = None
    if several is not None and arguments.out is not None:
        job = JobRanks(folder.parent, *several)
        job.begin()
    try:
        return _Run(arguments, program, Results(arguments, folder, terminal, rank, job)).go()
    finally:
        with suppress(OSError):
            terminal.close()


def _terminal() -> TextIO:
    """Duplicates stderr, because the program may close or replace it."""
    try:
        return os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")
    except OSError:
        return open(os.devnull, "w", encoding="utf-8")


class _Run:
    """One run of a program, from its first line to the last result file."""

    def __init__(self, arguments: Arguments, program: Program, results: Results) -> None:
        self.arguments = arguments
        self.program = program
        self.results = results
        self.process = os.getpid()
        #: Whether a signal ended the program.
        self.is_terminated = False
        #: Whether the program has ended and the last results are being written.
        self.is_finishing = False
        self.patience = Patience(results.say)
        self.profiler = RunProfile(
            # The first screen names dtypes, and memory that grows.
            record_shapes=arguments.shapes or arguments.memory or arguments.details,
            # A profiler of torch in the program needs torch's slot for memory.
            profile_memory=arguments.memory or (arguments.details and arguments.install),
            with_stack=SAMPLED if arguments.is_sampled else arguments.stacks or arguments.memory,
            with_flops=arguments.flops,
            budget_bytes=arguments.budget_bytes,
            schedule=_schedule_of(arguments),
            on_trace_ready=self._save,
        )
        self.imports = Imports(self._meet_host, results.marks)
        self.steps = OptimizerSteps(self.profiler.step)
        self.worker_times = WorkerTimes(results.marks)
        self.garbage = GarbageTimes()
        self.children = Children()
        self.allocator = AllocatorHistory(results.folder, arguments.memory, results.say)
        results.garbage, results.children = self.garbage, self.children

    def go(self) -> int:
        """Runs the program and returns its exit status."""
        exit_on_termination()
        # Each window is saved before its events are cleared.
        warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
        self.program.prepare()
        self.steps.start()
        self.imports.start()
        self.worker_times.start()
        self.garbage.start()
        self.children.start()
        if self.arguments.install:
            install()
        # Last, so that few of our own calls are recorded.
        self.profiler.start()
        status = 1
        try:
            status = self._run_program()
        finally:
            # The first call: a handler that raises before it ends is noted, and the call repeated.
            interrupts = _core.complete(self.patience.begin)
            # A child that the program forked gets here too.
            if os.getpid() == self.process:
                try:
                    with self.results.telling(), self.program.apart():
                        self._finish()
                finally:
                    late = self.patience.end()
                    end_as_alone()
                status = self._end_late(status, interrupts, late)
        if self.is_terminated and os.getpid() == self.process:
            _leave_threads(status)
        return status

    def _end_late(
        self, status: int, interrupts: list[BaseException], late: list[Callable[[], None]]
    ) -> int:
        """Calls the handlers of signals that arrived while results were written.

        Returns the exit status: an exception of a handler ends the program as it would have done
        on its last line.
        """

        def call_all() -> int:
            for interrupt in interrupts:
                raise interrupt
            for handle in late:
                handle()
            return status

        return self._status_after(call_all)

    def _save(self, prof: RunProfile) -> None:
        """Writes the results of a window. Handlers of signals run afterwards."""
        if self.is_finishing:
            self.results.save(prof)
            return
        with Patience(self.results.say).around():
            self.results.save(prof)

    def _run_program(self) -> int:
        def run_and_wait() -> int:
            status = self._run_main()
            _end_threads()
            self.results.is_program_done = status == 0
            return status

        return self._status_after(run_and_wait)

    def _status_after(self, call: Callable[[], int]) -> int:
        """Returns the exit status that Python derives from how a call ends."""
        try:
            return call()
        except SystemExit as ending:
            # Raised by a signal, or by a thread pool that shuts down.
            self.is_terminated = self.is_terminated or isinstance(ending, Terminated)
            return _status_of(ending)
        except KeyboardInterrupt as error:
            _print(error)
            return SIGNALLED + signal.SIGINT
        except BaseException as error:
            # At once: the error holds the tensors of the program's functions.
            self.allocator.keep(error)
            _print(error)
            return 1

    def _run_main(self) -> int:
        """Runs the program's main thread and returns its exit status."""
        try:
            self.program.run()
        except Terminated:
            raise
        except SystemExit as ending:
            return _status_of(ending)
        return 0

    def _meet_host(self) -> None:
        """Attaches a framework that was just imported, so that its operators are recorded."""
        self.profiler._meet_host()
        self.allocator.meet_torch()

    def _finish(self) -> None:
        self.is_finishing = True
        self.steps.stop()
        self.worker_times.stop()
        self.garbage.stop()
        self.children.stop()
        self.profiler.stop()
        if self.arguments.install:
            uninstall()
        self.imports.stop()
        self.allocator.tell()
        if self.results.windows:
            self.results.tell_job(waits=self.results.is_program_done)
            return
        with suppress(OSError):
            # Fails unless the folder is empty.
            self.results.folder.rmdir()
        first = self.arguments.wait + self.arguments.warmup
        self.results.say(
            f"nothing was recorded: the program made {self.steps.count} optimizer steps, and "
            f"--wait and --warmup skip the first {first}"
        )


def _schedule_of(arguments: Arguments) -> Callable[[int], ProfilerAction] | None:
    if not arguments.active:
        return None
    with warnings.catch_warnings():
        # torch warns about a schedule without warm-up.
        warnings.simplefilter("ignore")
        return schedule(
            wait=arguments.wait,
            warmup=arguments.warmup,
            active=arguments.active,
            repeat=arguments.repeat,
        )


def _end_threads() -> None:
    """Waits for threads as Python does at exit: their work belongs to the program."""
    # Thread pools register callbacks here that stop them; Python runs them last to first.
    callbacks: list[Callable[[], Any]] = getattr(threading, "_threading_atexits", [])
    while callbacks:
        _call_at_end(callbacks.pop())
    shut_down: Callable[[], Any] | None = getattr(threading, "_shutdown", None)
    if shut_down is not None and threading.current_thread() is threading.main_thread():
        # This marks the main thread as ended, which other threads may wait for.
        shut_down()
    while waiting := _other_threads():
        for thread in waiting:
            thread.join()


def _other_threads() -> list[threading.Thread]:
    """Returns the threads that Python waits for at exit."""
    others = (one for one in threading.enumerate() if one is not threading.current_thread())
    return [one for one in others if not one.daemon and one is not threading.main_thread()]


def _leave_threads(status: int) -> None:
    """Exits the process if threads still run, as the signal alone would have done."""
    if not _other_threads():
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)


def _call_at_end(callback: Callable[[], Any]) -> None:
    try:
        callback()
    except Exception as error:
        # As at exit, the error is printed and the status stays.
        _print(error)


def _status_of(ending: SystemExit) -> int:
    """Returns the exit status that Python derives from a `SystemExit`."""
    if ending.code is None:
        return 0
    if isinstance(ending.code, int):
        return ending.code
    print(ending.code, file=sys.stderr)
    return 1


def _print(error: BaseException) -> None:
    """Prints the exception that ended the program, as Python does, without our own frames."""
    error.__traceback__ = _of_program(error.__traceback__)
    sys.excepthook(type(error), error, error.__traceback__)


def _of_program(entry: TracebackType | None) -> TracebackType | None:
    own = os.path.dirname(__file__)
    while entry is not None and os.path.dirname(entry.tb_frame.f_code.co_filename) == own:
        entry = entry.tb_next
    return entry
