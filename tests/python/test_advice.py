"""`profile.advice()`: findings as data and as text, for a profiler and for a loaded trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mindprof
import pytest

GOLDENS = Path(__file__).parents[1] / "goldens" / "h200-torch2.11"
TRACE = GOLDENS / "gpt-full.trace.json.gz"


def test_a_loaded_trace_gets_the_advice_of_the_command_line() -> None:
    advice = mindprof.load(TRACE).advice()
    command = [sys.executable, "-m", "mindprof", "advise", str(TRACE), "--all", "--width", "80"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert str(advice) == printed


def test_findings_have_prices_and_remedies() -> None:
    advice = mindprof.load(TRACE).advice()
    assert advice.steps > 0
    assert advice.findings
    assert set(advice.clean).isdisjoint(advice.unknown)
    for finding in advice.findings:
        assert 0 <= finding.low <= finding.share <= finding.high <= 1
        assert finding.remedy
        assert len(finding.events) <= finding.event_count
        assert finding.rule not in advice.clean
    assert advice.overhead.unrecorded_us <= advice.overhead.recorded_us
    assert advice.findings[0].rule in repr(advice)


def test_files_can_be_named_as_mine() -> None:
    loaded = mindprof.load(TRACE)
    places = {finding.file for finding in loaded.advice().findings if finding.file}
    assert places
    assert not any(finding.file for finding in loaded.advice(mine="nowhere.py").findings)
    assert loaded.advice(mine=sorted(places)).findings == loaded.advice().findings


def test_a_profile_without_work_has_no_findings() -> None:
    with mindprof.profile() as prof:
        pass
    advice = prof.advice()
    assert [finding for finding in advice.findings if finding.share > 0] == []
    assert str(advice)


def test_advice_needs_a_recording() -> None:
    with pytest.raises(AssertionError, match="before giving advice"):
        mindprof.profile().advice()
