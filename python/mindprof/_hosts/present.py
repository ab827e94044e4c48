"""Which host it is that profilers record."""

from __future__ import annotations

from mindprof._hosts.embedded import EmbeddedHost
from mindprof._hosts.host import Host
from mindprof._profiler.activity import ProfilerActivity

_EMBEDDED = EmbeddedHost()


def present_host() -> Host:
    """Returns the host of this process."""
    return _EMBEDDED


def supported_activities() -> set[ProfilerActivity]:
    """Returns the groups that can be recorded here.

    >>> supported_activities()
    {<ProfilerActivity.CPU: 0>}
    """
    return present_host().activities()
