"""A fork while other threads use the module for the first time: the child is never stranded."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.runtime

FIRST_USES = """
def use(prof):
    events = prof.events()
    event = events[0]
    event.time_range, event.device_type, event.kernels, event.cpu_parent, repr(event)
    isinstance(event, type(event)), event.cpu_time_total_str, event.stack
    rows = prof.key_averages()
    rows[0].device_type, rows.table(), rows.total_average()
    x = torch.ones((2, 2), requires_grad=True)
    x.shape, (x * x).sum().grad_fn
    with mindprof.profile(with_stack=True, record_shapes=True) as inner:
        (x * x).sum().backward()
    inner.events()[0].stack
"""


def run(script: str, timeout: float) -> subprocess.CompletedProcess[str]:
    head = "import os, sys, threading, builtins, warnings\nimport mindprof, mindtorch_v2 as torch\n"
    script = head + FIRST_USES + textwrap.dedent(script)
    command = [sys.executable, "-W", "ignore", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def test_nothing_is_looked_up_at_first_use() -> None:
    """What is looked up when it is first used may be half looked up when another thread forks."""
    done = run(
        """
        with mindprof.profile() as prof:
            torch.ones(2) + 1
        looked_up, plain = [], builtins.__import__
        def notice(name, globals=None, *others):
            # The engine's own imports come without the names of a module around them, or with
            # those of whichever Python function called it.
            looked_up.append(name)
            return plain(name, globals, *others)
        builtins.__import__ = notice
        use(prof)
        builtins.__import__ = plain
        print([name for name in looked_up if name.startswith(("mindprof", "mindtorch"))])
        """,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_a_child_goes_on_whatever_other_threads_were_doing() -> None:
    """Threads use everything for the first time while the process forks, again and again.

    A child that hangs is ended by its alarm, and its status then says so.
    """
    done = run(
        """
        import signal
        with mindprof.profile() as prof:
            torch.ones(2) + 1
        begin = threading.Barrier(4)
        def first():
            begin.wait()
            use(prof)
        threads = [threading.Thread(target=first, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        begin.wait()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                with mindprof.profile() as own:
                    torch.ones(2) + 1
                use(own)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert status == 0, status
        for thread in threads:
            thread.join()
        print("done")
        """,
        timeout=120,
    )
    assert done.stdout == "done\n", done.stderr


def test_threads_of_a_child_record_where_threads_of_the_parent_did() -> None:
    """The child's new threads may get the stacks, and with them the addresses, of lost ones."""
    done = run(
        """
        import signal
        def record_beside(others):
            ready, leave = threading.Barrier(others + 1), threading.Event()
            def work():
                torch.ones(2) + 1
                ready.wait()
                leave.wait()
                torch.ones(2) + 1
            threads = [threading.Thread(target=work) for _ in range(others)]
            for thread in threads:
                thread.start()
            ready.wait()
            return threads, leave
        def count(prof):
            return sum(event.name == "aten::add" for event in prof.events())
        with mindprof.profile() as prof:
            threads, leave = record_beside(9)
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                with mindprof.profile() as own:
                    others, done = record_beside(9)
                    done.set()
                    for thread in others:
                        thread.join()
                os._exit(0 if count(own) == 18 else 1)
            _, status = os.waitpid(child, 0)
            leave.set()
            for thread in threads:
                thread.join()
        print(status, count(prof))
        """,
        timeout=60,
    )
    assert done.stdout == "0 18\n", done.stderr


def test_a_child_reads_the_profile_that_another_thread_was_analysing() -> None:
    done = run(
        """
        import signal
        x = torch.ones((2, 2))
        for _ in range(5):
            with mindprof.profile(with_stack=True, profile_memory=True) as prof:
                for _ in range(50_000):
                    x + x
            begin = threading.Event()
            def analyse():
                begin.set()
                prof.key_averages()
            thread = threading.Thread(target=analyse)
            thread.start()
            # Goes on when the thread lets go of the GIL, which is when it analyses.
            begin.wait()
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                rows = {row.key: row.count for row in prof.key_averages()}
                os._exit(0 if rows["aten::add"] == 50_000 else 1)
            _, status = os.waitpid(child, 0)
            assert status == 0, status
            thread.join()
        print("done")
        """,
        timeout=120,
    )
    assert done.stdout == "done\n", done.stderr


def test_a_function_of_the_user_may_fork_during_the_backward_pass() -> None:
    """A hook, the backward half of a function, a backward pass within a hook: both sides go on."""
    done = run(
        """
        import signal
        def fork(*_):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                children.append(True)
            else:
                _, status = os.waitpid(child, 0)
                statuses.append(status)
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, gradient):
                fork()
                return gradient * 2
        def nested(gradient):
            with torch.enable_grad():
                y = torch.ones((2, 2), requires_grad=True)
                y.register_hook(fork)
                (y * y).sum().backward()
        children, statuses = [], []
        for hook in (fork, nested):
            x = torch.ones((2, 2), requires_grad=True)
            x.register_hook(hook)
            Twice.apply(x * x).sum().backward()
            assert x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]
            if children:
                os._exit(0)
        print(statuses)
        """,
        timeout=120,
    )
    assert done.stdout == "[0, 0, 0, 0]\n", done.stderr


def test_a_fork_beside_a_backward_pass_that_calls_python() -> None:
    done = run(
        """
        import signal
        stop = threading.Event()
        def train():
            while not stop.is_set():
                x = torch.ones((2, 2), requires_grad=True)
                y = x
                for _ in range(20):
                    y = y * x
                    y.register_hook(lambda gradient: gradient * 1)
                y.sum().backward()
        threads = [threading.Thread(target=train) for _ in range(3)]
        for thread in threads:
            thread.start()
        statuses = set()
        for _ in range(30):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                x = torch.ones((2, 2), requires_grad=True)
                x.register_hook(lambda gradient: gradient * 2)
                (x * x).sum().backward()
                os._exit(0 if x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]] else 1)
            statuses.add(os.waitpid(child, 0)[1])
        stop.set()
        for thread in threads:
            thread.join()
        print(statuses)
        """,
        timeout=120,
    )
    assert done.stdout == "{0}\n", done.stderr


def test_a_child_multiplies_large_matrices_as_its_parent_did() -> None:
    """A child has none of the threads that its parent shared such work among, nor has its child."""
    done = run(
        """
        import signal
        size = 300
        def work():
            x = torch.ones((size, size), requires_grad=True)
            product = x @ x
            assert product.sum().item() == size ** 3
            product.sum().backward()
            large = torch.ones(600_000)
            assert (large + large).sum().item() == 1_200_000
            torch.nn.functional.softmax(torch.ones((300, 300)), dim=1)
            torch.nn.functional.conv2d(torch.ones((4, 3, 32, 32)), torch.ones((8, 3, 3, 3)))
        def fork(depth):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                work()
                status = fork(depth - 1) if depth else 0
                work()
                os._exit(1 if status else 0)
            return os.waitpid(child, 0)[1]
        work()
        statuses = [fork(1), fork(1)]
        work()
        print(statuses)
        """,
        timeout=120,
    )
    assert done.stdout == "[0, 0]\n", done.stderr


def test_a_recording_imports_nothing() -> None:
    done = run(
        """
        known = set(sys.modules)
        with mindprof.profile(with_stack=True, profile_memory=True) as prof:
            torch.ones(2) + 1
        print(*set(sys.modules) - known)
        """,
        timeout=60,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("\n", "", 0)


def test_a_forked_child_finds_what_is_imported_late() -> None:
    done = run(
        """
        from mindprof import _late_modules
        child = os.fork()
        if child == 0:
            os._exit(len(set(_late_modules.NAMES) - set(sys.modules)))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        timeout=60,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("0\n", "", 0)
