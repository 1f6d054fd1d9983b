"""Tables of the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

STORAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "storage.md"


def read_tables(page: Path = STORAGE) -> list[tuple[list[str], list[list[str]]]]:
    """Return head and rows of each table of a page, without the marks of code."""
    tables = []
    for block in re.findall(r"(?:^\|.*\n)+", page.read_text("utf-8").replace("`", ""), re.MULTILINE):
        head, _, *rows = ([cell.strip() for cell in line.strip("|\n").split("|")] for line in block.splitlines())
        tables.append((head, rows))
    return tables


def values_by_path() -> dict[tuple[str, str], dict[str, str]]:
    """Return the table of IDs by value: the cells of each tool and path, by the kind of ID."""
    [(head, rows)] = [table for table in read_tables() if table[0][0] == "tool"]
    return {(tool, path): dict(zip(head[2:], cells, strict=True)) for tool, path, *cells in rows}


def blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
