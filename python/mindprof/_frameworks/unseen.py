"""The warning about a torch whose operators were not recorded."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType

from mindprof._frameworks.call_level import level_outside
from mindprof._frameworks.embedded import EmbeddedHost
from mindprof._frameworks.host import Host
from mindprof._frameworks.torch_backend import chosen_backend, is_loaded

_TEXT = (
    "torch is loaded, but its operators are not in this recording: {reason}. {remedy} Ranges of "
    "record_function and, with with_stack=True, Python calls are in this recording."
)

_IMPORTED_LATE = "it was imported after the recording started"
_IMPORT_EARLIER = "Import torch before starting the profiler."
_USE_TORCH_PROFILER = (
    "Record them with torch.profiler, write a trace with export_chrome_trace(path), and read it "
    "with mindprof.load(path) or `mindprof table`."
)

_has_warned = False


def warn_of_unseen_torch(host: Host) -> None:
    """Warns once per process if torch is loaded but `host` did not record its operators."""
    global _has_warned
    torch = sys.modules.get("torch")
    if (
        _has_warned
        or torch is None
        or not is_loaded(torch)
        or not isinstance(host, EmbeddedHost)
        or "mindtorch_v2" in sys.modules
    ):
        return
    _has_warned = True
    reason = _reason(torch)
    remedy = _IMPORT_EARLIER if reason == _IMPORTED_LATE else _USE_TORCH_PROFILER
    warnings.warn(_TEXT.format(reason=reason, remedy=remedy), stacklevel=level_outside())


def _reason(torch: ModuleType) -> str:
    try:
        backend = chosen_backend(torch)
    except (RuntimeError, ValueError) as error:
        return str(error)
    if backend.name == "off":
        return backend.reason
    return _IMPORTED_LATE
