"""Runs the checks that belong to the files changed since a commit: `make quick`.

Changed are the files that differ from the merge base with `origin/main`, or from HEAD if there is
no such branch, and untracked files. For Rust these are the format and the tests of the changed
crates; for Python, format, lints and the tests that match the changed files by name, import them
or mention them; for both, the prose of the changed files. `make ci` remains the full check: a
change can break a crate that depends on the changed one.

    python tools/quick.py --dry-run --since HEAD~1
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from prose import is_checked

ROOT = Path(__file__).resolve().parents[1]
#: Changes to these can affect every crate.
SHARED = {"Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "clippy.toml"}
PYTHON_TESTS = "tests/python"


def git(*arguments: str) -> list[str]:
    """Returns the lines that a git command prints, or an empty list on failure."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_files(since: str | None) -> list[str]:
    """Returns the paths of changed and untracked files, relative to the repository."""
    base = [since] if since else git("merge-base", "origin/main", "HEAD")
    changed = git("diff", "--name-only", "--no-renames", (base or ["HEAD"])[0])
    return sorted({*changed, *git("ls-files", "--others", "--exclude-standard")})


def crate_of(name: str, root: Path = ROOT) -> str | None:
    """Returns the package that a file belongs to; `None` outside crates of the workspace."""
    for folder in Path(name).parents:
        manifest = root / folder / "Cargo.toml"
        if folder == Path() or not manifest.exists():
            continue
        text = manifest.read_text()
        found = re.search(r'^\[package\]\nname = "(.+)"$', text, re.MULTILINE)
        is_apart = re.search(r"^\[workspace\]$", text, re.MULTILINE)
        return found[1] if found and not is_apart else None
    return None


def python_tests(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Returns the test files that changed, match a changed file by name, or refer to it."""
    sources = {
        test: test.read_text("utf-8") for test in sorted((root / PYTHON_TESTS).glob("test_*.py"))
    }
    found: set[Path] = set()
    for name in names:
        path = Path(name)
        if path.parts[0] in ("crates", "runtime") or path.suffix == ".rs":
            continue
        if root / path in sources:
            found.add(root / path)
        elif path.parts[0] == "python" and path.suffix == ".py":
            found |= {test for test, text in sources.items() if tests_module(test, text, path)}
        elif path.parts[0] not in ("benchmarks", "tests"):
            # By the name of the tool, to which `tools/soak/rounds.py` belongs, or by the file's.
            stem = f"test_{Path(path.parts[:2][-1]).stem}"
            mention = re.compile(rf"""["'/]{re.escape(path.name)}["']""")
            found |= {
                test
                for test, text in sources.items()
                if test.stem == stem or (not path.stem.startswith("__") and mention.search(text))
            }
    return [str(test.relative_to(root)) for test in sorted(found)]


def tests_module(test: Path, text: str, path: Path) -> bool:
    """Returns whether a test is about a module of the packages, by its name or its imports."""
    parts = [*path.parts[1:-1], path.stem]
    words = {part.strip("_") for part in parts[1:]} - {"init", ""}
    if any(re.fullmatch(rf"test_{word}(_\w+)?", test.stem) for word in words):
        return True
    folder, stem = re.escape(".".join(parts[:-1])), re.escape(parts[-1])
    if parts[-1] == "__init__" or len(parts) < 2:
        return False
    direct = rf"\b{folder}\.{stem}\b"
    listed = rf"^from {folder} import [^\n]*\b{stem}\b"
    return re.search(f"{direct}|{listed}", text, re.MULTILINE) is not None


def commands(names: list[str], nextest: str, root: Path = ROOT) -> list[list[str]]:
    """Returns the commands that check some files, quick ones first."""
    present = [name for name in names if (root / name).exists()]
    crates = sorted({crate for name in names if (crate := crate_of(name, root))})
    python = [name for name in present if name.endswith((".py", ".pyi"))]
    prose = [name for name in present if is_checked(name)]
    packages = [word for crate in crates for word in ("--package", crate)]
    tests = python_tests(present, root)
    found: list[list[str]] = []
    if crates:
        found.append(["cargo", "fmt", "--check", *packages])
    if python:
        found.append([sys.executable, "-m", "ruff", "format", "--check", "--quiet", *python])
        found.append([sys.executable, "-m", "ruff", "check", "--quiet", *python])
    if prose:
        found.append([sys.executable, "tools/prose.py", *prose])
    # A command for each crate: cargo resolves features anew, and so rebuilds dependencies, for each
    # set of packages.
    run = [*shlex.split(nextest), "run", "--no-tests=pass", "--package"]
    found.extend([*run, crate] for crate in crates)
    if tests:
        found.append([sys.executable, "-m", "pytest", "-q", *tests])
    return found


def stale_module(names: list[str]) -> str | None:
    """Returns a hint if Rust changed after the native module was built."""
    built = sorted((ROOT / "python/mindprof").glob("_core*.so"))
    if not built:
        return "the native module is not built: run `make build` before Python tests"
    time = built[0].stat().st_mtime
    sources = [ROOT / name for name in names if name.endswith(".rs") and crate_of(name)]
    if any(source.exists() and source.stat().st_mtime > time for source in sources):
        return "the native module is older than the changed Rust: Python tests need `make build`"
    return None


def main() -> int:
    """Runs every command, and returns 1 if one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--since", help="the commit to compare with; default: origin/main")
    parser.add_argument("--nextest", default="cargo nextest", help="the command of nextest")
    parser.add_argument("--dry-run", action="store_true", help="print the commands only")
    arguments = parser.parse_args()
    names = changed_files(arguments.since)
    if not names:
        print("no file has changed")
        return 0
    # The native module and the packages as they are here, whatever the environment has installed.
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    failed = []
    for command in commands(names, arguments.nextest):
        shown = textwrap.shorten(shlex.join(command), 200, placeholder=" …")
        print(f"$ {shlex.join(command) if arguments.dry_run else shown}", flush=True)
        if arguments.dry_run:
            continue
        if subprocess.run(command, cwd=ROOT, env=environment).returncode:
            failed.append(shown)
    if SHARED & set(names):
        print(
            f"hint: {', '.join(sorted(SHARED & set(names)))} can affect every crate: run `make ci`"
        )
    if hint := stale_module(names):
        print(f"hint: {hint}")
    for shown in failed:
        print(f"FAILED: {shown}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
