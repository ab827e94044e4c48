"""Section 2.1: what `profile(...)` accepts, and how it refuses the rest."""

from __future__ import annotations

from typing import Any

import pytest
from host import CPU, CUDA, Action, counts, profile, torch, work


def test_p_1_no_positional_arguments() -> None:
    with pytest.raises(TypeError, match=r"profile.__init__\(\) takes 1 positional argument but 2"):
        torch.profiler.profile([CPU])


def test_p_2_unknown_keywords_are_refused() -> None:
    text = r"profile.__init__\(\) got an unexpected keyword argument 'use_cuda'"
    with pytest.raises(TypeError, match=text):
        profile(use_cuda=True)


@pytest.mark.parametrize("empty", [[], (), set(), {}])
def test_p_3_no_activities_are_refused(empty: Any) -> None:
    with pytest.raises(AssertionError, match=r"^No valid profiler activities found$"):
        profile(activities=empty)


def test_p_4_the_default_is_what_is_supported() -> None:
    assert profile().activities == torch.profiler.supported_activities()
    assert profile(activities=None).activity_configs == {}


@pytest.mark.parametrize("activities", ["cpu", ["cpu"]])
def test_p_5_strings_are_refused(activities: Any) -> None:
    text = "^Expected ProfilerActivity or dict, got <class 'str'>$"
    with pytest.raises(TypeError, match=text):
        profile(activities=activities)


@pytest.mark.parametrize("activities", [[CPU, CPU], [{CPU: None}, CPU], [CPU, {CPU: []}]])
def test_p_6_no_activity_twice(activities: Any) -> None:
    text = "^Activity ProfilerActivity.CPU specified more than once$"
    with pytest.raises(ValueError, match=text):
        profile(activities=activities)


@pytest.mark.parametrize("activities", [3, CPU])
def test_p_7_what_is_not_iterable_is_refused(activities: Any) -> None:
    with pytest.raises(TypeError, match="object is not iterable"):
        profile(activities=activities)


@pytest.mark.parametrize("kind", [list, tuple, set])
def test_p_8_lists_tuples_and_sets_are_accepted(kind: Any) -> None:
    assert profile(activities=kind([CPU])).activities == {CPU}


def test_p_9_an_iterator_is_used_up_by_the_constructor() -> None:
    profiler = profile(activities=iter([CPU]))
    assert profiler.activities == set()
    with pytest.raises(AssertionError, match="No activities specified for the profiler"):
        profiler.start()


def test_p_10_none_in_a_dict_stands_for_all_types() -> None:
    profiler = profile(activities=[{CPU: None}])
    assert profiler.activities == {CPU}
    assert profiler.activity_configs[CPU].activity_types is None
    assert profiler.activity_configs[CPU].profiler_configs == []


def test_p_11_types_and_configs_in_a_dict_are_kept() -> None:
    assert profile(activities=[{CPU: ["NOPE"]}]).activity_configs[CPU].activity_types == ["NOPE"]
    config = torch.profiler.ProfilerActivityConfig(activity_types=["CPU_OP"])
    assert profile(activities=[{CPU: config}]).activity_configs[CPU] is config


def test_p_12_a_dict_of_something_else_fails_at_start() -> None:
    profiler = profile(activities=[{"cpu": []}])
    with pytest.raises(AssertionError, match="No activities specified for the profiler"):
        profiler.start()


def test_p_13_a_schedule_must_be_callable() -> None:
    with pytest.raises(TypeError, match="'int' object is not callable"):
        profile(schedule=3)


def test_p_14_a_schedule_that_raises_at_step_zero() -> None:
    def schedule(step: int) -> Any:
        raise KeyError(step)

    with pytest.raises(KeyError):
        profile(schedule=schedule)


def test_p_15_device_stopped_is_not_for_schedules() -> None:
    text = "ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be"
    with pytest.raises(ValueError, match=text):
        profile(schedule=lambda _: Action.DEVICE_STOPPED)
    profiler = profile(schedule=lambda step: Action.DEVICE_STOPPED if step else Action.NONE)
    with pytest.raises(ValueError, match=text):
        profiler.step()


def test_p_16_a_plain_number_from_a_schedule_does_nothing() -> None:
    profiler = profile(schedule=lambda _: 2)
    with profiler:
        work()
    with pytest.raises(AssertionError, match="initialized before getting key averages"):
        profiler.key_averages()


def test_p_17_a_callback_that_is_not_callable_fails_when_it_is_due() -> None:
    profiler = profile(on_trace_ready=3)
    profiler.start()
    with pytest.raises(TypeError, match="'int' object is not callable"):
        profiler.stop()


def test_p_18_a_negative_timeout_fails_at_start() -> None:
    profiler = profile(post_processing_timeout_s=-1)
    with pytest.raises(ValueError, match=r"^post_processing_timeout_s must be non-negative$"):
        profiler.start()


def test_p_19_an_experimental_config_of_another_type() -> None:
    with pytest.raises(AttributeError, match="'int' object has no attribute 'trace_only'"):
        profile(experimental_config=3)


def test_p_20_trace_only_gives_way_to_stacks() -> None:
    config = torch.profiler._ExperimentalConfig(trace_only=True)
    text = r"trace_only=True is incompatible with with_stack=True \(stack traces require event"
    with pytest.warns(UserWarning, match=text):
        profiler = profile(experimental_config=config, with_stack=True)
    assert config.trace_only
    assert not profiler.experimental_config.trace_only


def test_p_21_flags_of_a_wrong_type_fail_at_start() -> None:
    profiler = profile(record_shapes="x")
    assert profiler.record_shapes == "x"
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \|=: 'str' and 'bool'"):
        profiler.start()
    with profile(record_shapes=1) as profiler:
        work()
    assert counts(profiler)["aten::add"] == 1


def test_p_22_cuspy_options_need_cuspy() -> None:
    config = torch.profiler._ExperimentalConfig(custom_profiler_config='{"cuspy_async_export": 1}')
    text = "^cuspy_async_export is only supported with the cuspy backend$"
    with pytest.raises(ValueError, match=text):
        profile(experimental_config=config)


def test_p_23_cuspy_needs_the_host() -> None:
    config = torch.profiler.ProfilerActivityConfig(profiler_configs=[torch.profiler.CuspyConfig()])
    with pytest.raises(ValueError, match=r"^Cuspy currently requires CPU activity$"):
        profile(activities=[{CUDA: config}])


def test_attributes_before_start() -> None:
    profiler = profile()
    expected = {
        "activities": {CPU},
        "activity_configs": {},
        "record_shapes": False,
        "with_flops": False,
        "profile_memory": False,
        "with_stack": False,
        "with_modules": False,
        "experimental_config": None,
        "execution_trace_observer": None,
        "acc_events": False,
        "custom_trace_id_callback": None,
        "post_processing_timeout_s": None,
        "profiler": None,
        "has_cudagraphs": False,
        "mem_tl": None,
        "use_device": None,
        "preset_metadata": {},
        "record_steps": False,
        "on_trace_ready": None,
        "step_num": 0,
        "step_rec_fn": None,
        "current_action": Action.RECORD,
    }
    assert {name: getattr(profiler, name) for name in expected} == expected
    assert profiler.schedule(7) == Action.RECORD


def test_use_device_follows_the_activities() -> None:
    activity = torch.profiler.ProfilerActivity
    for chosen, device in [
        ([activity.XPU, activity.CUDA], "cuda"),
        ([activity.MTIA, activity.XPU], "xpu"),
        ([activity.HPU, activity.MTIA], "mtia"),
        ([activity.PrivateUse1, activity.HPU], "hpu"),
        ([activity.PrivateUse1, activity.CPU], "privateuseone"),
        ([activity.CPU], None),
    ]:
        assert profile(activities=chosen).use_device == device


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"with_modules": True}, "with_modules is deprecated and will be removed in a future"),
        (
            {"experimental_config": {"adjust_profiler_step": True}},
            "adjust_profiler_step is deprecated and ignored. It will be removed in a future",
        ),
    ],
)
def test_deprecated_options_warn_at_start(config: dict[str, Any], text: str) -> None:
    if options := config.get("experimental_config"):
        config = {"experimental_config": torch.profiler._ExperimentalConfig(**options)}
    profiler = profile(**config)
    with pytest.warns(FutureWarning, match=text):
        profiler.start()
    profiler.stop()


@pytest.mark.parametrize("device", ["CUDA", "XPU", "HPU"])
def test_a_missing_device_warns_and_the_host_goes_on(device: str) -> None:
    activity = getattr(torch.profiler.ProfilerActivity, device)
    profiler = profile(activities=[CPU, activity])
    text = f"^{device} is not available, disabling {device} profiling$"
    with pytest.warns(UserWarning, match=text):
        profiler.start()
    work()
    profiler.stop()
    assert profiler.use_device == device.lower()
    assert profiler.profiler.use_device is None
    assert counts(profiler)["aten::add"] == 1


def test_a_device_that_nobody_knows_warns() -> None:
    with pytest.warns(UserWarning, match=r"^The foo is not a valid device option.$"):
        torch.autograd.profiler.profile(use_device="foo")


def test_mtia_is_refused() -> None:
    profiler = profile(activities=[CPU, torch.profiler.ProfilerActivity.MTIA])
    with pytest.raises(AssertionError, match=r"Legacy MTIA profiling is not supported."):
        profiler.start()


def test_a_missing_device_alone_is_nothing() -> None:
    profiler = profile(activities=[CUDA])
    with (
        pytest.warns(UserWarning, match="CUDA is not available"),
        pytest.raises(AssertionError, match="No activities specified for the profiler"),
    ):
        profiler.start()


def test_no_host_needs_kineto() -> None:
    text = r"Device-only events supported only with Kineto \(use_kineto=True\)"
    with pytest.raises(AssertionError, match=text):
        torch.autograd.profiler.profile(use_cpu=False)
