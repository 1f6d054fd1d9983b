"""Check that the text of the project follows its rules of prose.

Run ``python -m checks.plain``. It reads the files that git tracks, prints one line for each fault (``path:line: what is
wrong and what to write instead``), and exits with 1 if there is a fault. The rules:

- A docstring begins with a verb or with a noun phrase (:func:`docstrings`, :func:`rust_docs`).
- A sentence names its actor (:func:`actors`).
- The name of a test is one short claim (:func:`test_names`).
- A heading in Markdown is a short noun phrase or a task (:func:`headings`).
- A test file says in one line what it tests, for ``checks.map`` (:func:`summaries`).
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).parent.parent

LONGEST_TEST_NAME: Final = 70
"""In characters, with ``test_``."""
LONGEST_HEADING: Final = 70
"""In characters, as a reader sees it: without the address of a link and without backticks."""

DOCUMENTED: Final = ("src/*", "tests/*", "benchmarks/*", "checks/*")
"""Where docstrings are checked."""

_QUESTION: Final = re.compile(r"\s*(What|Whether|How|Who(?:ever)?)\b")
_RUST_DOC: Final = re.compile(r"\s*(///|//!)(?![/!]) ?(.*)")
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING: Final = re.compile(r" {0,3}#{1,6}\s+(.+?)(?:\s+#+)?\s*")
_NO_ACTOR: Final = re.compile("who" + "ever", re.IGNORECASE)


class File(NamedTuple):
    """A tracked text file."""

    path: str
    """Relative to the root of the repository, with forward slashes."""
    text: str

    def is_in(self, patterns: Sequence[str]) -> bool:
        """Return True if one of the shell patterns matches the path; ``*`` matches slashes too."""
        return any(fnmatchcase(self.path, pattern) for pattern in patterns)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield each line with its number, which starts at 1."""
        return enumerate(self.text.splitlines(), start=1)


class Fault(NamedTuple):
    """A place that breaks a rule."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def docstrings(file: File) -> Iterator[Fault]:
    """Yield the docstrings of a Python file, those of attributes included, that begin with a question word."""
    if not (file.is_in(DOCUMENTED) and file.path.endswith((".py", ".pyi"))):
        return
    for node in ast.walk(ast.parse(file.text, file.path)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text), lineno=line)):
                yield from _question(file, line, text)


def rust_docs(file: File) -> Iterator[Fault]:
    """Yield the doc comments of a Rust file of the crates that begin with a question word."""
    if not file.is_in(["crates/*.rs"]):
        return
    before = None
    for number, line in file.lines():
        doc = _RUST_DOC.match(line)
        kind = doc and doc[1]
        if doc and kind != before:
            yield from _question(file, number, doc[2])
        before = kind


def _question(file: File, line: int, text: str) -> Iterator[Fault]:
    if found := _QUESTION.match(text):
        message = f'the docstring begins with "{found[1]}"; begin with a verb ("Return the …") or a noun phrase'
        yield Fault(file.path, line, message)


def actors(file: File) -> Iterator[Fault]:
    """Yield the lines that say "who" and "ever" in one word."""
    if not _NO_ACTOR.search(file.text):
        return
    for number, line in file.lines():
        if found := _NO_ACTOR.search(line):
            yield Fault(file.path, number, f'"{found[0]}" names nobody; name the actor, such as "a client that …"')


def test_names(file: File) -> Iterator[Fault]:
    """Yield the functions of a test file whose names are too long."""
    if not file.is_in(["tests/*.py"]):
        return
    for node in ast.walk(ast.parse(file.text, file.path)):
        match node:
            case ast.FunctionDef(name=name, lineno=line) | ast.AsyncFunctionDef(name=name, lineno=line):
                if name.startswith("test_") and len(name) > LONGEST_TEST_NAME:
                    limit = f"has {len(name)} characters; at most {LONGEST_TEST_NAME} are allowed"
                    yield Fault(file.path, line, f"{name} {limit}. Make one plain claim of it, or two tests.")


def headings(file: File) -> Iterator[Fault]:
    """Yield the headings of a Markdown file that are too long, or that end like a sentence."""
    if not file.path.endswith(".md"):
        return
    fence = ""
    for number, line in file.lines():
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif not fence and (heading := _HEADING.fullmatch(line)):
            shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "")
            if len(shown) > LONGEST_HEADING:
                limit = f"at most {LONGEST_HEADING} are allowed"
                yield Fault(file.path, number, f"the heading has {len(shown)} characters; {limit}")
            if shown.endswith((".", "?")):
                message = f'the heading ends with "{shown[-1]}"; write a noun phrase or a task'
                yield Fault(file.path, number, message)


def summaries(file: File) -> Iterator[Fault]:
    """Yield a test file that has no docstring."""
    is_test_file = file.is_in(["tests/*.py"]) and Path(file.path).name.startswith("test_")
    if is_test_file and ast.get_docstring(ast.parse(file.text, file.path)) is None:
        yield Fault(file.path, 1, "the test file has no docstring; say in its first line what it tests")


def faults(file: File) -> Iterator[Fault]:
    """Yield what is wrong with a file, by all rules."""
    for rule in (docstrings, rust_docs, actors, test_names, headings, summaries):
        yield from rule(file)


def tracked(root: Path = ROOT) -> Iterator[File]:
    """Yield the text files that git tracks below a root."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout  # noqa: S607
    for name in sorted(names.decode().split("\0")):
        path = root / name
        if name and path.is_file() and b"\0" not in (content := path.read_bytes()):
            yield File(name, content.decode(errors="replace"))


def main() -> int:
    """Print the faults of the repository. Return 1 if there are any, else 0."""
    found = [fault for file in tracked() for fault in faults(file)]
    for fault in found:
        print(fault)
    if found:
        print(f"{len(found)} faults; the rules are in CONTRIBUTING.md", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
