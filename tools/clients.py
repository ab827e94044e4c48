"""Installs the programs that tests/clients has read our files, each one separately.

`python tools/clients.py FOLDER` runs in the virtual environment FOLDER and installs the pinned
programs of clients-requirements.txt into it. A program that is not available (no such version, no
network, no node) is reported on stderr and in FOLDER/unavailable, which tests/clients reads to skip
its tests; any other failure of an installation is an error.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("clients-requirements.txt")
# Messages of pip and npm for a package that is unavailable, rather than broken.
UNAVAILABLE = (
    "No matching distribution found",
    "Max retries exceeded",
    "Temporary failure in name resolution",
    "E404",
    "ETARGET",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ETIMEDOUT",
)


def main() -> int:
    """Installs everything, and reports the programs that are not available."""
    folder = Path(sys.argv[1])
    unavailable = []
    for line in REQUIREMENTS.read_text().splitlines():
        if line and not line.startswith("#"):
            name = line.partition("==")[0]
            reason = install(line, folder)
            if reason:
                unavailable.append(f"{name.removeprefix('npm:')}: {reason}")
    if shutil.which("node") is None:
        unavailable.append("node: not installed")
    (folder / "unavailable").write_text("".join(f"{line}\n" for line in unavailable))
    for line in unavailable:
        print(f"NOT AVAILABLE: {line}", file=sys.stderr)
    return 0


def install(requirement: str, folder: Path) -> str | None:
    """Installs one requirement. Returns the reason if it is not available, or None.

    Raises:
        SystemExit: If the installation fails for another reason.
    """
    if requirement.startswith("npm:"):
        package = requirement.removeprefix("npm:").replace("==", "@")
        command = [
            "npm",
            "install",
            "--loglevel=error",
            "--no-audit",
            "--prefix",
            str(folder),
            package,
        ]
    else:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command.append(requirement)
    if shutil.which(command[0]) is None:
        return f"{command[0]} is not installed"
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode == 0:
        return None
    said = run.stdout + run.stderr
    for sign in UNAVAILABLE:
        if sign in said:
            return sign
    raise SystemExit(f"{requirement} cannot be installed:\n{said}")


if __name__ == "__main__":
    sys.exit(main())
