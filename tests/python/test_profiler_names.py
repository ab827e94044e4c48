"""What users of torch.profiler import is there under our own names, and is what profilers take."""

from __future__ import annotations

import threading

import mindprof
import mindprof.profiler
import mindtorch_v2.profiler


def test_the_names_of_torch_are_the_same_objects_everywhere() -> None:
    ours, theirs = mindprof.profiler, mindtorch_v2.profiler
    assert ours.__all__ == theirs.__all__
    for name in ours.__all__:
        assert getattr(ours, name) is getattr(theirs, name) is getattr(mindprof, name)
    for name in ("_ExperimentalConfig", "_KinetoProfile", "RecordScope", "KinetoStepTracker"):
        assert getattr(ours, name) is getattr(theirs, name)
    assert mindprof.ExperimentalConfig is ours._ExperimentalConfig


def test_options_of_our_own_are_taken() -> None:
    def names(config: mindprof.ExperimentalConfig) -> set[str]:
        def work() -> None:
            with mindprof.record_function("theirs"):
                pass

        with mindprof.profile(experimental_config=config) as prof:
            with mindprof.record_function("mine"):
                pass
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        return {row.key for row in prof.key_averages()}

    assert names(mindprof.ExperimentalConfig()) == {"mine", "theirs"}
    assert names(mindprof.ExperimentalConfig(profile_all_threads=False)) == {"mine"}


def test_names_are_listed_once() -> None:
    assert mindtorch_v2.profiler.__all__ is mindprof.profiler.__all__
