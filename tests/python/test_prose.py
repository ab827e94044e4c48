"""The prose linter: each rule has sentences that it rejects and sentences that it accepts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import prose
import pytest

ROOT = Path(__file__).parents[2]


BAD = {
    "sentence-start": [
        "What a profile knows.",
        "Of each thread, the newest.",
        "Reads it. Whose hook is there is read first.",
        "Where there are devices, they are read.",
    ],
    "says-start": ["Says how many there are.", "Tells which one it was."],
    "says-what": ["It says what is in traces.", "The part that tells whom to ask."],
    "none-if": ["Returns the name, none if it has no name.", "The line, none where it is unknown."],
    "nothing-where": ["It is nothing where there is no file."],
    "is-none": ["Fails if the file is none."],
    "callers-word": ["Sound by the caller's word."],
    "for-who": [
        "Kept for who writes it again.",
        "Kept for whoever reads it.",
        "The one whom it asks.",
    ],
    "said-to-be": ["A tensor that was said to be a parameter."],
    "of-which": ["Blocks of which it is known when they were freed."],
    "leave-away": ["Use it alone: leave --fail-over away."],
    "asked-for": ["It returns what is asked for."],
    "gives-back": ["Gives back the first row.", "The block is given back."],
    "for-eyes": ["A table for eyes."],
    "to-be-had": ["No such version is to be had."],
    "told-of": ["The recorder is told of it."],
    "own-time": ["An event with a time of its own."],
    "what-is-there": ["It has the permissions of what is there."],
    "change-of": ["It profiles a program without a change of it."],
    "is-heard": ["The first one is heard."],
    "as-lives": ["It lasts as long as the process lives."],
    "by-theirs": ["The commands say more by theirs."],
    "host": ["It runs on the host.", "Threads of the host, in order.", "Two hosts are known."],
}
GOOD = [
    "Returns the events of a profile, or `None` if the file is not a trace.",
    "Returns None if there is no name.",
    "What is a profile? It is a list of events.",
    "Of course it is. That is, if the lock is held.",
    "The tools run on github-hosted machines, and `host` is a module there.",
    "The framework opens `mindprof.hosts` by mindprof.hosts or `CONTRACT_HOST`, CONTRACT_HOST.",
    "Copies from host to device, from device to host and from pinned host memory.",
    "The host compiler and the hostname of localhost.",
    "There is none, so the parser returns the rest.",
    "See [the list](https://example.org/whom/host).",
    "Frees the block and returns its size.",
]


def rules_of(path: str, text: str) -> list[str]:
    found = [match for each in prose.passages(Path(path), text) for match in each.matches()]
    return [rule.id for _, rule, _ in found]


def lines_of(path: str, text: str) -> list[int]:
    found = [match for each in prose.passages(Path(path), text) for match in each.matches()]
    return sorted(number for number, _, _ in found)


def test_every_rule_has_examples() -> None:
    assert [rule.id for rule in prose.RULES] == list(BAD)


@pytest.mark.parametrize(
    ("rule", "text"), [(rule, text) for rule, texts in BAD.items() for text in texts]
)
def test_bad_prose_is_rejected_in_every_language(rule: str, text: str) -> None:
    assert rule in rules_of("a.md", text)
    assert rule in rules_of("a.rs", f"/// {text}\nfn f() {{}}\n")
    assert rule in rules_of("a.py", f'def f():\n    """{text}"""\n')
    assert rule in rules_of("Makefile", f"target: ## {text}\n")


@pytest.mark.parametrize("text", GOOD)
def test_good_prose_is_accepted(text: str) -> None:
    assert rules_of("a.md", text) == []
    assert rules_of("a.rs", f"//! {text}\n") == []


def test_a_phrase_may_span_lines_and_is_reported_where_it_begins() -> None:
    assert lines_of("a.rs", "fn f() {}\n/// Returns the name, none\n/// if there is none.\n") == [2]


def test_code_is_not_prose() -> None:
    assert rules_of("a.rs", 'let host = "says what"; // a counter\n') == []
    assert rules_of("a.rs", "/// Reads:\n/// ```\n/// host whom\n/// ```\nfn f() {}\n") == []
    assert rules_of("a.py", "host = 1  # a counter\n") == []
    assert rules_of("a.md", "# What is new\n\n```text\nhost\n```\n") == []
    assert rules_of("a.md", "```text\nhost\n```\n\nThe host.\n") == ["host"]


def test_messages_are_prose() -> None:
    assert rules_of("a.rs", '#[error("no host: leave it away")]\n') == ["leave-away", "host"]
    assert rules_of("a.py", 'raise ValueError(f"no {name} is to be had")\n') == ["to-be-had"]
    assert rules_of("a.py", 'add("--x", help="what is asked for")\n') == ["asked-for"]


def test_plain_comments_may_start_with_any_word() -> None:
    assert rules_of("a.rs", "// What follows is sorted.\n") == []
    assert rules_of("a.py", "# What follows is sorted.\n") == []


def test_quoted_text_of_others_is_exempt_where_it_says_so() -> None:
    assert rules_of("a.rs", "/// torch: none if absent (prose: allow)\n") == []
    assert rules_of("a.md", "none if absent <!-- prose: allow -->\n") == []


def test_the_command_names_the_place_and_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("Fine.\n\nThe host records.\n")
    command = [sys.executable, str(ROOT / "tools/prose.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{path}:3: [host] \"host\": write 'CPU'")
    path.write_text("The CPU records.\n")
    assert subprocess.run(command).returncode == 0
