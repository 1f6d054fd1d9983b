"""Tests of `mintage.inspect` against the recorded behaviour of real implementations, and with any input."""

from __future__ import annotations

import json
import re
import string
import sys
import time
from array import array
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path
from string import ascii_lowercase
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mintage
from mintage import locality, sno, snowflake, typeid, ulid
from mintage.errors import ArgumentError, ParseError
from mintage.formats import catalogue
from mintage.formats.anatomy import FLOOR, Anatomy, Field, inspect
from mintage.formats.kinds import KINDS
from tests.helpers.cases import each_case
from tests.helpers.vectors import named, vectors

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)  # after everything that was recorded live
NOW_NS = int(NOW.timestamp()) * 10**9
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def recorded(path: str) -> Any:
    """Return the part of a vector file at a path such as ``ulid.oklog.parse``."""
    file, *keys = path.split(".")
    found = vectors(file)
    for key in keys:
        found = found[key]
    return found


def readings(value: object) -> dict[str, Anatomy]:
    """Return the likeliest reading of each name, likeliest first; empty if the value is unknown."""
    try:
        found = inspect(value, now_ns=NOW_NS)
    except ParseError:
        return {}
    assert len({(each.name, each.int) for each in found}) == len(found)
    best: dict[str, Anatomy] = {}
    for each in found:
        best.setdefault(each.name, each)
    return best


def reading(value: object, name: str) -> Anatomy:
    found = readings(value)
    assert name in found, f"{value!r} is read as {list(found)}"
    return found[name]


def values(anatomy: Anatomy) -> dict[str, Any]:
    return {field.name: field.value for field in anatomy.fields}


def at(unix_s: float = 0, **rest: float) -> datetime:
    return EPOCH + timedelta(seconds=unix_s, **rest)


# --- recorded: the schemes that mintage mints ------------------------------------------------------------------------


@each_case("case", recorded("sno.encode_decode") + recorded("sno.raw_decode"), ids=named)
def test_sno_has_the_recorded_fields_in_every_form(case: dict[str, Any]) -> None:
    expected = {name: case[name] for name in ("tick", "meta", "partition", "sequence")} | {"time": case["units"]}
    raw = bytes.fromhex(case["hex"])
    held = UUID(bytes=case["encoded"].encode())
    for form in (case["encoded"], raw, bytearray(raw), memoryview(raw), sno.ID(raw), held, str(held), held.bytes):
        anatomy = reading(form, "sno")
        assert values(anatomy) == expected
        assert (anatomy.text, anatomy.bytes, anatomy.int) == (case["encoded"], raw, int.from_bytes(raw, "big"))
        assert anatomy.time == at(microseconds=case["timestamp_ns"] // 1000)
    if int.from_bytes(raw, "big") >> 64:  # as an integer, one from the scheme's first hours is as narrow as a snowflake
        assert values(reading(int.from_bytes(raw, "big"), "sno")) == expected


@each_case("case", recorded("sno.invalid_decode.pure_go_386"), ids=named)
def test_text_accepted_only_by_lenient_sno_decoders_is_no_sno(case: dict[str, Any]) -> None:
    raw = bytes.fromhex(case["input_hex"])
    valid = re.fullmatch(rb"[2-9a-x]{16}", raw) is not None
    assert ("sno" in readings(raw.decode("latin-1"))) == valid


SNOWFLAKES = [
    *(
        (
            "default",
            case["id"],
            {"time": case["time_ms"] - 1420070400000} | {key: case[key] for key in ("node", "sequence")},
        )
        for case in recorded("callicoder_snowflake.generate")
        if case["custom_epoch_ms"] == 1420070400000
    ),
    *(
        (
            "twitter",
            case["id"],
            {
                "time": case["deconstruct"]["timestamp_ms"] - 1288834974657,
                "datacenter": case["deconstruct"]["workerId"],
                "worker": case["deconstruct"]["processId"],
                "sequence": case["deconstruct"]["increment"],
            },
        )
        for case in recorded("twitter_snowflake.sapphire_twitter")
        if int(case["id"]) < 1 << 63
    ),
    *(
        (
            "twitter",
            case["id"],
            {
                "time": case["time_ms"] - 1288834974657,
                "datacenter": case["node"] >> 5,
                "worker": case["node"] & 31,
                "sequence": case["step"],
            },
        )
        for case in recorded("twitter_snowflake.bwmarrin.explode")
        + recorded("twitter_snowflake.bwmarrin.live_node_786")
    ),
    *(
        (
            "discord",
            case["id"],
            {
                "time": case["deconstruct"]["timestamp_ms"] - 1420070400000,
                "worker": case["deconstruct"]["workerId"],
                "process": case["deconstruct"]["processId"],
                "increment": case["deconstruct"]["increment"],
            },
        )
        for case in recorded("discord_snowflake.vectors")
    ),
    *(
        (
            "instagram",
            case["id"],
            {
                "time": case["time_ms"] - 1314220021721,
                "shard": case["shard"],
                "sequence": case["sequence_mod_1024"],
            },
        )
        for case in recorded("instagram.vectors")
        if case["matches_layout"] and int(case["id"]) >= 0
    ),
    *(
        (
            "sonyflake",
            case["id"],
            {
                "time": case["decompose"]["time"],
                "sequence": case["decompose"]["sequence"],
                "machine": case["decompose"]["machine-id"],
            },
        )
        for case in recorded("sonyflake.v1") + recorded("sonyflake.v1_live_machine_4660")
        if not case.get("error")
    ),
]


@each_case("layout, decimal, expected", SNOWFLAKES)
def test_snowflake_has_the_recorded_fields_in_every_form(layout: str, decimal: str, expected: dict[str, int]) -> None:
    number = int(decimal)
    for form in (number, decimal, number.to_bytes(8, "big"), decimal.encode()):
        anatomy = reading(form, f"snowflake {layout}")
        found = values(anatomy)
        assert found.pop("unused", 0) == 0
        assert found == expected
        assert (anatomy.text, anatomy.int) == (decimal, number)
        parts = catalogue.LAYOUTS[layout].parse(number)
        assert (anatomy.time, parts.fields) == (parts.time, found)


@pytest.mark.parametrize("case", recorded("callicoder_snowflake.beyond_41_bits"), ids=named)
def test_snowflake_with_the_sign_bit_is_unknown(case: dict[str, Any]) -> None:
    assert readings(int(case["id"])) == {}
    assert readings(case["id"]) == {}


def test_snowflake_wider_than_a_layout_is_not_of_it() -> None:
    assert set(readings(1 << 63)) == {"snowflake discord", "snowflake instagram"}
    assert "snowflake discord" not in readings(1 << 64)


def locality_cases() -> list[Any]:
    parsed = [case for case in recorded("locality_uuid.parse") if case["java"].get("version") == "b"]
    return parsed + [{"input": case["ruby"]["text"], **case} for case in recorded("locality_uuid.generate")]


@each_case("case", locality_cases(), ids=named)
def test_locality_uuid_has_the_recorded_fields_in_every_form(case: dict[str, Any]) -> None:
    ruby = case["ruby"]
    uuid = UUID(case["input"])
    forms = [case["input"], uuid, uuid.bytes, uuid.hex, uuid.urn, f"{{{uuid}}}", locality.ID(uuid.bytes)]
    if uuid.int >> 80:  # smaller integers are read as IDs that are narrower
        forms.append(uuid.int)
    for form in forms:
        anatomy = reading(form, "locality")
        found = values(anatomy)
        assert (found["version"], found["pid"], found["time"]) == ("b", ruby["pid"], ruby["timestamp_ms"])
        assert "_____" + found["mac"] == ruby["mac"]
        assert found["counter"] == int(uuid.hex[:8][::-1], 16)
        if case.get("mode") == "var":
            assert found["counter"] == ruby["counter_after"] % (1 << 32)
        assert anatomy.text == str(uuid)
        assert anatomy.time == (
            at(microseconds=1000 * ruby["timestamp_ms"]) if ruby["timestamp_ms"] < 253402300800000 else None
        )


# Text that Java and Ruby refuse, except the form without hyphens, which RFC 9562 readers accept.
@pytest.mark.parametrize("case", recorded("locality_uuid.invalid"), ids=lambda case: ascii(case["input"]))
def test_text_that_the_originals_refuse_is_no_locality_uuid(case: dict[str, Any]) -> None:
    known = {"20be0ffc314abd537a50013a65ca76d2", "{20be0ffc-314a-bd53-7a50-013a65ca76d2}"}
    assert set(readings(case["input"])) == ({"locality"} if case["input"] in known else set())


# --- recorded: other formats ------------------------------------------------------------------------------------------


@each_case("case", [case for case in recorded("ulid.oklog.generate") if not case.get("error")])
def test_ulid_has_the_recorded_fields_in_every_form(case: dict[str, Any]) -> None:
    raw = bytes.fromhex(case["hex"])
    for form in (case["text"], case["text"].lower(), raw):
        anatomy = reading(form, "ulid")
        assert values(anatomy) == {"time": case["time_ms"], "random": case["entropy_hex"]}
        assert (anatomy.text, anatomy.bytes) == (case["text"], raw)
        assert anatomy.time == (at(microseconds=1000 * case["time_ms"]) if case["time_ms"] < 253402300800000 else None)


CROCKFORD = {ord(each): each.upper() for each in ascii_lowercase}
CROCKFORD |= dict.fromkeys(b"iIlL", "1") | dict.fromkeys(b"oO", "0")
"""The characters that readers of base 32 take for others, by its specification."""


@pytest.mark.parametrize("case", recorded("ulid.oklog.parse"), ids=lambda case: ascii(case["input"]))
def test_ulid_is_read_strictly_as_specified(
    case: dict[str, Any],
) -> None:
    plain = case["input"].translate(CROCKFORD)
    strict = case["ParseStrict_error"] is None or plain != case["input"].upper()
    found = readings(case["input"])
    assert ("ulid" in found) == strict
    if strict:
        assert found["ulid"].text == plain
        assert case["ParseStrict_error"] or found["ulid"].bytes.hex() == case["ParseStrict_hex"]


@pytest.mark.parametrize("text", ["o1arz3ndektsv4rrffq69g5fav", "OLARZ3NDEKTSV4RRFFQ69G5FAI"])
def test_ulid_with_letters_for_digits_is_a_variant(text: str) -> None:
    found = reading(text, "ulid")
    assert found.text == text.translate(CROCKFORD)
    assert found.likelihood < reading(found.text, "ulid").likelihood
    assert found.why.startswith("Readable text, though not canonical")


@pytest.mark.parametrize("case", recorded("ulid.python_ulid.decode"), ids=named)
def test_python_ulid_agrees_about_integers_and_uuids(case: dict[str, Any]) -> None:
    if "ok" in case:
        expected = {"time": case["ok"]["milliseconds"], "random": case["ok"]["hex"][12:]}
        assert values(reading(case["input"], "ulid")) == expected
        if case["ok"]["milliseconds"] < NOW_NS // 10**6:
            assert values(reading(int(case["ok"]["int"]), "ulid")) == expected
            assert values(reading(UUID(case["ok"]["uuid"]), "ulid")) == expected
    else:
        assert ("ulid" in readings(case["input"])) == (case["input"].translate(CROCKFORD) != case["input"])


@each_case("case", [case for case in recorded("ksuid.segmentio.generate") if not case["error"]], ids=named)
def test_ksuid_has_the_recorded_fields(case: dict[str, Any]) -> None:
    raw = bytes.fromhex(case["hex"])
    for form in (case["text"], raw):
        anatomy = reading(form, "ksuid")
        assert values(anatomy) == {"time": case["timestamp_u32"], "payload": case["payload_hex"]}
        assert (anatomy.text, anatomy.bytes) == (case["text"], raw)
        assert anatomy.time == at(1_400_000_000 + case["timestamp_u32"])


@pytest.mark.parametrize("case", recorded("ksuid.svix_ksuid.decode"), ids=named)
def test_text_refused_by_a_strict_ksuid_parser_is_no_ksuid(case: dict[str, Any]) -> None:
    # svix alone also takes 26 characters; the format has 27.
    assert ("ksuid" in readings(case["input"])) == ("ok" in case and len(case["input"]) == 27)


@each_case("case", recorded("xid.rs_xid.generate") + recorded("xid.rs_xid.raw"), ids=named)
def test_xid_has_the_recorded_fields(case: dict[str, Any]) -> None:
    raw = bytes.fromhex(case["hex"])
    for form in (case["text"], raw):
        anatomy = reading(form, "xid")
        found = values(anatomy)
        assert found == {
            "time": case["time_unix"],
            "machine": case["machine_hex"],
            "pid": case["pid"],
            "counter": case["counter"],
        }
        assert (anatomy.text, anatomy.bytes, anatomy.time) == (case["text"], raw, at(case["time_unix"]))


@pytest.mark.parametrize("case", recorded("xid.rs_xid.invalid"), ids=named)
def test_text_refused_by_the_xid_parser_is_no_xid(case: dict[str, Any]) -> None:
    assert ("xid" in readings(case["input"])) == (case["FromString_error"] is None)


@pytest.mark.parametrize("case", recorded("objectid.pymongo.decode"), ids=named)
def test_objectid_has_the_recorded_fields(case: dict[str, Any]) -> None:
    for form in (case["hex_in"], case["str"], bytes.fromhex(case["binary_hex"])):
        anatomy = reading(form, "objectid")
        assert values(anatomy) == {
            "time": case["time_unix"],
            "process": case["random_hex"],
            "counter": case["counter"],
        }
        assert (anatomy.text, anatomy.time) == (case["str"], datetime.fromisoformat(case["generation_time"]))


@pytest.mark.parametrize("case", recorded("objectid.npm_bson.isValid"), ids=lambda case: str(case["input"]))
def test_text_refused_by_bson_is_no_objectid(case: dict[str, Any]) -> None:
    if isinstance(case["input"], str):
        assert ("objectid" in readings(case["input"])) == case["result"]


@each_case("case", recorded("sandflake.generate"), ids=named)
def test_sandflake_has_the_recorded_fields(case: dict[str, Any]) -> None:
    anatomy = reading(case["text"], "sandflake")
    # The original's time is wrong beyond the nanoseconds that 64 bits hold; its bits are not.
    ms = int(case["hex"][:12], 16)
    assert ms == case["time_ms"] or ms > (1 << 63) // 10**6
    assert values(anatomy) == {
        "time": ms,
        "worker": case["worker_hex"],
        "sequence": case["sequence"],
        "random": case["random_hex"],
    }
    assert (anatomy.text, anatomy.bytes.hex()) == (case["text"], case["hex"])


@pytest.mark.parametrize("case", recorded("sandflake.parse"), ids=lambda case: ascii(case["input"]))
def test_only_canonical_text_is_a_sandflake(case: dict[str, Any]) -> None:
    canonical = case["error"] is None and case["reencoded"] == case["input"]
    assert ("sandflake" in readings(case["input"])) == canonical


def cuids() -> list[tuple[str, int, int | None, str]]:
    # A time of 0 has 1 digit; no cuid is older than 1972, and a text that looks so is another ID.
    js = [case for case in recorded("cuid.js.generate") if "cuid" in case and case["time_ms"] > 0]
    go = recorded("cuid.go_lucsky.generate")
    return [
        *((case["cuid"], case["time_ms"], case["counter"], case["fingerprint"]) for case in js),
        *((case["cuid"], case["time_ms_between"][0], case["counter"], case["fingerprint"]) for case in go),
        *(
            (text, round(case["time_s"] * 1000), None, case["fingerprint"])
            for case in recorded("cuid.python.generate")
            for text in case["ids"]
        ),
    ]


@each_case("text, time_ms, counter, fingerprint", cuids())
def test_cuid_has_the_recorded_fields(text: str, time_ms: int, counter: int | None, fingerprint: str) -> None:
    anatomy = reading(text, "cuid")
    found = values(anatomy)
    assert abs(found["time"] - time_ms) <= 1  # the Go library was given no clock, but an interval is recorded
    assert found["prefix"] == "c"
    assert counter is None or found["counter"] == counter
    assert (found["fingerprint"], found["random"]) == (fingerprint, text[-8:])
    assert (anatomy.text, anatomy.bytes) == (text, text.encode())


@pytest.mark.parametrize("case", recorded("cuid.js.validate") + recorded("cuid.go_lucsky.validate"), ids=named)
def test_cuid_needs_more_than_its_first_letter(case: dict[str, Any]) -> None:
    genuine = {"ch72gsb320000udocl363eofy"}
    if isinstance(case["input"], str):
        assert ("cuid" in readings(case["input"])) == (case["input"] in genuine)


def test_time_of_a_cuid_is_not_padded() -> None:
    assert "cuid" in readings("c172gsb320000udocl363eofy")
    assert readings("c072gsb320000udocl363eofy") == {}


@pytest.mark.parametrize("case", recorded("cuid.cuid2_js.generate"), ids=named)
def test_cuid2_of_default_length_is_read_only_if_nothing_else_fits(case: dict[str, Any]) -> None:
    assert list(readings(case["id"])) == (["cuid2"] if case["length"] == 24 else [])


@each_case("case", recorded("nanoid.python.vectors") + recorded("nanoid.js.custom_random"), ids=named)
def test_nanoid_of_default_length_is_read_last(case: dict[str, Any]) -> None:
    found = readings(case["id"])
    if len(case["id"]) != 21 or not set(case["id"]) <= set(string.ascii_letters + string.digits + "-_"):
        assert "nanoid" not in found
    elif set(found) == {"nanoid"}:
        assert found["nanoid"].likelihood < 0.1
        assert values(found["nanoid"]) == {"random": case["id"]}
    else:  # a decimal number or the like
        assert set(case["id"]) <= set("0123456789abcdefghijklmnopqrstuvwxyz")


# --- recorded: UUIDs --------------------------------------------------------------------------------------------------


@each_case("case", recorded("uuid.rfc9562.vectors") + recorded("uuid.python_decode_random"), ids=named)
def test_uuid_has_the_recorded_version_and_fields(case: dict[str, Any]) -> None:
    version = case["version"]
    uuid = UUID(case["uuid"])
    for form in (case["uuid"], uuid, uuid.bytes, uuid.int, uuid.hex.upper(), uuid.urn, f"{{{uuid}}}"):
        anatomy = reading(form, f"uuid v{version}")
        found = values(anatomy)
        assert (found["version"], found["variant"]) == (version, 2)
        assert (anatomy.text, anatomy.int, anatomy.bytes) == (str(uuid), int(case["int"]), uuid.bytes)
        if version in {1, 6}:
            ticks = found["time_high"] << 48 | found["time_mid"] << 32 | found["time_low"]
            if version == 6:
                ticks = found["time_high"] << 28 | found["time_mid"] << 12 | found["time_low"]
            assert (found["clock_seq"], found["node"]) == (case["clock_seq"], case["node_hex"])
            recorded_ticks = case.get("time_field") if version == 1 else case.get("uuid6_time", ticks)
            assert ticks in {recorded_ticks, case.get("stdlib_time_field(v1)")}
            assert anatomy.time == datetime(1582, 10, 15, tzinfo=UTC) + timedelta(microseconds=ticks // 10)
        elif version == 7:
            assert found["time"] == uuid.int >> 80
        else:
            assert anatomy.time is None


@each_case("case", recorded("uuid.npm_uuid.generate"), ids=named)
def test_uuid_has_the_time_it_was_made_from(case: dict[str, Any]) -> None:
    anatomy = reading(case["ok"], f"uuid v{case['version']}")
    if 0 <= case["options"].get("msecs", -1) < 103072857660684:  # the end of version 1, beyond which it wraps
        ns = case["options"].get("nsecs", 0)  # npm counts the 100 ns within the millisecond
        expected = at(microseconds=1000 * case["options"]["msecs"] + (ns // 10 if case["version"] != 7 else 0))
        assert anatomy.time == expected


@pytest.mark.parametrize("case", recorded("uuid.npm_uuid.v1_v6_conversion"), ids=named)
def test_versions_1_and_6_of_one_instant_have_one_time(case: dict[str, Any]) -> None:
    assert reading(case["v1"], "uuid v1").time == reading(case["v6"], "uuid v6").time


@pytest.mark.parametrize("case", recorded("uuid.stdlib_from_fields"), ids=named)
def test_version_1_reaches_from_1582_to_5236(case: dict[str, Any]) -> None:
    anatomy = reading(case["uuid"], "uuid v1")
    assert anatomy.time == at(microseconds=int(case["unix_ns"]) // 1000)
    assert values(anatomy)["node"] == case["node_hex"]


def test_nil_and_max_uuid_are_recognised() -> None:
    assert list(readings(UUID(int=0))) == ["uuid nil"]
    assert list(readings("FFFFFFFF-ffff-ffff-ffff-ffffffffffff")) == ["uuid max"]


def test_uuid_of_an_undefined_version_is_still_a_uuid() -> None:
    assert list(readings("12345678-1234-1234-1234-123456789012")) == ["uuid other"]
    assert "uuid other" not in readings(bytes.fromhex("12345678123412341234123456789012"))


def test_node_of_a_version_1_uuid_is_classified_as_mac_or_random() -> None:
    card = reading("c232ab00-9414-11ec-b3c8-0242ac110002", "uuid v1").fields[-1]
    chance = reading("c232ab00-9414-11ec-b3c8-9f6bdeced846", "uuid v1").fields[-1]
    assert card.meaning == "MAC address 02:42:ac:11:00:02"
    assert chance.meaning == "9f:6b:de:ce:d8:46, random: its multicast bit is set"


# --- ranking ----------------------------------------------------------------------------------------------------------

LIKELIEST = {
    "brpk4q72xwf2m63l": "sno",
    "175928847299117063": "snowflake default",  # its time is Discord's as well: the epochs are equal
    "2123939174648193024": "snowflake twitter",  # of the future in the layouts that start in 2015
    "20be0ffc-314a-bd53-7a50-013a65ca76d2": "locality",
    "017f22e2-79b0-7cc3-98c4-dc0c0c07398f": "uuid v7",
    "01563e3a-b5d3-d676-4c61-efb99302bd5b": "ulid",  # in a UUID that has no valid variant
    "01ARZ3NDEKTSV4RRFFQ69G5FAV": "ulid",
    "05E4ECYW2G0G40R40000A1G710": "sandflake",  # as a ULID it would be of 2159
    "9m4e2mr0ui3e8a215n4g": "xid",
    "cmwpojtit0000abcd3bj5hs0f": "cuid",
    "507f1f77bcf86cd799439011": "objectid",
    "507177757786607799439011": "objectid",  # and a decimal number
    "0ujtsYcgvSTl8PAuAdqWYSMnLOv": "ksuid",
}


@pytest.mark.parametrize("text", LIKELIEST)
def test_likeliest_reading_comes_first(text: str) -> None:
    assert next(iter(readings(text))) == LIKELIEST[text]


def test_past_snowflake_ranks_above_near_and_then_far_future() -> None:
    def likelihood(moment: datetime) -> float:
        return reading(snowflake.DEFAULT.min_at(moment), "snowflake default").likelihood

    past, soon, future = (likelihood(NOW + timedelta(days=days)) for days in (-1, 1, 400))
    assert past > soon > future > FLOOR


def test_id_from_before_2005_ranks_below_a_later_one() -> None:
    before, after = (
        reading((milliseconds << 80 | 5).to_bytes(16, "big"), "ulid").likelihood
        for milliseconds in (1_104_537_599_999, 1_104_537_600_000)
    )
    assert after > 10 * before


def test_more_common_of_two_equal_formats_comes_first() -> None:
    assert list(readings(bytes.fromhex("01563e3ab5d3d6764c61efb99302bd5b"))) == ["ulid", "sandflake"]
    assert list(readings(bytes.fromhex("507f1f77bcf86cd799439011"))) == ["objectid", "xid"]


def test_small_number_is_an_unlikely_snowflake() -> None:
    for number in (0, 5, 1_700_000_000):
        assert all(each.likelihood < 0.1 for each in readings(number).values())


def test_canonical_text_ranks_above_variants_and_borrowed_uuids() -> None:
    canonical, lower, borrowed = (
        reading(form, "ulid").likelihood
        for form in ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "01arz3ndektsv4rrffq69g5fav", "01563e3a-b5d3-d676-4c61-efb99302bd5b")
    )
    assert canonical > lower > borrowed


def test_random_uuid_has_no_other_reading() -> None:
    for _ in range(200):
        uuid = uuid4()
        if int(uuid) >> 80 > 2 * NOW_NS // 10**6:
            assert list(readings(uuid)) == ["uuid v4"]


def test_system_clock_judges_times_by_default() -> None:
    soon = time.time_ns() // 10**6 + 86_400_000
    text = str(snowflake.DEFAULT.compose(timestamp_ms=soon, node=1))
    assert inspect(text)[0].likelihood < inspect(text, now_ns=10**6 * soon + 10**9)[0].likelihood


def test_ids_of_mintage_are_recognised_first() -> None:
    assert inspect(sno.new())[0].name == "sno"
    assert inspect(str(sno.new()))[0].name == "sno"
    assert inspect(bytes(sno.new()))[0].name == "sno"
    assert inspect(int(sno.new()))[0].name == "sno"
    assert inspect(sno.new().as_uuid())[0].name == "sno"
    assert inspect(snowflake.new())[0].name == "snowflake default"
    assert inspect(locality.new())[0].name == "locality"
    assert inspect(locality.new().as_uuid())[0].name == "locality"


def test_locality_id_of_another_uuid_is_read_as_that_uuid() -> None:
    assert inspect(locality.ID.parse("c232ab00-9414-41ec-b3c8-9f6bdeced846"))[0].name == "uuid v4"


# --- properties of an anatomy -----------------------------------------------------------------------------------------

BITS = st.one_of(
    st.integers(0, (1 << 64) - 1),
    st.integers(0, (1 << 80) - 1),
    st.integers(0, (1 << 128) - 1),
)
IDS = st.one_of(
    BITS,
    st.sampled_from([8, 10, 12, 16, 20]).flatmap(lambda size: st.binary(min_size=size, max_size=size)),
    st.uuids(),
    st.from_regex(r"[2-9a-x]{16}", fullmatch=True),
    st.from_regex(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", fullmatch=True),
    st.from_regex(r"[0-9A-Za-z]{27}", fullmatch=True),
    st.from_regex(r"[0-9a-v]{19}[0g]", fullmatch=True),
    st.from_regex(r"[0-9a-fA-F]{24}", fullmatch=True),
    st.from_regex(r"c[0-9a-z]{17,25}", fullmatch=True),
    st.sampled_from(list(LIKELIEST)),
)


@given(IDS)
def test_fields_cover_all_bits_from_high_to_low(value: object) -> None:
    for anatomy in readings(value).values():
        above = 8 * len(anatomy.bytes)
        for field in anatomy.fields:
            high, low = field.bits
            assert high == above - 1
            assert field.width == high - low + 1
            above = low
        assert above == 0
        assert int.from_bytes(anatomy.bytes, "big") == anatomy.int


@given(IDS)
def test_value_of_a_field_equals_its_bits(value: object) -> None:
    for anatomy in readings(value).values():
        for field in anatomy.fields:
            raw = anatomy.int >> field.bits[1] & (1 << field.width) - 1
            if isinstance(field.value, int) and anatomy.scheme != "cuid" and field.name != "counter":
                assert field.value == raw
            elif isinstance(field.value, str) and anatomy.bytes != anatomy.text.encode():
                assert int(field.value, 16) == raw


@given(IDS)
def test_canonical_text_of_a_reading_has_the_same_reading(value: object) -> None:
    for name, anatomy in readings(value).items():
        again = readings(anatomy.text)
        # A sno or a UUID with few bits set is as narrow, in decimal, as another integer; its text says what it is.
        assert name in again
        assert again[name].fields == anatomy.fields
        assert again[name].bytes == anatomy.bytes


@given(IDS)
def test_readings_are_sorted_by_likelihood_above_the_minimum(value: object) -> None:
    likelihoods = [anatomy.likelihood for anatomy in readings(value).values()]
    assert likelihoods == sorted(likelihoods, reverse=True)
    assert all(FLOOR <= likelihood <= 1 for likelihood in likelihoods)


@given(IDS)
def test_as_dict_survives_json_in_any_language(value: object) -> None:
    for anatomy in readings(value).values():
        dumped = anatomy.as_dict()
        assert json.loads(json.dumps(dumped)) == dumped
        numbers = [field["value"] for field in dumped["fields"] if isinstance(field["value"], int)]  # type: ignore[attr-defined]
        assert all(number < 1 << 32 for number in numbers)
        assert isinstance(dumped["int"], str)


@given(BITS)
def test_decimal_text_is_the_integer(number: int) -> None:
    assert set(inspect(number, now_ns=NOW_NS)) <= set(inspect(str(number), now_ns=NOW_NS))


@given(IDS)
def test_bytes_that_hold_text_are_read_as_the_text(value: object) -> None:
    if isinstance(value, str):
        as_bytes = readings(value.encode())
        assert readings(value).keys() <= as_bytes.keys()


def test_as_dict_contains_everything() -> None:
    assert reading("brpk4q72xwf2m63l", "sno").as_dict() == {
        "scheme": "sno",
        "layout": None,
        "text": "brpk4q72xwf2m63l",
        "bytes": "4e6f2160a0ff9a0a1033",
        "int": "370394579355234764197939",
        "time": "2031-05-08T23:03:34.976Z",
        "likelihood": 0.05,
        "why": "Canonical text; time more than a year ahead.",
        "fields": [
            {
                "name": "time",
                "role": "time",
                "bits": [79, 41],
                "value": "168435953744",
                "meaning": "ticks of 4 ms since 2010-01-01",
            },
            {"name": "tick", "role": "meta", "bits": [40, 40], "value": 0, "meaning": "timeline 0"},
            {"name": "meta", "role": "meta", "bits": [39, 32], "value": 255, "meaning": "the user's byte"},
            {"name": "partition", "role": "node", "bits": [31, 16], "value": 39434, "meaning": "where it was minted"},
            {"name": "sequence", "role": "sequence", "bits": [15, 0], "value": 4147, "meaning": "counts within a tick"},
        ],
    }


def test_anatomy_and_its_fields_cannot_be_changed() -> None:
    anatomy = reading("brpk4q72xwf2m63l", "sno")
    with pytest.raises(AttributeError):
        anatomy.scheme = "xid"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        anatomy.fields[0].value = 5  # type: ignore[misc]
    assert isinstance(anatomy.fields[0], Field)


def test_inspect_is_public() -> None:
    assert mintage.inspect is inspect
    assert mintage.Anatomy is Anatomy


# --- invalid IDs ------------------------------------------------------------------------------------------------------

HOSTILE: dict[str, object] = {
    "a megabyte of text": "x" * 10**6,
    "a megabyte of digits": "9" * 10**6,
    "a megabyte of zeros": b"\x00" * 10**6,
    "a view of a megabyte": memoryview(bytes(10**6)),
    "a view of 64-bit items": memoryview(array("Q", range(1000))),
    "every other byte": memoryview(b"x" * 100)[::2],
    "an integer of 5,001 digits": 10**5000,
    "minus that": -(10**5000),
    "a negative integer": -1,
    "negative text": "-1",
    "nothing": "",
    "no bytes": b"",
    "NUL": "\x00",
    "control characters": "\x1b[31m\r\n\x07",
    "lone surrogates": "\ud800" * 16,
    "a line break at the end": "brpk4q72xwf2m63l\n",
    "space around": " brpk4q72xwf2m63l ",
    "digits of another script": "\u0661" * 18,
    "full-width digits": "\uff11" * 16,
    "superscripts": "\u00b2" * 16,
    "letters that fold to ASCII": "\u017f" * 26,
    "what Python takes for a number": "1_000",
    "a sign": "+5",
    "leading zeros": "007",
    "129 bits": 1 << 128,
    "40 digits": "1" * 40,
    "a UUID with a wrong hyphen": "20be0ffc_314a-bd53-7a50-013a65ca76d2",
    "a UUID with a sign": "-0be0ffc-314a-bd53-7a50-013a65ca76d2",
}


@each_case("name", HOSTILE)
def test_unknown_input_is_one_short_printable_error(name: str) -> None:
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        with pytest.raises(ParseError) as caught:
            inspect(HOSTILE[name])
    finally:
        sys.setprofile(None)
    # At once: the work is bounded for any length.
    assert calls < 2_000
    assert caught.value.code == "parse.unknown"
    message = str(caught.value)
    assert message.isascii()
    assert message.isprintable()
    assert len(message) < 480
    assert message.endswith(" is not an ID of any known scheme")


def test_error_shows_the_value_or_its_start_and_size() -> None:
    def message(value: object) -> str:
        with pytest.raises(ParseError) as caught:
            inspect(value)
        return str(caught.value)

    assert message("frob").startswith("'frob' is not")
    assert message("x" * 100).startswith(f"'{'x' * 40}'... (100 characters) is not")
    assert message(-1).startswith("-1 is not")
    assert message(1 << 200).startswith("an integer of 201 bits is not")
    assert message(b"\x01\xff").startswith("bytes 01ff is not")
    assert message(b"\xff" * 30).startswith(f"bytes {'ff' * 20}... (30 bytes) is not")


@given(st.one_of(st.text(), st.binary(), st.integers(), st.text("0123456789abcdef-{}:", max_size=50)))
def test_any_input_is_an_id_or_that_error(value: object) -> None:
    readings(value)


@pytest.mark.parametrize("value", [None, True, 1.5, [], {}, object(), 1j, datetime.now(UTC), array("Q", [1])])
def test_wrong_type_is_an_argument_error_with_its_name(value: object) -> None:
    with pytest.raises(ArgumentError, match=type(value).__name__) as caught:
        inspect(value)
    assert caught.value.code == "argument.type"
    assert isinstance(caught.value, TypeError)


def test_integer_like_values_are_read_as_integers() -> None:
    class Item:
        def __index__(self) -> int:
            return 175928847299117063

    class Member(IntEnum):
        ONE = 175928847299117063

    assert readings(Item()) == readings(Member.ONE) == readings(175928847299117063)


# --- locks of others -------------------------------------------------------------------------------------------------


@each_case("case", recorded("tsid.encode"), ids=named)
def test_tsid_has_the_recorded_time_and_remainder(case: dict[str, Any]) -> None:
    tsid = reading(case["text"], "tsid")
    assert (tsid.int, tsid.text) == (int(case["number"]), case["text"])
    assert values(tsid) == {"time": (case["timestamp_ms"] - 1_577_836_800_000), "random": f"{case['random']:06x}"}
    assert tsid.time == at(milliseconds=case["timestamp_ms"])


@pytest.mark.parametrize("case", recorded("tsid.parse"), ids=lambda case: ascii(case["text"]))
def test_text_that_tsidpy_misreads_is_no_tsid(case: dict[str, Any]) -> None:
    found = readings(case["text"]).get("tsid")
    if "ok" in case and case["text"] not in ("GZZZZZZZZZZZZ", "0DXBQ9H279RU5"):
        assert found is not None
        assert found.int == int(case["ok"])
    else:
        assert found is None


@each_case("case", recorded("randflake.encode"), ids=named)
def test_randflake_is_read_as_opaque_bits(case: dict[str, Any]) -> None:
    if len(case["text"]) < 13:
        assert "randflake" not in readings(case["text"])
        return
    randflake = reading(case["text"], "randflake")
    assert randflake.int == int(case["number"]) % 2**64
    assert randflake.time is None


@pytest.mark.parametrize("case", [case for case in recorded("typeid.valid") if case["prefix"]], ids=named)
def test_typeid_is_read_as_the_bits_after_its_prefix(case: dict[str, Any]) -> None:
    for value in (case["typeid"], typeid.ID.parse(case["typeid"])):
        first = inspect(value, now_ns=NOW_NS)[0]
        assert first.int == UUID(case["uuid"]).int
        assert "TypeID" in first.why


@pytest.mark.parametrize("name", ["uuid", "ulid", "locality", "sandflake"])
def test_typeid_over_each_format_is_read_as_that_format(name: str) -> None:
    one = KINDS[name].module.Generator().new()
    for value in (typeid.ID("order", one), str(typeid.ID("order", one))):
        assert {name} <= {each.scheme for each in inspect(value) if each.int == int(one)}


@pytest.mark.parametrize("year", [1970, 2003, 2040, 9999])
def test_typeid_of_any_time_is_read(year: int) -> None:
    one = ulid.ID.from_parts(timestamp_ms=(year - 1970) * 31_556_952_000, random=1)
    assert inspect(str(typeid.ID("order", one)), now_ns=NOW_NS)[0].text == str(one)


@each_case("case", recorded("typeid.invalid"), ids=named)
def test_invalid_typeid_is_not_read_as_one(case: dict[str, Any]) -> None:
    assert all("TypeID" not in each.why for each in readings(case["typeid"]).values())


# --- quality of the ranking ------------------------------------------------------------------------------------------


def texts_of(path: str, key: str) -> list[str]:
    return [str(case[key]) for case in recorded(path) if case.get(key) and not case.get("error")]


HELD: dict[str, list[str]] = {
    "sno": texts_of("sno.encode_decode", "encoded"),
    "snowflake default": texts_of("callicoder_snowflake.generate", "id"),
    "snowflake twitter": texts_of("twitter_snowflake.bwmarrin.explode", "id"),
    "snowflake discord": texts_of("discord_snowflake.vectors", "id"),
    "snowflake instagram": texts_of("instagram.vectors", "id"),
    "snowflake sonyflake": texts_of("sonyflake.v1", "id"),
    "locality": [case["ruby"]["text"] for case in recorded("locality_uuid.generate")],
    "uuid": texts_of("uuid.python_decode_random", "uuid") + texts_of("uuid.rfc9562.vectors", "uuid"),
    "typeid": [case["typeid"] for case in recorded("typeid.valid") if case["prefix"]],
    "ulid": texts_of("ulid.oklog.generate", "text"),
    "ksuid": texts_of("ksuid.segmentio.generate", "text"),
    "ksuid_ms": [case["ok"]["text"] for case in recorded("ksuid.svix_ksuid.generate") if case["class"] == "KsuidMs"],
    "xid": texts_of("xid.rs_xid.generate", "text"),
    "objectid": texts_of("objectid.pymongo.decode", "str"),
    "sandflake": texts_of("sandflake.generate", "text"),
    "cuid": texts_of("cuid.js.generate", "cuid"),
    "cuid2": texts_of("cuid.cuid2_js.generate", "id"),
    "nanoid": texts_of("nanoid.python.vectors", "id"),
    "tsid": texts_of("tsid.encode", "text"),
    "randflake": texts_of("randflake.encode", "text"),
}
"""Texts of each format as real implementations wrote them, some with impossible times or of odd lengths."""


def comes_first(text: str, name: str) -> tuple[bool, bool]:
    """Return whether the value is read as that format, and whether that reading is the first."""
    try:
        found = inspect(text, now_ns=NOW_NS)
    except ParseError:
        return False, False
    said = ["typeid" if "TypeID" in each.why else each.name if each.name in HELD else each.scheme for each in found]
    return name in said, said[0] == name


def test_documented_table_counts_the_first_readings() -> None:
    rows = []
    for name, texts in HELD.items():
        counted = [comes_first(text, name) for text in texts]
        rows.append(f"| {name} | {len(texts)} | {sum(a for a, _ in counted)} | {sum(b for _, b in counted)} |")
    page = (Path(__file__).parents[2] / "docs" / "reference" / "inspect.md").read_text("utf-8")
    shown = [line for line in page.splitlines() if re.match(r"\| [a-z0-9_ ]+ \| [0-9]+ \|", line)]
    assert shown == rows, "\n".join(rows)


def test_notebook_shows_a_reading_as_a_table_of_escaped_text() -> None:
    one = reading("brpk4q72xwf2m63l", "sno")
    assert one._repr_html_().count("<tr>") == len(one.fields)
    odd = one._replace(text="<script>", why="a & b", fields=(one.fields[0]._replace(name="<i>"),))
    shown = odd._repr_html_()
    assert "<td>&lt;i&gt;</td>" in shown
    assert "&lt;script&gt;" in shown
    assert "a &amp; b" in shown
