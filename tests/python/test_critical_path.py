"""`critical_path()` and `what_if()` of a profile."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import mindprof
import pytest

GOLDEN = Path(__file__).parents[1] / "goldens/h200-torch2.11/gpt-full.trace.json.gz"


@pytest.fixture(scope="module")
def profile() -> mindprof.LoadedProfile:
    return mindprof.load(GOLDEN)


def test_kinds_sum_to_the_step(profile: mindprof.LoadedProfile) -> None:
    path = profile.critical_path(limit=3)
    assert path.bound_by == path["bound_by"] == "cpu"
    assert sum(path["split"].values()) == pytest.approx(path["unrecorded_us"], rel=0.02)
    assert path["unrecorded_us"] < path["recorded_us"]
    assert len(path["operators"]) == 3
    assert str(path).startswith("Critical path of 2 steps: ")


def test_the_profilers_cost_counts_if_asked_for(profile: mindprof.LoadedProfile) -> None:
    path = profile.critical_path(recorded=True)
    assert path["split"]["profiler_us"] > 0
    assert sum(path["split"].values()) == pytest.approx(path["recorded_us"], rel=0.02)


def test_the_path_is_written_as_a_track(profile: mindprof.LoadedProfile, tmp_path: Path) -> None:
    profile.critical_path(out=tmp_path / "path.json.gz")
    written = json.loads(gzip.decompress((tmp_path / "path.json.gz").read_bytes()))
    phases = {
        event["ph"] for event in written["traceEvents"] if event.get("cat") == "critical_path"
    }
    assert phases == {"b", "e", "s", "f"}
    again = mindprof.load(tmp_path / "path.json.gz")
    assert len(again.key_averages()) == len(profile.key_averages())
    with pytest.raises(ValueError, match="Chrome traces only"):
        profile.critical_path(out=tmp_path / "path.pftrace")


def test_what_if_takes_names_and_keywords(profile: mindprof.LoadedProfile) -> None:
    half = profile.what_if("optimizer=0.5")
    assert half.changed_us < half.unrecorded_us < half.recorded_us
    assert half.saved_us == pytest.approx(half.unrecorded_us - half.changed_us)
    assert profile.what_if("*=2").saved_us < 0
    assert profile.what_if({"optimizer": 0.5}) == half
    assert profile.what_if("optimizer=50%") == half
    assert profile.what_if({"optimizer": "50%"}) == half
    both = profile.what_if("optimizer=0.5", remove=["aten::addmm"], cuda_graphs=True)
    assert both.changed_us < half.changed_us
    assert "with the change" in str(half)


@pytest.mark.parametrize(
    "asked",
    [
        "optimizer",
        "optimizer=",
        "=0.5",
        "optimizer=-1",
        "optimizer=1e12",
        "optimizer=nan",
        {"optimizer": 1e308},
        {"optimizer": 10**400},
        {"optimizer": "half"},
    ],
)
def test_a_change_without_a_good_factor_is_refused(
    profile: mindprof.LoadedProfile, asked: str | dict[str, float | str]
) -> None:
    with pytest.raises(ValueError, match="NAME=FACTOR"):
        profile.what_if(asked)


@pytest.mark.parametrize("asked", [3, ["optimizer=0.5"], {"optimizer": None}, {3: 0.5}])
def test_a_change_of_another_type_is_refused(
    profile: mindprof.LoadedProfile, asked: object
) -> None:
    with pytest.raises(TypeError, match="is no change: use"):
        profile.what_if(asked)  # type: ignore[arg-type]


def test_a_name_that_nothing_has_is_refused(profile: mindprof.LoadedProfile) -> None:
    with pytest.raises(ValueError, match="did you mean `aten::addmm`"):
        profile.what_if(remove="aten::admm")
    with pytest.raises(ValueError, match="no change was given"):
        profile.what_if()
