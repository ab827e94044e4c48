"""Installs the programs that read what is written here, each by itself: a missing one is named.

`python tools/clients.py FOLDER` runs in the environment that it fills, which is FOLDER. What is
pinned in clients-requirements.txt and cannot be had (no such version, nobody answers, no node) is
named on stderr and in FOLDER/unavailable, which tests/clients reads; any other failure is one.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("clients-requirements.txt")
# How pip and npm say that there is nothing to be had, rather than that it is broken.
NOT_TO_BE_HAD = (
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
    """Installs everything, and says what could not be had."""
    folder = Path(sys.argv[1])
    unavailable = []
    for line in REQUIREMENTS.read_text().splitlines():
        if line and not line.startswith("#"):
            name = line.partition("==")[0]
            reason = install(line, folder)
            if reason:
                unavailable.append(f"{name.removeprefix('npm:')}: {reason}")
    if shutil.which("node") is None:
        unavailable.append("node: is not on this machine")
    (folder / "unavailable").write_text("".join(f"{line}\n" for line in unavailable))
    for line in unavailable:
        print(f"NOT TO BE HAD: {line}", file=sys.stderr)
    return 0


def install(requirement: str, folder: Path) -> str | None:
    """Installs one requirement; returns why it cannot be had, or None.

    Raises:
        SystemExit: If it is there and does not install.
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
        return f"{command[0]} is not on this machine"
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode == 0:
        return None
    said = run.stdout + run.stderr
    for sign in NOT_TO_BE_HAD:
        if sign in said:
            return sign
    raise SystemExit(f"{requirement} does not install:\n{said}")


if __name__ == "__main__":
    sys.exit(main())
