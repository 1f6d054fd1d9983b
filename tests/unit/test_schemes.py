"""The list of schemes: whatever is asked of a scheme by name, every row can do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mintage.errors import ParseError
from mintage.schemes import NAMES, SCHEMES, Scheme

each_scheme = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=NAMES)


@each_scheme
def test_what_a_scheme_mints_is_read_back_from_its_text(scheme: Scheme) -> None:
    generator = scheme.generator(store="memory:")
    try:
        minted = scheme.mint(generator, 3, scheme.max_meta)
        texts = scheme.lines(minted).decode("ascii").split()
        assert texts == list(map(str, minted))
        assert [scheme.parse(text) for text in texts] == list(minted)
    finally:
        generator.close()


@each_scheme
@pytest.mark.parametrize("text", ["", "-1", "x", "9" * 25, "\u0661"])
def test_what_is_no_id_of_a_scheme_is_refused(scheme: Scheme, text: str) -> None:
    with pytest.raises(ParseError):
        scheme.parse(text)


def test_options_of_one_name_are_the_same_whatever_the_scheme() -> None:
    options = {each for scheme in SCHEMES.values() for each in scheme.options}
    assert len({each.name for each in options}) == len(options)


def test_the_list_imports_no_scheme() -> None:
    script = "import sys, mintage; before = set(sys.modules); import mintage.schemes; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if name.startswith("mintage")] == ["mintage.schemes"]
