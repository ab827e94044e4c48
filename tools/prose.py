"""Finds phrases that the style guide rules out, in comments, documentation and messages.

Reads the files named on the command line, or every tracked source and document if there are none.
The prose of a file is its comments and doc comments, its docstrings, help texts and error
messages, or, for Markdown, its text; code spans, code blocks and URLs are skipped. Each match is
printed as `path:line: [rule] "text": advice`, and the exit status is 1 if there are any.

A line that quotes foreign text, such as a message of torch, is exempt if it contains
`prose: allow`. Nothing else is a reason for an exemption.

    python tools/prose.py crates/model docs/guide.md
    python tools/prose.py --count
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ESCAPE = "prose: allow"
SUFFIXES = {".rs", ".py", ".pyi", ".md", ".toml", ".yml"}
#: Histories quote what was said at the time; tests are full of deliberate oddities.
SKIPPED = re.compile(r"(^|/)tests?(/|\.rs$)|^CHANGELOG\.md$|^docs/releases/|(^|/)goldens/")


@dataclass(frozen=True)
class Rule:
    """A pattern that prose must not contain, and the advice printed with a match."""

    id: str
    pattern: re.Pattern[str]
    advice: str
    docs_only: bool = False
    """Whether the rule leaves plain comments and messages alone."""


def rule(name: str, pattern: str, advice: str, *, docs_only: bool = False) -> Rule:
    """Compiles a rule. Patterns are case-sensitive unless they start with `(?i)`."""
    return Rule(name, re.compile(pattern), advice, docs_only)


#: The start of a passage, or the end of the sentence before.
START = r"(?:^|(?<=[.!?]\s))"
#: The rest of a sentence that is no question.
REST = r"(?=[^?]*?(?:[.!:;](?:\s|$)|$))"

RULES = (
    rule(
        "sentence-start",
        rf"{START}(?:What|Of(?! course)|Who|Whose|Whom|Whoever|That(?! is,)|Where)"
        rf"(?=\s){REST}(?: \S+){{0,3}}",
        "start with the subject and its verb; name the thing instead of a relative clause",
        docs_only=True,
    ),
    rule(
        "says-start",
        rf"{START}(?:Says|Tells)(?: \S+){{1,3}}",
        "write Returns, Describes, Reports or Prints",
    ),
    rule(
        "says-what",
        r"(?i)\b(?:say|says|said|tell|tells|told) (?:what|whom|who)\b",
        "name the thing: 'describes the …', 'reports the …', 'returns the …'",
    ),
    rule("none-if", r"\bnone (?:where|if|when)\b|\bNone where\b", "write '`None` if …'"),
    rule("nothing-where", r"(?i)\bnothing where\b", "write 'nothing if …' or '`None` if …'"),
    rule(
        "is-none",
        r"(?<![Tt]here )\bis none\b(?! of\b)",
        "write 'is `None`', 'is not a …' or 'is empty'",
    ),
    rule(
        "callers-word",
        r"(?i)\bby (?:the|a|its|their) [\w']+ word\b|\bby its word\b",
        "name the property that makes it sound and who keeps it",
    ),
    rule("for-who", r"(?i)\bfor who\b|\bwhoever\b|\bwhom\b", "name the reader, caller or thread"),
    rule("said-to-be", r"(?i)\bsaid to be\b", "write 'marked as', 'declared' or 'reported as'"),
    rule(
        "of-which",
        r"(?i)\bof which (?:it|nothing|the (?!first|last)|they|this|we)\b",
        "make it a sentence of its own, or write 'whose'",
    ),
    rule(
        "leave-away",
        r"(?i)\b(?:leave|leaves|left) (?:\S+ ){0,3}away\b",
        "write 'omit' or 'run without'",
    ),
    rule("asked-for", r"(?i)\bwhat (?:is|are|was|were) asked\b", "write 'the requested …'"),
    rule(
        "gives-back",
        r"(?i)\b(?:gives?|gave|given|giving) back\b",
        "write 'returns' for a value, 'frees' or 'releases' for a resource",
    ),
    rule("for-eyes", r"(?i)\bfor (?:the |the same |people's )?eyes\b", "write 'for people'"),
    rule("to-be-had", r"(?i)\bbe had\b", "write 'is available' or 'cannot be obtained'"),
    rule(
        "told-of", r"(?i)\b(?:tells?|told) of\b", "write 'reports', 'describes' or 'is notified of'"
    ),
    rule("own-time", r"(?i)\btimes? of (?:its|their) own\b", "write 'self time'"),
    rule("what-is-there", r"(?i)\bwhat (?:is there|there is)\b", "write 'the existing …'"),
    rule("change-of", r"(?i)\bwithout a change of\b", "write 'without changing …' or 'unmodified'"),
    rule("is-heard", r"(?i)\bis heard\b", "write 'takes effect'; say that later calls are ignored"),
    rule(
        "as-lives", r"(?i)\bas long as the process lives\b", "write 'for the life of the process'"
    ),
    rule("by-theirs", r"(?i)\bby theirs\b", "repeat the noun"),
    rule(
        "host",
        r"(?i)(?<![\w./:-])(?<!device to )(?<!pinned )hosts?\b(?!\.\w|::|[/(-])"
        r"(?! (?:compiler|to device)\b)",
        "write 'CPU', 'framework', 'process' or 'embedded runtime'",
    ),
)


@dataclass(frozen=True)
class Passage:
    """Lines of prose that belong together, so that a match may span a line break."""

    lines: tuple[tuple[int, str], ...]
    """The number and the text of each line."""
    is_doc: bool
    """Whether it is documentation: a doc comment, a docstring, a help text or Markdown."""

    def matches(self) -> Iterator[tuple[int, Rule, str]]:
        """Yields the line, the rule and the text of every match."""
        starts, texts, offset = [], [], 0
        for number, line in self.lines:
            text = line.strip()
            starts.append((offset, number, ESCAPE in line))
            texts.append(text)
            offset += len(text) + 1
        raw = " ".join(texts)
        text = without_code(raw)
        for each in RULES:
            if each.docs_only and not self.is_doc:
                continue
            for match in each.pattern.finditer(text):
                _, number, is_exempt = max(start for start in starts if start[0] <= match.start())
                if not is_exempt:
                    yield number, each, raw[match.start() : match.end()].strip()


def without_code(text: str) -> str:
    """Blanks code spans, link targets and URLs, keeping the offsets of everything else."""
    code = r"``.+?``|`[^`]*`|\]\([^)]*\)|\bhttps?://\S+|<!--.*?-->|\"[^\" ]*\""
    return re.sub(code, lambda found: "`" * len(found.group()), text)


def passages(path: Path, text: str) -> Iterator[Passage]:
    """Yields the prose of a file by the language that its name implies."""
    if path.suffix == ".rs":
        yield from rust_passages(text)
    elif path.suffix in (".py", ".pyi"):
        yield from python_passages(text)
    elif path.suffix == ".md":
        yield from markdown_passages(enumerate(text.splitlines(), 1))
    else:
        yield from hash_passages(text)


def rust_passages(text: str) -> Iterator[Passage]:
    """Yields comments, doc comments as Markdown, and the messages of error attributes."""
    comment = re.compile(r"^\s*(//[/!]?)(?!/)(.*)$")
    message = re.compile(r'(?:#\[error\(|\bhelp = |\babout = )"((?:[^"\\]|\\.)*)"')
    block: list[tuple[int, str]] = []
    marker = ""
    for number, line in enumerate([*text.splitlines(), ""], 1):
        found = comment.match(line)
        if block and (found is None or found[1] != marker):
            yield from comment_passages(block, is_doc=marker != "//")
            block = []
        if found:
            marker = found[1]
            block.append((number, found[2]))
        else:
            for each in message.finditer(line):
                yield Passage(((number, each[1]),), is_doc=False)


def comment_passages(block: list[tuple[int, str]], *, is_doc: bool) -> Iterator[Passage]:
    """Yields the passages of consecutive comment lines."""
    for each in markdown_passages(block):
        yield Passage(each.lines, is_doc)


def python_passages(text: str) -> Iterator[Passage]:
    """Yields comments, docstrings, the `help` of arguments, and the messages of exceptions."""
    block: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        number, comment = token.start[0], token.string.lstrip("#:")
        if block and block[-1][0] != number - 1:
            yield from comment_passages(block, is_doc=False)
            block = []
        block.append((number, comment))
    if block:
        yield from comment_passages(block, is_doc=False)
    for node in ast.walk(ast.parse(text)):
        match node:
            # Docstrings, and the strings below attributes that document them.
            case ast.Expr(value=ast.Constant(value=str() as content, lineno=number)):
                numbered = enumerate(content.splitlines(), number)
                yield from markdown_passages(numbered)
            case ast.keyword(arg="help" | "description" | "epilog", value=value):
                yield from string_passages(value, is_doc=True)
            case ast.Raise(exc=ast.Call(args=arguments)):
                for argument in arguments:
                    yield from string_passages(argument, is_doc=False)


def string_passages(value: ast.expr, *, is_doc: bool) -> Iterator[Passage]:
    """Yields the constant text of an expression."""
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Passage(((node.lineno, " ".join(node.value.split())),), is_doc)


def markdown_passages(lines: Iterable[tuple[int, str]]) -> Iterator[Passage]:
    """Yields paragraphs, list items and table cells; headings, code and pictures are skipped."""
    block: list[tuple[int, str]] = []
    fence = ""
    for number, line in lines:
        text = line.strip()
        if mark := re.match(r"(```+|~~~+)", text):
            if not fence:
                fence = mark[1]
            elif text.startswith(fence):
                fence = ""
            text = ""
        starts_item = re.match(r"(?:[-*+]|\d+\.)\s", text) is not None
        is_skipped = bool(fence) or text.startswith(("#", ">>>")) or re.search(r"[|=─-]{4}", text)
        if block and (not text or starts_item or is_skipped or text.startswith("|")):
            yield Passage(tuple(block), is_doc=True)
            block = []
        if not text or is_skipped:
            continue
        if text.startswith("|"):
            for cell in text.strip("|").split("|"):
                yield Passage(((number, cell),), is_doc=True)
            continue
        block.append((number, re.sub(r"^(?:[-*+]|\d+\.)\s+", "", text)))
    if block:
        yield Passage(tuple(block), is_doc=True)


def hash_passages(text: str) -> Iterator[Passage]:
    """Yields the comments of a Makefile, TOML or YAML file, and the help texts of targets."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        found = re.match(r"^\s*#(?!#)\s?(.*)$", line)
        if block and found is None:
            yield from comment_passages(block, is_doc=False)
            block = []
        if found:
            block.append((number, found[1]))
        elif " ## " in line:
            yield Passage(((number, line.split(" ## ", 1)[1]),), is_doc=True)


def tracked_files() -> list[Path]:
    """Returns every tracked file that has prose to check."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return [ROOT / name for name in listed if is_checked(name)]


def is_checked(name: str) -> bool:
    """Returns whether a file, by its path in the repository, has prose to check."""
    path = Path(name)
    return (path.suffix in SUFFIXES or path.name == "Makefile") and not SKIPPED.search(name)


def expand(paths: list[Path]) -> Iterator[Path]:
    """Yields the files that were named, and the tracked files below named folders."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        folder = path.resolve()
        yield from (file for file in tracked_files() if file.is_relative_to(folder))


def room(path: Path) -> str:
    """Returns the crate or the folder that a count is reported for."""
    resolved = path.resolve()
    if not resolved.is_relative_to(ROOT):
        return str(path)
    parts = resolved.relative_to(ROOT).parts
    return "/".join(parts[:2]) if parts[0] in ("crates", "runtime", "python") else parts[0]


def main() -> int:
    """Checks the files and prints what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders; default: all")
    parser.add_argument("--count", action="store_true", help="print counts per crate only")
    arguments = parser.parse_args()
    by_room: Counter[str] = Counter()
    by_rule: Counter[str] = Counter()
    for path in expand(arguments.paths) if arguments.paths else tracked_files():
        if not path.exists():
            continue
        shown = path.resolve()
        shown = shown.relative_to(ROOT) if shown.is_relative_to(ROOT) else path
        found = [
            match for each in passages(path, path.read_text("utf-8")) for match in each.matches()
        ]
        for number, broken, text in sorted(found, key=lambda match: (match[0], match[1].id)):
            by_room[room(path)] += 1
            by_rule[broken.id] += 1
            if not arguments.count:
                print(f'{shown}:{number}: [{broken.id}] "{text}": {broken.advice}')
    if arguments.count:
        for counts in (by_room, by_rule):
            print(
                "\n".join(f"{count:6}  {name}" for name, count in counts.most_common()), end="\n\n"
            )
    if by_room:
        print(f"prose: {by_room.total()} phrases to rewrite", file=sys.stderr)
    return int(bool(by_room))


if __name__ == "__main__":
    sys.exit(main())
