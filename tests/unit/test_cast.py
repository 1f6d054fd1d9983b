"""Tests of conversions: cast keeps the bits, derive makes a new ID, and text of other bases is read back."""

from __future__ import annotations

import base64
import hashlib
import hmac
import subprocess
import sys
import uuid
from typing import Any

import bson
import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

import mintage
from mintage import cast, derive, ksuid, locality, nanoid, objectid, sandflake, sno, text, typeid, ulid, xid
from mintage import uuid as mintage_uuid
from mintage.errors import ParseError
from mintage.testing import freeze
from tests.helpers.outcomes import refusal

SIXTEEN = (uuid.UUID, ulid.ID, locality.ID, sandflake.ID, mintage_uuid.ID)
TWELVE = (xid.ID, objectid.ID)


# --- cast ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [SIXTEEN, TWELVE], ids=["16 bytes", "12 bytes"])
@given(data=st.data())
def test_ids_of_equal_size_cast_to_each_other(classes: tuple[type[Any], ...], data: st.DataObject) -> None:
    size = 16 if classes is SIXTEEN else 12
    raw = data.draw(st.binary(min_size=size, max_size=size))
    for first in classes:
        one: Any = cast(raw, first)
        assert cast(one, bytes) == raw
        assert cast(one, int) == int.from_bytes(raw, "big")
        assert cast(int.from_bytes(raw, "big"), first) == one
        for second in classes:
            other: Any = cast(one, second)
            assert type(other) is second
            assert cast(other, first) == one


def test_ulid_is_the_uuid_of_its_bits() -> None:
    one = cast(ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV"), uuid.UUID)
    assert one == uuid.UUID("01563e3a-b5d3-d676-4c61-efb99302bd5b")
    assert cast(cast(one, locality.ID), ulid.ID) == ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_xid_and_an_objectid_are_hex_and_each_other() -> None:
    one = xid.new()
    assert bytes.fromhex(text.encode(one, "hex")) == bytes(one)
    assert cast(text.decode_bytes(str(cast(one, objectid.ID)), "hex", 12), xid.ID) == one
    assert cast(one, objectid.ID).timestamp_ms == one.timestamp_ms


def test_objectid_is_pymongos_and_back() -> None:
    one = objectid.new()
    theirs = cast(one, bson.ObjectId)
    assert (str(theirs), cast(theirs, objectid.ID), cast(theirs, bytes)) == (str(one), one, bytes(one))
    assert refusal(cast, ulid.new(), bson.ObjectId).code == "parse.length"


def test_sno_has_its_own_spelling_as_a_uuid() -> None:
    one = sno.new()
    assert cast(one, uuid.UUID) == one.as_uuid()
    assert cast(one.as_uuid(), sno.ID) == one


def test_typeid_casts_only_to_its_suffix() -> None:
    one = ulid.new()
    assert cast(typeid.ID("user", one), ulid.ID) == one
    assert cast(typeid.ID("user", one), uuid.UUID).bytes == bytes(one)
    error = refusal(cast, one, typeid.ID)
    assert (error.code, "needs a prefix" in str(error)) == ("argument.type", True)


def test_cast_to_its_own_class_returns_the_id() -> None:
    one = ulid.new()
    assert cast(one, ulid.ID) is one


@pytest.mark.parametrize(
    ("id", "to", "code", "why"),
    [
        (sno.new(), ulid.ID, "parse.length", "10 bytes is no ulid.ID, which has 16: bits would be made up"),
        (ksuid.new(), uuid.UUID, "parse.length", "20 bytes is no UUID, which has 16: bits would be lost"),
        (b"short", uuid.UUID, "parse.length", "5 bytes"),
        (5, bytes, "argument.type", "an int has no width"),
        (1 << 128, uuid.UUID, "field.range", "2^128"),
        (-1, ulid.ID, "field.range", "-1"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", ulid.ID, "argument.type", "ID.parse"),
        (None, ulid.ID, "argument.type", "NoneType"),
        (ulid.new(), str, "argument.type", "mintage.text.encode"),
        (ulid.new(), list, "argument.type", "list"),
        (5, list, "argument.type", "list"),
        (ulid.new(), "int", "argument.type", "to must be a class"),
    ],
)
def test_error_of_an_impossible_cast_gives_the_reason(id: Any, to: Any, code: str, why: str) -> None:
    error = refusal(cast, id, to)
    assert (error.code, why in str(error)) == (code, True), str(error)


# --- derive ----------------------------------------------------------------------------------------------------------


def test_derived_id_is_a_version_8_uuid_of_the_documented_hash() -> None:
    parent = ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV")
    one = derive(parent, "invoice")
    assert (one.version, one.variant) == (8, uuid.RFC_4122)
    hashed = hmac.digest(
        hashlib.sha256(b"invoice").digest(), b"mintage.derive\0bytes\0" + bytes(parent), hashlib.sha256
    )
    kept = ~(0xF << 76 | 0x3 << 62)
    assert one.int & kept == int.from_bytes(hashed[:16], "big") & kept & (1 << 128) - 1
    assert one == uuid.UUID("3684020a-a1ef-826b-beee-7fde84b0e6f4")


def test_derived_id_depends_on_parent_and_key() -> None:
    parent = ulid.new()
    assert derive(parent, "invoice") == derive(bytes(parent), b"invoice") == derive(cast(parent, uuid.UUID), "invoice")
    others = [
        derive(parent, "invoice"),
        derive(parent, "Invoice"),
        derive(ulid.new(), "invoice"),
        derive(7, "invoice"),
        derive((7).to_bytes(8, "big"), "invoice"),
        derive(1 << 80, "invoice"),
        derive("a nanoid", "invoice"),
        derive(b"a nanoid", "invoice"),
        derive(b"text\0a nanoid", "invoice"),
    ]
    assert len(set(others)) == len(others)


def test_every_byte_of_a_key_counts() -> None:
    """HMAC alone pads a short key with zero bytes, and hashes one of more than 64."""
    parent, keys = ulid.new(), [b"key" + bytes(zeros) for zeros in range(640)]
    for length in (32, 63, 64, 65, 200):
        key = b"k" * length
        keys += [key, hashlib.sha256(key).digest(), hashlib.sha256(key).digest() + bytes(32)]
    assert len({derive(parent, key) for key in keys}) == len(set(keys)) == 655


def test_derived_id_depends_on_the_prefix_of_a_typeid() -> None:
    parent = ulid.new()
    prefixes = ["", "a", "ab", "user", "users", "user_a"]
    others = {derive(typeid.ID(prefix, parent), "invoice") for prefix in prefixes} | {derive(parent, "invoice")}
    assert len(others) == len(prefixes) + 1
    user = typeid.ID("user", parent)
    assert derive(user, "invoice") == derive(typeid.ID.parse(str(user)), "invoice")


def test_langsmith_sdk_2249_derived_id_without_a_time_never_changes() -> None:
    """It used the clock if the parent had no time, so each call derived another ID."""
    for parent in (uuid.uuid4(), nanoid.new(), 5):
        derived = set()
        for at in ("2020-01-01", "2030-01-01"):
            with freeze(at), time_machine.travel(at):
                derived.add(derive(parent, "replica"))
        assert len(derived) == 1


def test_unsupported_parent_is_refused() -> None:
    assert refusal(derive, ulid.new(), "").code == "field.format"
    assert refusal(derive, ulid.new(), 5).code == "argument.type"
    assert refusal(derive, None, "key").code == "argument.type"
    assert refusal(derive, -1, "key").code == "field.range"


# --- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", text.BASES)
@given(number=st.integers(0, 1 << 200), width=st.integers(0, 60))
def test_integer_is_read_back_from_its_text_of_any_width(base: str, number: int, width: int) -> None:
    shortest = text.encode(number, base)
    assert text.decode(shortest, base) == number
    if width >= len(shortest):
        padded = text.encode(number, base, width=width)
        assert len(padded) == width
        assert text.decode(padded, base) == number
    else:
        assert refusal(text.encode, number, base, width=width).code == "field.range"


@pytest.mark.parametrize("base", text.BASES)
@given(few=st.lists(st.binary(min_size=12, max_size=12), min_size=2, max_size=5))
def test_text_of_bytes_is_read_back_and_sorts_alike(base: str, few: list[bytes]) -> None:
    texts = [text.encode(one, base) for one in few]
    assert [text.decode_bytes(one, base, 12) for one in texts] == few
    assert len({len(one) for one in texts}) == 1
    if base != "base64url":
        assert sorted(texts) == [text.encode(one, base) for one in sorted(few)]
        assert [text.decode(one, base) for one in texts] == [int.from_bytes(one, "big") for one in few]


@given(st.binary(min_size=1, max_size=24))
def test_hex_base32_and_base64url_equal_the_standard_encodings(raw: bytes) -> None:
    assert text.encode(raw, "hex") == raw.hex()
    assert text.encode(raw, "base64url") == base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    if len(raw) == 16:
        assert text.encode(raw) == str(ulid.ID(raw))


def test_id_has_its_own_text_in_its_own_base() -> None:
    own = ((ulid.new(), "base32"), (sno.new(), "base32sno"), (ksuid.new(), "base62"), (objectid.new(), "hex"))
    for one, base in own:
        assert text.encode(one, base) == str(one)


@pytest.mark.parametrize(
    ("wrong", "base", "position"),
    [
        ("0O", "base58", 0),
        ("1!", "base36", 1),
        ("1A", "base36", 1),
        ("é", "hex", 0),
        ("0x1", "hex", 1),
        ("1_0", "hex", 1),
    ],
)
def test_digits_are_read_strictly(wrong: str, base: str, position: int) -> None:
    error = refusal(text.decode, wrong, base)
    assert isinstance(error, ParseError)
    assert (error.code, error.position) == ("parse.character", position)


def test_number_too_large_for_its_bytes_is_refused() -> None:
    assert text.decode_bytes("ff", "hex", 1) == text.decode_bytes("FF", "hex", 1) == b"\xff"
    for wrong, base in (("zz", "base36"), ("zz", "base62"), ("80", "base32")):
        assert text.decode_bytes(text.encode(b"\xff", base), base, 1) == b"\xff"
        assert refusal(text.decode_bytes, wrong, base, 1).code == "parse.character"
    assert refusal(text.decode_bytes, "__", "base64url", 1).code == "parse.character"


def test_wrong_arguments_of_text_functions_are_refused() -> None:
    for call, code in (
        (lambda: text.encode(5, "base37"), "config.policy"),
        (lambda: text.decode("5", "base37"), "config.policy"),
        (lambda: text.decode_bytes("5", "base37", 1), "config.policy"),
        (lambda: text.encode(-1), "field.range"),
        (lambda: text.encode(b""), "field.range"),
        (lambda: text.encode(bytes(25)), "field.range"),
        (lambda: text.encode(b"x", width=5), "argument.type"),
        (lambda: text.encode(5, width=1025), "field.range"),
        (lambda: text.encode(5, width=1 << 70), "field.range"),
        (lambda: text.encode(5, width=-(1 << 70)), "field.range"),
        (lambda: text.encode(5, width="7"), "argument.type"),  # type: ignore[arg-type]
        (lambda: text.encode("\ud800"), "argument.type"),
        (lambda: text.decode("\ud800"), "parse.character"),
        (lambda: text.decode_bytes("\ud800\ud800", "hex", 1), "parse.character"),
        (lambda: text.encode(5, "\ud800"), "config.policy"),
        (lambda: text.encode(1.5), "argument.type"),
        (lambda: text.decode(5), "argument.type"),  # type: ignore[arg-type]
        (lambda: text.decode(""), "parse.length"),
        (lambda: text.decode("1" * 1025), "parse.length"),
        (lambda: text.decode_bytes("5", "hex", 1), "parse.length"),
        (lambda: text.decode_bytes("5", "hex", 0), "field.range"),
        (lambda: text.decode_bytes("5", "hex", 1 << 40), "field.range"),
    ):
        assert refusal(call).code == code


# --- importing -------------------------------------------------------------------------------------------------------


def test_views_are_imported_on_first_use() -> None:
    script = (
        "import sys, mintage; before = set(sys.modules); assert 'uuid' not in before; mintage.cast(5, int);"
        "print(*sorted(name for name in set(sys.modules) - before if name.startswith('mintage')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["mintage.formats", "mintage.formats.cast", "mintage.formats.values"]
    assert {"cast", "derive"} <= set(mintage.__all__)
