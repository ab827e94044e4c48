"""Section 1: every public name, with its signature to the default."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from host import CPU, IS_TORCH, torch

SURFACE = json.loads((Path(__file__).parent / "surface.json").read_text())
MODULES = ["torch.profiler", "torch.autograd.profiler", "torch.autograd.profiler_util"]
ENTRIES = [(module, name) for module in MODULES for name in SURFACE[module]]

ALL = {
    "torch.profiler": """profile schedule supported_activities tensorboard_trace_handler
        ProfilerAction ProfilerActivity CuspyConfig PerformanceMetricsConfig ProfilerActivityConfig
        kineto_available DeviceType record_function ExecutionTraceObserver""",
    "torch.profiler.profiler": """supported_activities ProfilerAction schedule
        tensorboard_trace_handler profile CuspyConfig ExecutionTraceObserver
        PerformanceMetricsConfig ProfilerActivityConfig""",
    "torch.autograd.profiler": """profile record_function emit_itt emit_nvtx load_nvprof
        EnforceUnique parse_nvprof_trace KinetoStepTracker EventList FunctionEvent
        MemRecordsAcc""",
    "torch.autograd.profiler_util": """EventList EventMetadata FormattedTimesMixin Interval Kernel
        FunctionEvent FunctionEventAvg StringTable MemRecordsAcc""",
    "torch.profiler.itt": "is_available range_push range_pop mark range",
    "torch.autograd.profiler_legacy": "profile",
}


def module_named(name: str) -> Any:
    """Returns torch's module of that name, of the host under test."""
    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def parameters(function: Any) -> list[dict[str, str]]:
    """Describes a signature as the surface does, without `self`."""
    described = []
    for parameter in inspect.signature(function).parameters.values():
        entry = {"name": parameter.name, "kind": parameter.kind.name}
        if parameter.default is not parameter.empty:
            entry["default"] = repr(parameter.default)
        described.append(entry)
    return [entry for entry in described if entry["name"] != "self"]


def check(function: Any, expected: list[dict[str, str]]) -> None:
    """Compares a signature; what we add is keyword-only and has a default."""
    expected = [entry for entry in expected if entry["name"] != "self"]
    if [entry["name"] for entry in expected] == ["args", "kwargs"]:
        return
    found = parameters(function)
    added = [entry for entry in found if entry not in expected]
    assert [entry for entry in found if entry in expected] == expected
    for entry in added:
        assert not IS_TORCH, entry
        assert (entry["kind"], "default" in entry) == ("KEYWORD_ONLY", True), entry


@pytest.mark.parametrize(("module", "name"), ENTRIES)
def test_the_surface(module: str, name: str) -> None:
    found, expected = getattr(module_named(module), name), SURFACE[module][name]
    if "function" in expected:
        if expected["function"] is not None:
            check(found, expected["function"])
        assert callable(found)
        return
    for member, value in expected.get("enum", {}).items():
        assert getattr(found, member).value == value
        assert getattr(found, member).name == member
    if "init" in expected:
        has_own = inspect.isfunction(found.__init__)
        check(found.__init__ if has_own else found, expected["init"])
    for method, signature in expected.get("methods", {}).items():
        check(getattr(found, method), signature)
    for attribute in expected.get("properties", []):
        assert hasattr(found, attribute)


@pytest.mark.parametrize("module", ALL)
def test_all_names(module: str) -> None:
    expected = set(ALL[module].split())
    assert set(module_named(module).__all__) >= expected
    for name in expected:
        assert hasattr(module_named(module), name)


def test_names_that_are_not_listed_and_used_all_the_same() -> None:
    for module, names in {
        "torch.profiler": """KinetoStepTracker RecordScope _ExperimentalConfig _KinetoProfile
            _supported_activities itt profiler""",
        "torch.profiler.profiler": "PROFILER_STEP_NAME _ITraceObserver _WARNINGS_SHOWN",
        "torch.autograd.profiler": """MEMORY_EVENT_NAME OUT_OF_MEMORY_EVENT_NAME
            _is_profiler_enabled _ProfilerStats""",
        "torch.autograd": """DeviceType ProfilerActivity ProfilerConfig ProfilerState
            kineto_available _supported_activities _profiler_enabled _is_kineto_stopped
            _record_function_with_args_enter _record_function_with_args_exit""",
    }.items():
        for name in names.split():
            assert hasattr(module_named(module), name), name
    assert torch.profiler.profiler.PROFILER_STEP_NAME == "ProfilerStep"
    assert torch.autograd.profiler.MEMORY_EVENT_NAME == "[memory]"
    assert torch.autograd.profiler.OUT_OF_MEMORY_EVENT_NAME == "[OutOfMemory]"


def test_the_same_objects_under_all_paths() -> None:
    assert torch.profiler.profile is torch.profiler.profiler.profile
    assert torch.profiler.record_function is torch.autograd.profiler.record_function
    assert torch.profiler.ProfilerActivity is torch.autograd.ProfilerActivity
    assert torch.profiler.DeviceType is torch.autograd.DeviceType


def test_native_enumerations() -> None:
    activity = torch.profiler.ProfilerActivity
    assert (str(CPU), repr(CPU)) == ("ProfilerActivity.CPU", "<ProfilerActivity.CPU: 0>")
    assert (int(CPU), CPU.value, CPU.name) == (0, 0, "CPU")
    assert activity(2) == activity.CUDA
    assert str(activity(77)) == "ProfilerActivity.???"
    assert CPU != 0
    assert set(activity.__members__) == {"CPU", "XPU", "MTIA", "CUDA", "HPU", "PrivateUse1"}
    assert pickle.loads(pickle.dumps(CPU)) == copy.copy(CPU) == CPU
    assert {CPU: 1}[activity(0)] == 1
    for wrong in (lambda: CPU < CPU, lambda: list(activity), lambda: activity("CPU")):
        with pytest.raises(TypeError):
            wrong()


def test_other_enumerations() -> None:
    scope, device = torch.profiler.RecordScope, torch.profiler.DeviceType
    assert [scope(number).name for number in (0, 1, 7, 9)] == [
        "FUNCTION",
        "BACKWARD_FUNCTION",
        "USER_SCOPE",
        "STATIC_RUNTIME_MODEL",
    ]
    assert device(20) == device.PrivateUse1
    assert torch.autograd.ProfilerState(9).name == "KINETO_PRIVATEUSE1"


@pytest.mark.differs("torch's members equal no text")
def test_device_types_equal_their_names() -> None:
    device = torch.profiler.DeviceType
    assert device.CPU == "CPU"
    assert device.CPU != "CUDA"
    assert {device.CPU: 1}["CPU"] == 1


def test_supported_activities_is_a_new_set_each_time() -> None:
    supported = torch.profiler.supported_activities
    assert CPU in supported()
    assert supported() is not supported()
    assert torch.profiler.kineto_available() is True


def test_the_experimental_config() -> None:
    config = torch.profiler._ExperimentalConfig(True, trace_only=1, adjust_timestamps=None)
    assert (config.trace_only, config.adjust_profiler_step) == (True, False)
    assert config.custom_profiler_config == ""
    assert copy.copy(config).trace_only
    assert pickle.loads(pickle.dumps(config)).trace_only
    wrong = {"verbose": "x", "trace_only": [], "custom_profiler_config": 1, "bogus": 1}
    for name, value in wrong.items():
        with pytest.raises(TypeError):
            torch.profiler._ExperimentalConfig(**{name: value})


def test_configs_are_plain_data() -> None:
    assert torch.profiler.CuspyConfig() == torch.profiler.CuspyConfig(False)
    with pytest.raises(AttributeError):
        torch.profiler.CuspyConfig().enable_cuda_sync_events = True
    metrics = torch.profiler.PerformanceMetricsConfig(["a", "b"], sampling_interval_ms=2.0)
    assert metrics._to_config_entries() == {
        "PERFORMANCE_METRICS": "a,b",
        "PERFORMANCE_METRICS_SAMPLING_INTERVAL_MS": "2.0",
    }
