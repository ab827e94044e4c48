"""torch's slot for profilers, which holds an object of ours while memory is recorded.

torch takes any object there for its own profiler, so that every way to it is tried: in processes of
their own, because a wrong step is a crash.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from typing import Any

import mindprof
import pytest
import torch  # type: ignore[import-not-found]

CPU = torch.profiler.ProfilerActivity.CPU
FORKS = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")

BEFORE = """
import os, threading
import mindprof, torch
from torch.profiler import ProfilerActivity
CPU = ProfilerActivity.CPU

def on_thread(run):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

def outcome(call, *args):
    try:
        found = call(*args)
    except RuntimeError as error:
        return "RuntimeError"
    return type(found).__name__

def ours(**options):
    return mindprof.profile(**{"profile_memory": True, **options})

def memory_after(prof):
    return [row.cpu_memory_usage for row in prof.key_averages() if row.key == "aten::empty"]
"""


def run(code: str, before: str = "") -> str:
    """Runs code in a process of its own, and returns what it prints."""
    code = BEFORE + before + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout


CHANGES = {
    "toggled on": "torch.autograd._toggle_collection_dynamic, True, {CPU}",
    "toggled off": "torch.autograd._toggle_collection_dynamic, False, {CPU}",
    "toggled by torch.autograd.profiler": (
        "torch.autograd.profiler._toggle_collection_dynamic, True, {CPU}"
    ),
    "stopped": "torch._C._autograd._disable_profiler",
    "stopped, the old one": "torch._C._autograd._disable_profiler_legacy",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_torchs_profiler_does_what_it_does_where_none_runs(change: str) -> None:
    said = run(f"""
        torch.empty(3)
        plain = outcome({change})
        with ours() as prof:
            inside = outcome({change})
            torch.empty(250)
        print(plain, inside, memory_after(prof))
    """)
    plain, inside, memory = said.split(maxsplit=2)
    assert inside == ("RuntimeError" if plain == "None" else plain)
    assert memory.strip() == "[1000]", "memory is recorded after it"


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_functions_that_were_imported_before_the_recording_are_safe(change: str) -> None:
    function, _, arguments = change.partition(",")
    said = run(f"""
        function = {function}
        plain = outcome(function, {arguments})
        with ours() as prof:
            inside = outcome(function, {arguments})
            torch.empty(250)
        print(plain, inside, memory_after(prof))
    """)
    plain, inside, memory = said.split(maxsplit=2)
    assert inside == ("RuntimeError" if plain == "None" else plain)
    assert memory.strip() == "[1000]", "memory is recorded after it"


# A profiler of torch that starts inside of ours takes the slot until it ends.


THEIRS = """
import json, tempfile, warnings

def added(prof):
    rows = {row.key: (row.count, row.cpu_memory_usage) for row in prof.key_averages()}
    return rows.get("aten::add")

def work():
    torch.ones(250) + 1

def kineto(**options):
    options = {"profile_memory": True, **options}
    with torch.profiler.profile(activities=[CPU], **options) as theirs:
        work()
    return added(theirs)

def exported(prof):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path) as file:
            names = [event["name"] for event in json.load(file)["traceEvents"]]
    return names.count("aten::add")

def scheduled():
    found = []
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2)
    with torch.profiler.profile(
        activities=[CPU],
        schedule=schedule,
        on_trace_ready=lambda prof: found.append((added(prof), exported(prof))),
        profile_memory=True,
    ) as theirs:
        for _ in range(8):
            work()
            theirs.step()
    return found

def legacy():
    from torch.autograd import profiler_legacy
    with profiler_legacy.profile(profile_memory=True) as theirs:
        work()
    return added(theirs)

def enabled(activities):
    configured = torch.autograd.profiler.profile(use_kineto=True).config()
    return outcome(torch._C._autograd._enable_profiler, configured, activities)

def nested():
    with torch.profiler.profile(activities=[CPU]) as theirs:
        is_refused = enabled({CPU})
        work()
    return is_refused, added(theirs), kineto()

def emitted(name):
    try:
        with getattr(torch.autograd.profiler, name)():
            work()
    except RuntimeError as error:
        return str(error)[:40]

def hooked():
    found = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: found.append(kineto()))
    y.sum().backward()
    return found

def toggled():
    with torch.profiler.profile(activities=[CPU]) as theirs:
        theirs.toggle_collection_dynamic(False, [CPU])
        work()
        theirs.toggle_collection_dynamic(True, [CPU])
        work()
    return added(theirs)

def threaded():
    found = []
    on_thread(lambda: found.append(kineto()))
    return found

def refused():
    return enabled(set()), kineto()

def gaps(prof):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path) as file:
            return int(json.load(file).get("mindprof_memory_gaps", 0))

def compare(theirs):
    mindprof.profile().__enter__().__exit__(None, None, None)
    plain = theirs()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with ours() as prof:
            before = torch.arange(50)
            inside = theirs()
            after = torch.arange(75)
    told = [str(one.message) for one in told]
    told = [text.split("happened ")[1].split(":")[0] for text in told if "was not recorded" in text]
    memory = sum(row.cpu_memory_usage for row in prof.key_averages() if row.key == "aten::arange")
    print(json.dumps([plain, inside, memory, gaps(prof), told]))
"""

# The number of times that memory is interrupted, or -1 for one that depends on the platform.
CASES = {
    "kineto": 1,
    "lambda: kineto(with_stack=True)": 1,
    "scheduled": 2,
    "legacy": 1,
    "nested": 2,
    "lambda: emitted('emit_itt')": -1,
    "lambda: emitted('emit_nvtx')": -1,
    "hooked": 1,
    "toggled": 1,
    "threaded": 0,
    "refused": 1,
}


@pytest.mark.parametrize(("theirs", "expected"), CASES.items(), ids=CASES)
def test_torchs_profiler_has_inside_of_ours_what_it_has_alone(theirs: str, expected: int) -> None:
    said = run(f"compare({theirs})", THEIRS)
    plain, inside, memory, gaps, told = json.loads(said.splitlines()[-1])
    assert inside == plain
    # Operators outside of torch's profiler have their memory.
    assert memory == 2000
    assert expected in (gaps, -1)
    assert told == {0: [], 1: ["once"], 2: ["2 times"]}[gaps]


def test_ours_has_every_operator_and_the_memory_outside_of_torchs_profiler() -> None:
    said = run(
        """
        with ours() as prof:
            work()
            kineto()
            work()
        print(added(prof))
        """,
        THEIRS,
    )
    assert said.splitlines()[-1] == "(3, 2000)"


def test_profilers_of_both_kinds_may_end_in_any_order() -> None:
    said = run(
        """
        def both(order):
            of_name = {"ours": ours(), "theirs": torch.profiler.profile(activities=[CPU])}
            of_name["ours"].start()
            of_name["theirs"].start()
            for name in order:
                of_name[name].stop()
                work()
            return added(of_name["theirs"])
        print([both(order) for order in (["ours", "theirs"], ["theirs", "ours"])])
        inner, outer = ours(), ours()
        with torch.profiler.profile(activities=[CPU]) as theirs:
            work()
        with outer:
            theirs = torch.profiler.profile(activities=[CPU])
            theirs.start()
            with warnings.catch_warnings(record=True) as told, inner:
                work()
            theirs.stop()
            work()
        print([len(told), added(inner), added(outer)])
        with ours() as prof:
            work()
        print(added(prof))
        """,
        THEIRS,
    )
    mixed, nested, after = said.splitlines()[-3:]
    assert mixed == "[(1, 0), None]"
    assert nested == "[1, (1, 0), (2, 1000)]"
    assert after == "(1, 1000)"


def test_a_running_profiler_of_torch_is_toggled_inside_of_ours() -> None:
    said = run("""
        with torch.profiler.profile(activities=[CPU]) as theirs:
            def toggle():
                for enable in (True, False):
                    print(outcome(theirs.toggle_collection_dynamic, enable, [CPU]))
            def work():
                with ours() as prof:
                    toggle()
                    torch.empty(250)
                print(memory_after(prof))
            on_thread(toggle)
            on_thread(work)
            torch.ones(2) + 1
        print([row.count for row in theirs.key_averages() if row.key == "aten::add"])
    """)
    *outcomes, memory, count = said.splitlines()
    assert outcomes[:2] == outcomes[2:], "as on a thread without a profiler"
    assert (memory, count) == ("[1000]", "[1]")


def test_a_profiler_of_all_threads_runs_inside() -> None:
    if "profile_all_threads" not in str(torch._C._profiler._ExperimentalConfig.__init__.__doc__):
        pytest.skip("this torch records one thread")
    said = run("""
        config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        theirs = torch.profiler.profile(activities=[CPU], experimental_config=config)
        with ours() as prof:
            is_refused = outcome(theirs.start) == "RuntimeError"
            torch.empty(250)
            if not is_refused:
                theirs.stop()
        counts = [] if is_refused else [row.count for row in theirs.key_averages()]
        print(memory_after(prof), counts)
    """)
    assert said in ("[1000] [1]\n", "[1000] []\n"), "old versions of torch refuse it"


def test_torchs_profiler_may_start_where_ours_was_stopped_elsewhere() -> None:
    said = run("""
        prof = ours()
        prof.start()
        on_thread(prof.stop)
        with torch.profiler.profile(activities=[CPU]) as theirs:
            torch.ones(2) + 1
        print([row.count for row in theirs.key_averages() if row.key == "aten::add"])
        with ours() as again:
            torch.empty(250)
        print(memory_after(again))
    """)
    assert said.split("\n")[:2] == ["[1]", "[1000]"]


def test_torchs_profiler_may_start_after_ours_was_stopped_in_a_backward_hook() -> None:
    said = run("""
        prof = ours()
        prof.start()
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(lambda grad: prof.stop())
        try:
            y.sum().backward()
        except RuntimeError as error:
            pass
        with torch.profiler.profile(activities=[CPU]) as theirs:
            torch.ones(2) + 1
        print([row.count for row in theirs.key_averages() if row.key == "aten::add"])
        with ours() as again:
            torch.empty(250)
        print(memory_after(again))
    """)
    assert said.split("\n")[:2] == ["[1]", "[1000]"]


def test_a_recording_that_ended_elsewhere_leaves_its_thread_out_of_later_ones() -> None:
    first = mindprof.profile(profile_memory=True)
    first.start()
    stop = threading.Thread(target=first.stop)
    stop.start()
    stop.join()
    found: list[Any] = []
    begun, done = threading.Event(), threading.Event()

    def other() -> None:
        with mindprof.profile(profile_memory=True) as prof:
            begun.set()
            done.wait()
        found.append(prof)

    worker = threading.Thread(target=other)
    worker.start()
    begun.wait()
    torch.empty(250)
    done.set()
    worker.join()
    [row] = [row for row in found[0].key_averages() if row.key == "aten::empty"]
    assert row.cpu_memory_usage == 0


@FORKS
def test_a_forked_child_has_no_object_in_its_slot() -> None:
    said = run("""
        import sys
        torch.set_num_threads(1)
        with ours():
            child = os.fork()
            if child == 0:
                kinds = torch._C._profiler.ActiveProfilerType
                enabled = torch.autograd._profiler_enabled()
                same = torch._C._autograd._profiler_type() == kinds.NONE
                print(enabled, same, flush=True)
                torch._C._autograd._enable_profiler_legacy(
                    torch.autograd.profiler_legacy.profile().config()
                )
                torch.empty(3)
                torch._C._autograd._disable_profiler_legacy()
                os._exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert said.split("\n")[:2] == ["False True", "0"]


def test_many_recordings_leave_no_entries() -> None:
    """Each start clears away what a stop elsewhere could not."""
    for _ in range(50):
        prof = mindprof.profile(profile_memory=True)
        prof.start()
        stop = threading.Thread(target=prof.stop)
        stop.start()
        stop.join()
    with mindprof.profile(profile_memory=True) as prof:
        torch.empty(250)
    [row] = [row for row in prof.key_averages() if row.key == "aten::empty"]
    assert row.cpu_memory_usage == 1000


# What torch's tensors say of their address.


LIES = {
    "a parameter's": "torch.nn.Parameter._cdata = property(lambda self: 8)",
    "every tensor's": "torch.Tensor._cdata = property(lambda self: 1 << 40)",
    "one that raises": "torch.Tensor._cdata = property(lambda self: 1 / 0)",
    "by functions": "torch.Tensor.__torch_function__ = classmethod(lambda *args, **kwargs: 8)",
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
@pytest.mark.parametrize("is_early", [True, False], ids=["before the probe", "after it"])
def test_an_address_that_python_made_up_is_not_used(lie: str, is_early: bool) -> None:
    if is_early and "__torch_function__" in lie:
        pytest.skip("the probe's own operators would be replaced")
    early, late = (lie, "") if is_early else ("", lie)
    said = run(f"""
        net = torch.nn.Linear(64, 64)
        trained = torch.optim.Adam(net.parameters())
        x = torch.ones(2, 64)
        {early}
        with mindprof.profile():
            x + x
        {late}
        from mindprof._results.memory_timeline import MemoryProfileTimeline
        flags = {{"record_shapes": True, "with_stack": True}}
        with ours(**flags) as prof:
            net(x).sum().backward() if "function" not in {lie!r} else None
            trained.step()
        timeline = MemoryProfileTimeline(prof._recording_with_memory())
        categories = (timeline.categories.get(*key) for _, _, key, _ in timeline.timeline)
        print(sorted({{category.name for category in categories if category}}))
    """)
    if "function" not in lie:
        assert "OPTIMIZER_STATE" in said
        assert "PARAMETER" in said


class Sized(torch.Tensor):  # type: ignore[misc]
    """A subclass whose address is made up."""

    @property
    def _cdata(self) -> int:
        return 8


def test_a_subclass_with_an_address_of_its_own_is_harmless() -> None:
    weight = torch.ones(4).as_subclass(Sized).requires_grad_()
    trained = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    weight.grad = torch.ones(4)
    with mindprof.profile(profile_memory=True, record_shapes=True) as prof:
        trained.step()
    assert len(prof.events()) > 1


# Code in C++.


CPP = """
#include <torch/extension.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <thread>

using namespace torch::autograd::profiler;

static void work(bool enables) {
  bool is_enabled = enables && isProfilerEnabledInMainThread();
  if (is_enabled) enableProfilerInChildThread();
  auto x = torch::ones({250});
  torch::neg(x);
  x = torch::Tensor();
  if (is_enabled) disableProfilerInChildThread();
}

static bool run_thread(bool enables) {
  std::thread thread(work, enables);
  thread.join();
  return isProfilerEnabledInMainThread();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("run_thread", &run_thread, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("enabled", [] { return torch::profiler::impl::profilerEnabled(); });
  m.def("type", [] { return static_cast<int>(torch::profiler::impl::profilerType()); });
  m.def("disable", [] { disableProfiler(); });
  m.def("disable_in_child", [] { disableProfilerInChildThread(); });
}
"""


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Code that imports the extension."""
    cpp_extension = pytest.importorskip("torch.utils.cpp_extension")
    if not cpp_extension.is_ninja_available() or not shutil.which("g++"):
        pytest.skip("extensions need ninja and a compiler")
    name, folder = "mindprof_slot_test", str(tmp_path_factory.mktemp("extension"))
    cpp_extension.load_inline(
        name=name, cpp_sources=CPP, build_directory=folder, extra_cflags=["-O0"]
    )
    return f"""
import sys
sys.path.insert(0, {folder!r})
import {name} as extension

def rows(prof):
    found = {{row.key: (row.count, row.cpu_memory_usage) for row in prof.key_averages()}}
    return {{key: row for key, row in sorted(found.items()) if key.startswith("aten::")}}

def attached(profile):
    with profile(activities=[CPU], profile_memory=True) as prof:
        is_attached = extension.run_thread(True)
    print(is_attached, rows(prof))
"""


def test_threads_of_cpp_that_attach_themselves_are_recorded(extension: str) -> None:
    plain = run("attached(torch.profiler.profile)", extension)
    assert plain.startswith("True")
    assert "'aten::ones': (1, 1000)" in plain
    observed = run("attached(mindprof.profile)", extension)
    # No profiler of torch runs, so that the thread does not ask for it.
    assert observed == plain.replace("True", "False").replace("1000", "0")
    environment = "os.environ['MINDPROF_TORCH_BACKEND'] = 'kineto'"
    assert run(f"{environment}; attached(mindprof.profile)", extension) == plain


def test_callbacks_that_torch_left_on_a_thread_do_not_meet_our_object(extension: str) -> None:
    """torch loses those of a thread beside which others attached themselves."""
    said = run(
        """
        import warnings
        attached(torch.profiler.profile)
        with warnings.catch_warnings(record=True) as told, ours() as prof:
            torch.empty(250)
        print(rows(prof), [str(warning.message)[:22] for warning in told])
        """,
        extension,
    )
    assert said.splitlines()[1] == "{'aten::empty': (1, 0)} ['memory is not recorded']"


def test_callbacks_that_torch_leaves_inside_of_ours_do_not_meet_our_object(extension: str) -> None:
    said = run(
        """
        import warnings
        with warnings.catch_warnings(record=True) as told, ours() as prof:
            torch.empty(100)
            attached(torch.profiler.profile)
            torch.empty(150)
        print(rows(prof)["aten::empty"], [str(one.message)[:23] for one in told])
        with ours() as prof:
            torch.empty(250)
        """,
        extension,
    )
    # The block of the operator after them is missing.
    last = said.splitlines()[-1]
    assert last.startswith("(3, 400)")
    assert "'memory was not recorded'" in last


def test_cpp_that_asks_or_stops_a_profiler_does_no_harm(extension: str) -> None:
    said = run(
        """
        for stop in (extension.disable, extension.disable_in_child):
            with ours() as prof:
                print(extension.enabled(), extension.type())
                torch.empty(250)
                print(outcome(stop))
                torch.empty(250)
            print(rows(prof))
        with ours() as prof:
            torch.empty(250)
        print(rows(prof))
        """,
        extension,
    )
    # torch takes the object out of its slot.
    asked, once = "False 2", "{'aten::empty': (2, 1000)}"
    afterwards = "{'aten::empty': (1, 1000)}"
    expected = [asked, "RuntimeError", once, asked, "NoneType", once, afterwards]
    assert said.splitlines() == expected
