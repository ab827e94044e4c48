"""A profiler records whatever host there is, by the protocol alone."""

from __future__ import annotations

import mindprof
import pytest
from mindprof import ProfilerActivity, _core
from mindprof._frameworks.embedded import EmbeddedHost
from mindprof._frameworks.host import Host
from mindprof._frameworks.present import present_host
from mindprof._profiler.autograd_profile import profile as autograd_profile
from mindprof._settings.options import SessionOptions


class DeviceHost:
    """A host with a device, which notes what it is asked to do."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def activities(self) -> set[ProfilerActivity]:
        return {ProfilerActivity.CPU, ProfilerActivity.CUDA}

    def has_device(self, name: str) -> bool:
        return name == "cuda"

    def prepare(self, options: SessionOptions) -> None:
        self.done.append(f"prepare, {len(options.activities)} groups")

    def start(self, options: SessionOptions) -> _core.Session:
        self.done.append(f"start, shapes {options.record_shapes}")
        return _core.Session(options)

    def stop(self, session: _core.Session) -> _core.Profile:
        self.done.append("stop")
        return session.stop()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> DeviceHost:
    host = DeviceHost()
    monkeypatch.setattr("mindprof._profiler.autograd_profile.present_host", lambda _: host)
    return host


def test_the_embedded_host_is_there() -> None:
    host: Host = present_host()
    assert isinstance(host, EmbeddedHost)
    assert not host.has_device("cuda")
    assert host.activities() == mindprof.supported_activities() == {ProfilerActivity.CPU}


def test_a_recording_begins_and_ends_by_its_host(host: DeviceHost) -> None:
    with mindprof.profile(record_shapes=True) as prof:
        with mindprof.record_function("step"):
            pass
        assert host.done == ["prepare, 1 groups", "start, shapes True"]
    assert host.done == ["prepare, 1 groups", "start, shapes True", "stop"]
    assert [row.key for row in prof.key_averages()] == ["step"]


@pytest.mark.parametrize(
    ("use_cpu", "use_device", "expected"),
    [
        (True, None, {ProfilerActivity.CPU}),
        (True, "cuda", {ProfilerActivity.CPU, ProfilerActivity.CUDA}),
        (False, "cuda", {ProfilerActivity.CUDA}),
    ],
)
@pytest.mark.usefixtures("host")
def test_a_device_that_the_host_has_is_recorded(
    use_cpu: bool, use_device: str | None, expected: set[ProfilerActivity]
) -> None:
    prof = autograd_profile(use_cpu=use_cpu, use_device=use_device, use_kineto=True)
    assert prof.use_device == use_device
    assert prof.kineto_activities == expected


@pytest.mark.usefixtures("host")
def test_a_device_that_the_host_has_not_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="XPU is not available, disabling XPU profiling") as told:
        prof = autograd_profile(use_device="xpu")
    assert told[0].filename == __file__
    assert prof.use_device is None
