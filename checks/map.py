"""Print what each test file tests, by the first line of its docstring.

Run ``python -m checks.map``, or ``python -m checks.map WORD`` for the lines that contain a word, in any case.
"""

from __future__ import annotations

import argparse
import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).parent.parent

WIDTH: Final = 48
"""The column at which the descriptions begin, in characters."""


def summary(path: Path) -> str:
    """Return the first line of the docstring of a Python file, or of the doc comment of a Rust file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        return next((line[3:].strip() for line in text.splitlines() if line.startswith("//!")), "")
    return (ast.get_docstring(ast.parse(text, str(path))) or "").partition("\n")[0]


def files(root: Path = ROOT) -> Iterator[Path]:
    """Yield the test files, those of the crates first, and the programs that ``python -m`` runs in ``tests``."""
    yield from sorted(root.glob("crates/*/tests/*.rs"))
    yield from sorted(
        {*root.glob("tests/**/test_*.py"), *root.glob("tests/**/__main__.py"), *root.glob("tests/deep/*.py")}
    )


def lines(word: str = "", root: Path = ROOT) -> Iterator[str]:
    """Yield a line for each test file whose path or summary contains a word."""
    for path in files(root):
        line = f"{path.relative_to(root).as_posix():{WIDTH}} {summary(path)}"
        if word.lower() in line.lower():
            yield line


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the map, or the lines that contain a word. Return 1 if there is none, else 0."""
    parser = argparse.ArgumentParser(prog="python -m checks.map", description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="print only the lines that contain this word")
    found = list(lines(parser.parse_args(arguments).word))
    print(*found, sep="\n")
    return not found


if __name__ == "__main__":
    sys.exit(main())
