"""Tests of UUIDs: the bits of every version, generators, and the names and tests of the standard module."""

from __future__ import annotations

import importlib
import pickle
import random
import subprocess
import sys
import threading
import unittest
import uuid as std
import weakref
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage import uuid
from mintage.errors import GenerationError, LeaseError, ParseError
from mintage.store.memory import MemoryStore
from mintage.testing import ManualClock, freeze
from tests.helpers.cases import each_case
from tests.helpers.outcomes import code_of
from tests.helpers.processes import Child, in_child
from tests.helpers.vectors import vectors

VECTORS = vectors("uuid")
RFC = VECTORS["rfc9562"]["vectors"]
NPM = VECTORS["npm_uuid"]["generate"]
NOW_NS = 1_700_000_000_123_456_789
MS, SECOND = 1_000_000, 1_000_000_000
GREGORIAN_NS = 12_219_292_800 * SECOND
"""From 1582-10-15 to 1970."""

each_version = pytest.mark.parametrize("version", [1, 4, 6, 7])
each_timed = pytest.mark.parametrize("version", [1, 6, 7])
each_gregorian = pytest.mark.parametrize("version", [1, 6])


# --- the bits of each version ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", RFC, ids=lambda case: case["section"])
def test_vectors_of_rfc_9562_are_read_and_written(case: Any) -> None:
    one = uuid.ID.parse(case["uuid"])
    assert (str(one), bytes(one).hex(), str(int(one))) == (case["lower"], case["hex"], case["int"])
    assert (one.version, one.variant) == (case["version"], "rfc9562")
    assert one.as_uuid() == std.UUID(case["uuid"])
    assert uuid.ID.from_uuid(one.as_uuid()) == one
    if one.version in (1, 6):
        assert (one.clock_seq, one.node) == (case["clock_seq"], case["node_hex"])
    if one.version in (1, 6, 7):
        assert one.time == datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)


def test_name_based_uuids_equal_those_of_the_rfc() -> None:
    again = VECTORS["rfc9562"]["recomputed"]
    assert str(uuid.uuid3(uuid.NAMESPACE_DNS, "www.example.com")) == again["v3"]
    assert str(uuid.uuid5(uuid.NAMESPACE_DNS, "www.example.com")) == again["v5"]


@given(st.uuids(), st.text() | st.binary())
def test_name_based_uuids_equal_those_of_the_standard_module(space: std.UUID, name: str | bytes) -> None:
    raw = name if isinstance(name, bytes) else None
    for ours, theirs in ((uuid.uuid3, std.uuid3), (uuid.uuid5, std.uuid5)):
        if raw is None or sys.version_info >= (3, 12):
            assert ours(space, name) == theirs(space, name)  # type: ignore[arg-type]
        assert ours(uuid.ID.from_uuid(space), name) == ours(space, name)


@pytest.mark.parametrize("case", VECTORS["stdlib_from_fields"], ids=lambda case: case["uuid"])
def test_time_of_version_1_is_exact_to_100_ns(case: Any) -> None:
    one = uuid.ID.parse(case["uuid"])
    assert one.timestamp_ns == int(case["unix_ns"])
    fields = {"clock_seq": case["clock_seq"], "node": case["node_hex"]}
    assert uuid.ID.from_parts(version=1, timestamp_ns=int(case["unix_ns"]), **fields) == one
    assert uuid.ID.from_parts(version=6, timestamp_ns=int(case["unix_ns"]), **fields).timestamp_ns == one.timestamp_ns


@pytest.mark.parametrize("case", VECTORS["npm_uuid"]["v1_v6_conversion"], ids=lambda case: case["v1"])
def test_version_6_is_version_1_in_sortable_order(case: Any) -> None:
    first, sixth = uuid.ID.parse(case["v1"]), uuid.ID.parse(case["v6"])
    for one, other in ((first, sixth), (sixth, first)):
        fields: Any = {"timestamp_ns": one.timestamp_ns, "clock_seq": one.clock_seq, "node": one.node}
        assert uuid.ID.from_parts(version=other.version or 0, **fields) == other


@each_case("case", VECTORS["python_decode_random"], ids=lambda case: case["hex"])
def test_random_bits_of_versions_1_and_6_are_read_as_recorded(case: Any) -> None:
    one = uuid.ID.parse(case["uuid"])
    assert (one.version, one.clock_seq, one.node) == (case["version"], case["clock_seq"], case["node_hex"])
    assert one.timestamp_ns == case["uuid6_time"] * 100 - GREGORIAN_NS


@each_case("case", NPM, ids=str)
def test_uuids_of_npm_are_composed_from_the_same_fields(case: Any) -> None:
    if "ok" not in case:
        return
    options, one = case["options"], uuid.ID.parse(case["ok"])
    assert one.version == case["version"]
    if case["version"] == 1 and options["msecs"] < 2**46:
        ns = options["msecs"] * MS + options["nsecs"] * 100
        fields = {"clock_seq": options["clockseq"], "node": options["node"]}
        assert uuid.ID.from_parts(version=1, timestamp_ns=ns, **fields) == one
    if case["version"] == 7 and options["msecs"] < 2**48:
        assert one.timestamp_ms == options["msecs"]
        assert uuid.ID.from_parts(timestamp_ms=options["msecs"], rand_a=one.rand_a, rand_b=one.rand_b) == one
    if case["version"] == 4:
        drawn = std.UUID(options["random"])
        stamped = std.UUID(int=drawn.int & ~(0xF << 76 | 3 << 62) | 4 << 76 | 2 << 62)
        assert one.as_uuid() == stamped


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**12 - 1), st.integers(0, 2**62 - 1))
def test_version_8_has_three_custom_fields(a: int, b: int, c: int) -> None:
    one = uuid.ID.from_uuid(uuid.uuid8(a, b, c))
    assert (one.version, int(one.custom_a, 16), int(one.custom_b, 16), int(one.custom_c, 16)) == (8, a, b, c)
    assert uuid.uuid8(a) != uuid.uuid8(a)
    assert uuid.uuid8(a | 1 << 60, b | 1 << 60, c | 1 << 63) == uuid.uuid8(a, b, c)


@given(st.binary(min_size=16, max_size=16))
def test_version_and_variant_are_those_of_the_standard_module(raw: bytes) -> None:
    one, theirs = uuid.ID(raw), std.UUID(bytes=raw)
    words = {
        std.RESERVED_NCS: "ncs",
        std.RFC_4122: "rfc9562",
        std.RESERVED_MICROSOFT: "microsoft",
        std.RESERVED_FUTURE: "future",
    }
    assert (one.version, one.variant) == (theirs.version, words[theirs.variant])


def test_every_version_has_its_own_fields() -> None:
    fields = {
        1: "time timestamp_ms timestamp_ns clock_seq node time_low time_mid time_high",
        2: "local_id time_mid time_high clock_seq domain node",
        3: "md5_high md5_mid md5_low",
        4: "random_a random_b random_c",
        5: "sha1_high sha1_mid sha1_low",
        6: "time timestamp_ms timestamp_ns clock_seq node time_low time_mid time_high",
        7: "time timestamp_ms timestamp_ns rand_a rand_b",
        8: "custom_a custom_b custom_c",
    }
    every = {name for names in fields.values() for name in names.split()}
    ids = {version: uuid.ID.from_int(version << 76 | 2 << 62) for version in fields}
    for version, one in [*ids.items(), (0, uuid.ID.NIL), (0, uuid.ID.MAX), (0, uuid.ID.from_int(1))]:
        for name in every:
            if name in fields.get(version, "").split():
                getattr(one, name)
            else:
                assert code_of(lambda one=one, name=name: getattr(one, name)) == "field.version"  # type: ignore[misc]


def test_nil_and_max_have_no_version() -> None:
    assert (bytes(uuid.ID.NIL), bytes(uuid.ID.MAX)) == (b"\0" * 16, b"\xff" * 16)
    assert [one.int for one in (uuid.NIL, uuid.MAX)] == [0, 2**128 - 1]
    assert (uuid.ID.NIL.version, uuid.ID.MAX.version) == (None, None)
    assert (uuid.ID.NIL.variant, uuid.ID.MAX.variant) == ("ncs", "future")


def test_parts_have_a_version_from_1_to_8() -> None:
    for version in (0, 9, -1):
        assert code_of(lambda version=version: uuid.ID.from_parts(version=version)) == "field.range"  # type: ignore[misc]
    assert code_of(lambda: uuid.ID.from_parts(version="7")) == "argument.type"  # type: ignore[arg-type]
    wrong: list[dict[str, int]] = [{"version": 4, "timestamp_ms": 1}, {"version": 7}, {"version": 3, "variant": 1}]
    for fields in wrong:
        with pytest.raises(TypeError):
            uuid.ID.from_parts(**fields)
    with pytest.raises(TypeError):
        uuid.ID.NIL.replace(value=1)


# --- text ------------------------------------------------------------------------------------------------------------


@given(st.uuids())
def test_parse_any_reads_every_spelling_of_the_text(value: std.UUID) -> None:
    one = uuid.ID.from_uuid(value)
    for text in (str(value), value.hex, value.urn, f"{{{value}}}"):
        assert uuid.ID.parse_any(text) == uuid.ID.parse_any(text.upper()) == one
        if text != str(value):
            assert code_of(lambda text=text: uuid.ID.parse(text)) == "parse.length"  # type: ignore[misc]


@given(st.text(max_size=50))
def test_invalid_text_is_an_error_with_the_position(text: str) -> None:
    try:
        one = uuid.ID.parse_any(text)
    except ParseError as error:
        refused = error
    else:
        assert one.as_uuid() == std.UUID(text)
        return
    assert refused.code in {"parse.length", "parse.character"}
    assert refused.code == "parse.length" or 0 <= (refused.position or 0) < len(text)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("urn:uuid;017f22e2-79b0-7cc3-98c4-dc0c0c07398f", 8),
        ("(017f22e2-79b0-7cc3-98c4-dc0c0c07398f)", 0),
        ("017f22e279b07cc398c4dc0c0c07398g", 31),
        ("017f22e279b0-7cc3-98c4-dc0c0c07398f1", 8),
        ("é" + "0" * 30, 0),
    ],
)
def test_first_wrong_character_of_every_spelling_is_named(text: str, position: int) -> None:
    with pytest.raises(ParseError) as refused:
        uuid.ID.parse_any(text)
    assert (refused.value.code, refused.value.position) == ("parse.character", position)


@pytest.mark.parametrize("case", VECTORS["npm_uuid"]["validate"], ids=lambda case: case["input"])
def test_text_refused_by_npm_is_refused_or_has_no_version(case: Any) -> None:
    try:
        one = uuid.ID.parse(case["input"])
    except ParseError:
        assert not case["validate"]
        return
    assert case["validate"] == (one.version is not None or one in (uuid.ID.NIL, uuid.ID.MAX))


# --- faults of the originals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [case for case in NPM if case["options"].get("msecs", 0) >= 2**47 + 2**46], ids=str)
def test_out_of_range_times_are_refused_unlike_npm(case: Any) -> None:
    ns = case["options"]["msecs"] * MS
    fits = case["version"] == 7 and case["options"]["msecs"] < 2**48
    if fits:
        assert uuid.ID.parse(case["ok"]).timestamp_ms == case["options"]["msecs"]
        return
    assert "ok" in case, "it gave an ID of another time"
    assert uuid.ID.parse(case["ok"]).timestamp_ns < ns
    assert code_of(lambda: uuid.ID.from_parts(version=case["version"], timestamp_ns=ns)) == "time.range"


@pytest.mark.parametrize("case", VECTORS["uuid6_lib_fixed_clock"], ids=lambda case: case["uuid6"])
def test_golang_80222_version_7_stays_at_its_clock(case: Any) -> None:
    drifted = [case[name].replace("-", "") for name in ("uuid7_prefix", "uuid7_again_same_clock_prefix")]
    assert int(drifted[1], 16) - int(drifted[0], 16) == 1
    generator = uuid.Generator(clock=ManualClock(case["time_ns"]))
    # In Go they are ahead from the 4097th of a millisecond on.
    assert {one.timestamp_ms for one in generator.batch(10_000)} == {case["time_ns"] // MS}


def test_version_7_stays_in_the_last_millisecond_as_npm_does() -> None:
    trace = [step for step in VECTORS["npm_uuid"]["v7_state_trace"] if "case" not in step]
    clock = ManualClock(0)
    generator = uuid.Generator(clock=clock)
    first = datetime(2020, 1, 1, tzinfo=UTC)
    for step in trace:
        clock.set((int(first.timestamp() * 1000) + step["now"]) * MS)
        assert generator.new().time == first + timedelta(milliseconds=step["msecs"])


def test_only_time_based_versions_have_a_time_unlike_uuid() -> None:
    for case in RFC:
        one = uuid.ID.parse(case["uuid"])
        if one.version in (3, 4, 5, 8):
            assert case["time_field"] > 0
            assert code_of(lambda one=one: one.timestamp_ns) == "field.version"  # type: ignore[misc]


# --- generators ------------------------------------------------------------------------------------------------------


@each_version
def test_generator_mints_its_version(version: Any) -> None:
    with uuid.Generator(version=version) as generator:
        ids = [generator.new(), *generator.batch(20), next(generator)]
        buffer = bytearray(16 * 20)
        assert generator.fill(buffer) == 20
        ids += uuid.Array(buffer)
        assert {(one.version, one.variant) for one in ids} == {(version, "rfc9562")}
        assert len(set(ids)) == 42
        assert generator.version == version
    assert code_of(generator.new) == code_of(lambda: generator.batch(1)) == "generator.closed"


@each_version
def test_threads_that_share_a_generator_mint_no_id_twice(version: Any) -> None:
    generator, ids = uuid.Generator(version=version), []

    def mint() -> None:
        ids.extend([generator.new() for _ in range(3000)])
        ids.extend(generator.batch(3000))

    threads = [threading.Thread(target=mint) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 24_000


@each_version
def test_forked_children_repeat_no_id_of_their_parent(version: Any) -> None:
    generator = uuid.Generator(version=version)
    generator.new()

    def mint() -> list[str]:
        return [str(one) for one in (generator.new(), *generator.batch(200), generator.new())]

    children = [Child(mint) for _ in range(4)]
    assert len({*mint(), *(one for child in children for one in child.result())}) == 5 * 202


def test_uuid_utils_42_standard_functions_repeat_nothing_in_a_fork() -> None:
    functions = (uuid.uuid1, uuid.uuid4, uuid.uuid6, uuid.uuid7, uuid.uuid8)

    def mint() -> list[str]:
        return [str(make()) for make in functions for _ in range(100)]

    mint()
    children = [Child(mint) for _ in range(4)]
    assert len({*mint(), *(one for child in children for one in child.result())}) == 5 * 500


@each_timed
def test_google_uuid_148_and_uuid_rs_773_ids_grow_when_the_clock_stops(version: Any) -> None:
    clock = ManualClock(NOW_NS)
    generator = uuid.Generator(version=version, clock=clock)
    ids = []
    for step_ns in (0, 0, 3 * SECOND, 0, -2 * SECOND, 0, -3600 * SECOND, 0, 7200 * SECOND, 0):
        clock.advance(step_ns)
        ids += [generator.new(), *generator.batch(50)]
    times = [one.timestamp_ns for one in ids]
    assert times == sorted(times)
    assert len(set(ids)) == len(ids)
    assert version == 1 or ids == sorted(ids)


def test_version_4_needs_no_clock() -> None:
    clock = ManualClock(-SECOND)
    generator = uuid.Generator(version=4, clock=clock)
    ids = {generator.new() for _ in range(100)}
    clock.advance(-3600 * SECOND)
    assert len(ids | set(generator.batch(100))) == 200
    assert code_of(lambda: generator.new_at(NOW_NS)) == "field.version"


@each_gregorian
def test_gregorian_millisecond_is_used_tick_by_tick_then_waited_out(version: Any) -> None:
    clock = ManualClock(NOW_NS)
    generator = uuid.Generator(version=version, clock=clock)
    begin = NOW_NS - NOW_NS % MS
    assert [one.timestamp_ns for one in generator.batch(8192)] == [begin + 100 * n for n in range(8192)]
    assert generator.new().timestamp_ns == begin + MS
    assert clock.now_ns == begin + MS
    impatient = uuid.Generator(version=version, clock=ManualClock(NOW_NS), max_wait_ms=0)
    impatient.batch(8192)
    with pytest.raises(GenerationError) as refused:
        impatient.new()
    assert (refused.value.code, refused.value.retry_after_ms) == ("sequence.exhausted", 1)


@each_gregorian
def test_node_is_random_and_multicast_unless_a_mac_is_requested(version: Any) -> None:
    generators = [uuid.Generator(version=version) for _ in range(20)]
    nodes = {generator.new().node for generator in generators}
    assert len(nodes) == 20
    assert all(int(node[:2], 16) & 1 for node in nodes)
    assert f"{std.getnode():012x}" not in nodes
    for generator in generators:
        assert {one.node for one in generator.batch(5)} <= nodes
    own = [uuid.Generator(version=version, mac=0x00163E000001) for _ in range(40)]
    assert {generator.new().node for generator in own} == {"00163e000001"}
    assert len({generator.new().clock_seq for generator in own}) > 20


@each_gregorian
@pytest.mark.parametrize(
    ("number", "node"), [(0, "010000000000"), (5, "010000000005"), (2**40, "030000000000"), (2**47 - 1, "f" * 12)]
)
def test_node_number_is_combined_with_the_multicast_bit(version: Any, number: int, node: str) -> None:
    generator = uuid.Generator(number, version=version)
    assert (generator.node, generator.new().node) == (number, node)


def test_version_7_has_its_node_number_after_a_22_bit_counter() -> None:
    generator = uuid.Generator(0xABCDEF, clock=ManualClock(NOW_NS))
    ids = list(generator.batch(5000))
    bits = [int(one.rand_a, 16) << 62 | int(one.rand_b, 16) for one in ids]
    assert [each >> 52 for each in bits] == list(range(5000))
    assert {each >> 28 & 0xFFFFFF for each in bits} == {0xABCDEF}


def test_version_7_counter_starts_randomly_in_each_millisecond() -> None:
    clock = ManualClock(NOW_NS)
    firsts = []
    for _ in range(200):
        bits = [int(one.rand_a, 16) << 62 | int(one.rand_b, 16) for one in uuid.Generator(clock=clock).batch(3)]
        assert bits == [bits[0], bits[0] + 1, bits[0] + 2]
        firsts.append(bits[0])
    assert len(set(firsts)) == 200
    assert max(firsts) < 2**73, "the top bit is clear, so that no millisecond runs over"
    assert max(firsts) > 2**72


@each_gregorian
def test_ids_of_a_given_time_have_its_millisecond_and_differ(version: Any) -> None:
    generator = uuid.Generator(version=version)
    old = 1_420_000_000 * SECOND + 700_000
    ids = {generator.new_at(old) for _ in range(300)}
    assert {one.timestamp_ms for one in ids} == {old // MS}
    assert len(ids) == 300
    assert code_of(lambda: generator.new_at(-1)) == "time.range"
    assert code_of(lambda: generator.new_at(10**6 * 365 * 86400 * SECOND)) == "time.range"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"version": 5}, "config.policy"),
        ({"version": "7"}, "argument.type"),
        ({"node": 2**24}, "config.node"),
        ({"node": 2**47, "version": 1}, "config.node"),
        ({"node": 1, "version": 4}, "config.node"),
        ({"mac": 1, "version": 4}, "config.node"),
        ({"mac": 1}, "config.node"),
        ({"mac": 2**48, "version": 1}, "config.node"),
        ({"mac": 1, "node": 1, "version": 6}, "config.node"),
        ({"mac": 1, "version": 6, "span_ms": 5000}, "config.node"),
        ({"version": 4, "never_used": True}, "config.node"),
    ],
    ids=str,
)
def test_invalid_generator_arguments_are_refused(arguments: Any, code: str) -> None:
    assert code_of(lambda: uuid.Generator(**arguments)) == code


@each_timed
def test_leased_generators_have_different_numbers_of_one_pool(version: Any) -> None:
    clock = ManualClock(NOW_NS)
    store = MemoryStore(clock=lambda: clock.now_ns // MS)
    generators = [uuid.Generator(version=version, store=store, clock=clock, span_ms=5_000) for _ in range(4)]
    assert len({one for generator in generators for one in generator.batch(500)}) == 2000
    assert len({generator.node for generator in generators}) == 4
    [pool] = store.list_pools()
    assert pool.name == f"uuid.v{version}"
    for lease in store.list_leases(pool.name):
        assert lease.floor_ms <= clock.now_ns // MS < lease.until_ms
    with pytest.raises(LeaseError):
        generators[0].new_at(NOW_NS - SECOND)


def test_generator_with_an_explicit_number_is_refused_in_a_child() -> None:
    generator = uuid.Generator(7)
    assert in_child(lambda: code_of(generator.new)) == "fork.shared_node"


# --- replacement of the standard module ------------------------------------------------------------------------------


def test_every_public_name_of_the_standard_module_exists() -> None:
    modules = {name for name in vars(std) if isinstance(getattr(std, name), type(std))}
    own = {
        name
        for name, value in vars(std).items()
        if not name.startswith("_") and name not in modules and getattr(value, "__module__", "uuid") == "uuid"
    }
    assert own - {"bytes_", "int_"} <= set(uuid.__all__)
    assert {f"uuid{version}" for version in (1, 3, 4, 5, 6, 7, 8)} | {"NIL", "MAX"} <= set(uuid.__all__)
    for name in ("UUID", "SafeUUID", "getnode", "NAMESPACE_DNS"):
        assert getattr(uuid, name) is getattr(std, name)


@pytest.mark.parametrize("name", ["uuid1", "uuid4", "uuid6", "uuid7", "uuid8"])
def test_functions_return_instances_of_the_standard_class(name: str) -> None:
    make = getattr(uuid, name)
    one = make()
    assert type(one) is std.UUID
    assert (one.version, one.is_safe) == (int(name[-1]), std.SafeUUID.unknown)
    again = std.UUID(str(one))
    assert (one, hash(one), repr(one), one.int, one.bytes) == (again, hash(again), repr(again), again.int, again.bytes)
    assert pickle.loads(pickle.dumps(one)) == one
    assert weakref.ref(one)() is one
    with pytest.raises(TypeError):
        one.int = 1  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(make)) is make
    assert (make.__module__, make.__qualname__) == ("mintage.uuid", name)
    assert len({make() for _ in range(5000)}) == 5000


def test_uuid7_never_goes_back_and_shares_its_order_with_new() -> None:
    ids = [uuid.ID.from_uuid(uuid.uuid7()) if random.random() < 0.5 else uuid.new() for _ in range(5000)]
    assert ids == sorted(set(ids))
    assert abs(ids[-1].time - datetime.now(UTC)) < timedelta(minutes=1)


def test_uuid1_and_uuid6_take_a_node_and_a_clock_sequence() -> None:
    for make, version in ((uuid.uuid1, 1), (uuid.uuid6, 6)):
        one = uuid.ID.from_uuid(make(uuid.getnode(), 0x1FFFF))
        assert (one.version, one.node, one.clock_seq) == (version, f"{uuid.getnode():012x}", 0x3FFF)
        assert len({make(1, 2) for _ in range(5000)}) == 5000
    with pytest.raises(ValueError, match="node"):
        uuid.uuid1(2**48)
    assert uuid.uuid6(2**48 + 5).node == 5


@pytest.mark.parametrize("arguments", [(uuid.getnode(), 5), (uuid.getnode(),), (None, 5)], ids=repr)
def test_forked_processes_with_one_node_repeat_no_uuid(arguments: Any) -> None:
    def mint() -> list[str]:
        return [str(make(*arguments)) for make in (uuid.uuid1, uuid.uuid6) for _ in range(2000)]

    children = [Child(mint) for _ in range(8)]
    ids = mint() + [one for child in children for one in child.result()]
    assert len(set(ids)) == 36_000


def test_uuid1_with_a_given_node_has_the_100_ns_of_the_clock() -> None:
    with freeze(NOW_NS) as clock:
        first, second = (uuid.ID.from_uuid(uuid.uuid1(1, 2)) for _ in range(2))
        assert (first.timestamp_ns, second.timestamp_ns) == (NOW_NS // 100 * 100, NOW_NS // 100 * 100 + 100)
        clock.advance(1_000)
        for make in (uuid.uuid1, uuid.uuid6):
            assert uuid.ID.from_uuid(make(3)).timestamp_ns == first.timestamp_ns + 1_000
        clock.advance(-SECOND)
        assert uuid.uuid1(1, 2).time == first.as_uuid().time + 11, "later than the last one"
        clock.set(-1)
        assert code_of(lambda: uuid.uuid1(1, 2)) == "clock.range"


def test_names_of_another_type_are_refused() -> None:
    assert code_of(lambda: uuid.uuid5(uuid.NAMESPACE_DNS, 7)) == "argument.type"  # type: ignore[arg-type]
    assert code_of(lambda: uuid.uuid3("dns", "x")) == "argument.type"  # type: ignore[arg-type]
    with pytest.raises(UnicodeEncodeError):
        uuid.uuid5(uuid.NAMESPACE_DNS, "\ud800")


def test_mintage_neither_imports_nor_hides_the_standard_module() -> None:
    program = """
import sys, mintage
assert "mintage.uuid" not in sys.modules and "uuid" not in sys.modules
from mintage._core.uuid import uuid4, uuid7
assert uuid7().version == 7 and uuid4().version == 4
import uuid, mintage.uuid as ours
assert uuid.__file__ != ours.__file__ and uuid.UUID is ours.UUID
"""
    subprocess.run([sys.executable, "-c", program], check=True)


PRIVATE = "what it replaces is private to the standard module"
INTERNALS = {
    "test_uuid1_eui64": PRIVATE,
    "test_uuid1_safe": PRIVATE,
    "test_uuid1_unknown": PRIVATE,
    "test_uuid1_is_safe": PRIVATE,
    "test_uuid1_is_unsafe": PRIVATE,
    "test_uuid1_bogus_return_value": PRIVATE,
    "test_uuid1_time": PRIVATE,
    "test_uuid6": PRIVATE,
    "test_uuid6_uniqueness": PRIVATE,
    "test_uuid6_test_vectors": PRIVATE,
    "test_uuid7": PRIVATE,
    "test_uuid7_monotonicity": PRIVATE,
    "test_uuid7_timestamp_backwards": PRIVATE,
    "test_uuid7_overflow_counter": PRIVATE,
}
"""Tests of CPython's that are not run over mintage.uuid. Nor are its classes of internals, which call what begins with
an underscore."""


def cpythons() -> Any:
    """Return the tests of uuid of CPython, or None if this interpreter came without them."""
    try:
        return importlib.import_module("test.test_uuid")
    except ImportError:
        return None


CPYTHONS = cpythons()


@pytest.mark.skipif(CPYTHONS is None, reason="this interpreter came without its test package, which has test_uuid")
@pytest.mark.filterwarnings("default::DeprecationWarning")
@pytest.mark.parametrize("name", unittest.TestLoader().getTestCaseNames(CPYTHONS and CPYTHONS.BaseTestUUID))
def test_tests_of_cpython_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in INTERNALS:
        pytest.skip(INTERNALS[name])
    monkeypatch.setattr(CPYTHONS, "py_uuid", uuid)
    case: Any = type("OverMintage", (CPYTHONS.BaseTestUUID, unittest.TestCase), {"uuid": uuid})(name)
    result = case.run()
    assert result.wasSuccessful(), "".join(text for _, text in [*result.errors, *result.failures])
    assert not result.skipped, result.skipped


def test_time_of_a_standard_uuid_is_read_by_the_class_of_ids() -> None:
    """Its own ``time`` reads each version as version 1 before Python 3.14, as the page of the format says."""
    for version in (1, 6, 7):
        made = uuid.ID.from_parts(version=version, timestamp_ms=1_700_000_000_000)
        assert uuid.ID.from_uuid(made.as_uuid()).time == datetime.fromtimestamp(1_700_000_000, UTC)
    ours = uuid.ID.from_parts(version=7, timestamp_ms=1_700_000_000_000)
    assert (ours.as_uuid().time == ours.timestamp_ms) is (sys.version_info >= (3, 14))
