"""Names of torch's that are not there, and the page that lists those that are."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.runtime

ROOT = Path(__file__).parents[2]

MISSING = [
    ("mindtorch_v2", "fft"),
    ("mindtorch_v2", "vmap"),
    ("mindtorch_v2.nn", "Transformer"),
    ("mindtorch_v2.nn.functional", "grid_sample"),
    ("mindtorch_v2.nn.utils", "weight_norm"),
    ("mindtorch_v2.optim", "swa_utils"),
    ("mindtorch_v2.utils", "checkpoint"),
    ("mindtorch_v2.utils.data", "DistributedSampler"),
]


@pytest.mark.parametrize(("place", "name"), MISSING)
def test_a_missing_name_says_where_to_look(place: str, name: str) -> None:
    module = importlib.import_module(place)
    assert not hasattr(module, name)
    with pytest.raises(AttributeError) as raised:
        getattr(module, name)
    text = str(raised.value)
    for part in (f"has no {name!r}, which torch has", "small runtime", "docs/runtime.md"):
        assert part in text
    assert "mindprof.load" in text


def test_a_name_that_nobody_has_is_just_not_there() -> None:
    import mindtorch_v2

    with pytest.raises(AttributeError, match=r"^module 'mindtorch_v2' has no attribute 'lenght'$"):
        getattr(mindtorch_v2, "lenght")  # noqa: B009


def test_the_page_lists_what_there_is() -> None:
    command = [sys.executable, str(ROOT / "tools" / "runtime_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
