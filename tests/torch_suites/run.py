"""Runs the tests of a torch checkout that use a profiler, plain and with the engine installed.

    python -m tests.torch_suites.run CHECKOUT [FILE...] --python PYTHON

`PYTHON` is an interpreter with torch and the packages that its tests need. Each file runs in a
process per side; if a test ends the process, the others run in a new one. The counts per file and
every difference are printed. Differences that `expected.txt` does not list, and entries of the list
that do not differ any more, make the exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.torch_suites.select_tests import files_with_profilers, selected_names

HERE = Path(__file__).resolve().parent
PACKAGES = HERE.parents[1] / "python"
EXPECTED = HERE / "expected.txt"
#: From the best to the worst; a test with several reports has the worst of them.
ORDER = ("skipped", "passed", "failed", "not collected", "crashed")


@dataclass
class Outcome:
    """The outcome of one test on one side, with the line that names the error."""

    kind: str = "skipped"
    error: str = ""

    def add(self, kind: str, error: str) -> None:
        if ORDER.index(kind) > ORDER.index(self.kind) or not self.error:
            self.kind, self.error = max(self.kind, kind, key=ORDER.index), error


Outcomes = dict[str, Outcome]


@dataclass
class Suite:
    """One file of tests with the outcomes of both sides."""

    file: str
    plain: Outcomes = field(default_factory=dict)
    ours: Outcomes = field(default_factory=dict)

    def tests(self) -> list[str]:
        return sorted(self.plain.keys() | self.ours.keys())

    def kind(self, test: str) -> str:
        """Returns the column of the table that a test counts in."""
        plain = self.plain.get(test, Outcome("not collected")).kind
        ours = self.ours.get(test, Outcome("not collected")).kind
        if plain == "passed":
            return "same" if ours == "passed" else "differs"
        if plain == "skipped":
            return "skipped" if ours in ("passed", "skipped") else "differs"
        return "only here" if ours == "passed" else "fails plain"

    def differences(self) -> list[str]:
        return [test for test in self.tests() if self.kind(test) == "differs"]


@dataclass(frozen=True)
class Place:
    """Where the tests run, and how long each of them may take."""

    tests: Path
    python: str
    seconds: int
    folder: Path

    def environment(self, *, engine: bool) -> dict[str, str]:
        paths = [HERE, PACKAGES]
        if engine:
            paths.insert(0, HERE / "engine")
        return {
            **os.environ,
            "CUDA_VISIBLE_DEVICES": "",
            # Tests that build extensions call the programs of the interpreter's environment.
            "PATH": os.pathsep.join([str(Path(self.python).parent), os.environ.get("PATH", "")]),
            "PYTHONPATH": os.pathsep.join(map(str, [*paths, self.tests])),
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "inductor"),
        }


def run_side(place: Place, file: str, only: Iterable[str] | None, *, engine: bool) -> Outcomes:
    """Runs the selected tests of a file on one side, in as many processes as it takes."""
    found: Outcomes = {}
    names = {} if only else selected_names(place.tests, file)
    if not only and not any(names.values()):
        return found
    for attempt in range(1000):
        stem = f"{file.replace('/', '-')}-{'ours' if engine else 'plain'}-{attempt}"
        outcomes = Path(tempfile.mkdtemp(prefix=stem, dir=place.folder)) / "outcomes"
        plan = {
            "file": file,
            "outcomes": str(outcomes),
            "seconds": place.seconds,
            "names": names,
            "only": list(only) if only else None,
            "done": list(found),
        }
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "outcome_plugin",
            "--noconftest",
            "--show-capture=no",
        ]
        command = [place.python, "-m", "pytest", *options, "-c", os.devnull, "--tb=native"]
        with outcomes.with_name("output").open("w") as output:
            done = subprocess.run(
                [*command, "--rootdir", str(place.tests), str(place.tests / file)],
                cwd=outcomes.parent,
                env={
                    **place.environment(engine=engine),
                    "TORCH_SUITES_PLAN": json.dumps(plan),
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        running = read_outcomes(outcomes, found)
        if running is None:
            break
        found.setdefault(running, Outcome()).add("crashed", f"exit status {done.returncode}")
    return found


def run_plain(place: Place, file: str) -> Outcomes:
    """Runs the tests of a file without the engine, or reads what an earlier run kept of that."""
    kept = place.folder / f"{file.replace('/', '-')}-plain.json"
    if not kept.exists():
        outcomes = run_side(place, file, None, engine=False)
        kept.write_text(json.dumps({test: asdict(one) for test, one in outcomes.items()}))
    return {test: Outcome(**one) for test, one in json.loads(kept.read_text()).items()}


def read_outcomes(path: Path, found: Outcomes) -> str | None:
    """Adds the outcomes of one process; returns the test that it did not finish."""
    running = None
    for line in path.read_text().splitlines() if path.exists() else ():
        entry = json.loads(line)
        test, outcome = entry["test"], entry["outcome"]
        if outcome == "began":
            running = test
            continue
        if outcome == "ended":
            running = None
            continue
        found.setdefault(test, Outcome()).add(outcome, entry["error"])
    return running


def run_suite(place: Place, file: str) -> Suite:
    """Runs a file on both sides, and the tests that differ once more, without the others."""
    suite = Suite(file)
    suite.plain = run_plain(place, file)
    suite.ours = run_side(place, file, None, engine=True)
    if suite.differences():
        suite.ours |= run_side(place, file, suite.differences(), engine=True)
    print(f"{file}: {len(suite.tests())} tests, {len(suite.differences())} differ", file=sys.stderr)
    return suite


def read_expected() -> dict[str, str]:
    """Reads the documented differences: a test per line, then the reason."""
    lines = EXPECTED.read_text().splitlines()
    entries = (line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {line[0]: line[1] for line in entries}


COLUMNS = ("tests", "same", "differs", "only here", "fails plain", "skipped")


def print_table(suites: Sequence[Suite]) -> None:
    """Prints the counts of each file and their sums."""
    rows = []
    for suite in suites:
        kinds = [suite.kind(test) for test in suite.tests()]
        rows.append((suite.file, [len(kinds), *(kinds.count(one) for one in COLUMNS[1:])]))
    rows.append(("all", [sum(numbers) for numbers in zip(*(row for _, row in rows), strict=True)]))
    width = max(len(name) for name, _ in rows)
    print(f"{'file':{width}}", *(f"{name:>11}" for name in COLUMNS))
    for name, numbers in rows:
        print(f"{name:{width}}", *(f"{number:11}" for number in numbers))


def print_differences(suites: Sequence[Suite], expected: dict[str, str]) -> bool:
    """Prints every difference; returns whether they are the expected ones."""
    right = True
    ran = {test for suite in suites for test in suite.tests()}
    differing = {test: suite for suite in suites for test in suite.differences()}
    for test, suite in differing.items():
        ours = suite.ours.get(test, Outcome("not collected"))
        reason = f"expected: {expected[test]}" if test in expected else "NOT EXPECTED"
        print(f"\n{test}\n  {ours.kind}: {ours.error}\n  {reason}")
        right = right and test in expected
    for test in sorted(ran & expected.keys() - differing.keys()):
        print(f"\n{test}\n  does not differ: remove it from {EXPECTED.name}")
        right = False
    return right


def main() -> int:
    """Runs the suites and returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="folder of a checkout of torch")
    parser.add_argument("files", nargs="*", help="test files below its folder test (default: all)")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has torch")
    parser.add_argument("--seconds", type=int, default=300, help="time limit of each test")
    parser.add_argument("--jobs", type=int, default=1, help="files that run at the same time")
    parser.add_argument(
        "--keep",
        type=Path,
        help="folder to keep the output of every process in; plain outcomes that it has are reused",
    )
    options = parser.parse_args()
    tests = options.checkout.resolve() / "test"
    if not tests.is_dir():
        parser.error(f"no tests in {options.checkout}: name a checkout of torch")
    files = options.files or files_with_profilers(tests)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        place = Place(tests, options.python, options.seconds, folder)
        with ThreadPoolExecutor(options.jobs) as pool:
            suites = list(pool.map(lambda file: run_suite(place, file), files))
    print_table(suites)
    return 0 if print_differences(suites, read_expected()) else 1


if __name__ == "__main__":
    sys.exit(main())
