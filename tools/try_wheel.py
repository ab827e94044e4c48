"""Installs wheels into empty environments, one for each Python version, and uses them there.

In each environment, the program's table of a golden trace must equal torch's own, and a program of
three lines must run. Interpreters come from `--python`, from the PATH, and from the folders of
pyenv and uv; versions that are not found are reported.

Wheels for another processor run if `--emulator` names a command that starts a Python of that
processor, and are reported as not run otherwise. It is an error if no wheel runs.

    python tools/try_wheel.py dist
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
GOLDEN = Path(__file__).parents[1] / "tests/goldens/cpu-torch2.15/mlp-full"
TABLE = "sort:self_cpu_time_total"
PROGRAM = """\
import mindtorch_v2 as torch
with torch.profiler.profile() as prof: torch.ones(4, 4) @ torch.ones(4, 4)
print(prof.key_averages().table())
"""


def output(command: list[str], **variables: str) -> str:
    """Runs a command and returns its standard output; exits if it fails."""
    environment = {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        said = f"{done.stdout}{done.stderr}"
        sys.exit(f"{shlex.join(command)} failed with status {done.returncode}:\n{said}")
    return done.stdout


def candidates(version: str, given: list[str]) -> Iterator[str]:
    """Yields commands that may be a Python of a version, best first."""
    yield from given
    if found := shutil.which(f"python{version}"):
        yield found
    if shutil.which("pyenv"):
        versions = Path(output(["pyenv", "root"]).strip(), "versions")
        yield from map(str, sorted(versions.glob(f"{version}.*/bin/python")))
    if shutil.which("uv"):
        said = subprocess.run(["uv", "python", "find", version], capture_output=True, text=True)
        yield said.stdout.strip()


def find_python(version: str, given: list[str]) -> str | None:
    """Returns a working Python of a version that has the GIL, which the wheels need."""
    ask = "import sys; print(*sys.version_info[:2], sep='.', end='t' * ('t' in sys.abiflags))"
    for candidate in candidates(version, given):
        try:
            said = subprocess.run([candidate, "-c", ask], capture_output=True, text=True)
        except OSError:
            continue
        if said.stdout == version:
            return candidate
    return None


def check(python: list[str], program: list[str], **variables: str) -> None:
    """Uses an installed wheel; exits if a result is wrong."""
    with gzip.open(f"{GOLDEN}.says.json.gz") as says:
        wanted = json.load(says)["tables"][TABLE]
    flags = ["--sort-by", "self_cpu_time_total", "--row-limit", "-1"]
    table = output([*program, "table", f"{GOLDEN}.trace.json.gz", *flags], **variables)
    if table.rstrip() != wanted.rstrip():
        sys.exit(f"{shlex.join(program)}: the table differs from torch's:\n{table}")
    said = output([*python, "-c", PROGRAM], **variables)
    if "aten::mm" not in said:
        sys.exit(f"{shlex.join(python)}: the table of the program has no aten::mm:\n{said}")


def try_here(wheel: Path, given: list[str]) -> int:
    """Runs a wheel in every Python found, and returns the number of them."""
    tried = 0
    for version in VERSIONS:
        python = find_python(version, given)
        if python is None:
            print(f"{wheel.name}: NOT RUN in Python {version}: no such interpreter found")
            continue
        with tempfile.TemporaryDirectory() as folder:
            output([python, "-m", "venv", "--without-pip", folder])
            programs = Path(folder, "bin")
            install = [sys.executable, "-m", "pip", "--python", f"{programs}/python", "install"]
            output([*install, "--quiet", "--no-index", str(wheel)])
            check([f"{programs}/python"], [f"{programs}/mindprof"])
        print(f"{wheel.name}: runs in Python {version}")
        tried += 1
    return tried


def try_emulated(wheel: Path, processor: str, emulator: str) -> None:
    """Runs a wheel for another processor in the Python that a command starts."""
    python = shlex.split(emulator)
    with tempfile.TemporaryDirectory() as folder:
        into = ["--target", folder, "--platform", f"manylinux2014_{processor}", "--no-deps"]
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", *into]
        output([*install, "--python-version", "3.10", "--only-binary", ":all:", str(wheel)])
        check(python, [*python, "-m", "mindprof"], PYTHONPATH=folder)
    said = output([*python, "-c", "import platform; print(*platform.python_version_tuple()[:2])"])
    print(f"{wheel.name}: runs in Python {said.strip().replace(' ', '.')}, emulated")


def main() -> None:
    """Runs every wheel of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", action="append", default=[], help="an interpreter to prefer")
    parser.add_argument("--emulator", help="the command of a Python for another processor")
    arguments = parser.parse_args()
    wheels = sorted(arguments.folder.glob("*.whl"))
    if not wheels:
        sys.exit(f"no wheel in {arguments.folder}: run `make wheel`")
    tried = 0
    for wheel in wheels:
        processor = wheel.stem.rsplit("manylinux2014_", 1)[-1].split(".")[0]
        if processor == platform.machine():
            tried += try_here(wheel, arguments.python)
        elif arguments.emulator:
            try_emulated(wheel, processor, arguments.emulator)
            tried += 1
        else:
            print(f"{wheel.name}: NOT RUN, built for {processor}: name an emulator to run it")
    if not tried:
        sys.exit("no wheel could be run: install a Python, or name one with --python")


if __name__ == "__main__":
    main()
