"""Tests of ``docs/how-to/other-libraries.md``: both expressions of each row of its tables have the same value."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid1

import pytest

from mintage import ulid, uuid
from mintage.errors import ParseError

PAGE: Final = Path(__file__).parents[2] / "docs/how-to/other-libraries.md"
MINUTE_MS: Final = 60_000
TEXTS: Final = {
    "python-ulid": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "uuid6": "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
    "typeid-python": "user_01h455vb4pex5vsknk084sn02q",
}
MODULES: Final = {"python-ulid": "ulid", "uuid6": "uuid6", "typeid-python": "typeid"}
VALUES: Final = {
    "sixth": "1ec9414c-232a-6b00-b3c8-9f6bdeced846",
    "old": uuid1(node=0x0A1B2C3D4E5F, clock_seq=0x1234),
    "node": 0x0A1B2C3D4E5F,
    "clock_seq": 0x1234,
    "suffix": "01h455vb4pex5vsknk084sn02q",
}


def section_of(library: str) -> str:
    return PAGE.read_text(encoding="utf-8").partition(f"\n## {library}\n")[2].partition("\n## ")[0]


ROWS: Final = [
    (library, *row)
    for library in TEXTS
    for row in re.findall(r"(?m)^\| `([^`]+)` \| `([^`]+)` \|$", section_of(library))
]


@cache
def right() -> dict[str, Any]:
    """Return the names of the page's blocks."""
    names: dict[str, Any] = {}
    for block in re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8")):
        exec(block, names)
    return names


def left(library: str) -> dict[str, Any]:
    """Return the names of the library, beside the values of the page."""
    name = MODULES[library]
    module = pytest.importorskip(name)
    own = {name: module} if name == "uuid6" else vars(module)
    read = {"ulid": "ULID.from_str", "uuid6": "uuid6.UUID", "typeid": "TypeID.from_string"}[name]
    shared = {each: right()[each] for each in ("when", "milliseconds", "value", "data", "digits", "number")}
    names = {**own, **shared, **VALUES, "text": TEXTS[library]}
    return {**names, "id": eval(f"{read}(text)", names)}


def plain(value: Any) -> Any:
    """Return the bytes of a UUID or a ULID, the text of a TypeID, and any other value as it is."""
    if type(value).__name__ == "TypeID" or type(value).__module__ == "mintage.typeid":
        return str(value)
    if isinstance(value, ulid.ID | uuid.ID):
        return bytes(value)
    return getattr(value, "bytes", value)


@pytest.mark.parametrize(("library", "there", "here"), ROWS, ids=[there for _, there, _ in ROWS])
def test_expression_has_the_value_of_the_other_library(library: str, there: str, here: str) -> None:
    old = left(library)
    scheme = importlib.import_module({"python-ulid": "mintage.ulid"}.get(library, "mintage.uuid"))
    own = {"python-ulid": "ulid.ID.parse", "uuid6": "uuid.ID.parse", "typeid-python": "typeid.ID.parse"}[library]
    new = {**right(), **VALUES, "text": TEXTS[library]}
    new["id"] = eval(f"{own}(text)", new)
    first, second, mine = (plain(eval(cell, names)) for cell, names in ((there, old), (there, old), (here, new)))
    if first == second:
        assert mine == first
        return
    # Both mint: they agree in the time, and in what the expression names.
    if library == "typeid-python":
        assert mine.rpartition("_")[0] == first.rpartition("_")[0]
        ids = [right()["typeid"].ID.parse(each) for each in (first, mine)]
        minted = [uuid.ID.from_uuid(each.as_uuid()) for each in ids]
    else:
        minted = [scheme.ID(each) for each in (first, mine)]
    # uuid6 and python-ulid may be ahead of the clock, a millisecond for each ID.
    assert abs(minted[0].timestamp_ms - minted[1].timestamp_ms) < MINUTE_MS
    if library != "python-ulid":
        assert minted[0].version == minted[1].version
    if "node" in there:
        assert minted[0].node == minted[1].node
        assert minted[0].clock_seq == minted[1].clock_seq


@pytest.mark.parametrize(("library", "cls"), [("python-ulid", "ULID"), ("uuid6", "UUID"), ("typeid-python", "TypeID")])
def test_page_has_each_public_name_of_a_library(library: str, cls: str) -> None:
    module = pytest.importorskip(MODULES[library])
    names = {*vars(getattr(module, cls)), *getattr(module, "__all__", ())}
    assert {name for name in names if not name.startswith("_") and name not in section_of(library)} == set()


def test_ids_equal_no_text_bytes_or_int_and_errors_are_value_errors() -> None:
    text = TEXTS["python-ulid"]
    theirs = pytest.importorskip("ulid").ULID.from_str(text)
    mine: Any = ulid.ID.parse(text)
    for other in (text, bytes(mine), int(mine)):
        assert theirs == other
        assert mine != other
    with pytest.raises(ParseError) as raised:
        ulid.ID.parse("no ULID")
    assert isinstance(raised.value, ValueError)
    value: Any = pytest.importorskip("typeid").TypeID("user").uuid
    assert not isinstance(value, UUID)
