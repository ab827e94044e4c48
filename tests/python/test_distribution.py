"""How the project is built and released: a pinned compiler, small wheels, honest benchmarks."""

from __future__ import annotations

import base64
import ctypes
import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import develop
import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = {path.name: path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")}
TOOLCHAIN = (ROOT / "rust-toolchain.toml").read_text()
INFO = "mindprof-0.1.0.dist-info"


def run_tool(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def commands(target: str) -> str:
    """Returns what make would run for a target, were nothing there yet."""
    dry = ["make", "--dry-run", "--always-make", "TORCH_PYTHON=python", target]
    return subprocess.run(dry, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def table_of(manifest: str, name: str) -> str:
    """Returns the lines of one table of a TOML file."""
    text = (ROOT / manifest).read_text()
    return text.split(f"[{name}]\n", 1)[1].split("\n[", 1)[0]


def test_an_installed_module_has_no_symbols() -> None:
    """Whoever installs it; a wheel's are put aside by a tool that has to be given them."""
    assert '\nstrip = "symbols"\n' in table_of("Cargo.toml", "profile.release")
    assert "strip" not in table_of("pyproject.toml", "tool.maturin")
    assert "CARGO_PROFILE_RELEASE_STRIP=none" in commands("wheel")


def test_wheels_are_optimised_across_crates_and_other_builds_are_not() -> None:
    assert '\nlto = "fat"\n' in table_of("Cargo.toml", "profile.release")
    assert "lto" not in table_of("Cargo.toml", "profile.dev")


@pytest.mark.parametrize("target", ["bench", "bench-torch", "bench-write", "soak"])
def test_figures_are_of_the_profile_of_wheels(target: str) -> None:
    builds = re.findall(r"maturin develop.*", commands(target))
    assert builds
    assert all("--release" in build for build in builds)


@pytest.mark.parametrize("target", ["demo", "test-python", "lint"])
def test_tests_and_the_demo_use_the_quick_build(target: str) -> None:
    builds = re.findall(r"(?:maturin develop|cargo build).*", commands(target))
    assert builds
    assert not any("--release" in build for build in builds)


def test_the_module_the_program_and_the_tests_share_one_build_of_the_workspace() -> None:
    """A command with `--package` resolves other features, and compiles the crates once more."""
    run = commands("test-rust") + commands("test-python")
    cargo = re.findall(r"^cargo (?:build|run|test|nextest).*", run, re.MULTILINE)
    assert len(cargo) == 3
    assert all("--workspace" in command for command in cargo)


def test_develop_installs_into_an_environment_from_this_folder(tmp_path: Path) -> None:
    site, programs, package, built = (tmp_path / name for name in ("s", "p", "package", "built"))
    for folder in (site, programs, package, built):
        folder.mkdir()
    (built / "lib_core.so").write_bytes(b"module")
    develop.install_module(built, package)
    assert [path.name for path in package.iterdir()] == ["_core.abi3.so"]
    (site / "mindprof-0.0.1.dist-info").mkdir()
    for _ in range(2):
        develop.install_packages(site, programs)
    assert (site / "mindprof.pth").read_text() == f"{ROOT / 'python'}\n"
    (info,) = site.glob("mindprof-*.dist-info")
    (distribution,) = importlib.metadata.distributions(name="mindprof", path=[str(site)])
    assert info.name == f"mindprof-{distribution.version}.dist-info"
    shown = subprocess.run([programs / "mindprof", "--help"], capture_output=True, text=True)
    assert "Usage:" in shown.stdout, shown.stderr


def test_the_demo_installs_no_tool_but_the_builder() -> None:
    installs = re.findall(r"pip install.*", commands("demo"))
    assert len(installs) == 1
    assert "grep ^maturin= tools/requirements.txt" in installs[0]


def test_wheels_are_built_for_both_processors_and_an_old_libc() -> None:
    said = commands("wheel")
    assert "for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu;" in said
    assert "--release" in said
    assert "--compatibility manylinux2014" in said


def test_the_compiler_is_pinned_to_a_release() -> None:
    """A channel such as `stable` would let a new lint break an unchanged tree."""
    channels = re.findall(r'^channel = "(.*)"$', TOOLCHAIN, re.MULTILINE)
    assert len(channels) == 1
    assert re.fullmatch(r"1\.\d+\.\d+", channels[0])
    assert f"RUSTUP_TOOLCHAIN={channels[0]} " in commands("wheel")
    oldest = re.search(r'^rust-version = "(1\.\d+)"$', (ROOT / "Cargo.toml").read_text(), re.M)
    assert oldest is not None


def test_hosted_workflows_run_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(WORKFLOWS.values())
    made = set(re.findall(r"\brun: make ([a-z-]+)", text))
    listed = re.findall(r"target: \[(.*)\]", text)
    made |= {word.strip() for words in listed for word in words.split(",")}
    assert {"ci", "wheel", "test-wheel", "fuzz"} <= made
    assert made <= targets


def test_wheels_are_tried_in_every_python_that_the_tool_looks_for() -> None:
    tool = (ROOT / "tools/try_wheel.py").read_text()
    versions = re.findall(r'"(3\.\d+)"', re.findall(r"VERSIONS = (.*)", tool)[0])
    text = WORKFLOWS["wheels.yml"]
    lists = re.findall(r"python-version: \|\n((?: +3\.\d+\n)+)", text)
    assert [found.split() for found in lists] == [versions, versions]
    assert f'requires-python = ">={versions[0]}"' in (ROOT / "pyproject.toml").read_text()


def test_a_release_publishes_the_wheels_that_were_tried() -> None:
    text = WORKFLOWS["release.yml"]
    assert "uses: ./.github/workflows/wheels.yml" in text
    assert "needs: wheels" in text
    assert "environment: pypi" in text


def test_wheels_and_modules_are_built_by_one_maturin() -> None:
    files = ("tools/requirements.txt", "tools/wheel-requirements.txt")
    found = [re.findall(r"^maturin==.*", (ROOT / file).read_text(), re.M) for file in files]
    assert len(found[0]) == 1
    assert found[0] == found[1]


def record_of(files: dict[str, bytes]) -> str:
    def digest(content: bytes) -> str:
        raw = hashlib.sha256(content).digest()
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    lines = [f"{name},sha256={digest(held)},{len(held)}" for name, held in files.items()]
    return "\n".join([*lines, f"{INFO}/RECORD,,"]) + "\n"


def make_wheel(folder: Path, filling: bytes = b"") -> Path:
    """Makes a wheel of a native module that has symbols, and something beside it."""
    source, module = folder / "module.c", folder / "module.so"
    source.write_text(
        "static int two(void) { return 2; }\nint four(void) { return two() + two(); }\n"
    )
    subprocess.run(["cc", "-g", "-O0", "-shared", "-fPIC", "-o", module, source], check=True)
    files = {"mindprof/__init__.py": filling, "mindprof/_core.abi3.so": module.read_bytes()}
    wheel = folder / "mindprof-0.1.0-cp310-abi3-manylinux_2_17_ours.manylinux2014_ours.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(f"{INFO}/RECORD", record_of(files))
    return wheel


def test_symbols_of_a_wheel_are_put_aside(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    done = run_tool("strip_wheel.py", wheel, tmp_path / "dist")
    assert (done.returncode, done.stderr) == (0, "")
    with zipfile.ZipFile(tmp_path / "dist" / wheel.name) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    record = files.pop(f"{INFO}/RECORD").decode()
    assert record == record_of(files)
    module = files["mindprof/_core.abi3.so"]
    debug = tmp_path / "dist/debug/manylinux_2_17_ours/_core.abi3.so.debug"
    assert b".debug_info" not in module
    assert b".debug_info" in debug.read_bytes()
    assert b"_core.abi3.so.debug" in module, "the module names the file with its symbols"
    (tmp_path / "stripped.so").write_bytes(module)
    assert ctypes.CDLL(str(tmp_path / "stripped.so")).four() == 4


def test_a_wheel_of_more_than_7_mb_is_an_error(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, filling=os.urandom(7_000_000))
    done = run_tool("strip_wheel.py", wheel, tmp_path / "dist")
    assert done.returncode == 1
    assert done.stderr.startswith("a wheel is larger than 7 MB: ")


def test_a_wheel_that_cannot_be_run_here_is_no_success(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    done = run_tool("try_wheel.py", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("no wheel could be run: ")
    assert f"{wheel.name}: NOT RUN, built for ours" in done.stdout
