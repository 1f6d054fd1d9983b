"""The sentences and rows of pages that make promises, and the checks in ``promises.txt`` that carry each of them out.

``python -m tests.integration.promises`` says what is to be changed in that file after a change of a page.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
CLAIMS: Final = Path(__file__).with_suffix(".txt")
"""A line for each unit: its mark and its first words; below it, the tests that carry it out."""
TAKEN_BY_CELLS: Final = "What is promised, by configuration"
"""The section whose table ``test_uniqueness_table`` takes cell by cell."""


# --- the pages -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unit:
    """A sentence, an item of a list or a row of a table."""

    section: str
    text: str

    @property
    def mark(self) -> str:
        """Return four digits that change if a word of the text changes."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:4]


def plain(text: str) -> str:
    """Return text without the targets of links, the roles of Sphinx, emphasis and line breaks."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\{\w+\}`([^`<]*?)(?: <[^>]*>)?`", r"\1", text)
    return " ".join(text.replace("*", "").split())


def sentences(text: str) -> list[str]:
    """Split a paragraph after each full stop."""
    return [each for each in re.split(r"(?<=[.?!])\s+|(?<=[.?!]\))\s+", plain(text)) if each]


def blocks(lines: list[str]) -> Iterator[str]:
    """Return the paragraphs and the items of lists, each in one line."""
    block: list[str] = []
    for line in [*lines, ""]:
        starts_anew = re.match(r"\s*(- |\d+\. )", line)
        if block and (not line.strip() or starts_anew):
            yield " ".join(block)
            block = []
        if line.strip():
            block.append(re.sub(r"^\s*(- |\d+\. )", "", line).strip())


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def read(page: str) -> list[Unit]:
    """Return what a page says, in its order. Code, directives and the heads of tables say nothing."""
    text = re.sub(r"(?ms)^ *```.*?^ *```$", "\n", text_of(page))
    units: list[Unit] = []
    section = ""
    for kind, group in groupby(text.splitlines(), lambda line: line[:1] if line[:1] in {"#", "|"} else ""):
        lines = list(group)
        if kind == "#":
            section = lines[-1].lstrip("# ")
        elif kind == "|":
            rows = [" | ".join(plain(cell) for cell in line.strip("|").split(" | ")) for line in lines[2:]]
            units += [Unit(section, row) for row in rows if section != TAKEN_BY_CELLS]
        else:
            told = [line for line in lines if not re.match(r"(:::|% |\([\w-]+\)=)", line)]
            units += [Unit(section, each) for block in blocks(told) for each in sentences(block)]
    return units


# --- the checks ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """The checks of one unit, which begins with these words."""

    section: str
    mark: str
    words: str
    checks: list[str] = field(default_factory=list)
    """Tests by their names, or one line that begins with ``nothing`` or ``not tried``, and a reason."""

    def claims(self, unit: Unit) -> bool:
        return unit.section == self.section and unit.text.startswith(self.words)


def claims() -> dict[str, list[Claim]]:
    """Return the claims of each page."""
    found: dict[str, list[Claim]] = {}
    page = section = ""
    for line in CLAIMS.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            page = line[2:]
            found[page] = []
        elif line.startswith("## "):
            section = line[3:]
        elif line.startswith("    "):
            found[page][-1].checks.append(line.strip())
        elif page and line:
            mark, _, words = line.partition(" ")
            found[page].append(Claim(section, mark, words))
    return found


def differences(units: list[Unit], claimed: list[Claim]) -> list[str]:
    """Return what is to be done, a line each, until each unit has one claim and each claim one unit."""
    found = []
    for unit in units:
        mine = [claim for claim in claimed if claim.claims(unit)]
        start = " ".join(unit.text.split()[:9])
        if not mine:
            found.append(
                f"{unit.section}: {start!r} is new. Add it, with a test that carries it out: {unit.mark} {start}"
            )
        elif len(mine) > 1:
            found.append(f"{unit.section}: {start!r} has {len(mine)} claims. Write more of its words, or remove one")
        elif mine[0].mark != unit.mark:
            found.append(
                f"{unit.section}: {start!r} changed. Read its checks, mend those that no longer carry it out, and then "
                f"write {unit.mark} for {mine[0].mark}"
            )
    for claim in claimed:
        count = sum(map(claim.claims, units))
        if count != 1:
            found.append(
                f"{claim.section}: {count} sentences begin with {claim.words!r}. Remove it, or correct its words"
            )
        if not claim.checks:
            found.append(f"{claim.section}: {claim.words!r} has no check. Name one, or say why it promises nothing")
    return found


def units_of(name: str) -> list[Unit]:
    """Return the units of a page; with ``, tables``, its rows, and the sections of which a sentence is claimed."""
    page, _, part = name.partition(", ")
    units = read(page)
    if not part:
        return units
    whole = {claim.section for claim in claims().get(name, []) if not claim.words.endswith(" |")}
    return [unit for unit in units if " | " in unit.text or unit.section in whole]


if __name__ == "__main__":
    for name, claimed in claims().items():
        for line in differences(units_of(name), claimed):
            print(f"{name}, {line}")
