"""Tests that each sentence of docs/uniqueness.md and each row of docs/how-to/stores.md has a check, in promises.txt."""

from __future__ import annotations

import ast
import re
from functools import cache, partial, reduce
from importlib import import_module
from operator import and_, or_
from typing import TYPE_CHECKING, Any

import pytest

from mintage import uuid
from mintage.store import STORE_KINDS
from mintage.testing import ManualClock
from tests.integration import promises
from tests.integration.promises import CLAIMS, ROOT, Unit, claims, differences, sentences, units_of

if TYPE_CHECKING:
    from pathlib import Path

PAGES = claims()
PAGE = "docs/uniqueness.md"
STORES = "docs/how-to/stores.md, tables"


@pytest.mark.parametrize("page", PAGES)
def test_each_sentence_has_its_checks(page: str) -> None:
    found = differences(units_of(page), PAGES[page])
    assert not found, f"{page} and {CLAIMS.relative_to(ROOT)} differ:\n" + "\n".join(found)


# --- the named tests --------------------------------------------------------------------------------------------------


@cache
def names_in(path: Path) -> set[str]:
    """Return the names of the functions of a file in Python or Rust."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        return set(re.findall(r"(?m)^ *fn (\w+)\(", text))
    return {each.name for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FunctionDef)}


def is_a_test(check: str) -> bool:
    """Return True if the name is that of a program, or of a test and of a case that stands in a file of its folder."""
    file, is_function, name = check.partition("::")
    name, _, case = name.removesuffix("]").partition("[")
    path = next((found for place in ("tests", ".") if (found := ROOT / place / file).is_file()), None)
    if path is None or not is_function:
        return path is not None and not path.name.startswith("test_")
    beside = (each.read_text(encoding="utf-8") for each in path.parent.glob("*.py"))
    if not name.startswith("test_") and path.suffix == ".py":
        return False
    return name in names_in(path) and (not case or any(f'"{case}"' in text for text in beside))


@pytest.mark.parametrize("page", PAGES)
def test_each_named_check_exists(page: str) -> None:
    named = {check for claim in PAGES[page] for check in claim.checks if not re.match("(nothing|not tried): .", check)}
    assert [check for check in sorted(named) if not is_a_test(check)] == []


# --- what the checks of a page notice ---------------------------------------------------------------------------------


PAGE_READ = """# Page

In short: **IDs differ**, as [another page](a.md#b) says. mintage reads the {term}`store
id <server id>`. It holds.

- one case;
  continued
1. another (see below.) Then more.

```python
>>> "Code says nothing. It runs."
```

| a | b |
| --- | --- |
| `x` | never \\| always |
"""


def test_page_is_read_as_sentences_items_and_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "text_of", lambda _: PAGE_READ)
    assert [each.text for each in units_of("any")] == [
        "In short: IDs differ, as another page says.",
        "mintage reads the store id.",
        "It holds.",
        "one case; continued",
        "another (see below.)",
        "Then more.",
        "`x` | never \\| always",
    ]
    assert [each.text for each in units_of("any, tables")] == ["`x` | never \\| always"]


def changed(page: str, old: str, new: str) -> list[str]:
    """Return what is to be done after a change of a page, beside what is to be done already."""
    units = units_of(page)
    before = differences(units, PAGES[page])
    [at] = [at for at, unit in enumerate(units) if old in unit.text]
    text = units[at].text.replace(old, new)
    units[at : at + 1] = [Unit(units[at].section, each) for each in sentences(text)]
    return [each for each in differences(units, PAGES[page]) if each not in before]


def test_changed_sentence_is_noticed() -> None:
    [said] = changed(PAGE, "36 seconds by default", "30 seconds by default")
    assert "changed. Read its checks" in said


def test_reversed_promise_is_noticed() -> None:
    [said] = changed(PAGE, "a wrong clock cannot break it", "a wrong clock can break it")
    assert "changed. Read its checks" in said


def test_added_sentence_is_noticed() -> None:
    [said] = changed(PAGE, "Keep the unique constraint.", "Keep the unique constraint. IDs never repeat.")
    assert "'IDs never repeat.' is new" in said


def test_removed_sentence_is_noticed() -> None:
    [said] = changed(PAGE, "two servers of one store both accept writes;", "")
    assert "0 sentences begin with" in said


def test_changed_cell_is_noticed() -> None:
    [said] = changed(STORES, "refuses everything: restore it", "goes on")
    assert "changed. Read its checks" in said


def test_claim_without_a_check_is_noticed() -> None:
    units, claimed = [Unit("s", "It holds.")], [promises.Claim("s", Unit("s", "It holds.").mark, "It holds")]
    assert differences(units, claimed) == ["s: 'It holds' has no check. Name one, or say why it promises nothing"]
    assert not is_a_test("unit/test_leases.py::test_that_nobody_wrote")
    assert not is_a_test("unit/test_leases.py::lease_elsewhere")
    assert not is_a_test("unit/test_leases.py")


# --- the table of stores ----------------------------------------------------------------------------------------------


def test_promise_of_each_kind_of_store_is_that_of_its_row() -> None:
    """Compare with the classes; the contract suite compares these with the descriptions of real stores."""
    said: dict[str, str] = {}
    for unit in units_of(STORES):
        url, _, rest = unit.text.partition(" | ")
        if unit.section == "Comparison" and "cache" not in url:
            said |= {kind: rest.partition(" |")[0] for kind in re.findall(r"([a-z+]+):", url)}
    assert said.pop("memory").startswith("process;")
    assert (said.pop("http"), said.pop("https")) == ("as the service's store",) * 2
    classes = {kind: getattr(import_module(module), name) for kind, (module, name, _) in STORE_KINDS.items()}
    assert said == {kind: classes[kind].promise for kind in said}
    assert {*said, "memory", "http", "https"} == STORE_KINDS.keys()


# --- the table of formats ---------------------------------------------------------------------------------------------

BITS = {
    unit.text.partition(" |")[0]: sum(map(int, re.findall(r"(\d+)(?= bits| of a clock)", unit.text)))
    for unit in units_of(PAGE)
    if unit.section == "Formats with random bits" and " | " in unit.text
}
"""The number of random bits in the row of each format."""


@pytest.mark.parametrize("row", BITS)
def test_as_many_bits_vary_as_the_row_of_a_format_says(row: str) -> None:
    name, _, more = row.partition(", ")
    if name == "uuid":
        versions: dict[str, Any] = {str(version): partial(uuid.Generator, version=version) for version in (1, 6, 7)}
        makers = [versions[version] for version in re.findall(r"\d", more)]
    else:
        makers = [import_module(f"mintage.{each}").Generator for each in row.split(", ")]
    for make in makers:
        clock = ManualClock(1_700_000_000_000_000_000, auto_advance=False)
        ids = [int(make(clock=clock).new()) for _ in range(300)]
        assert (reduce(or_, ids) ^ reduce(and_, ids)).bit_count() == BITS[row]
