"""Tests of opaque texts: a keyed permutation that reveals nothing and is read back."""

from __future__ import annotations

import copy
import pickle
import uuid
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage import ksuid, locality, sno, snowflake, ulid, xid
from mintage.errors import ParseError
from mintage.opaque import Opaque
from tests.helpers.outcomes import refusal

KEY, OLD = bytes(range(16)), bytes(range(16, 32))
SIZES = {8: (12, 14), 10: (15, 17), 16: (23, 27)}

each_base = pytest.mark.parametrize("base", ["base58", "base32"])


@each_base
@pytest.mark.parametrize("size", SIZES)
@given(data=st.data())
def test_any_id_is_shown_as_text_of_fixed_width_and_read_back(base: str, size: int, data: st.DataObject) -> None:
    one = data.draw(st.binary(min_size=size, max_size=size))
    opaque = Opaque(data.draw(st.binary(min_size=16, max_size=16)), base=base)
    shown = opaque.hide(one)
    assert len(shown) == SIZES[size][base == "base32"]
    assert opaque.reveal(shown, bytes) == one
    assert opaque.hide(one) == shown


def test_opaque_texts_are_a_permutation_of_ids() -> None:
    opaque = Opaque(KEY)
    for numbers in (range(20_000), range(1 << 63, (1 << 63) + 2000)):
        shown = [opaque.hide(number) for number in numbers]
        assert len(set(shown)) == len(numbers)
        assert [opaque.reveal(text, int) for text in shown[:500]] == list(numbers)[:500]


def test_every_text_of_the_width_is_an_id_or_too_large() -> None:
    opaque = Opaque(KEY)
    shown = list(opaque.hide(7))
    shown[-1] = "2" if shown[-1] != "2" else "3"
    assert opaque.reveal("".join(shown), int) != 7
    assert refusal(opaque.reveal, "1" + "z" * 11, int).code == "parse.character"


def test_toolkit_mcp_server_39_opaque_texts_do_not_reveal_the_order() -> None:
    opaque = Opaque(KEY)
    for make in (int, ulid.ID.from_int, sno.ID.from_int):
        shown = [opaque.hide(make(n)) for n in range(1000)]
        rises = sum(a < b for a, b in pairwise(shown))
        # Half of them, give or take what chance does.
        assert 400 < rises < 600


@each_base
def test_ids_of_each_scheme_are_read_back_as_its_class(base: str) -> None:
    opaque = Opaque(KEY, base=base)
    ids = [ulid.new(), locality.new(), sno.new(), snowflake.Generator(1).new(), uuid.uuid4()]
    for one in ids:
        assert opaque.reveal(opaque.hide(one), type(one)) == one


def test_id_of_another_size_is_refused() -> None:
    opaque = Opaque(KEY)
    for other in (ksuid.new(), xid.new(), b""):
        assert refusal(opaque.hide, other).code == "parse.length"
    for number in (-1, 1 << 64):
        assert refusal(opaque.hide, number).code == "field.range"
    for wrong in ("text", None, 1.0):
        assert refusal(opaque.hide, wrong).code == "argument.type"
    assert refusal(opaque.reveal, opaque.hide(5), ulid.ID).code == "parse.length"
    assert refusal(opaque.reveal, 5, int).code == "argument.type"
    assert refusal(opaque.reveal, "1" * 13, int).code == "parse.length"


def test_texts_from_before_a_key_rotation_are_still_read() -> None:
    old = Opaque(OLD, key_id=1)
    new = Opaque(KEY, key_id=2, previous={1: OLD})
    one = ulid.new()
    assert new.reveal(old.hide(one), ulid.ID) == new.reveal(new.hide(one), ulid.ID) == one
    assert new.hide(one)[0] != old.hide(one)[0]
    error = refusal(old.reveal, new.hide(one), ulid.ID)
    assert isinstance(error, ParseError)
    assert (error.code, error.position) == ("parse.character", 0)
    assert new.key_id == 2


def test_keys_and_their_numbers_are_checked() -> None:
    for key in (b"", bytes(15), bytes(32)):
        assert refusal(Opaque, key).code == "parse.length"
    assert refusal(Opaque, "0123456789abcdef").code == "argument.type"
    assert refusal(Opaque, KEY, key_id="1").code == "argument.type"
    for base, count in (("base58", 58), ("base32", 32)):
        assert Opaque(KEY, base=base, key_id=count - 1).hide(5)
        for wrong in (-1, count):
            assert refusal(Opaque, KEY, base=base, key_id=wrong).code == "field.range"
    assert refusal(Opaque, KEY, previous={0: OLD}).code == "config.policy"
    assert refusal(Opaque, KEY, base="base64").code == "config.policy"


def test_key_is_in_no_repr_error_or_pickle() -> None:
    opaque = Opaque(KEY, key_id=3, previous={1: OLD})
    said = [repr(opaque), str(opaque), f"{opaque}"]
    wrong = (lambda: Opaque(KEY[:9]), lambda: opaque.hide("x"), lambda: opaque.reveal("x", int))
    said += [str(refusal(call)) for call in wrong]
    for text in said:
        assert not any(shown in text for shown in (KEY.hex(), OLD.hex(), repr(KEY)[2:20], repr(OLD)[2:20], "\\x"))
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not pickled"):
            copied(opaque)


@each_base
@given(text=st.text(max_size=30))
def test_hostile_text_is_an_error_or_an_id(base: str, text: str) -> None:
    try:
        Opaque(KEY, base=base).reveal(text, bytes)
    except ParseError as error:
        assert error.code in {"parse.length", "parse.character"}  # noqa: PT017 - or it is an ID


@each_base
def test_wrong_character_is_named_by_its_position(base: str) -> None:
    opaque = Opaque(KEY, base=base)
    text = opaque.hide(ulid.new())
    for at in (1, 5, len(text) - 1):
        for wrong in ("!", "é", "\ud800"):
            error = refusal(opaque.reveal, text[:at] + wrong + text[at + 1 :], ulid.ID)
            assert isinstance(error, ParseError)
            assert (error.code, error.position) == ("parse.character", at)
