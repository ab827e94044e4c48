"""Installs a wheel into empty environments, one for each Python that is found, and uses it there.

In each of them the program's table of a golden trace has to be torch's own, and a program of three
lines has to run. Pythons of the wanted versions are looked for among `--python`, on the PATH, and
where pyenv and uv keep theirs; those that are not found are named.

Wheels for another processor are run where `--emulator` tells a command that starts a Python of that
processor, and are named as not run otherwise. It is an error to run nothing at all.

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
    """Runs a command and returns what it prints."""
    environment = {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def candidates(version: str, given: list[str]) -> Iterator[str]:
    """Returns what may be a Python of a version, best first."""
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
    """Returns a Python of a version that can be run, and has the lock that the wheels need."""
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
    """Uses an installed wheel; ends everything where it does not do what it should."""
    with gzip.open(f"{GOLDEN}.says.json.gz") as says:
        wanted = json.load(says)["tables"][TABLE]
    flags = ["--sort-by", "self_cpu_time_total", "--row-limit", "-1"]
    table = output([*program, "table", f"{GOLDEN}.trace.json.gz", *flags], **variables)
    if table.rstrip() != wanted.rstrip():
        sys.exit(f"{shlex.join(program)}: the table is not torch's:\n{table}")
    said = output([*python, "-c", PROGRAM], **variables)
    if "aten::mm" not in said:
        sys.exit(f"{shlex.join(python)}: the program's table lacks its product:\n{said}")


def try_here(wheel: Path, given: list[str]) -> int:
    """Tries a wheel for this processor, and returns in how many Pythons."""
    tried = 0
    for version in VERSIONS:
        python = find_python(version, given)
        if python is None:
            print(f"{wheel.name}: NOT RUN in Python {version}, which was not found")
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
    """Tries a wheel for another processor in the Python that a command starts."""
    python = shlex.split(emulator)
    with tempfile.TemporaryDirectory() as folder:
        into = ["--target", folder, "--platform", f"manylinux2014_{processor}", "--no-deps"]
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", *into]
        output([*install, "--python-version", "3.10", "--only-binary", ":all:", str(wheel)])
        check(python, [*python, "-m", "mindprof"], PYTHONPATH=folder)
    said = output([*python, "-c", "import platform; print(*platform.python_version_tuple()[:2])"])
    print(f"{wheel.name}: runs in Python {said.strip().replace(' ', '.')}, emulated")


def main() -> None:
    """Tries every wheel of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", action="append", default=[], help="a Python to look at first")
    parser.add_argument("--emulator", help="starts a Python of another processor")
    arguments = parser.parse_args()
    wheels = sorted(arguments.folder.glob("*.whl"))
    if not wheels:
        sys.exit(f"there is no wheel in {arguments.folder}")
    tried = 0
    for wheel in wheels:
        processor = wheel.stem.rsplit("manylinux2014_", 1)[-1].split(".")[0]
        if processor == platform.machine():
            tried += try_here(wheel, arguments.python)
        elif arguments.emulator:
            try_emulated(wheel, processor, arguments.emulator)
            tried += 1
        else:
            print(f"{wheel.name}: NOT RUN, being for {processor}, and no emulator was named")
    if not tried:
        sys.exit("no wheel was run")


if __name__ == "__main__":
    main()
