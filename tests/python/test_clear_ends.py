"""What makes no sense, or leads nowhere, is answered by a sentence that says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mindprof
import pytest
from mindprof import profile
from mindprof._profiler import autograd_profile as autograd_profiler


class ForeignProfiler:
    """Speaks as torch's own profiler does."""

    def export_chrome_trace(self, path: str) -> None: ...


@pytest.mark.parametrize(
    ("budget", "error", "text"),
    [
        (-1, ValueError, "budget_bytes must be from 0 to 9223372036854775807 bytes, got -1"),
        ("1MB", TypeError, "budget_bytes must be an integer number of bytes, got '1MB'"),
        (1.5, TypeError, "budget_bytes must be an integer number of bytes, got 1.5"),
        (None, TypeError, "budget_bytes must be an integer number of bytes, got None"),
        (1 << 63, ValueError, "budget_bytes must be from 0 to 9223372036854775807 bytes"),
    ],
)
def test_a_budget_is_a_number_of_bytes(budget: object, error: type[Exception], text: str) -> None:
    for make in (profile, autograd_profiler.profile):
        with pytest.raises(error, match=text):
            make(budget_bytes=budget)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"stack_depth must be from 0 to .* calls, got -2"):
        profile(stack_depth=-2)


def test_only_profiles_are_compared() -> None:
    with profile() as prof:
        pass
    with pytest.raises(TypeError, match=r"finished recording, found list$"):
        mindprof.diff(prof, [])  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"found .*ForeignProfiler: write it with export_chrome_trace"
    ):
        mindprof.diff(ForeignProfiler(), prof)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"found NoneType$"):
        mindprof.diff(prof, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no finished recording"):
        mindprof.diff(prof, autograd_profiler.profile(enabled=False))
    with pytest.raises(ValueError, match="no finished recording"):
        mindprof.diff(profile(), prof)


def test_warnings_of_deprecated_names_tell_what_is_true_here() -> None:
    with pytest.warns(FutureWarning) as told:
        autograd_profiler.profile(with_modules=True)
    text = str(told[0].message)
    assert "mindprof records only calls of modules with it" in text
    assert "does nothing" not in text
    assert "TorchScript" not in text


def test_the_hint_of_the_memory_timeline_leads_somewhere(tmp_path: Path) -> None:
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        pass
    with pytest.warns(FutureWarning, match=r"`mindprof.load\(path\)"):
        prof.export_memory_timeline(str(tmp_path / "memory.json"))


def test_a_real_torch_that_is_not_recorded_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("")
    program = """
import warnings, mindprof, torch
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(2):
        with mindprof.profile():
            pass
print(len(told), told[0].filename, told[0].message)
"""
    said = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        # Where mindprof is not installed, it is found by the path of this process alone.
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith("1 <string> torch is loaded, but"), said
    assert "mindprof.load(path)" in said


def test_without_torch_nothing_is_said() -> None:
    program = "import mindprof\nwith mindprof.profile():\n    pass\n"
    said = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stderr) == (0, "")
