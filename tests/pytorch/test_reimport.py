"""One recorder per process: mindprof stays the same package if it is imported again."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import importlib, sys, torch, mindprof
x, before = torch.ones(2), mindprof
recorder = mindprof.profile(record_shapes=True, profile_memory=True, with_stack=True)
with recorder:
    x + x
    if sys.argv[1] == "reload":
        importlib.reload(mindprof)
    else:
        keep = {"all": (), "all but the engine": ("mindprof._core",), "the package": None}
        kept = keep[sys.argv[1]]
        for name in [name for name in sys.modules if name.split(".")[0] == "mindprof"]:
            if name == "mindprof" or (kept is not None and name not in kept):
                del sys.modules[name]
        import mindprof
        mindprof.install()
    x + x
    with mindprof.profile() as inner:
        x + x
count = lambda prof: {row.key: row.count for row in prof.key_averages()}.get("aten::add")
print(count(recorder), count(inner), mindprof is before, isinstance(recorder, mindprof.profile))
print(mindprof._core.is_profiling(), sorted(n for n in sys.modules if n == "mindprof._core"))
"""


@pytest.mark.parametrize("how", ["reload", "all", "all but the engine", "the package"])
def test_a_recording_survives_another_import(how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, how], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["3 1 True True", "False ['mindprof._core']"]
