"""Which host it is that profilers record."""

from __future__ import annotations

import sys

from mindprof._hosts.embedded import EmbeddedHost
from mindprof._hosts.frameworks import framework_activities
from mindprof._hosts.host import Host
from mindprof._hosts.pytorch import PyTorchHost
from mindprof._hosts.torch_backend import chosen_backend
from mindprof._profiler.activity import ProfilerActivity

_EMBEDDED = EmbeddedHost()
_PYTORCH = PyTorchHost()


def present_host() -> Host:
    """Returns the host of this process: torch where it is loaded and can be recorded.

    Raises:
        RuntimeError: The environment forces a way to record torch that is not there.
    """
    torch = sys.modules.get("torch")
    # One that is still being imported runs no operators yet.
    if torch is None or getattr(torch.__spec__, "_initializing", False):
        return _EMBEDDED
    return _PYTORCH if chosen_backend(torch).name == "observer" else _EMBEDDED


def supported_activities() -> set[ProfilerActivity]:
    """Returns the groups that can be recorded here.

    >>> supported_activities()
    {<ProfilerActivity.CPU: 0>}
    """
    return present_host().activities() | framework_activities()
