"""Tests of locality: the correct behaviour of the Java and Ruby libraries, the faults of each, and our promises."""

from __future__ import annotations

import copy
import os
import pickle
import time
import uuid
from bisect import bisect
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage import errors, locality
from mintage.store.memory import MemoryStore
from mintage.testing import ManualClock
from tests.helpers.cases import each_case
from tests.helpers.vectors import vectors

Case = dict[str, Any]
Mode = Literal["variable", "sequential"]

RECORDED = vectors("locality_uuid")
PARSED: list[Case] = RECORDED["parse"]
VERSION_B: list[Case] = [case for case in PARSED if case["ruby"]["version"] == "b"]
OTHER_VERSIONS: list[Case] = [case for case in PARSED if case["ruby"]["version"] != "b"]
MODES: dict[str, Mode] = {"var": "variable", "seq": "sequential"}

STRIDE = 198_491_317
MS = 1_528_538_400_000
LAST_MS = 2**43 - 1
HEX = "0123456789abcdef"


def ns(ms: int) -> int:
    return ms * 1_000_000


def generator(mode: Mode = "variable", *, counter: int | None = 0, ms: int = MS) -> locality.Generator:
    return locality.Generator(mode, pid=1, mac="0000001", counter=counter, clock=ManualClock(ns(ms)))


def text_of(case: Case) -> str:
    return str(case["input"])


ids = st.binary(min_size=16, max_size=16).map(locality.ID)


# ------------------------------------------------------------------------------------------------------------- parsing


@each_case("case", PARSED, ids=text_of)
def test_any_uuid_parses_to_the_bytes_of_java_and_ruby(case: Case) -> None:
    one = locality.ID.parse(case["input"])
    assert bytes(one).hex() == case["java"]["hex"] == case["ruby"]["hex"]
    halves = [int(case["java"][half]) % 2**64 for half in ("msb", "lsb")]
    assert int(one) == halves[0] << 64 | halves[1]


@each_case("case", PARSED, ids=text_of)
def test_text_is_lower_case_as_in_java_and_ruby(case: Case) -> None:
    assert str(locality.ID.parse(case["input"])) == case["java"]["text"] == case["ruby"]["text"]


@each_case("case", PARSED, ids=text_of)
def test_version_is_the_13th_digit_as_in_java_and_ruby(case: Case) -> None:
    assert locality.ID.parse(case["input"]).version == case["java"]["version"] == case["ruby"]["version"]


@each_case("case", VERSION_B, ids=text_of)
def test_fields_of_version_b_are_those_of_java_and_ruby(case: Case) -> None:
    one, java, ruby = locality.ID.parse(case["input"]), case["java"], case["ruby"]
    assert one.pid == java["pid"] == ruby["pid"]
    assert one.timestamp_ms == java["timestamp_ms"] == ruby["timestamp_ms"]
    assert one.mac == java["mac_fragment_hex"][-7:] == ruby["mac"].removeprefix("_____")


@each_case("case", VERSION_B, ids=text_of)
def test_time_is_the_timestamp_in_utc_as_in_ruby(case: Case) -> None:
    one, recorded = locality.ID.parse(case["input"]), case["ruby"]["timestamp_utc"]
    if len(recorded) == len("2012-10-15T18:58:18.450Z"):
        assert f"{one.time:%Y-%m-%dT%H:%M:%S}.{one.time.microsecond // 1000:03}Z" == recorded
        return
    with pytest.raises(errors.FieldError, match="9999") as caught:
        _ = one.time
    assert caught.value.code == "time.range"


@each_case("name", ["counter", "sequential_counter", "pid", "mac", "timestamp_ms", "time"])
@each_case("case", OTHER_VERSIONS, ids=text_of)
def test_other_versions_have_no_fields_unlike_in_java(case: Case, name: str) -> None:
    assert (case["java"]["pid"], case["java"]["timestamp_ms"]) == (-1, None)
    with pytest.raises(errors.FieldError, match=case["ruby"]["text"]) as caught:
        getattr(locality.ID.parse(case["input"]), name)
    assert caught.value.code == "field.version"


def first_fault(text: str) -> int:
    allowed = (("-" if at in (8, 13, 18, 23) else HEX + HEX.upper()) for at in range(36))
    return next(at for at, (character, fit) in enumerate(zip(text, allowed, strict=True)) if character not in fit)


@pytest.mark.parametrize("case", RECORDED["invalid"], ids=lambda case: ascii(case["input"]))
def test_malformed_text_is_refused_unlike_in_java_and_ruby(case: Case) -> None:
    with pytest.raises(errors.ParseError) as caught:
        locality.ID.parse(case["input"])
    if len(case["input"]) == 36:
        assert (caught.value.code, caught.value.position) == ("parse.character", first_fault(case["input"]))
    else:
        assert (caught.value.code, caught.value.position) == ("parse.length", None)


def test_java_and_ruby_each_accept_some_malformed_text() -> None:
    for language in ("java", "ruby"):
        assert any("error" not in case[language] for case in RECORDED["invalid"])


@pytest.mark.parametrize("size", [0, 15, 17])
def test_bytes_of_another_length_are_refused_as_in_java(size: int) -> None:
    assert f"byte[{size}]" in RECORDED["misc"]["java"]["errors"]
    with pytest.raises(errors.ParseError) as caught:
        locality.ID(bytes(size))
    assert caught.value.code == "parse.length"


@pytest.mark.parametrize("value", [None, 5, b"20be0ffc-314a-bd53-7a50-013a65ca76d2"], ids=type)
def test_non_text_is_refused_as_in_java_and_ruby(value: Any) -> None:
    with pytest.raises(errors.ArgumentError):
        locality.ID.parse(value)


# ------------------------------------------------------------------------------------------------------------- minting

GENERATED: list[Case] = RECORDED["generate"]
WITHIN_REACH = [case for case in GENERATED if 0 <= case["clock_ms"] <= LAST_MS]
OUT_OF_REACH = [case for case in GENERATED if not 0 <= case["clock_ms"] <= LAST_MS]


def right(case: Case) -> Case:
    """Return the record of Ruby, as Java shifts with sign; but that of Java if the counter wraps, a fault in Ruby."""
    ruby, java = case["ruby"], case["java"]
    record: Case = ruby if ruby["counter_after"] == java["counter_after"] else java
    return record


@each_case("case", WITHIN_REACH, ids=lambda case: f"{case['mode']}-{case['counter_before']}")
def test_generator_mints_as_the_correct_original_does(case: Case) -> None:
    minted = locality.Generator(
        MODES[case["mode"]],
        pid=case["pid"],
        mac=case["mac"],
        counter=case["counter_before"],
        clock=ManualClock(ns(case["clock_ms"])),
    ).new()
    assert (str(minted), bytes(minted).hex()) == (right(case)["text"], right(case)["hex"])


@pytest.mark.parametrize("case", OUT_OF_REACH, ids=lambda case: f"{case['mode']}-{case['counter_before']}")
def test_fields_compose_as_in_the_correct_original_at_any_time(case: Case) -> None:
    composed = locality.ID.from_parts(
        counter=right(case)["counter_after"],
        pid=case["pid"],
        mac=case["mac"],
        # Both libraries cut a time before 1970 to 48 bits.
        timestamp_ms=case["clock_ms"] % 2**48,
        mode=MODES[case["mode"]],
    )
    assert str(composed) == right(case)["text"]


@pytest.mark.parametrize("ms", sorted({case["clock_ms"] for case in OUT_OF_REACH}))
def test_times_outside_1970_to_2248_are_refused_unlike_originals(ms: int) -> None:
    with pytest.raises(errors.GenerationError) as caught:
        generator(ms=ms).new()
    assert caught.value.code == "clock.range"


def test_last_millisecond_of_2248_that_fits_is_minted() -> None:
    assert generator(ms=LAST_MS).new().timestamp_ms == LAST_MS


@pytest.mark.parametrize(
    "case", [case for case in GENERATED if case["java"]["counter_after"] >= 2**31 and case["mode"] == "var"]
)
def test_seventh_digit_is_not_always_f_from_2_to_the_31_unlike_java(case: Case) -> None:
    counter = case["java"]["counter_after"]
    digits = str(locality.ID.from_parts(counter=counter, pid=0, mac="0000000", timestamp_ms=0))[:8]
    assert case["java"]["first8"][6] == "f"
    assert digits == f"{counter:08x}"[::-1]


def test_java_and_ruby_differ_where_one_is_wrong() -> None:
    listed = RECORDED["generate_java_ruby_differences"]
    sign = [case for case in listed if case["java"][0] == case["ruby"][0]]
    wrap = [case for case in listed if case["java"][0] != case["ruby"][0]]
    assert all(case["java"][1][6] == "f" for case in sign)
    assert all(case["counter_before"] + STRIDE >= 2**32 - 1 for case in wrap)


@each_case("case", RECORDED["generate_java_ruby_differences"], ids=lambda case: f"{case['counter_before']}")
def test_counter_grows_as_in_java_and_is_written_as_in_ruby(case: Case) -> None:
    mode = MODES[case["mode"]]
    minted = generator(mode, counter=case["counter_before"]).new()
    java, ruby = case["java"], case["ruby"]
    counter = minted.counter if mode == "variable" else minted.sequential_counter
    assert counter == java[0]
    assert str(minted)[:8] == (ruby if java[0] == ruby[0] else java)[1]


RUBY = RECORDED["misc"]["ruby"]
RUBYS_WALKS: list[tuple[Mode, Case]] = [
    *(("variable", step) for step in RUBY["variable_wrap_walk"]),
    *(("sequential", step) for step in RUBY["sequential_wrap_walk"]),
    *(("sequential", step) for step in RUBY["sequential_negative_seed_walk"]),
    *(("variable", step) for step in RUBY["variable_negative_counter_walk (after a negative sequential seed)"]),
]


def rubys_step_is_right(mode: Mode, step: Case) -> bool:
    grown: int = (step["after"] - step["before"]) % 2**32
    return grown == (STRIDE if mode == "variable" else 1)


@pytest.mark.parametrize(("mode", "step"), [walk for walk in RUBYS_WALKS if rubys_step_is_right(*walk)])
def test_counter_walks_as_in_ruby_where_ruby_is_correct(mode: Mode, step: Case) -> None:
    assert str(generator(mode, counter=step["before"] % 2**32).new())[:8] == step["first8"]


@pytest.mark.parametrize(("mode", "step"), [walk for walk in RUBYS_WALKS if not rubys_step_is_right(*walk)])
def test_counter_wraps_at_2_to_the_32_unlike_ruby(mode: Mode, step: Case) -> None:
    minted = generator(mode, counter=step["before"] % 2**32).new()
    counter = minted.counter if mode == "variable" else minted.sequential_counter
    assert counter == (step["after"] - 1) % 2**32


@pytest.mark.parametrize(
    "case", RUBY["float_clock_near_boundary"], ids=lambda case: f"{case['ns_before_ms_boundary']} ns"
)
def test_clock_is_floored_exactly_unlike_ruby(case: Case) -> None:
    clock = ManualClock(ns(case["exact_floor_ms"] + 1) - case["ns_before_ms_boundary"])
    assert locality.Generator(clock=clock).new().timestamp_ms == case["exact_floor_ms"]


@pytest.mark.parametrize(("exact", "rubys"), RUBY["float_clock_mismatches_of_7000_exact_ms"]["examples"])
def test_clock_loses_no_millisecond_unlike_ruby(exact: int, rubys: int) -> None:
    assert generator(ms=exact).new().timestamp_ms == exact == rubys + 1


def test_example_of_the_readme_has_the_plainly_reversed_counter() -> None:
    check = RECORDED["readme_counter_check"]
    assert f"{locality.ID.parse(check['id']).counter:#x}" == check["plain_nibble_reversal_of_first8"]


# ----------------------------------------------------------------------------------------------------- sequential seeds

SEEDS: list[Case] = RECORDED["sequential_seeds"]


def seeded(case: Case, recorded: locality.ID) -> locality.Generator:
    clock = ManualClock(ns(case["clock_ms"]))
    return locality.Generator("sequential", pid=recorded.pid, mac=recorded.mac, clock=clock)


@pytest.mark.parametrize("language", ["java", "ruby"])
@pytest.mark.parametrize("case", [case for case in SEEDS if case["clock_ms"] <= LAST_MS], ids=lambda case: case["utc"])
def test_sequential_mode_starts_from_the_minute_as_in_java_and_ruby(case: Case, language: str) -> None:
    recorded = case[language]
    minting = seeded(case, locality.ID.parse(recorded["first_id"]))
    assert [str(minting.new()), str(minting.new())] == [recorded["first_id"], recorded["second_id"]]


@pytest.mark.parametrize("case", SEEDS, ids=lambda case: case["utc"])
def test_first_sequential_id_counts_one_from_the_seed(case: Case) -> None:
    for language in ("java", "ruby"):
        first = locality.ID.parse(case[language]["first_id"])
        assert first.sequential_counter == (case[language]["seed_u32"] + 1) % 2**32


@pytest.mark.parametrize("case", [case for case in SEEDS if case["clock_ms"] <= LAST_MS], ids=lambda case: case["utc"])
def test_sequential_seed_is_that_of_java_and_ruby(case: Case) -> None:
    seed = locality.sequential_seed(ns(case["clock_ms"]))
    assert seed == case["java"]["seed_u32"] == case["ruby"]["seed_u32"]
    assert locality.sequential_seed(datetime.fromtimestamp(case["clock_ms"] / 1000, UTC)) == seed


def test_seed_of_ten_minutes_is_one_number() -> None:
    begin = MS // 600_000 * 600_000
    assert locality.sequential_seed(ns(begin + 599_999)) == locality.sequential_seed(ns(begin))
    assert locality.sequential_seed(ns(begin + 600_000)) != locality.sequential_seed(ns(begin))


@pytest.mark.parametrize("time", [ns(-1), ns(LAST_MS + 1), datetime(2026, 1, 1), "now", None], ids=repr)  # noqa: DTZ001
def test_seed_of_a_time_without_ids_is_refused(time: Any) -> None:
    with pytest.raises(errors.MintError) as caught:
        locality.sequential_seed(time)
    assert caught.value.code in {"time.range", "time.naive", "argument.type"}


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 16, 65_536])
def test_splits_divide_the_ids_of_variable_mode_evenly(shards: int) -> None:
    points = locality.splits(shards)
    assert len(points) == shards - 1
    assert points == sorted(set(points))
    counts = Counter(bisect(points, one) for one in generator().batch(64 * shards if shards < 100 else 1))
    assert max(counts.values()) <= 64 * 1.25


@pytest.mark.parametrize("shards", [0, -1, 65_537, 2.0, "4", None], ids=repr)
def test_splits_of_a_wrong_number_are_refused(shards: Any) -> None:
    with pytest.raises(errors.MintError) as caught:
        locality.splits(shards)
    assert caught.value.code == ("field.range" if isinstance(shards, int) else "argument.type")


@pytest.mark.parametrize("case", [case for case in SEEDS if case["clock_ms"] <= LAST_MS], ids=lambda case: case["utc"])
def test_second_switch_to_sequential_does_not_seed_as_in_java(case: Case) -> None:
    minting = seeded(case, locality.ID.parse(case["java"]["first_id"]))
    minting.new()
    minting.use_mode("sequential")
    assert minting.new().sequential_counter == case["java"]["after_second_useSequentialIds_counter_u32"]


@pytest.mark.parametrize("case", [case for case in SEEDS if case["clock_ms"] <= LAST_MS], ids=lambda case: case["utc"])
def test_switching_back_to_sequential_seeds_again_as_in_java(case: Case) -> None:
    minting = seeded(case, locality.ID.parse(case["java"]["first_id"]))
    minting.new()
    minting.use_mode("variable")
    minting.use_mode("sequential")
    assert minting.new().sequential_counter == case["java"]["reseeded_counter_u32"] + 1


def test_seed_uses_the_english_locale_unlike_java() -> None:
    english, *others = RECORDED["sequential_seed_locale_java"]
    assert not all(case["equals_en_US"] for case in others)
    minted = generator("sequential", counter=None, ms=english["clock_ms"]).new()
    assert minted.sequential_counter == english["seed_u32"] + 1


def test_generators_started_within_ten_minutes_start_close_together() -> None:
    first = generator("sequential", counter=None, ms=MS).new()
    later = generator("sequential", counter=None, ms=MS + 9 * 60_000).new()
    assert first.sequential_counter == later.sequential_counter


# ---------------------------------------------------------------------------------------------------- scatter, cluster


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_variable_ids_visit_every_prefix_equally_often(digits: int) -> None:
    prefixes = [str(minted)[:digits] for minted in generator(counter=12345).batch(4096)]
    assert {prefix: prefixes.count(prefix) for prefix in set(prefixes)} == {
        f"{n:0{digits}x}": 4096 // 16**digits for n in range(16**digits)
    }


def test_neighbouring_variable_ids_differ_in_their_first_character() -> None:
    texts = [str(minted) for minted in generator().batch(1000)]
    assert all(a[0] != b[0] for a, b in pairwise(texts))


def test_sequential_ids_share_their_first_characters_and_ascend() -> None:
    minted = generator("sequential", counter=0x1234_0000).batch(1000).tolist()
    assert {str(one)[:4] for one in minted} == {"1234"}
    assert minted == sorted(minted)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["variable", "sequential"]))
def test_counter_reads_back_in_the_mode_that_wrote_it(counter: int, mode: Mode) -> None:
    one = locality.ID.from_parts(counter=counter, pid=0, mac="0000000", timestamp_ms=0, mode=mode)
    assert (one.counter if mode == "variable" else one.sequential_counter) == counter


def test_clock_rollback_repeats_nothing() -> None:
    clock = ManualClock(ns(MS))
    minting = locality.Generator(pid=1, mac="0000001", counter=0, clock=clock)
    minted: list[locality.ID] = []
    for ms in (MS, MS - 10_000, MS + 1, MS):
        clock.set(ns(ms))
        minted.extend(minting.batch(10))
    assert len(set(minted)) == 40


def test_ids_after_a_change_of_mode_are_later_than_those_before() -> None:
    minting = generator(counter=7)
    before = minting.new()
    minting.use_mode("sequential")
    after = minting.new()
    minting.use_mode("variable")
    again = minting.new()
    assert before.timestamp_ms < after.timestamp_ms < again.timestamp_ms <= MS + 3 * 2048


# ---------------------------------------------------------------------------------------------------------- round trips


@given(ids)
def test_text_parses_back_in_either_case(one: locality.ID) -> None:
    assert locality.ID.parse(str(one)) == locality.ID.parse(str(one).upper()) == one


@given(ids)
def test_bytes_integer_and_uuid_read_back(one: locality.ID) -> None:
    read = [locality.ID.from_bytes(bytes(one)), locality.ID.from_int(int(one)), locality.ID.from_uuid(one.as_uuid())]
    assert read == [one] * 3


@given(ids)
def test_id_is_the_uuid_of_the_same_bits(one: locality.ID) -> None:
    assert one.as_uuid() == UUID(bytes=bytes(one)) == UUID(str(one)) == UUID(int=int(one))


@given(ids)
def test_id_survives_pickle_and_copies(one: locality.ID) -> None:
    pickled = [pickle.loads(pickle.dumps(one, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    assert [*pickled, copy.copy(one), copy.deepcopy(one)] == [one] * (len(pickled) + 2)


@given(ids)
def test_equal_ids_hash_alike(one: locality.ID) -> None:
    assert hash(one) == hash(locality.ID(bytes(one)))


@given(ids, ids)
def test_bytes_text_and_integers_order_alike(a: locality.ID, b: locality.ID) -> None:
    assert (a < b) == (bytes(a) < bytes(b)) == (str(a) < str(b)) == (int(a) < int(b))


@given(ids, ids)
def test_equal_ids_and_only_those_have_equal_bytes(a: locality.ID, b: locality.ID) -> None:
    same = bytes(a) == bytes(b)
    assert (a == b, a != b) == (same, not same)


@given(
    st.integers(0, 2**32 - 1), st.integers(0, 65535), st.text(HEX, min_size=7, max_size=7), st.integers(0, 2**48 - 1)
)
def test_fields_compose_to_an_id_that_has_them(counter: int, pid: int, mac: str, timestamp_ms: int) -> None:
    one = locality.ID.from_parts(counter=counter, pid=pid, mac=mac, timestamp_ms=timestamp_ms)
    assert (one.version, one.counter, one.pid, one.mac, one.timestamp_ms) == ("b", counter, pid, mac, timestamp_ms)


@pytest.mark.parametrize(
    "mac", ["ACB07B9F1B".rjust(12, "0"), "00:ac:b0:7b:9f:1b", "00-AC-B0-7B-9F-1B", "07b9f1b", "07B9F1B"]
)
def test_mac_is_given_completely_or_as_its_last_7_digits(mac: str) -> None:
    assert locality.ID.from_parts(counter=0, pid=0, mac=mac, timestamp_ms=0).mac == "07b9f1b"
    assert locality.Generator(mac=mac).mac == "07b9f1b"


def test_repr_can_be_evaluated() -> None:
    one = locality.ID(bytes(range(16)))
    assert eval(repr(one), {"locality": locality}) == one


# ---------------------------------------------------------------------------------------------------------- generators


def test_generator_uses_pid_and_clock_of_its_process() -> None:
    minted = locality.Generator().new()
    assert minted.pid == os.getpid() % 65536
    assert abs(minted.time - datetime.now(UTC)) < timedelta(minutes=1)


def test_generator_exposes_its_settings() -> None:
    minting = locality.Generator("sequential", pid=77, mac="abcdef0")
    minted = minting.new()
    assert (
        (minting.mode, minting.pid, minting.mac)
        == ("sequential", minted.pid, minted.mac)
        == ("sequential", 77, "abcdef0")
    )


def test_counting_starts_at_random_by_default() -> None:
    assert len({generator(counter=None).new().counter for _ in range(8)}) > 1


def test_batch_equals_as_many_single_calls() -> None:
    one_by_one = generator()
    assert generator().batch(5000).tolist() == [one_by_one.new() for _ in range(5000)]


def test_fill_writes_the_ids_of_a_batch() -> None:
    buffer = bytearray(16 * 5000)
    assert generator().fill(buffer) == 5000
    assert buffer == bytes(generator().batch(5000))


def test_generator_is_an_iterator_of_ids() -> None:
    assert list(islice(generator(), 3)) == generator().batch(3).tolist()


def test_generator_mints_until_its_with_block_ends() -> None:
    with generator() as minting:
        minting.new()
    with pytest.raises(errors.GenerationError) as caught:
        minting.new()
    assert caught.value.code == "generator.closed"


def test_module_mints_variable_ids_until_its_mode_is_changed() -> None:
    variable = [locality.new() for _ in range(2)]
    locality.use_sequential_ids()
    sequential = [locality.new() for _ in range(2)]
    locality.use_variable_ids()
    variable += [locality.new() for _ in range(2)]
    assert sequential[1].sequential_counter == sequential[0].sequential_counter + 1
    assert {(b.counter - a.counter) % 2**32 for a, b in (variable[:2], variable[2:])} == {STRIDE}


def test_call_overtaken_while_it_reads_the_mac_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads may run meanwhile; the first to finish decides where the counter starts."""
    generator = locality.Generator(clock=time.time_ns)
    overtaking: list[locality.ID] = []

    def getnode() -> int:
        monkeypatch.setattr(uuid, "getnode", lambda: 0x0242AC110002)
        overtaking.append(generator.new())
        return 0x0242AC110002

    monkeypatch.setattr(uuid, "getnode", getnode)
    overtaken = generator.new()
    assert overtaken.counter == (overtaking[0].counter + 198_491_317) % 2**32


def test_generator_closed_while_it_reads_the_mac_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = locality.Generator(clock=time.time_ns)

    def getnode() -> int:
        generator.close()
        return 0x0242AC110002

    monkeypatch.setattr(uuid, "getnode", getnode)
    for _ in range(2):
        with pytest.raises(errors.GenerationError) as caught:
            generator.new()
        assert caught.value.code == "generator.closed"


# ------------------------------------------------------------------------------------------------------ of a given time


@pytest.mark.parametrize("mode", MODES.values())
def test_new_at_uses_the_given_time_and_its_own_counter(mode: Mode) -> None:
    one = generator(mode)
    first, dated, second, later = one.new(), one.new_at(ns(MS - 1) + 999_999), one.new(), one.new_at(0)
    assert (dated.timestamp_ms, later.timestamp_ms) == (MS - 1, 0)
    half_way = [one.nth_at(ns(at), 2**31 + n) for n, at in enumerate((MS - 1, 0))]
    assert [dated, later] == half_way
    assert len({one.counter for one in (first, dated, second, later)}) == 4
    assert (dated.pid, dated.mac) == (1, "0000001")


@pytest.mark.parametrize("time_ms", [-1, LAST_MS + 1, 2**48])
def test_new_at_refuses_times_outside_the_layout(time_ms: int) -> None:
    with pytest.raises(errors.FieldError) as caught:
        generator().new_at(ns(time_ms))
    assert caught.value.code == "time.range"
    assert generator().new_at(ns(LAST_MS)).timestamp_ms == LAST_MS


def test_only_a_never_used_lease_mints_ids_of_the_past() -> None:
    clock = ManualClock(ns(MS))
    store = MemoryStore(clock=lambda: clock.now_ns // 1_000_000)
    with locality.Generator(store=store, clock=clock) as shared, pytest.raises(errors.LeaseError) as caught:
        shared.new_at(ns(MS - 1000))
    assert caught.value.code == "lease.history"
    with locality.Generator(store=store, clock=clock, never_used=True) as own:
        assert own.new_at(ns(MS - 1000)).timestamp_ms == MS - 1000
        with pytest.raises(errors.LeaseError) as caught:
            own.new_at(ns(MS))
        assert caught.value.code == "lease.history"


def test_generator_takes_another_pid_if_the_share_has_none_of_its_own() -> None:
    clock = ManualClock(ns(MS))
    store = MemoryStore(clock=lambda: clock.now_ns // 1_000_000)
    mine = os.getpid() % 2**16
    store.create_pool("locality", layout="locality", nodes=range((mine + 1) * 2**28, (mine + 2) * 2**28))
    with locality.Generator(store=store, clock=clock) as moved:
        assert moved.new().pid == mine + 1
    store.create_pool("near", layout="locality", nodes=range(mine * 2**28, mine * 2**28 + 7))
    with locality.Generator(store=store, clock=clock, pool="near") as near:
        one = near.new()
        assert (one.pid, int(one.mac, 16) < 7) == (mine, True)


# -------------------------------------------------------------------------------------------------------------- fields


def test_a_time_is_given_and_read_in_any_of_its_three_units() -> None:
    time = datetime(2024, 2, 29, 12, 0, 0, 4000, tzinfo=UTC)
    ms = int(time.timestamp() * 1000)
    one = locality.ID.from_parts(time=time, pid=7)
    assert one == locality.ID.from_parts(timestamp_ms=ms, pid=7) == locality.ID.from_parts(timestamp_ns=ns(ms), pid=7)
    assert (one.time, one.timestamp_ms, one.timestamp_ns, one.counter, one.mac) == (time, ms, ns(ms), 0, "0000000")
    assert one.replace(timestamp_ms=1).replace(time=time) == one


@pytest.mark.parametrize("ms", [-1, 2**48])
def test_a_time_that_no_id_holds_is_refused(ms: int) -> None:
    with pytest.raises(errors.FieldError) as caught:
        locality.ID.from_parts(timestamp_ms=ms)
    assert caught.value.code == "time.range"


def with_fields(one: locality.ID) -> locality.ID:
    """The same ID in version b."""
    head, tail = bytes(one)[:6], bytes(one)[7:]
    return locality.ID(head + bytes([0xB0 | bytes(one)[6] & 15]) + tail)


@given(ids.map(with_fields), st.integers(0, 2**32 - 1), st.integers(0, 65535))
def test_replace_changes_the_named_fields_alone(one: locality.ID, counter: int, pid: int) -> None:
    other = one.replace(counter=counter).replace(pid=pid)
    assert (other.counter, other.pid) == (counter, pid)
    assert (other.mac, other.timestamp_ms, other.version) == (one.mac, one.timestamp_ms, "b")
    assert other.replace(counter=one.counter, pid=one.pid) == one
    assert one.replace(counter=counter, mode="sequential").sequential_counter == counter
    assert one.replace(mode="sequential") == one


def test_another_version_has_no_fields_to_replace() -> None:
    with pytest.raises(errors.FieldError) as caught:
        locality.ID.from_int(0).replace(pid=1)
    assert caught.value.code == "field.version"
