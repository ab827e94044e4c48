"""Sizes that no memory holds: an exception, as torch raises it, and never the end of the process.

Each call runs in a process of its own, because the failure would be that the process ends.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.runtime

REFUSED = "RuntimeError: DefaultCPUAllocator: can't allocate memory"
OVERFLOW = "RuntimeError: Storage size calculation overflowed with sizes=[4611686018427387904]"


def run(script: str) -> list[str]:
    head = """
    import resource
    import mindtorch_v2 as torch
    one, index = torch.ones(1), torch.zeros(1, dtype=torch.int64)
    functional = torch.nn.functional
    """
    command = [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    return (done.stdout + done.stderr).splitlines()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("one.expand(2**40).nonzero()", REFUSED),
        ("one.expand(2**40).tolist()", "MemoryError"),
        ("one.expand(2**62).tolist()", "MemoryError"),
        ("torch.linspace(0, 1, 2**59)", REFUSED),
        ("torch.linspace(0, 1, 2**62)", OVERFLOW),
        ("torch.randperm(2**59)", REFUSED),
        ("torch.ones(3)[index.expand(2**62)]", OVERFLOW),
        ("torch.ones(3)[index.expand(2**40)]", REFUSED),
        ("torch.ones(3).index_select(0, index.expand(2**40))", REFUSED),
        ("torch.ones(3).gather(0, index.expand(2**40))", REFUSED),
        ("one.expand(2**40)[(one > 0).expand(2**40)]", REFUSED),
        ("functional.embedding(index.expand(2**40), torch.ones((3, 2)))", REFUSED),
        ("functional.cross_entropy(one.expand(2**40, 1), index.expand(2**40))", REFUSED),
        (
            "functional.conv2d(torch.ones((1, 1, 4, 4)), torch.ones((1, 1, 1, 1)), padding=2**24)",
            REFUSED,
        ),
        ("functional.softmax(one.expand(2**45), 0)", REFUSED),
        ("functional.layer_norm(one.expand(2**40), (2**40,))", REFUSED),
        ("one.expand(2**40, 1).argmax(1)", REFUSED),
        ("one.expand(2**40).unbind()", REFUSED),
        ("one.expand(2**40).split(1)", REFUSED),
        ("iter(one.expand(2**40))", REFUSED),
        ("one.expand(2**40).allclose(one)", REFUSED),
        ("torch.ones(1, dtype=torch.int64) ** (index + 1).expand(2**40)", REFUSED),
        ("1 in one.expand(2**45)", REFUSED),
    ],
)
def test_what_no_memory_holds_is_refused(expression: str, expected: str) -> None:
    assert run(expression)[-1].startswith(expected)


def test_printing_looks_at_what_it_shows() -> None:
    """What is large is neither copied nor walked."""
    printed = run(
        """
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(one.expand(10**9))
        print(one.expand(2, 2**40))
        print((one > 0).expand(2**30, 2**30))
        print(torch.ones((200, 1, 1)).expand(200, 2**20, 2**20)[:, 5:, ::2].shape)
        print(repr(torch.ones((200, 1, 1)).expand(200, 2**20, 2**20)[:, 5:, ::2]).count("1"))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000)
        """
    )
    assert printed == [
        "tensor([1., 1., 1.,  ..., 1., 1., 1.])",
        "tensor([[1., 1., 1.,  ..., 1., 1., 1.],",
        "        [1., 1., 1.,  ..., 1., 1., 1.]])",
        "tensor([[True, True, True,  ..., True, True, True],",
        "        [True, True, True,  ..., True, True, True],",
        "        [True, True, True,  ..., True, True, True],",
        "        ...,",
        "        [True, True, True,  ..., True, True, True],",
        "        [True, True, True,  ..., True, True, True],",
        "        [True, True, True,  ..., True, True, True]])",
        "torch.Size([200, 1048571, 524288])",
        "216",
        "True",
    ]


def test_there_are_no_more_threads_than_processors() -> None:
    script = """
    import os
    before = len(os.listdir("/proc/self/task"))
    torch.set_num_threads(100_000)
    torch.ones(1000, 1000).exp()
    print(len(os.listdir("/proc/self/task")) - before <= os.cpu_count())
    """
    assert run(script) == ["True"]
