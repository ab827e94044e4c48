"""The program that comes with the package: exit codes, closed pipes, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest
from mindprof._command import main

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "tests" / "goldens" / "cpu-torch2.15" / "gpt-plain.trace.json.gz"
SCRIPT = Path(sys.executable).with_name("mindprof")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_is_installed_beside_the_interpreter() -> None:
    done = run("table", TRACE, "--row-limit", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 8
    assert run("--version").stdout.startswith("mindprof ")


def test_it_can_be_run_as_a_module() -> None:
    command = [sys.executable, "-m", "mindprof", "verify", str(TRACE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no faults" in done.stdout


def test_exit_codes_come_through() -> None:
    assert run("table", "missing.json").returncode == 1
    assert run("verify", "missing.json").returncode == 2
    assert run("diff", TRACE, TRACE, "--fail-over", "0%").returncode == 0
    done = run("tables")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unrecognized subcommand" in done.stderr


def test_a_closed_pipe_is_no_error() -> None:
    command = [str(SCRIPT), "table", str(TRACE), "--row-limit", "-1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), errors) == (0, b"")


def test_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    # A pipe that no one writes to: the program waits inside the engine until it is told to end.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen([str(SCRIPT), "table", str(pipe)], stderr=subprocess.PIPE)
    with pipe.open("w"):
        # Opening returned, so the program has opened the other end.
        process.send_signal(signal.SIGINT)
        assert process.wait() == -signal.SIGINT
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


def test_it_can_be_called(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    print("first")
    assert main(["info", str(TRACE)]) == 0
    printed = capfd.readouterr().out
    assert printed.startswith("first\nSpan: ")
    assert signal.getsignal(signal.SIGINT) is before


def test_it_can_be_called_from_any_thread(capfd: pytest.CaptureFixture[str]) -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(["verify", str(TRACE)])))
    thread.start()
    thread.join()
    assert codes == [0]
    assert "no faults" in capfd.readouterr().out


NAMES = ["a\x1b[31m\x00b", "c\x07<&>\"'", "d\x85\ufffe\uffff\n\t;e"]


def test_a_flame_graph_is_xml_whatever_the_names(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "dur": 5}
    events = [{**event, "name": name, "ts": 10 * at} for at, name in enumerate(NAMES)]
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    picture = tmp_path / "flames.svg"
    assert run("stacks", trace, "--out", picture).returncode == 0
    titles = [
        title.text or ""
        for title in ElementTree.parse(picture).iter()
        if title.tag.endswith("title")
    ]
    assert any(title.startswith(r"a\u001b[31m\u0000b (5 us") for title in titles), titles
    assert any(title.startswith("c\\u0007<&>\"' (5 us") for title in titles), titles
