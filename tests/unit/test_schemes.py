"""Tests of the list of schemes: every row supports all generic operations."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import mintage
from mintage.cli import main
from mintage.errors import ParseError
from mintage.formats import catalogue
from mintage.formats.kinds import KINDS, NAMES, Kind
from mintage.server.config.settings import Settings
from mintage.server.http.openapi import document

ROOT = Path(__file__).parents[2]
ALIKE = {"ksuid_ms": "ksuid"}
"""Schemes whose IDs have the text of a likelier scheme."""

each_scheme = pytest.mark.parametrize("scheme", KINDS.values(), ids=NAMES)


@each_scheme
def test_ids_of_a_scheme_are_read_back_from_their_text(scheme: Kind) -> None:
    generator = scheme.generator({"store": "memory:"})
    try:
        minted = scheme.mint(generator, 3, scheme.max_meta)
        texts = scheme.lines(minted).decode("ascii").split()
        assert texts == list(map(str, minted))
        assert [scheme.read(text) for text in texts] == list(minted)
    finally:
        generator.close()


@each_scheme
@pytest.mark.parametrize("text", ["", "-1", "x", "9" * 25, "\u0661"])
def test_invalid_id_of_a_scheme_is_refused(scheme: Kind, text: str) -> None:
    with pytest.raises(ParseError):
        scheme.read(text)


def test_options_of_one_name_are_the_same_in_every_scheme() -> None:
    options = {each for scheme in KINDS.values() for each in scheme.options}
    assert len({each.name for each in options}) == len(options)


@each_scheme
def test_row_of_a_scheme_is_complete(scheme: Kind, capsys: pytest.CaptureFixture[str]) -> None:
    name = scheme.name
    family = name.removesuffix("2").removesuffix("_ms")
    for written in (
        f"src/mintage/_core/{name}.pyi",
        f"docs/schemes/{name}.md",
        f"docs/reference/{name}.md",
    ):
        assert (ROOT / written).is_file(), written
    assert any((ROOT / f"crates/core/src/schemes/{name}{end}").is_file() for end in (".rs", "/mod.rs"))
    assert [file for file in (ROOT / "spec/vectors").glob("*.json") if family in file.stem]
    tests = [file.read_text("utf-8") for file in (ROOT / "tests/unit").glob("test_*.py")]
    assert [text for text in tests if "vectors" in text and re.search(rf'"(\w+_)?{family}(_\w+)?"', text)]
    for index in ("schemes", "reference"):
        assert name in (ROOT / f"docs/{index}/index.md").read_text("utf-8")
    assert getattr(mintage, name) is scheme.module
    assert {"Generator", "new"} <= set(scheme.module.__all__)
    assert name in {each.scheme for each in catalogue.MINTED}
    minted = scheme.module.new()
    assert mintage.inspect(minted)[0].scheme == name
    assert name == next(each.scheme for each in mintage.inspect(str(minted)) if each.scheme != ALIKE.get(name))
    assert main(["new", name, "--store", "memory:"]) == 0
    assert scheme.read(capsys.readouterr().out.strip())


@each_scheme
def test_row_of_a_scheme_is_served_over_http(scheme: Kind) -> None:
    asked = document(Settings.load([]))["paths"]["/v1/ids/{scheme}"]["post"]["parameters"]
    (choice,) = [each["schema"] for each in asked if each["name"] == "scheme"]
    assert scheme.name in choice["enum"]


def test_list_of_kinds_imports_no_scheme() -> None:
    script = "import sys, mintage; old = set(sys.modules); import mintage.formats.kinds; print(*set(sys.modules) - old)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert {name for name in done.stdout.split() if name.startswith("mintage")} == {
        "mintage.formats",
        "mintage.formats.kinds",
        "mintage.formats.values",
    }
