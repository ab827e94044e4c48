"""A device that stops recording early, played by the test: there is none here."""

from __future__ import annotations

import pytest
from mindprof import ProfilerAction, profile, schedule

LETTERS = dict(zip(ProfilerAction, "NWRSD", strict=True))


@pytest.mark.filterwarnings("ignore:CUDA is not available", "ignore:Profiler won't be using warmup")
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
@pytest.mark.parametrize(
    ("arguments", "stopped_at", "actions", "callbacks"),
    [
        ({"wait": 1, "warmup": 1, "active": 3, "repeat": 2}, 3, "NWRDDNWRRSNN", [3, 10]),
        ({"wait": 1, "warmup": 1, "active": 1, "repeat": 2}, 2, "NWDNWSN", [2, 6]),
        ({"wait": 0, "warmup": 0, "active": 3}, 1, "RDDRRSRR", [1, 6, 7]),
    ],
)
def test_the_rest_of_the_cycle_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, int],
    stopped_at: int,
    actions: str,
    callbacks: list[int],
) -> None:
    called: list[int] = []
    profiler = profile(
        schedule=schedule(**arguments), on_trace_ready=lambda prof: called.append(prof.step_num)
    )
    profiler.use_device = "cuda"
    monkeypatch.setattr(
        "mindprof._profiler.profile._is_kineto_stopped", lambda: profiler.step_num == stopped_at
    )
    seen = LETTERS[profiler.current_action]
    with profiler:
        for step in range(1, len(actions)):
            if step == stopped_at:
                text = f"was stopped early at step {step}. Profiler schedule is proceeding"
                with pytest.warns(UserWarning, match=text):
                    profiler.step()
            else:
                profiler.step()
            seen += LETTERS[profiler.current_action]
    assert (seen, called) == (actions, callbacks)


def test_a_profiler_of_the_host_alone_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindprof._profiler.profile._is_kineto_stopped", lambda: True)
    with profile(schedule=schedule(wait=0, warmup=1, active=1)) as profiler:
        profiler.step()
        assert profiler.current_action == ProfilerAction.RECORD_AND_SAVE
