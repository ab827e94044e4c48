"""Refreshes what the README shows of `mindprof run`: its output and its two flame graphs.

Run it with an interpreter that has torch: `python tools/readme.py`.
`--text` leaves the pictures as they are; they need chromium, which lays a flame graph out for the
width of a README. On a busy machine, set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from fcntl import ioctl
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
EXAMPLE = "examples/pytorch_train.py"
COMMAND = f"mindprof run {EXAMPLE}"
COLUMNS = 80
WIDTH = 900
# How Blink numbers the colour schemes that a page may ask for.
SCHEMES = {"light": 1, "dark": 0}


def run_in_terminal(command: list[str], folder: Path) -> str:
    """Runs a command in a terminal of `COLUMNS` columns and returns what it prints."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    with subprocess.Popen(command, cwd=folder, stdout=theirs, stderr=theirs, stdin=theirs) as child:
        os.close(theirs)
        printed = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # Linux: the other end was closed.
                break
            printed += part
    os.close(ours)
    assert child.returncode == 0, printed.decode()
    return printed.decode().replace("\r\n", "\n")


def shown(printed: str, folder: Path) -> str:
    """Returns the output with short paths."""
    lines = printed.replace(f"{folder}/", "").splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def write_pictures(flamegraph: Path) -> None:
    """Draws a flame graph in both colour schemes, down to the module of the example."""
    # A frame is 16 pixels high.
    module = rf'&lt;module&gt; \({Path(EXAMPLE).name}:\d+\).*?<rect [^>]*?y="(\d+)"'
    found = re.search(module, flamegraph.read_text(), re.DOTALL)
    assert found, "the module of the example is not in the flame graph"
    size = f"{WIDTH},{int(found[1]) + 17}"
    for name, scheme in SCHEMES.items():
        chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options = [f"--window-size={size}", f"--blink-settings=preferredColorScheme={scheme}"]
        picture = ROOT / "docs" / f"flamegraph-{name}.png"
        target = ["--force-device-scale-factor=2", f"--screenshot={picture}", flamegraph.as_uri()]
        command = [*chromium, *options, *target]
        subprocess.run(command, check=True, timeout=60, stderr=subprocess.DEVNULL)


def main() -> None:
    """Writes the README's block of output, and the pictures."""
    os.environ["PYTHONPATH"] = str(ROOT / "python")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "examples").mkdir()
        shutil.copy(ROOT / EXAMPLE, folder / EXAMPLE)
        program = [sys.executable, "-m", "mindprof", "run"]
        text = shown(run_in_terminal([*program, EXAMPLE], folder), folder)
        before, fence, after = README.read_text().partition(f"{COMMAND}\n```\n\n```text\n")
        assert fence, f"README.md has no block of the output of {COMMAND!r}"
        README.write_text(before + fence + text + after[after.index("```") :])
        if "--text" not in sys.argv:
            steps = ["--wait", "2", "--active", "5", "-q", "-o", "window"]
            subprocess.run([*program, *steps, EXAMPLE], cwd=folder, check=True)
            write_pictures(folder / "window" / "flamegraph.svg")


if __name__ == "__main__":
    main()
