"""Tests of sno: the recorded behaviour of the Go library, its faults, and our promises beyond it."""

from __future__ import annotations

import copy
import json
import pickle
import re
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage import errors, sno, ulid
from mintage.testing import ManualClock
from tests.helpers.cases import each_case
from tests.helpers.vectors import vectors

Case = dict[str, Any]

GO = vectors("sno")
DECODED: list[Case] = GO["encode_decode"] + GO["raw_decode"]
INVALID: list[Case] = [case for decoder in GO["invalid_decode"].values() for case in decoder]
ACCEPTED: list[Case] = [case for case in GO["bounds"] if "accepted" in case]
REFUSED: list[Case] = [case for case in GO["bounds"] if "error" in case]

ALPHABET = "23456789abcdefghijklmnopqrstuvwx"
CANONICAL = re.compile(r"[2-9a-x]{16}")
LAST_UNIT = 2**39 - 1
FOREVER_MS = 2**32 - 1


def ns(unit: int) -> int:
    """Return the first nanosecond of a unit: 4 ms each, since 2010."""
    return (1_262_304_000_000 + 4 * unit) * 1_000_000


def unit_of(one: sno.ID) -> int:
    return (one.timestamp_ns - ns(0)) // 4_000_000


def nanoseconds(rfc3339: str) -> int:
    """Return nanoseconds since 1970; the parser of Python stops at microseconds."""
    match = re.fullmatch(r"(.{19})\.?(\d*)(Z|[+-]\d\d:\d\d)", rfc3339)
    assert match
    second = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
    return int(second.timestamp()) * 10**9 + int(match[2].ljust(9, "0"))


def from_go(**fields: object) -> sno.Snapshot:
    """Return a snapshot as the Go library writes it, with missing fields zero."""
    zero = {"sequenceMin": 0, "sequenceMax": 0, "sequence": 0, "now": 0, "wallHi": 0, "wallSafe": 0, "drifts": 0}
    return sno.Snapshot.from_json(json.dumps({"partition": [171, 205], **zero, **fields}))


ids = st.binary(min_size=10, max_size=10).map(sno.ID)
units = st.integers(0, LAST_UNIT)


# ------------------------------------------------------------------------------------------------------------- format


@each_case("case", GO["encode_decode"])
def test_fields_compose_to_the_bytes_of_go(case: Case) -> None:
    fields = dict(case["input"])
    one = sno.ID.from_parts(timestamp_ns=ns(fields.pop("units")), **fields)
    assert bytes(one).hex() == case["hex"]


@each_case("case", DECODED)
def test_bytes_have_the_fields_of_go(case: Case) -> None:
    one = sno.ID(bytes.fromhex(case["hex"]))
    read = (unit_of(one), one.tick, one.meta, one.partition, f"{one.partition:04x}", one.sequence, one.is_zero)
    names = ("units", "tick", "meta", "partition", "partition_hex", "sequence", "is_zero")
    assert read == tuple(case[name] for name in names)


@each_case("case", DECODED)
def test_bytes_encode_to_the_text_of_go(case: Case) -> None:
    assert str(sno.ID(bytes.fromhex(case["hex"]))) == case["encoded"]


@each_case("case", DECODED)
def test_text_parses_to_the_bytes_of_go(case: Case) -> None:
    assert bytes(sno.ID.parse(case["encoded"])).hex() == case["hex"]


@each_case("case", DECODED)
def test_id_has_the_timestamp_of_go(case: Case) -> None:
    assert sno.ID(bytes.fromhex(case["hex"])).timestamp_ns == case["timestamp_ns"] == case["time_unix_nano"]


@each_case("case", DECODED)
def test_id_has_the_time_of_go(case: Case) -> None:
    time = sno.ID(bytes.fromhex(case["hex"])).time
    assert time.tzinfo is UTC
    assert f"{time:%Y-%m-%dT%H:%M:%S.%f}".rstrip("0").rstrip(".") + "Z" == case["time_rfc3339"]


@each_case("case", DECODED)
def test_json_equals_that_of_go_with_null_for_zero(case: Case) -> None:
    assert json.dumps(sno.ID(bytes.fromhex(case["hex"])).as_json()) == case["json"]


@each_case("case", DECODED)
def test_json_reads_back_as_the_same_id(case: Case) -> None:
    assert bytes(sno.ID.from_json(json.loads(case["json"]))).hex() == case["hex"]


def test_sequence_of_bits_is_big_endian() -> None:
    assert int(sno.ID.from_parts(timestamp_ns=ns(5), tick=1, meta=7, partition=9, sequence=11)) == (
        5 << 41 | 1 << 40 | 7 << 32 | 9 << 16 | 11
    )


def test_metabyte_is_read_only_from_characters_8_and_9() -> None:
    texts = [str(sno.ID.from_parts(timestamp_ns=ns(1), meta=meta)) for meta in range(256)]
    assert {text[:8] + text[10:] for text in texts} == {texts[0][:8] + texts[0][10:]}


# ---------------------------------------------------------------------------------------------------- strict decoding


def first_fault(text: str) -> int:
    return next(position for position, character in enumerate(text) if character not in ALPHABET)


@each_case("case", [case for case in INVALID if "error" not in case])
def test_invalid_text_is_refused_with_the_position_unlike_go(case: Case) -> None:
    text = bytes.fromhex(case["input_hex"]).decode("latin-1")
    if CANONICAL.fullmatch(text):
        assert bytes(sno.ID.parse(text)).hex() == case["decoded_hex"]
        return
    with pytest.raises(errors.ParseError) as caught:
        sno.ID.parse(text)
    assert (caught.value.code, caught.value.position) == ("parse.character", first_fault(text))


@each_case("case", [case for case in INVALID if "error" not in case])
def test_bulk_decoder_refuses_at_the_same_position(case: Case) -> None:
    text = bytes.fromhex(case["input_hex"])
    if CANONICAL.fullmatch(text.decode("latin-1")):
        assert bytes(sno.Array.parse(text)).hex() == case["decoded_hex"]
        return
    with pytest.raises(errors.ParseError) as caught:
        sno.Array.parse(b"2" * 16 * 40 + text)
    assert (caught.value.code, caught.value.position) == (
        "parse.character",
        16 * 40 + first_fault(text.decode("latin-1")),
    )


@pytest.mark.parametrize("case", [case for case in INVALID if "error" in case])
def test_text_of_another_length_is_refused_as_in_go(case: Case) -> None:
    with pytest.raises(errors.ParseError) as caught:
        sno.ID.parse(bytes.fromhex(case["input_hex"]).decode())
    assert (caught.value.code, caught.value.position) == ("parse.length", None)


def test_recorded_decoders_disagree_where_ours_refuses() -> None:
    decoders = GO["invalid_decode"].values()
    disagreements = [
        rows[0]["input_hex"] for rows in zip(*decoders, strict=True) if len({row["decoded_hex"] for row in rows}) > 1
    ]
    assert disagreements
    assert not any(CANONICAL.fullmatch(bytes.fromhex(text).decode("latin-1")) for text in disagreements)


# ------------------------------------------------------------------------------------------- databases, JSON and text


def test_null_column_is_the_zero_id() -> None:
    assert sno.ID.from_json(None) == sno.ID.ZERO


@pytest.mark.parametrize("case", [case for case in GO["scan"] if "value_hex" in case], ids=lambda case: case["case"])
def test_binary_column_holds_exactly_10_bytes(case: Case) -> None:
    with pytest.raises(errors.ParseError) as caught:
        sno.ID.from_bytes(bytes.fromhex(case["value_hex"]))
    assert caught.value.code == "parse.length"


@pytest.mark.parametrize("case", [case for case in GO["scan"] if "value" in case], ids=lambda case: case["case"])
def test_text_column_holds_only_canonical_text_unlike_go(case: Case) -> None:
    with pytest.raises(errors.ParseError):
        sno.ID.parse(case["value"])


@pytest.mark.parametrize("value", [1, 1.5, datetime.now(UTC), sno.ID.MAX, bytes(10)], ids=type)
def test_value_of_another_type_is_no_text_as_in_go(value: Any) -> None:
    assert sum(case["error"]["type"] == "*sno.InvalidTypeError" for case in GO["scan"] if case["error"]) == 5
    with pytest.raises(errors.ArgumentError):
        sno.ID.parse(value)


@pytest.mark.parametrize("case", GO["marshalling"]["marshal"])
def test_id_marshals_as_in_go(case: Case) -> None:
    one = sno.ID(bytes.fromhex(case["hex"]))
    compact = (",", ":")
    assert {
        "hex": bytes(one).hex(),
        "driver_value_hex": bytes(one).hex(),
        "marshal_text": str(one),
        "json": json.dumps(one.as_json()),
        "as_map_key": json.dumps({str(one): 1}, separators=compact),
        "in_map_value": json.dumps({"id": one.as_json()}, separators=compact),
        "struct_omitempty": json.dumps({"id": one.as_json()}, separators=compact),
        "error": None,
    } == case


@pytest.mark.parametrize("case", GO["marshalling"]["unmarshal_binary"])
def test_bytes_of_another_length_are_refused_as_in_go(case: Case) -> None:
    with pytest.raises(errors.ParseError) as caught:
        sno.ID.from_bytes(bytes(case["zero_bytes_of_len"]))
    assert caught.value.code == "parse.length"


UNMARSHAL_JSON = [(case["input"], case["encoding_json_Unmarshal"]) for case in GO["marshalling"]["unmarshal_json"]]
GO_IS_LENIENT = {"123456789012345678", '"yyyyyyyyyyyyyyyy"'}


@pytest.mark.parametrize(
    ("text", "go"), [(text, go) for text, go in UNMARSHAL_JSON if not go["error"] and text not in GO_IS_LENIENT]
)
def test_json_correctly_read_by_go_is_read(text: str, go: Case) -> None:
    assert bytes(sno.ID.from_json(json.loads(text))).hex() == go["receiver_after_hex"]


@pytest.mark.parametrize("text", [text for text, go in UNMARSHAL_JSON if go["error"] or text in GO_IS_LENIENT])
def test_other_json_is_refused_unlike_go(text: str) -> None:
    with pytest.raises((errors.ParseError, errors.ArgumentError, json.JSONDecodeError)):
        sno.ID.from_json(json.loads(text))


@pytest.mark.parametrize("case", GO["marshalling"]["unmarshal_text"], ids=lambda case: case["input"] or "empty")
def test_text_is_read_as_in_go_but_strictly(case: Case) -> None:
    if CANONICAL.fullmatch(case["input"]):
        assert bytes(sno.ID.parse(case["input"])).hex() == case["receiver_after_hex"]
        return
    with pytest.raises(errors.ParseError):
        sno.ID.parse(case["input"])


# --------------------------------------------------------------------------------------------------------------- order


def test_ids_sort_as_go_sorts_them() -> None:
    sorted_ids = sorted(sno.ID(bytes.fromhex(text)) for text in GO["sort"]["input_hex"])
    assert [bytes(one).hex() for one in sorted_ids] == GO["sort"]["sorted_hex"]


def test_text_sorts_as_ids_do() -> None:
    texts = [str(sno.ID(bytes.fromhex(text))) for text in GO["sort"]["input_hex"]]
    assert sorted(texts) == GO["sort"]["sorted_encoded"]


@pytest.mark.parametrize("case", GO["sort"]["compare"])
def test_two_ids_compare_as_in_go(case: Case) -> None:
    a, b = sno.ID.parse(case["a"]), sno.ID.parse(case["b"])
    assert ((a > b) - (a < b), a == b, a <= b) == (case["compare"], case["compare"] == 0, case["compare"] <= 0)


@given(ids, ids)
def test_bytes_text_integers_uuids_and_fields_order_alike(a: sno.ID, b: sno.ID) -> None:
    def fields(one: sno.ID) -> tuple[object, ...]:
        return one.time, one.tick, one.meta, one.partition, one.sequence

    smaller = a < b
    assert smaller == (bytes(a) < bytes(b))
    assert smaller == (str(a) < str(b))
    assert smaller == (int(a) < int(b))
    assert smaller == (a.as_uuid().bytes < b.as_uuid().bytes)
    assert smaller == (fields(a) < fields(b))


@given(ids, ids)
def test_equal_ids_and_only_those_have_equal_bytes(a: sno.ID, b: sno.ID) -> None:
    same = bytes(a) == bytes(b)
    assert (a == b, a != b) == (same, not same)


def test_id_does_not_compare_with_other_types() -> None:
    data: Any = bytes(10)
    assert data != sno.ID.ZERO
    with pytest.raises(TypeError):
        sorted([sno.ID.ZERO, data])


# ---------------------------------------------------------------------------------------------------------- round trips


@given(ids)
def test_text_is_canonical_and_parses_back(one: sno.ID) -> None:
    assert CANONICAL.fullmatch(str(one))
    assert sno.ID.parse(str(one)) == one


@given(ids)
def test_bytes_integer_uuid_and_json_read_back(one: sno.ID) -> None:
    read = [sno.ID.from_bytes(bytes(one)), sno.ID.from_int(int(one)), sno.ID.from_uuid(one.as_uuid())]
    assert [*read, sno.ID.from_json(one.as_json())] == [one] * 4


@given(ids)
def test_id_survives_pickle_and_copies(one: sno.ID) -> None:
    pickled = [pickle.loads(pickle.dumps(one, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    assert [*pickled, copy.copy(one), copy.deepcopy(one)] == [one] * (len(pickled) + 2)


@given(ids)
def test_equal_ids_hash_alike(one: sno.ID) -> None:
    assert hash(one) == hash(sno.ID(bytes(one)))


@given(ids)
def test_fields_of_an_id_compose_to_it(one: sno.ID) -> None:
    fields: dict[str, Any] = {"tick": one.tick, "meta": one.meta, "partition": one.partition, "sequence": one.sequence}
    assert sno.ID.from_parts(timestamp_ns=one.timestamp_ns, **fields) == one


def test_repr_can_be_evaluated() -> None:
    assert eval(repr(sno.ID.MAX), {"sno": sno}) == sno.ID.MAX


def test_uuid_holds_the_text() -> None:
    one = sno.ID.parse("brpk4q72xwf2m63l")
    assert one.as_uuid() == UUID(bytes=b"brpk4q72xwf2m63l")


def test_zero_and_max_are_the_smallest_and_largest_ids() -> None:
    assert (bytes(sno.ID.ZERO), bytes(sno.ID.MAX)) == (bytes(10), b"\xff" * 10)


def test_id_accepts_any_buffer_of_10_bytes() -> None:
    assert sno.ID(bytearray(range(10))) == sno.ID(memoryview(bytes(range(20)))[:10]) == sno.ID(bytes(range(10)))


@given(ids, st.integers(0, 255), st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 1))
def test_replace_changes_only_the_named_fields(
    one: sno.ID, meta: int, partition: int, sequence: int, tick: int
) -> None:
    one_by_one = one.replace(meta=meta).replace(partition=partition).replace(sequence=sequence).replace(tick=tick)
    assert one_by_one == one.replace(meta=meta, partition=partition, sequence=sequence, tick=tick)
    fields: dict[str, Any] = {"meta": meta, "partition": partition, "sequence": sequence, "tick": tick}
    assert one_by_one == sno.ID.from_parts(timestamp_ns=one.timestamp_ns, **fields)


@given(ids)
def test_replace_without_arguments_returns_an_equal_id(one: sno.ID) -> None:
    assert one.replace() == one


def test_a_time_is_given_in_any_of_its_three_units() -> None:
    time = datetime(2024, 2, 29, 12, 0, 0, 4000, tzinfo=UTC)
    ms = int(time.timestamp() * 1000)
    one = sno.ID.from_parts(time=time, meta=7)
    assert one == sno.ID.from_parts(timestamp_ms=ms, meta=7) == sno.ID.from_parts(timestamp_ns=ms * 10**6, meta=7)
    assert (one.time, one.timestamp_ms, one.timestamp_ns) == (time, ms, ms * 10**6)
    assert one.replace(timestamp_ms=ms + 4).replace(time=time) == one


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(errors.FieldError) as caught:
        sno.ID.from_parts(time=datetime(2024, 2, 29))  # noqa: DTZ001
    assert caught.value.code == "time.naive"


@pytest.mark.parametrize("partition", [0x410A, b"A\n", (65, 10)], ids=repr)
def test_a_partition_is_an_int_or_its_two_bytes(partition: Any) -> None:
    made = [
        sno.Generator(partition).new(),
        sno.ID.from_parts(timestamp_ns=ns(1), partition=partition),
        sno.ID.MAX.replace(partition=partition),
        sno.Generator.restore(sno.Snapshot(partition)).new(),
    ]
    assert {one.partition for one in made} == {0x410A}


@pytest.mark.parametrize("partition", [b"", b"A", b"ABC", (1,), (1, 2, 3), ("A", "B"), "AB"], ids=repr)
def test_a_partition_of_other_than_two_bytes_is_refused(partition: Any) -> None:
    for call in (sno.Generator, sno.Snapshot, lambda value: sno.ID.MAX.replace(partition=value)):
        with pytest.raises(errors.ArgumentError, match="must be an int"):
            call(partition)


@pytest.mark.parametrize(("name", "instead"), [("node", "sno has a partition"), ("partition", "write node"), ("x", "")])
def test_generator_names_the_word_of_its_format(name: str, instead: str) -> None:
    made: Any = sno.Generator if name != "partition" else ulid.Generator
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'(: .*{instead}.*)?$") as refused:
        made(**{name: 3})
    assert instead in str(refused.value)


def test_a_byte_of_a_partition_is_in_range() -> None:
    with pytest.raises(errors.FieldError, match=r"256 is outside 0\.\.255"):
        sno.Generator((65, 256))


def test_an_id_formats_as_its_text() -> None:
    assert (f"{sno.ID.ZERO:>20}", f"{sno.ID.ZERO}") == (f"{'2' * 16:>20}", "2" * 16)


def test_bytes_that_are_text_are_refused_with_a_word_of_parse() -> None:
    text: Any = "2" * 16
    assert sno.ID(text) == sno.ID.ZERO
    with pytest.raises(errors.ArgumentError, match=r"ID\.parse\(\) reads text"):
        sno.ID.from_bytes(text)


# -------------------------------------------------------------------------------------------------- ranges and new_at


@given(ids, st.integers(0, 3_999_999))
def test_bounds_of_a_time_hold_every_id_of_its_unit(one: sno.ID, rest_ns: int) -> None:
    time = one.timestamp_ns + rest_ns
    assert sno.min_at(time) <= one <= sno.max_at(time)


@given(st.integers(1, LAST_UNIT))
def test_bounds_of_neighbouring_units_touch(unit: int) -> None:
    assert int(sno.max_at(ns(unit - 1))) + 1 == int(sno.min_at(ns(unit)))


def test_bounds_of_all_time_are_zero_and_max() -> None:
    assert (sno.min_at(ns(0)), sno.max_at(ns(LAST_UNIT))) == (sno.ID.ZERO, sno.ID.MAX)


@given(units)
def test_datetime_and_its_nanoseconds_have_the_same_bounds(unit: int) -> None:
    time = datetime(2010, 1, 1, tzinfo=UTC) + timedelta(milliseconds=4 * unit)
    elsewhere = time.astimezone(timezone(timedelta(hours=-9, minutes=-30)))
    assert sno.min_at(time) == sno.min_at(elsewhere) == sno.min_at(ns(unit))


@pytest.mark.parametrize("case", GO["new_with_time"]["rollover"], ids=lambda case: f"{case['min']}-{case['max']}")
def test_new_at_rolls_over_within_the_bounds_as_in_go(case: Case) -> None:
    partition = int(case["partition_hex"], 16)
    generator = sno.Generator(partition, sequence_min=case["min"], sequence_max=case["max"])
    minted = [generator.new_at(nanoseconds(case["time"]), meta) for meta in range(len(case["encoded"]))]
    assert ([str(one) for one in minted], [one.sequence for one in minted]) == (case["encoded"], case["sequences"])


def test_new_at_visits_the_full_range_before_it_rolls_over() -> None:
    generator = sno.Generator(1)
    sequences = [generator.new_at(ns(1)).sequence for _ in range(65536 + 3)]
    assert sequences[65533:] == GO["new_with_time"]["full_range_from_65532"]


def test_new_at_counts_apart_from_new() -> None:
    generator = sno.Generator(1, clock=ManualClock(ns(1000)))
    interleaved = [
        generator.new(),
        generator.new_at(ns(1)),
        generator.new(),
        generator.new_at(ns(1)),
        generator.new(),
    ]
    assert [one.sequence for one in interleaved] == GO["new_with_time"]["interleaved_New_WithTime_New_WithTime_New"]


def test_new_at_is_always_of_timeline_0() -> None:
    generator = sno.Generator.restore(from_go(drifts=1), clock=ManualClock(ns(1000)))
    assert generator.new().tick == 1
    assert generator.new_at(ns(1000)).tick == GO["new_with_time"]["tick_with_drifts_1"] == 0


def within_layout(case: Case) -> bool:
    return ns(0) <= nanoseconds(case["input_time"]) < ns(LAST_UNIT + 1)


TIME_MAPPING: list[Case] = GO["new_with_time"]["time_mapping"]


@pytest.mark.parametrize(
    "case", [case for case in TIME_MAPPING if within_layout(case)], ids=lambda case: case["input_time"]
)
def test_new_at_floors_a_time_to_its_unit_as_in_go(case: Case) -> None:
    one = sno.Generator(case["partition"]).new_at(nanoseconds(case["input_time"]), case["meta"])
    assert (bytes(one).hex(), str(one), unit_of(one)) == (case["hex"], case["encoded"], case["units"])
    assert one.timestamp_ns == case["time_unix_nano"]


@pytest.mark.parametrize(
    "case", [case for case in TIME_MAPPING if not within_layout(case)], ids=lambda case: case["input_time"]
)
def test_time_outside_the_layout_is_refused_unlike_go(case: Case) -> None:
    with pytest.raises(errors.FieldError, match=r"2010-01-01.*2079-09-07") as caught:
        sno.Generator(1).new_at(nanoseconds(case["input_time"]))
    assert caught.value.code == "time.range"


def test_new_at_takes_a_datetime() -> None:
    time = datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    assert sno.Generator(1).new_at(time) == sno.Generator(1).new_at(1_577_934_245_678_901_234)


def test_module_mints_at_a_given_time() -> None:
    assert sno.new_at(ns(7), meta=9).timestamp_ns == ns(7)


# ------------------------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize("case", ACCEPTED)
def test_bounds_accepted_by_go_are_accepted(case: Case) -> None:
    snapshot = from_go(sequenceMin=case["min"], sequenceMax=case["max"], sequence=case["sequence"])
    generator = sno.Generator.restore(snapshot, clock=ManualClock(ns(1000)))
    read = {
        "sequence_min": generator.sequence_min,
        "sequence_max": generator.sequence_max,
        "cap": generator.capacity,
        "len_before_first": generator.used,
        "Sequence_before_first": generator.sequence,
        "first_New_sequence": generator.new().sequence,
    }
    assert read == {name: case["accepted"][name] for name in read}


@pytest.mark.parametrize("case", ACCEPTED)
def test_snapshot_omits_the_counter_of_new_at_as_in_go(case: Case) -> None:
    snapshot = from_go(sequenceMin=case["min"], sequenceMax=case["max"], sequence=case["sequence"])
    first = sno.Generator.restore(snapshot).new_at(ns(1))
    assert first.sequence == case["accepted"]["first_NewWithTime_sequence"]


@pytest.mark.parametrize("case", [case for case in ACCEPTED if case["sequence"] == 0])
def test_generator_accepts_the_bounds_accepted_by_go(case: Case) -> None:
    generator = sno.Generator(1, sequence_min=case["min"], sequence_max=case["max"])
    read = (generator.sequence_min, generator.sequence_max, generator.capacity)
    assert read == tuple(case["accepted"][name] for name in ("sequence_min", "sequence_max", "cap"))


@pytest.mark.parametrize("case", REFUSED)
def test_bounds_refused_by_go_are_refused(case: Case) -> None:
    snapshot = from_go(sequenceMin=case["min"], sequenceMax=case["max"], sequence=case["sequence"])
    with pytest.raises(errors.ConfigError, match=str(case["error"]["min"])):
        sno.Generator.restore(snapshot)


@pytest.mark.parametrize("case", [case for case in REFUSED if case["sequence"] == 0])
def test_generator_refuses_the_bounds_refused_by_go(case: Case) -> None:
    low, high = case["error"]["min"], case["error"]["max"]
    with pytest.raises(errors.ConfigError, match=rf"{low}\.\.{high} hold {high - low + 1} numbers") as caught:
        sno.Generator(1, sequence_min=case["min"], sequence_max=case["max"])
    assert caught.value.code == "config.bounds"


@pytest.mark.parametrize("case", GO["len_cap"][:-1], ids=lambda case: f"{case['generated']}")
def test_used_capacity_and_sequence_equal_those_of_go(case: Case) -> None:
    generator = sno.Generator(1, sequence_min=8, sequence_max=15, clock=ManualClock(ns(1000)))
    generator.batch(case["generated"])
    assert (generator.used, generator.capacity, generator.sequence) == (case["Len"], case["Cap"], case["Sequence"])


def test_generator_restored_in_its_own_unit_counts_as_in_go() -> None:
    case = GO["len_cap"][-1]
    generator = sno.Generator.restore(from_go(sequenceMin=8, sequenceMax=15, wallHi=1000), clock=ManualClock(ns(1000)))
    assert (generator.used, generator.capacity, generator.sequence) == (case["Len"], case["Cap"], case["Sequence"])
    assert generator.new().sequence == case["next_New_sequence"]


def test_count_of_a_past_unit_is_forgotten() -> None:
    clock = ManualClock(ns(1000))
    generator = sno.Generator(1, clock=clock)
    generator.batch(5)
    clock.set(ns(1001))
    assert (generator.used, generator.sequence) == (0, 0)


# ---------------------------------------------------------------------------------------------------------- the clock


@each_case("case", [case for case in GO["encode_decode"] if case["units"] or case["sequence"]])
def test_generator_restored_from_a_snapshot_mints_as_go_does(case: Case) -> None:
    unit, sequence = case["units"], case["sequence"]
    # Sequence number 0 is the first of a new unit, any other follows the snapshot's.
    snapshot = sno.Snapshot(
        case["partition"], sequence=max(sequence - 1, 0), wall_hi=unit - (sequence == 0), drifts=case["tick"]
    )
    generator = sno.Generator.restore(snapshot, clock=ManualClock(ns(unit)))
    assert bytes(generator.new(case["meta"])).hex() == case["hex"]


@pytest.mark.parametrize("case", GO["clock_traces"], ids=lambda case: case["scenario"])
def test_generator_switches_timelines_as_go_does(case: Case) -> None:
    clock = ManualClock(0)
    generator = sno.Generator.restore(from_go(**case["snapshot"]), clock=clock, max_wait_ms=FOREVER_MS)
    for step in case["trace"]:
        clock.set(ns(step["clock_readings_offered"][0]))
        one = generator.new(step["meta"])
        snapshot = generator.snapshot()
        minted = (bytes(one).hex(), str(one), unit_of(one), one.tick, one.sequence)
        assert minted == (step["id_hex"], step["encoded"], step["units"], step["tick"], step["sequence"])
        assert {
            "wallHi": snapshot.wall_hi,
            "wallSafe": snapshot.wall_safe,
            "drifts": snapshot.drifts,
            "snapshot_sequence": snapshot.sequence,
            "Sequence": generator.sequence,
            "Len": generator.used,
            "Cap": generator.capacity,
            "internal_seq": step["after"]["internal_seq"],
        } == step["after"]
        # Where Go polls until the clock has passed the safe unit, we wait for exactly that.
        assert clock.now_ns == ns(step["clock_readings_consumed"][-1])


def drifted(clock: ManualClock, max_wait_ms: int = 1000) -> sno.Generator:
    """Return a generator whose other timeline is used up to unit 1003, at unit 1010 of this one."""
    generator = sno.Generator(0xABCD, clock=clock, max_wait_ms=max_wait_ms)
    for unit in (1003, 998, 1010):
        clock.set(ns(unit))
        generator.new()
    return generator


def test_wait_is_reported_completely_in_ms_unlike_go() -> None:
    clock = ManualClock(0)
    generator = sno.Generator(1, clock=clock)
    for unit in (40_000_000, 39_999_990):
        clock.set(ns(unit))
        generator.new()
    clock.set(ns(19_999_990))
    with pytest.raises(errors.GenerationError, match="max_wait_ms is 1000") as caught:
        generator.new()
    assert (caught.value.code, caught.value.retry_after_ms) == ("clock.rollback", (40_000_001 - 19_999_990) * 4)


@pytest.mark.parametrize("unit", [1001, 1002, 1003])
def test_wait_at_or_below_the_safe_unit_ends_with_the_unit_after_it(unit: int) -> None:
    clock = ManualClock(0)
    generator = drifted(clock)
    clock.set(ns(unit))
    assert unit_of(generator.new()) == 1004
    assert clock.now_ns == ns(1004)


def test_wait_of_max_wait_ms_is_waited() -> None:
    clock = ManualClock(0)
    generator = drifted(clock, max_wait_ms=12)
    clock.set(ns(1001))
    assert unit_of(generator.new()) == 1004


def test_wait_longer_than_max_wait_ms_is_refused_at_once() -> None:
    clock = ManualClock(0)
    generator = drifted(clock, max_wait_ms=11)
    clock.set(ns(1001))
    with pytest.raises(errors.GenerationError) as caught:
        generator.new()
    assert (caught.value.code, caught.value.retry_after_ms, clock.now_ns) == ("clock.rollback", 12, ns(1001))


def test_retry_after_ms_rounds_up_to_a_millisecond() -> None:
    clock = ManualClock(0)
    generator = drifted(clock, max_wait_ms=0)
    clock.set(ns(1003) + 500_000)
    with pytest.raises(errors.GenerationError) as caught:
        generator.new()
    assert caught.value.retry_after_ms == 4


def test_refused_call_changes_nothing() -> None:
    clock = ManualClock(0)
    generator = drifted(clock, max_wait_ms=0)
    clock.set(ns(1001))
    before = generator.snapshot()
    with pytest.raises(errors.GenerationError):
        generator.new()
    assert generator.snapshot() == before


def test_clock_outside_the_layout_mints_nothing() -> None:
    clock = ManualClock(0)
    generator = sno.Generator(1, clock=clock)
    for reading in (0, ns(0) - 1, ns(LAST_UNIT + 1)):
        clock.set(reading)
        with pytest.raises(errors.GenerationError) as caught:
            generator.new()
        assert caught.value.code == "clock.range"


def test_last_unit_of_the_layout_is_minted() -> None:
    assert unit_of(sno.Generator(1, clock=ManualClock(ns(LAST_UNIT + 1) - 1)).new()) == LAST_UNIT


def test_new_generator_at_the_epoch_starts_at_its_lower_bound() -> None:
    assert sno.Generator(1, clock=ManualClock(ns(0))).new().sequence == 0


# ------------------------------------------------------------------------------------------------------------ overflow


def test_overflow_is_reported_once_a_unit_with_the_ticks_of_go() -> None:
    told: list[sno.Overflow] = []
    clock = ManualClock(ns(1000))
    generator = sno.Generator(1, sequence_min=10, sequence_max=15, on_overflow=told.append, clock=clock)
    trace = [{"rel_unit": unit_of(one) - 1000, "sequence": one.sequence} for one in islice(generator, 30)]
    assert trace == GO["overflow_trace"]["trace"]
    assert [{"count": o.count, "ticks": o.ticks} for o in told] == GO["overflow_trace"]["notifications"]


def test_overflow_has_the_time_when_it_happened() -> None:
    told: list[sno.Overflow] = []
    clock = ManualClock(ns(1000))
    sno.Generator(1, sequence_max=5, on_overflow=told.append, clock=clock).batch(7)
    assert [overflow.now for overflow in told] == [sno.min_at(ns(1000)).time]


def test_ticks_count_from_where_the_overflow_began() -> None:
    told: list[sno.Overflow] = []
    clock = ManualClock(ns(1000) + 3_000_000)
    generator = sno.Generator(1, sequence_max=5, on_overflow=told.append, clock=clock)
    generator.batch(13)
    clock.set(ns(2000))
    generator.batch(7)
    assert [overflow.ticks for overflow in told] == [1, 2, 1]


def test_exception_of_on_overflow_reaches_the_caller() -> None:
    def refuse(overflow: sno.Overflow) -> None:
        raise RuntimeError(f"too many: {overflow.count}")

    generator = sno.Generator(1, sequence_max=5, on_overflow=refuse, clock=ManualClock(ns(1000)))
    with pytest.raises(RuntimeError, match="too many: 1"):
        generator.batch(7)


def test_exhausted_unit_waits_for_the_next_and_starts_over() -> None:
    clock = ManualClock(ns(1000) + 1_000_000)
    generator = sno.Generator(1, sequence_min=10, sequence_max=15, clock=clock)
    last = generator.batch(7)[-1]
    assert (unit_of(last), last.sequence, clock.now_ns) == (1001, 10, ns(1001))


def test_exhausted_unit_tells_the_wait_until_the_next() -> None:
    clock = ManualClock(ns(1000) + 1_000_000)
    generator = sno.Generator(1, sequence_max=5, clock=clock, max_wait_ms=2)
    generator.batch(6)
    with pytest.raises(errors.GenerationError, match="all 6 sequence numbers") as caught:
        generator.new()
    assert (caught.value.code, caught.value.retry_after_ms) == ("sequence.exhausted", 3)


# ---------------------------------------------------------------------------------------------------------- snapshots


@pytest.mark.parametrize("case", GO["partitions"]["conversions"], ids=lambda case: case["hex"])
def test_partition_is_one_number_here_and_two_bytes_in_go(case: Case) -> None:
    one = sno.Generator(case["uint16"]).new()
    assert (one.partition, bytes(one)[6:8].hex()) == (case["as_uint16"], case["hex"])
    snapshot = json.loads(sno.Snapshot(case["uint16"]).to_json())
    assert snapshot["partition"] == list(bytes.fromhex(case["hex"]))


def test_default_partitions_are_leased_unlike_in_go() -> None:
    generators = [sno.Generator() for _ in range(8)]
    assert len({generator.partition for generator in generators}) == 8


def test_snapshot_writes_the_keys_of_go_in_its_order() -> None:
    text = sno.Snapshot(0x0102, 3, 400, 5, 6, 7, 8, 9).to_json()
    assert text == (
        '{"partition":[1,2],"sequenceMin":3,"sequenceMax":400,"sequence":5,"now":6,"wallHi":7,"wallSafe":8,"drifts":9}'
    )


snapshots = st.builds(
    sno.Snapshot,
    partition=st.integers(0, 65535),
    sequence_min=st.integers(0, 65535),
    sequence_max=st.integers(0, 65535),
    sequence=st.integers(0, 65535),
    now=units,
    wall_hi=units,
    wall_safe=units,
    drifts=st.integers(0, 2**32 - 1),
)
leased_snapshots = st.builds(
    sno.Snapshot, st.integers(0, 65535), pool=st.text(), shards=st.sampled_from([2**n for n in range(14)])
)


@given(snapshots | leased_snapshots)
def test_snapshot_survives_json_and_pickle(snapshot: sno.Snapshot) -> None:
    assert sno.Snapshot.from_json(snapshot.to_json()) == snapshot
    assert pickle.loads(pickle.dumps(snapshot)) == snapshot
    assert hash(pickle.loads(pickle.dumps(snapshot))) == hash(snapshot)


def test_json_of_a_leased_snapshot_has_one_more_key() -> None:
    plain, leased = sno.Snapshot(1), sno.Snapshot(1, pool="orders", shards=4)
    assert plain != leased
    assert json.loads(leased.to_json()) == {**json.loads(plain.to_json()), "leased": {"pool": "orders", "shards": 4}}
    assert [(one.leased, one.pool, one.shards) for one in (plain, leased)] == [(False, None, 1), (True, "orders", 4)]
    assert eval(repr(leased), {"Snapshot": sno.Snapshot}) == leased


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "{}",
        "[]",
        '{"partition":[1,2]}',
        sno.Snapshot(1).to_json().replace("[0,1]", "[0,256]"),
        sno.Snapshot(1).to_json().replace("[0,1]", "1"),
        sno.Snapshot(1).to_json().replace('"drifts":0', '"drifts":-1'),
        sno.Snapshot(1).to_json().replace('"now":0', '"now":-1'),
        sno.Snapshot(1).to_json().replace('"now":0', '"now":0.5'),
        sno.Snapshot(1, pool="sno").to_json().replace('"shards":1', '"shards":3'),
        sno.Snapshot(1, pool="sno").to_json().replace('"shards":1', '"shards":16384'),
        sno.Snapshot(1, pool="sno").to_json().replace('"pool":"sno",', ""),
    ],
)
def test_invalid_json_of_a_snapshot_is_refused(text: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        sno.Snapshot.from_json(text)
    assert caught.value.code == "config.snapshot"


@pytest.mark.parametrize(("shards", "code"), [(2, "config.snapshot"), (3, "config.bounds"), (0, "config.bounds")])
def test_snapshot_has_shards_only_with_a_pool(shards: int, code: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        sno.Snapshot(1, shards=shards)
    assert caught.value.code == code


def test_snapshot_beyond_the_layout_is_refused() -> None:
    with pytest.raises(errors.ConfigError, match=f"{2**39}") as caught:
        sno.Generator.restore(from_go(wallHi=2**39))
    assert caught.value.code == "config.snapshot"


@given(st.lists(st.integers(0, 6), max_size=12), st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_restored_generator_continues_exactly_where_it_stopped(before: list[int], after: list[int]) -> None:
    clock = ManualClock(ns(1000))
    generator = sno.Generator(7, sequence_max=5, clock=clock)
    for unit in before:
        clock.set(ns(1000 + unit))
        generator.new()
    twin_clock = ManualClock(clock.now_ns)
    twin = sno.Generator.restore(sno.Snapshot.from_json(generator.snapshot().to_json()), clock=twin_clock)
    for unit in after:
        clock.set(ns(1000 + unit))
        twin_clock.set(ns(1000 + unit))
        assert twin.new() == generator.new()


# ----------------------------------------------------------------------------------------------------------- minting


def test_id_has_the_metabyte_and_the_partition() -> None:
    one = sno.Generator(0x1234, clock=ManualClock(ns(5))).new(meta=200)
    assert (unit_of(one), one.tick, one.meta, one.partition, one.sequence) == (5, 0, 200, 0x1234, 0)


def test_batch_equals_as_many_single_calls() -> None:
    one_by_one = sno.Generator(1, sequence_max=5, clock=ManualClock(ns(1000)))
    at_once = sno.Generator(1, sequence_max=5, clock=ManualClock(ns(1000)))
    assert at_once.batch(20, meta=3).tolist() == [one_by_one.new(3) for _ in range(20)]


def test_fill_writes_the_ids_of_a_batch() -> None:
    batch = sno.Generator(1, sequence_max=5, clock=ManualClock(ns(1000))).batch(20, 3)
    buffer = bytearray(200)
    assert sno.Generator(1, sequence_max=5, clock=ManualClock(ns(1000))).fill(buffer, 3) == 20
    assert buffer == bytes(batch)


def test_generator_is_an_iterator_of_ids() -> None:
    generator = sno.Generator(1, clock=ManualClock(ns(1000)))
    assert [one.sequence for one in islice(generator, 3)] == [0, 1, 2]


def test_generator_mints_until_its_with_block_ends() -> None:
    with sno.Generator(1) as generator:
        generator.new()
    with pytest.raises(errors.GenerationError) as caught:
        generator.new()
    assert caught.value.code == "generator.closed"


def test_generators_share_a_partition_with_disjoint_bounds() -> None:
    clock = ManualClock(ns(1000))
    low = sno.Generator(1, sequence_max=9, clock=clock).batch(10)
    high = sno.Generator(1, sequence_min=10, sequence_max=19, clock=clock).batch(10)
    assert len({*low, *high}) == 20


def test_generator_takes_any_callable_as_its_clock() -> None:
    assert unit_of(sno.Generator(1, clock=lambda: ns(4711)).new()) == 4711


def test_system_clock_is_the_default() -> None:
    before = datetime.now(UTC)
    assert abs(sno.new().time - before) < timedelta(minutes=1)


def test_default_generator_mints_increasing_ids() -> None:
    minted = [sno.new(meta=1) for _ in range(1000)]
    assert minted == sorted(set(minted))


def test_the_metabyte_of_a_generator_is_that_of_ids_without_one() -> None:
    minting, buffer = sno.Generator(1, meta=7), bytearray(20)
    minting.fill(buffer)
    ids = [minting.new(), next(minting), minting.new_at(ns(1)), minting.nth_at(ns(1), 5), *minting.batch(2)]
    assert {one.meta for one in [*ids, *sno.Array(buffer)]} == {minting.meta} == {7}
    ids = [
        minting.new(8),
        minting.new(meta=8),
        minting.new_at(ns(1), 8),
        minting.nth_at(ns(1), 5, 8),
        *minting.batch(2, 8),
    ]
    assert {one.meta for one in ids} == {8}
    assert minting.new(0).meta == 0


def test_a_restored_generator_has_the_metabyte_that_it_is_given() -> None:
    snapshot = sno.Generator(1, meta=7).snapshot()
    assert [sno.Generator.restore(snapshot, meta=meta).new().meta for meta in (0, 9)] == [0, 9]
    assert sno.Generator.restore(snapshot).new().meta == 0
