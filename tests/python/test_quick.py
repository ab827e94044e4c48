"""`make quick`: which checks belong to which changed files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import quick


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n',
        "crates/model/Cargo.toml": '[package]\nname = "mindprof-model"\n',
        "crates/model/src/tree/leaf.rs": "",
        "fuzz/Cargo.toml": '[package]\nname = "mindprof-fuzz"\n\n[workspace]\n',
        "fuzz/targets/bytes.rs": "",
        "python/mindprof/_run/summary.py": "",
        "python/mindprof/_load.py": "",
        "tools/strip_wheel.py": "",
        "docs/guide.md": "",
        "tests/python/test_run.py": "",
        "tests/python/test_run_steps.py": "",
        "tests/python/test_runner.py": "",
        "tests/python/test_other.py": "from mindprof._run import summary\n",
        "tests/python/test_load.py": "",
        "tests/python/test_distribution.py": 'run_tool("strip_wheel.py")\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def chosen(name: str, repository: Path) -> list[str]:
    found = quick.python_tests([name], repository)
    return [Path(test).stem.removeprefix("test_") for test in found]


def test_a_file_belongs_to_the_nearest_package(repository: Path) -> None:
    assert quick.crate_of("crates/model/src/tree/leaf.rs", repository) == "mindprof-model"
    assert quick.crate_of("crates/model/Cargo.toml", repository) == "mindprof-model"
    assert quick.crate_of("Cargo.toml", repository) is None
    assert quick.crate_of("docs/guide.md", repository) is None
    assert quick.crate_of("fuzz/targets/bytes.rs", repository) is None


def test_a_deleted_file_still_names_its_crate(repository: Path) -> None:
    found = quick.commands(["crates/model/src/gone.rs"], "cargo nextest", repository)
    assert found == [
        ["cargo", "fmt", "--check", "--package", "mindprof-model"],
        ["cargo", "nextest", "run", "--no-tests=pass", "--package", "mindprof-model"],
    ]


def test_modules_are_tested_by_name_by_family_and_by_import(repository: Path) -> None:
    assert chosen("python/mindprof/_run/summary.py", repository) == ["other", "run", "run_steps"]
    assert chosen("python/mindprof/_load.py", repository) == ["load"]


def test_a_changed_test_runs_itself(repository: Path) -> None:
    assert chosen("tests/python/test_runner.py", repository) == ["runner"]


def test_other_files_run_the_tests_that_mention_them(repository: Path) -> None:
    assert chosen("tools/strip_wheel.py", repository) == ["distribution"]
    assert chosen("tools/run/parts/other.py", repository) == ["run"]
    assert chosen("docs/guide.md", repository) == []


def test_python_is_formatted_and_linted_before_tests_run(repository: Path) -> None:
    found = quick.commands(["python/mindprof/_load.py"], "cargo nextest", repository)
    assert [command[1:3] for command in found] == [
        ["-m", "ruff"],
        ["-m", "ruff"],
        ["tools/prose.py", "python/mindprof/_load.py"],
        ["-m", "pytest"],
    ]
    assert all(command[0] == sys.executable for command in found)


def test_nothing_runs_for_files_that_no_check_is_about(repository: Path) -> None:
    (repository / "LICENSE").write_text("")
    assert quick.commands(["LICENSE"], "cargo nextest", repository) == []
