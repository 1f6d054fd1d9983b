"""Tests of the catalogue of formats, and of their texts against a naive oracle."""

from __future__ import annotations

import string
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage._core.formats import locality_node
from mintage.errors import ConfigError
from mintage.formats import catalogue
from mintage.formats.kinds import KINDS

BASE16 = "0123456789abcdef"
BASE32_HEX = "0123456789abcdefghijklmnopqrstuv"
BASE32_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
BASE32_SNO = "23456789abcdefghijklmnopqrstuvwx"
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
HYPHENS = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"

KNOWN = (*catalogue.FORMATS, *catalogue.AMBIGUOUS_FORMATS)


class Digits:
    """A naive oracle: a number in positional digits, one division a digit."""

    def __init__(self, template: str, alphabet: str, pad: int = 0) -> None:
        self.template = template
        self.alphabet = alphabet
        self.pad = pad

    def write(self, value: int) -> str:
        value <<= self.pad
        chars = list(self.template)
        for at in range(len(chars) - 1, -1, -1):
            if chars[at] == "x":
                value, digit = divmod(value, len(self.alphabet))
                chars[at] = self.alphabet[digit]
        return "".join(chars)

    def read(self, text: str) -> int | None:
        value = 0
        for char, place in zip(text, self.template, strict=True):
            if place == "x" and char in self.alphabet:
                value = value * len(self.alphabet) + self.alphabet.index(char)
            elif place == "x" or place != char:
                return None
        return None if value % (1 << self.pad) else value >> self.pad


ORACLES = {
    "sno": Digits("x" * 16, BASE32_SNO),
    "ulid": Digits("x" * 26, BASE32_CROCKFORD),
    "ksuid": Digits("x" * 27, BASE62),
    "ksuid_ms": Digits("x" * 27, BASE62),
    "objectid": Digits("x" * 24, BASE16),
    "xid": Digits("x" * 20, BASE32_HEX, pad=4),
    "sandflake": Digits("x" * 26, BASE32_CROCKFORD, pad=2),
    "uuid nil": Digits(HYPHENS, BASE16),
    "uuid other": Digits(HYPHENS, BASE16),
}
FORMATS = {each.name: each for each in KNOWN}
NAMES = st.sampled_from(list(ORACLES))


@given(NAMES, st.data())
def test_format_writes_and_reads_as_the_oracle_does(name: str, data: st.DataObject) -> None:
    fmt = FORMATS[name]
    value = data.draw(st.integers(0, (1 << fmt.bits) - 1))
    text = ORACLES[name].write(value)
    assert fmt.write(value) == text
    assert fmt.read(text) == ((value, "text") if fmt.fits(value) else None)


@given(NAMES, st.data())
def test_format_reads_any_text_as_the_oracle_does(name: str, data: st.DataObject) -> None:
    fmt, oracle = FORMATS[name], ORACLES[name]
    char = st.sampled_from(oracle.alphabet + "~-{")
    text = "".join(data.draw(char) if place == "x" else place for place in oracle.template)
    value = oracle.read(text)
    assert fmt.read(text) == ((value, "text") if value is not None and fmt.fits(value) else None)


@pytest.mark.parametrize("fmt", KNOWN, ids=lambda fmt: f"{fmt.name}-{fmt.bits}")
def test_number_that_is_too_wide_or_negative_is_refused(fmt: catalogue.Format) -> None:
    assert not fmt.fits(1 << fmt.bits)
    assert not fmt.fits(-1)
    for use in (fmt.write, fmt.fields, fmt.time_ns):
        with pytest.raises(OverflowError):
            use(1 << fmt.bits)


@pytest.mark.parametrize("name", catalogue.LAYOUTS)
def test_format_agrees_with_its_layout(name: str) -> None:
    layout = catalogue.LAYOUTS[name]
    for each in (catalogue.of_layout(layout, name), FORMATS[f"snowflake {name}"]):
        assert (each.name, each.bits, each.clock) == (f"snowflake {name}", 64, FORMATS[each.name].clock)
        assert (each.nodes, each.ids_per_second, each.expires) == (layout.nodes, layout.ids_per_second, layout.expires)
        parts = [(part.name, part.bits) for part in each.parts if part.role != "fixed"]
        assert parts == [(field, bits) for field, bits, _ in layout.fields]
    assert catalogue.read_layout(catalogue.write_layout(layout)) == layout


@pytest.mark.parametrize(
    "text", ["", "time:41", "@0 1ms", "time:41 @0 1", "time:41 @ 0 1ms", "time:4\x001 @0 1ms", "sno"]
)
def test_invalid_layout_text_is_none(text: str) -> None:
    assert catalogue.read_layout(text) is None


def test_impossible_layout_is_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        catalogue.read_layout("time:60 node:10 @0 1ms")
    assert caught.value.code == "config.layout"


def test_sno_expires_a_tick_after_its_last_one() -> None:
    sno = KINDS["sno"].format
    assert sno.expires == sno.ends == datetime(2079, 9, 7, 15, 47, 35, 552000, UTC)
    assert (sno.nodes, sno.ids_per_second) == (65_536, 16_384_000)


def test_locality_generators_end_before_its_ids() -> None:
    locality = KINDS["locality"].format
    assert locality.expires is None
    assert locality.ends == datetime(2248, 9, 26, 15, 10, 22, 208000, UTC)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_locality_node_number_is_the_low_bits_of_pid_and_mac(pid: int, mac: int) -> None:
    assert divmod(locality_node(pid, mac), 2**28) == (pid % 2**16, mac % 2**28)


def test_format_without_expiry_or_counter_says_so() -> None:
    assert FORMATS["ulid"].expires is None  # later than year 9999
    assert FORMATS["uuid v4"].expires is None
    assert FORMATS["ulid"].ids_per_second is None
    assert FORMATS["sandflake"].ids_per_second is None
    assert FORMATS["uuid v4"].nodes is None
    assert FORMATS["cuid"].nodes is None
    assert FORMATS["cuid"].expires == datetime(5188, 4, 22, 11, 4, 28, 416000, UTC)
    assert FORMATS["objectid"].expires == datetime(2106, 2, 7, 6, 28, 16, tzinfo=UTC)
