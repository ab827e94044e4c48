"""What the program writes for data frames is read by Arrow's own library, from files and pipes."""

from __future__ import annotations

import fcntl
import importlib
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

pa: Any = importlib.import_module("pyarrow")
csv: Any = importlib.import_module("pyarrow.csv")
parquet: Any = importlib.import_module("pyarrow.parquet")

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "tests" / "goldens" / "h200-torch2.11" / "gpt-full.trace.json.gz"
SCRIPT = Path(sys.executable).with_name("mindprof")


def written(form: str) -> bytes:
    command = [str(SCRIPT), "convert", str(TRACE), "-", "--to", form]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stderr.splitlines()[-1].startswith(b"wrote stdout (")
    return done.stdout


def test_arrow_and_parquet_have_the_same_rows() -> None:
    rows = pa.ipc.open_file(pa.py_buffer(written("arrow"))).read_all()
    rows.validate(full=True)
    expected = parquet.read_table(io.BytesIO(written("parquet")))
    assert rows.column_names == expected.column_names
    assert rows.num_rows == expected.num_rows > 6000
    assert rows.to_pylist() == expected.to_pylist()


def test_csv_has_the_same_numbers() -> None:
    options = csv.ParseOptions(newlines_in_values=True)
    table = csv.read_csv(io.BytesIO(written("csv")), parse_options=options)
    expected = parquet.read_table(io.BytesIO(written("parquet")))
    assert table.column_names == expected.column_names
    for name in ["key", "count", "self_cpu_time_total", "start_us", "stream", "is_async"]:
        assert table[name].to_pylist() == expected[name].to_pylist(), name


def on_a_terminal(*arguments: str | Path) -> tuple[int, str]:
    """Runs the program with stdout on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [str(SCRIPT), *map(str, arguments)]
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(ours)
    return process.wait(), text.decode()


def test_a_table_fits_the_terminal() -> None:
    code, text = on_a_terminal("table", TRACE, "--row-limit", "10")
    assert code == 0
    lines = text.splitlines()
    assert any("Self CUDA" in line for line in lines)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("form", ["arrow", "parquet", "pftrace", "json.gz"])
def test_what_is_no_text_does_not_go_to_a_terminal(form: str) -> None:
    code, text = on_a_terminal("convert", TRACE, "-", "--to", form)
    assert (code, text) == (2, "")


@pytest.mark.parametrize("arguments", [("table",), ("convert", "-")])
def test_a_closed_stdout_is_told(arguments: tuple[str, ...]) -> None:
    command, *rest = arguments
    line = '"$0" "$1" "$2" ${3+"$3"} >&-'
    shell = ["sh", "-c", line, str(SCRIPT), command, str(TRACE), *rest]
    done = subprocess.run(shell, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "error: stdout: " in done.stderr, done.stderr
