"""Checks once how Kineto's results can be read, on a small collection with known events.

Python's accessors need one call per value of each event; reading torch's memory directly is much
faster. The engine does the latter only if both ways agree on the collection made here.
"""

from __future__ import annotations

from types import ModuleType

from mindprof import _core
from mindprof._frameworks.kineto_config import kineto_config
from mindprof._frameworks.plain_thread import on_plain_thread
from mindprof._results.logger import inform
from mindprof._settings.options import SessionOptions

_is_checked = False


def check_results(torch: ModuleType) -> None:
    """Has the engine determine the memory layout of results, once per process.

    Kineto must not be in use.
    """
    global _is_checked
    if _is_checked:
        return
    _is_checked = True
    try:
        _initialize(torch)
        on_plain_thread(lambda: _core.check_torch_results(_small_collection(torch)))
    # Whatever an unknown torch does here, the accessors remain.
    except Exception as error:
        inform("results of torch's collector are read through Python accessors: %s", error)


def _initialize(torch: ModuleType) -> None:
    """Initializes Kineto on the calling thread, as torch's own profiler does, by recording nothing.

    Kineto prints an error if its first use is not on the thread that imported torch.
    """
    native = torch._C._autograd
    config = kineto_config(torch, SessionOptions(all_threads=False))
    activities = {torch._C._profiler.ProfilerActivity.CPU}
    native._prepare_profiler(config, activities)
    native._enable_profiler(config, activities)
    native._disable_profiler()


def _small_collection(torch: ModuleType) -> object:
    """Records a few operators and ranges on the calling thread, and returns the results."""
    native = torch._C._autograd
    options = SessionOptions(record_shapes=True, profile_memory=True, all_threads=False)
    config = kineto_config(torch, options)
    activities = {torch._C._profiler.ProfilerActivity.CPU}
    native._prepare_profiler(config, activities)
    native._enable_profiler(config, activities)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            x = torch.ones(2, requires_grad=True, device="cpu")
            with torch.autograd.profiler.record_function("mindprof::check, a name of many letters"):
                y = (x * x).sum()
            torch.autograd.grad([y], [x])
            # Numbers of each kind, lists of them, and a list of tensors.
            z = torch.cat([torch.add(x, x, alpha=2), torch.add(x, x, alpha=0.25)])
            torch.sum(z.reshape([2, 1, 2]), [0, 2], keepdim=True)
            torch.full([1], 3 + 4j, dtype=torch.complex64, device="cpu")
    finally:
        result = native._disable_profiler()
    return result
