"""HolisticTraceAnalysis finds the same in a trace that was written again as in torch's own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest
from hta.trace_analysis import TraceAnalysis

from tests.clients.traces import DEVICE, convert, export, golden

QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "temporal": lambda analysis: analysis.get_temporal_breakdown(visualize=False),
    "kernels": lambda analysis: analysis.get_gpu_kernel_breakdown(visualize=False),
    "idle": lambda analysis: analysis.get_idle_time_breakdown(visualize=False),
    "launches": lambda analysis: [
        frame.sort_values("correlation", ignore_index=True)
        for frame in analysis.get_cuda_kernel_launch_stats(visualize=False).values()
    ],
    "queue": lambda analysis: analysis.get_queue_length_summary(),
    "annotations": lambda analysis: analysis.get_gpu_user_annotation_breakdown(visualize=False),
}


def frames(answer: Any) -> list[pandas.DataFrame]:
    """Returns the frames of an answer, which may be in tuples and dicts by rank."""
    if isinstance(answer, pandas.DataFrame):
        return [answer]
    parts = answer.values() if isinstance(answer, dict) else answer
    return [frame for part in parts if part is not None for frame in frames(part)]


def ask(path: Path) -> dict[str, list[pandas.DataFrame]]:
    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir="")
    answers = {"events": [events(analysis)]}
    for name, question in QUESTIONS.items():
        # HTA counts in whole microseconds; its own checks fail for some kernels that are shorter.
        with contextlib.suppress(AssertionError):
            answers[name] = frames(question(analysis))
    return answers


def events(analysis: Any) -> pandas.DataFrame:
    """Returns all events that HTA sees, in an order that does not depend on the file's."""
    frame = analysis.t.get_trace(0)
    names = analysis.t.symbol_table.get_sym_table()
    columns = ["ts", "dur", "cat", "name", "pid", "stream", "correlation", "iteration"]
    frame = frame[columns].copy()
    for column in ("cat", "name"):
        frame[column] = [names[number] for number in frame[column]]
    return frame.sort_values(columns).reset_index(drop=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DEVICE)
def test_every_answer_is_the_same(name: str, tmp_path: Path) -> None:
    expected = ask(golden(name))
    assert len(expected["events"][0]) > 200
    assert len(expected) >= len(QUESTIONS)  # all but one, and the events
    for path in (convert(name, tmp_path / "a.json.gz"), export(name, tmp_path / "b.json")):
        answers = ask(path)
        assert answers.keys() == expected.keys()
        for question, answer in answers.items():
            assert len(answer) == len(expected[question]) > 0, question
            for frame, other in zip(answer, expected[question], strict=True):
                pandas.testing.assert_frame_equal(frame, other, obj=question)
