"""Tests of snowflake: every recorded layout and generator, the faults of the originals, and our promises."""

from __future__ import annotations

import copy
import pickle
import sys
from array import array
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta, timezone
from itertools import chain, count, islice, pairwise, repeat
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage import errors, snowflake
from mintage.snowflake import DEFAULT, DISCORD, INSTAGRAM, JS_SAFE, SONYFLAKE, TWITTER, Generator, Layout
from mintage.store.memory import MemoryStore
from mintage.testing import ManualClock
from tests.helpers.cases import each_case
from tests.helpers.vectors import vectors

Case = dict[str, Any]
Policy = Literal["advance", "wait", "raise"]

JAVA = vectors("callicoder_snowflake")
RECORDED_TWITTER = vectors("twitter_snowflake")
RECORDED_DISCORD = vectors("discord_snowflake")
RECORDED_INSTAGRAM = vectors("instagram")
RECORDED_SONYFLAKE = vectors("sonyflake")

T = 1_600_000_000_000
LAYOUTS = [DEFAULT, TWITTER, DISCORD, INSTAGRAM, SONYFLAKE]
POLICIES: list[Policy] = ["advance", "wait", "raise"]
FOREVER_MS = 2**32 - 1


def ns(ms: int) -> int:
    return ms * 1_000_000


def utc(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def composed(layout: Layout, ms: int, node: int, sequence: int) -> int:
    return layout.compose(timestamp_ms=ms, node=node, sequence=sequence)


def parsed(layout: Layout, number: int) -> tuple[int, int, int]:
    parts = layout.parse(number)
    return parts.timestamp_ms, parts.node, parts.sequence


def code(caught: pytest.ExceptionInfo[errors.MintError]) -> str:
    return caught.value.code


# ------------------------------------------------------------------------------------------ the article's Java class


def test_example_of_the_article_is_454947766275222906() -> None:
    example = JAVA["article_example"]
    number = composed(DEFAULT, example["time_ms"], example["node"], example["sequence"])
    assert number == int(example["reference_produces"]) == 454947766275222906


def test_number_454947766275219456_of_the_article_lacks_the_sequence() -> None:
    example = JAVA["article_example"]
    assert composed(DEFAULT, example["time_ms"], example["node"], 0) == int(example["article_claims"])


@each_case("case", JAVA["generate"])
def test_fields_compose_to_the_number_that_java_mints(case: Case) -> None:
    layout = Layout("time:41 node:10 sequence:12", epoch_ms=case["custom_epoch_ms"])
    number = composed(layout, case["time_ms"], case["node"], case["sequence"])
    assert (number, f"{number:016x}") == (int(case["id"]), case["id_hex"])


@each_case("case", JAVA["generate"])
def test_number_parses_as_in_java(case: Case) -> None:
    layout = Layout("time:41 node:10 sequence:12", epoch_ms=case["custom_epoch_ms"])
    assert parsed(layout, int(case["id"])) == tuple(case["parse"].values())


@pytest.mark.parametrize("case", [case for case in JAVA["parse"] if int(case["id"]) >= 0])
def test_any_positive_number_parses_as_in_java(case: Case) -> None:
    assert parsed(DEFAULT, int(case["id"])) == (case["timestamp_ms"], case["node"], case["sequence"])


@pytest.mark.parametrize("case", [case for case in JAVA["parse"] if int(case["id"]) < 0] + JAVA["beyond_41_bits"])
def test_negative_number_is_refused_unlike_java(case: Case) -> None:
    with pytest.raises(errors.FieldError, match=rf"{case['id']} is outside 0\.\.{2**63 - 1}") as caught:
        DEFAULT.parse(int(case["id"]))
    assert code(caught) == "field.range"


@pytest.mark.parametrize("case", JAVA["beyond_41_bits"])
def test_composing_beyond_41_bits_is_refused_unlike_java(case: Case) -> None:
    with pytest.raises(errors.FieldError, match=r"2015-01-01.*2084-09-06") as caught:
        composed(DEFAULT, case["time_ms"], case["node"], case["sequence"])
    assert code(caught) == "time.range"


@pytest.mark.parametrize("case", JAVA["beyond_41_bits"])
def test_minting_beyond_41_bits_is_refused_unlike_java(case: Case) -> None:
    with pytest.raises(errors.GenerationError) as caught:
        Generator(case["node"], clock=ManualClock(ns(case["time_ms"]))).new()
    assert code(caught) == "clock.range"


@pytest.mark.parametrize("case", JAVA["node_bounds"], ids=lambda case: case["node"])
def test_generator_accepts_the_node_numbers_of_java(case: Case) -> None:
    if case["result"] == "ok":
        assert Generator(int(case["node"])).node == int(case["node"])
        return
    with pytest.raises(errors.ConfigError, match=rf"{case['node']} is outside 0\.\.1023") as caught:
        Generator(int(case["node"]))
    assert code(caught) == "config.node"


def test_generator_that_raises_on_rollback_counts_as_java_does() -> None:
    clock = ManualClock(0)
    generator = Generator(42, on_rollback="raise", clock=clock)
    for step in JAVA["trace"]:
        clock.set(ns(step["clock_ms"]))
        if "error" in step:
            with pytest.raises(errors.GenerationError) as caught:
                generator.new()
            assert (code(caught), caught.value.retry_after_ms) == ("clock.rollback", 1)
        else:
            number = generator.new()
            assert (number, *parsed(DEFAULT, number)) == (int(step["id"]), *step["parse"])
            assert DEFAULT.parse(number).fields["time"] == step["lastTimestamp"]


def test_generator_that_waits_on_rollback_then_mints_as_java_does() -> None:
    clock = ManualClock(0)
    generator = Generator(42, on_rollback="wait", clock=clock)
    minted = []
    for step in JAVA["trace"]:
        clock.set(ns(step["clock_ms"]))
        number = generator.new()
        minted.append(number)
        if "error" in step:
            # Java's caller tries again once the clock has caught up; here the call itself waited for that.
            assert clock.now_ns == ns(step["lastTimestamp"] + DEFAULT.epoch_ms)
        else:
            assert parsed(DEFAULT, number)[0] == step["parse"][0]
    assert minted == sorted(set(minted))


def test_tick_holds_4096_numbers_as_in_java() -> None:
    recorded = JAVA["sequence_exhaustion"]
    minted = Generator(42, clock=ManualClock(ns(T))).batch(4096)
    assert (minted[0], minted[-1]) == (int(recorded["id_0"]), int(recorded["id_4095"]))


def test_number_after_an_exhausted_tick_starts_a_later_one() -> None:
    recorded = JAVA["sequence_exhaustion"]
    clock = ManualClock(ns(T))
    generator = Generator(42, clock=clock)
    generator.batch(4096)
    clock.set(ns(T + 3))
    first = generator.new()
    assert (first, parsed(DEFAULT, first)) == (int(recorded["id_4096"]), tuple(recorded["id_4096_parse"]))
    assert parsed(DEFAULT, generator.new()) == tuple(recorded["id_4097_parse"])


def test_clock_step_back_during_exhaustion_repeats_nothing_unlike_java() -> None:
    clock = ManualClock(ns(T + 98))
    generator = Generator(42, clock=clock)
    minted = [generator.new()]
    clock.set(ns(T + 100))
    minted.extend(generator.batch(4096))
    clock.set(ns(T + 98))
    minted.append(generator.new())
    # Java waits until the clock reads anything else, and mints T + 98 a second time.
    assert int(JAVA["exhaustion_then_clock_back"]["id"]) == minted[0]
    assert parsed(DEFAULT, minted[-1]) == (T + 101, 42, 0)
    assert minted == sorted(set(minted))


@pytest.mark.parametrize("on_rollback", ["advance", "wait"])
def test_clock_step_back_during_the_wait_repeats_nothing(on_rollback: Policy) -> None:
    readings = map(ns, chain(repeat(T + 98, 2), repeat(T + 100, 4096), repeat(T + 98, 2), count(T + 99)))
    generator = Generator(42, on_rollback=on_rollback, clock=lambda: next(readings))
    minted = list(islice(generator, 4100))
    assert minted == sorted(set(minted))


@pytest.mark.parametrize("case", [case for case in JAVA["before_epoch"] if case.get("id") != "12288"])
def test_time_just_before_the_epoch_is_refused_unlike_java(case: Case) -> None:
    with pytest.raises(errors.GenerationError, match="before the layout's epoch 2015-01-01") as caught:
        Generator(3, clock=ManualClock(ns(case["clock_ms"]))).new()
    assert code(caught) == "clock.range"


def test_time_of_the_epoch_is_minted_as_in_java() -> None:
    case = JAVA["before_epoch"][-1]
    assert Generator(3, clock=ManualClock(ns(case["clock_ms"]))).new() == int(case["id"])


# --------------------------------------------------------------------------------------------------- node_from_macs

INTERFACES = JAVA["node_id_from_real_interfaces"] + JAVA["node_id_without_interfaces_random_fallback"]


@pytest.mark.parametrize("case", INTERFACES)
def test_host_interfaces_give_the_node_number_of_java(case: Case) -> None:
    macs = [interface["mac"] for interface in case["interfaces_in_java_order"] if interface["mac"]]
    assert snowflake.node_from_macs(macs) == case["node_id"]


@pytest.mark.parametrize("case", JAVA["node_id_from_mac_lists"]["vectors"], ids=lambda case: f"{case['node_id']}")
def test_list_of_macs_gives_the_node_number_of_java(case: Case) -> None:
    assert snowflake.node_from_macs(case["macs"]) == case["node_id"]


@pytest.mark.parametrize("separator", [":", "-"])
def test_mac_may_be_written_in_pairs_and_lower_case(separator: str) -> None:
    assert snowflake.node_from_macs([separator.join(["02", "42", "ac", "11", "00", "03"])]) == 197


def test_order_of_the_interfaces_matters_as_in_java() -> None:
    assert snowflake.node_from_macs(["001B44113AB6", "0242AC110002"]) == 823
    assert snowflake.node_from_macs(["0242AC110002", "001B44113AB6"]) == 439


def test_consecutive_macs_of_containers_spread_as_recorded() -> None:
    nodes = {snowflake.node_from_macs([f"0242AC11{last:04X}"]) for last in range(0x0002, 0x0101)}
    assert len(nodes) == JAVA["node_id_collisions_docker_255_consecutive_macs"]["distinct_node_ids"]


# --------------------------------------------------------------------------------------------------- Twitter's layout

SAPPHIRE: list[tuple[Layout, Case]] = [
    *((TWITTER, case) for case in RECORDED_TWITTER["sapphire_twitter"]),
    *((DISCORD, case) for case in RECORDED_DISCORD["vectors"]),
]
HIGH, LOW = "worker_or_datacenter_5bit_high", "process_or_worker_5bit_low"


def fits(layout: Layout, case: Case) -> bool:
    given = case["input"]
    return utc(given["time_ms"]) < layout.expires and max(given[HIGH], given[LOW]) < 32 and given["increment"] < 4096


@each_case("layout, case", [(layout, case) for layout, case in SAPPHIRE if fits(layout, case)])
def test_fields_compose_as_in_sapphire(layout: Layout, case: Case) -> None:
    given = case["input"]
    node = given[HIGH] << 5 | given[LOW]
    assert composed(layout, given["time_ms"], node, given["increment"]) == int(case["id"])


@each_case("layout, case", [case for case in SAPPHIRE if int(case[1]["id"]) < 2 ** case[0].bits])
def test_number_parses_as_in_sapphire(layout: Layout, case: Case) -> None:
    parts, recorded = layout.parse(int(case["id"])), case["deconstruct"]
    assert [layout.epoch_ms, parts.timestamp_ms] == [recorded["epoch"], recorded["timestamp_ms"]]
    assert list(parts.fields.values())[1:] == [recorded[name] for name in ("workerId", "processId", "increment")]


@pytest.mark.parametrize(("layout", "case"), [(layout, case) for layout, case in SAPPHIRE if not fits(layout, case)])
def test_field_that_does_not_fit_is_refused_unlike_sapphire(layout: Layout, case: Case) -> None:
    given = case["input"]
    with pytest.raises(errors.FieldError) as caught:
        composed(layout, given["time_ms"], given[HIGH] << 5 | given[LOW], given["increment"])
    assert code(caught) == ("field.range" if given["increment"] > 4095 else "time.range")


def test_time_before_the_epoch_is_refused_unlike_sapphire() -> None:
    recorded = RECORDED_TWITTER["sapphire_before_epoch"]
    with pytest.raises(errors.FieldError) as composing:
        TWITTER.compose(timestamp_ms=recorded["time_ms"])
    with pytest.raises(errors.FieldError) as parsing:
        TWITTER.parse(int(recorded["id"]))
    assert (code(composing), code(parsing)) == ("time.range", "field.range")


BWMARRIN = RECORDED_TWITTER["bwmarrin"]


@each_case("case", BWMARRIN["explode"] + BWMARRIN["live_node_786"], ids=lambda case: case["id"])
def test_number_parses_as_in_bwmarrin(case: Case) -> None:
    assert parsed(TWITTER, int(case["id"])) == (case["time_ms"], case["node"], case["step"])


@each_case("case", BWMARRIN["explode"] + BWMARRIN["live_node_786"], ids=lambda case: case["id"])
def test_numbers_parsed_by_bwmarrin_compose_back(case: Case) -> None:
    number = composed(TWITTER, case["time_ms"], case["node"], case["step"])
    assert (str(number), number.to_bytes(8, "big").hex()) == (case["id"], case["int_bytes_hex"])


def test_generator_mints_as_node_786_of_bwmarrin() -> None:
    clock = ManualClock(ns(BWMARRIN["live_node_786"][0]["time_ms"]))
    minted = Generator(786, layout=TWITTER, clock=clock).batch(5)
    assert [str(number) for number in minted] == [case["id"] for case in BWMARRIN["live_node_786"]]


def test_negative_number_is_refused_unlike_bwmarrin() -> None:
    with pytest.raises(errors.FieldError) as caught:
        TWITTER.parse(int(BWMARRIN["negative"]["id"]))
    assert code(caught) == "field.range"


@pytest.mark.parametrize("case", BWMARRIN["node_bounds"], ids=lambda case: f"{case['node']}")
def test_generator_accepts_the_node_numbers_of_bwmarrin(case: Case) -> None:
    if case["error"] is None:
        assert Generator(case["node"], layout=TWITTER).node == case["node"]
        return
    with pytest.raises(errors.ConfigError) as caught:
        Generator(case["node"], layout=TWITTER)
    assert code(caught) == "config.node"


@pytest.mark.parametrize(
    "case", BWMARRIN["unmarshal_json"] + RECORDED_DISCORD["invalid"], ids=lambda case: case["input"]
)
def test_text_is_refused_as_a_number(case: Case) -> None:
    with pytest.raises(errors.ArgumentError):
        TWITTER.parse(case["input"])


FLAKE_IDGEN = RECORDED_TWITTER["flake_idgen"]
FLAKE_FIELDS = "time:42 datacenter:5 worker:5 sequence:12"


@pytest.mark.parametrize("case", [case for case in FLAKE_IDGEN["generate"] if case["worker"] < 32])
def test_generator_mints_as_flake_idgen_after_its_first_number(case: Case) -> None:
    layout = Layout(FLAKE_FIELDS, epoch_ms=case["epoch"])
    recorded = [int(minted["ok"]["id"]) for minted in case["ids"]]
    generator = Generator(
        case["datacenter"] << 5 | case["worker"], layout=layout, clock=ManualClock(ns(case["time_ms"]))
    )
    skipped = case["time_ms"] == case["epoch"]
    assert list(islice(generator, 5))[skipped : 4 + skipped] == recorded


def test_datacenter_beyond_5_bits_is_refused_unlike_flake_idgen() -> None:
    case = next(case for case in FLAKE_IDGEN["generate"] if case["worker"] > 31)
    with pytest.raises(errors.ConfigError, match=r"outside 0\.\.1023") as caught:
        Generator(case["datacenter"] << 5 | case["worker"], layout=Layout(FLAKE_FIELDS, epoch_ms=case["epoch"]))
    assert code(caught) == "config.node"


def test_overflow_step_back_and_next_tick_end_as_in_flake_idgen() -> None:
    clock = ManualClock(ns(2000))
    layout = Layout(FLAKE_FIELDS, epoch_ms=0)
    generator = Generator(5, layout=layout, on_rollback="raise", on_exhausted="raise", clock=clock)
    generator.batch(4096)
    with pytest.raises(errors.GenerationError) as overflow:
        generator.new()
    clock.set(ns(1999))
    with pytest.raises(errors.GenerationError) as back:
        generator.new()
    clock.set(ns(2001))
    assert FLAKE_IDGEN["overflow_4097th"]["error"].startswith("Error: Sequence exceeded")
    assert FLAKE_IDGEN["clock_back"]["error"].endswith("for 1 milliseconds")
    assert (code(overflow), code(back), back.value.retry_after_ms) == ("sequence.exhausted", "clock.rollback", 1)
    assert f"{generator.new():016x}" == FLAKE_IDGEN["next_ms"]["ok"]


SNOWFLAKE_ID = RECORDED_TWITTER["snowflake_id_py"]


@pytest.mark.parametrize("case", SNOWFLAKE_ID["vectors"], ids=lambda case: case["id"])
def test_fields_compose_and_parse_as_in_pythons_snowflake_id(case: Case) -> None:
    layout = Layout("time:41 instance:10 sequence:12", epoch_ms=case["epoch"])
    assert composed(layout, case["epoch"] + case["timestamp"], case["instance"], case["seq"]) == int(case["id"])
    assert parsed(layout, int(case["id"])) == (case["milliseconds"], case["instance"], case["seq"])


@pytest.mark.parametrize("case", [case for case in SNOWFLAKE_ID["errors"] if "epoch" not in case["args"]])
def test_fields_that_pythons_snowflake_id_refuses_are_refused(case: Case) -> None:
    given = case["args"]
    with pytest.raises(errors.FieldError):
        composed(TWITTER, TWITTER.epoch_ms + given["timestamp"], given["instance"], given.get("seq", 0))


# --------------------------------------------------------------------------------------------------- Discord's layout


def test_example_of_discord_parses_as_documented() -> None:
    example = RECORDED_DISCORD["docs_example"]
    parts = DISCORD.parse(int(example["id"]))
    assert parts.timestamp_ms == example["timestamp_ms"]
    assert {name: parts.fields[name] for name in ("worker", "process", "increment")} == {
        "worker": example["workerId"],
        "process": example["processId"],
        "increment": example["increment"],
    }


@pytest.mark.parametrize("number", [-1, 2**64])
def test_number_outside_64_bits_is_refused_unlike_sapphire(number: int) -> None:
    assert str(number) in [case["input"] for case in RECORDED_DISCORD["invalid"]]
    with pytest.raises(errors.FieldError, match=rf"0\.\.{2**64 - 1}") as caught:
        DISCORD.parse(number)
    assert code(caught) == "field.range"


@pytest.mark.parametrize("case", RECORDED_DISCORD["compare"])
def test_numbers_compare_as_numbers_and_not_as_text(case: Case) -> None:
    a, b = (DISCORD.parse(int(case[name])).sequence for name in "ab")
    assert (a > b) - (a < b) == case["compare"]


# ------------------------------------------------------------------------------------------------- Instagram's layout

PG = RECORDED_INSTAGRAM["vectors"]


@pytest.mark.parametrize(
    "case", [case for case in PG if case["time_ms"] >= INSTAGRAM.epoch_ms], ids=lambda case: case["id"]
)
def test_fields_compose_and_parse_as_in_postgresql_but_unsigned(case: Case) -> None:
    # PostgreSQL has no unsigned integers, so that its numbers turn negative in 2046.
    unsigned = int(case["id"]) % 2**64
    fields = (case["time_ms"], case["shard"], case["sequence_mod_1024"])
    assert (composed(INSTAGRAM, *fields), parsed(INSTAGRAM, unsigned)) == (unsigned, fields)
    assert f"{unsigned:016x}" == case["id_hex"]


@pytest.mark.parametrize(
    "case", [case for case in PG if case["time_ms"] < INSTAGRAM.epoch_ms], ids=lambda case: case["id"]
)
def test_time_before_the_epoch_is_refused_unlike_postgresql(case: Case) -> None:
    with pytest.raises(errors.FieldError) as caught:
        composed(INSTAGRAM, case["time_ms"], case["shard"], case["sequence_mod_1024"])
    assert code(caught) == "time.range"


def test_worked_example_of_the_blog_is_composed() -> None:
    assert "id 612728911936419721" in RECORDED_INSTAGRAM["blog_worked_example"]
    assert composed(INSTAGRAM, 1_387_263_000_000, 1341, 5001 % 1024) == 612728911936419721


def test_sequence_of_one_millisecond_wraps_in_postgresql() -> None:
    parts = [INSTAGRAM.parse(int(number)) for number in RECORDED_INSTAGRAM["five_consecutive_from_1022"]]
    assert [part.sequence for part in parts] == [1022, 1023, 0, 1, 2]
    assert len({part.time for part in parts}) == 1


def test_numbers_do_not_repeat_in_a_millisecond_unlike_postgresql() -> None:
    recorded = RECORDED_INSTAGRAM["3000_ids_in_one_millisecond"]
    clock = ManualClock(ns(T))
    minted = Generator(5, layout=INSTAGRAM, clock=clock).batch(int(recorded["count"]))
    assert (len(set(minted)), int(recorded["distinct"])) == (3000, 1024)
    assert clock.now_ns == ns(T + 2)


# --------------------------------------------------------------------------------------------------- Sonyflake's layout

SONY_V1 = RECORDED_SONYFLAKE["v1"]
SONY_V2 = Layout("time:39 sequence:8 machine:16", epoch_ms=1_735_689_600_000, unit_ms=10)


@each_case("case", [case for case in SONY_V1 if not case["error"]])
def test_fields_compose_as_in_sonyflake(case: Case) -> None:
    number = composed(SONYFLAKE, case["time_unix_ns"] // 1_000_000, case["machine"], case["sequence"])
    assert (number, f"{number:016x}") == (int(case["id"]), case["id_hex"])


@each_case("case", [case for case in SONY_V1 if not case["error"]])
def test_number_decomposes_as_in_sonyflake(case: Case) -> None:
    parts, recorded = SONYFLAKE.parse(int(case["id"])), case["decompose"]
    assert list(parts.fields.items()) == [
        ("time", recorded["time"]),
        ("sequence", recorded["sequence"]),
        ("machine", recorded["machine-id"]),
    ]
    assert (parts.timestamp_ms - SONYFLAKE.epoch_ms) * 1_000_000 == case["elapsed_ns"]


@pytest.mark.parametrize("case", [case for case in SONY_V1 if case["error"]], ids=lambda case: case["error"])
def test_fields_that_sonyflake_refuses_are_refused(case: Case) -> None:
    with pytest.raises(errors.FieldError) as caught:
        composed(SONYFLAKE, case["time_unix_ns"] // 1_000_000, case["machine"], case["sequence"])
    assert code(caught) == ("field.range" if case["sequence"] else "time.range")


SONY_DECOMPOSED: list[Case] = [
    *RECORDED_SONYFLAKE["v1_decompose"],
    *({**case["decompose"], "id": case["id"]} for case in RECORDED_SONYFLAKE["v1_live_machine_4660"]),
    *({**case, "machine-id": case["machine_id"]} for case in RECORDED_SONYFLAKE["sonyflake_py"]["decompose"]),
]


@pytest.mark.parametrize(
    "case", [case for case in SONY_DECOMPOSED if case["msb"] in (0, "0")], ids=lambda case: case["id"]
)
def test_any_63_bit_number_decomposes_as_in_sonyflake_and_its_port(case: Case) -> None:
    fields = SONYFLAKE.parse(int(case["id"])).fields
    assert fields == {
        name: int(case[key]) for name, key in zip(fields, ["time", "sequence", "machine-id"], strict=True)
    }


@pytest.mark.parametrize("case", [case for case in SONY_DECOMPOSED if case["msb"] == 1], ids=lambda case: case["id"])
def test_number_of_64_bits_is_refused_unlike_sonyflake(case: Case) -> None:
    with pytest.raises(errors.FieldError, match=str(2**63 - 1)) as caught:
        SONYFLAKE.parse(int(case["id"]))
    assert code(caught) == "field.range"


@pytest.mark.parametrize("number", RECORDED_SONYFLAKE["sonyflake_py"]["live"])
def test_numbers_of_the_python_port_are_of_their_day(number: str) -> None:
    assert f"{SONYFLAKE.parse(int(number)).time:%Y-%m}" == "2026-11"


@pytest.mark.parametrize(
    "case", RECORDED_SONYFLAKE["sonyflake_py"]["to_sonyflake_time"], ids=lambda case: case["datetime"]
)
def test_datetime_has_the_tick_computed_by_the_python_port(case: Case) -> None:
    tick = SONYFLAKE.parse(SONYFLAKE.min_at(datetime.fromisoformat(case["datetime"]))).fields["time"]
    assert tick == case["value"] - SONYFLAKE.epoch_ms // 10


def test_layout_ends_after_the_last_tick_of_sonyflake() -> None:
    last = SONYFLAKE.expires - timedelta(milliseconds=10)
    assert f"{last:%Y-%m-%dT%H:%M:%S}.{last.microsecond // 10_000}Z" == RECORDED_SONYFLAKE["v1_max_time"]


SONY_CONFIGURED: list[tuple[Layout, Case]] = [
    (layout, case)
    for layout, configuration in zip(
        [SONY_V2, Layout("time:41 sequence:12 machine:10", epoch_ms=DEFAULT.epoch_ms)],
        RECORDED_SONYFLAKE["v2_configurations"],
        strict=False,
    )
    for case in configuration["vectors"]
]


@pytest.mark.parametrize(("layout", "case"), SONY_CONFIGURED)
def test_fields_compose_as_in_sonyflake_v2_configured_alike(layout: Layout, case: Case) -> None:
    number = composed(layout, case["time_unix_ns"] // 1_000_000, case["machine"], case["sequence"])
    assert number == int(case["id"]) == case["decompose"]["id"]
    parts = layout.parse(number)
    assert (ns(parts.timestamp_ms), parts.fields) == (
        case["ToTime_unix_ns"],
        {name: case["decompose"][name] for name in ("time", "sequence", "machine")},
    )


def test_clock_before_the_epoch_is_refused_as_in_sonyflake_v2() -> None:
    assert RECORDED_SONYFLAKE["v2_configurations"][-1]["error"] == "start time is ahead"
    with pytest.raises(errors.GenerationError) as caught:
        Generator(1, layout=SONY_V2, clock=ManualClock(ns(SONY_V2.epoch_ms) - 1)).new()
    assert code(caught) == "clock.range"


SONY_TRACES = RECORDED_SONYFLAKE["v2_clock_traces"]


def test_generator_runs_ahead_of_a_frozen_clock_as_sonyflake_does() -> None:
    clock = ManualClock(ns(SONY_V2.epoch_ms + 5000))
    minted = Generator(258, layout=SONY_V2, on_exhausted="advance", clock=clock).batch(260)
    trace = SONY_TRACES["exhaustion_with_frozen_clock"]["trace"]
    assert [minted[step["index"]] for step in trace] == [step["id"] for step in trace]
    assert clock.now_ns == ns(SONY_V2.epoch_ms + 5000)


def test_generator_stays_at_the_highest_tick_as_sonyflake_does() -> None:
    trace = SONY_TRACES["progress_and_regression"]["trace"]
    clock = ManualClock(0)
    generator = Generator(258, layout=SONY_V2, clock=clock)
    minted = []
    for step in trace:
        clock.set(ns(SONY_V2.epoch_ms + step["clock_ms_since_start"]))
        minted.append(generator.new())
    back = next(i for i, (a, b) in enumerate(pairwise(trace)) if b["clock_ms_since_start"] < a["clock_ms_since_start"])
    # As far as the first number after the step back; from there we go on at the pace of the clock, and Sonyflake stays.
    assert minted[: back + 2] == [step["id"] for step in trace[: back + 2]]
    assert minted == sorted(set(minted))


def test_last_tick_is_minted_and_the_next_refused_as_in_sonyflake() -> None:
    last, *beyond = SONY_TRACES["over_time_limit"]
    assert {step["error"] for step in beyond} == {"over the time limit"}
    clock = ManualClock(ns(SONY_V2.epoch_ms + (2**39 - 1) * 10))
    generator = Generator(258, layout=SONY_V2, clock=clock)
    assert generator.batch(256)[-1] == last["id"]
    with pytest.raises(errors.GenerationError) as caught:
        generator.new()
    assert code(caught) == "clock.range"


# ------------------------------------------------------------------------------------------------------------ layouts


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Draw layouts with one time, perhaps a sequence number, perhaps some node fields, in any order."""
    time = draw(st.integers(1, 45))
    sequence = draw(st.integers(0, 12))
    left = 64 - time - sequence
    nodes = draw(st.lists(st.integers(1, 8), max_size=3).filter(lambda bits: sum(bits) <= left))
    fields = [f"time:{time}", *([f"sequence:{sequence}"] if sequence else [])]
    fields += [f"n{i}:{bits}" for i, bits in enumerate(nodes)]
    epoch_ms, unit_ms = draw(st.integers(0, 2**41)), draw(st.integers(1, 1000))
    return Layout(" ".join(draw(st.permutations(fields))), epoch_ms=epoch_ms, unit_ms=unit_ms)


def widths(layout: Layout) -> dict[str, int]:
    return {name: bits for name, bits, _ in layout.fields}


@given(layouts(), st.data())
def test_composed_numbers_parse_back(layout: Layout, data: st.DataObject) -> None:
    bits = widths(layout)
    tick = data.draw(st.integers(0, 2 ** bits["time"] - 1))
    node = data.draw(st.integers(0, layout.nodes - 1))
    sequence = data.draw(st.integers(0, 2 ** bits.get("sequence", 0) - 1))
    ms = layout.epoch_ms + tick * layout.unit_ms
    assert parsed(layout, composed(layout, ms, node, sequence)) == (ms, node, sequence)


@given(layouts(), st.data())
def test_fields_of_a_number_are_its_bits_in_declared_order(layout: Layout, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, 2**layout.bits - 1))
    fields = layout.parse(number).fields
    assert list(fields) == [name for name, _, _ in layout.fields]
    assert sum(fields[name] << shift for name, _, shift in layout.fields) == number


@given(layouts(), st.data())
def test_bounds_of_a_time_hold_every_number_of_its_tick(layout: Layout, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, 2**layout.bits - 1))
    time = ns(layout.parse(number).timestamp_ms) + data.draw(st.integers(0, ns(layout.unit_ms) - 1))
    assert layout.min_at(time) <= number <= layout.max_at(time)


@given(st.sampled_from(LAYOUTS), st.integers(1, 2**38))
def test_bounds_of_neighbouring_ticks_touch(layout: Layout, tick: int) -> None:
    before, at = (ns(layout.epoch_ms + t * layout.unit_ms) for t in (tick - 1, tick))
    assert layout.max_at(before) + 1 == layout.min_at(at)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_time_of_an_id_is_that_of_pythons_calendar(ms: int) -> None:
    assert Layout("time:40 node:8 sequence:8", epoch_ms=ms).parse(0).time == utc(ms)


@pytest.mark.parametrize(
    ("ms", "text"),
    [(-62_135_596_800_001, "0000-12-31T23:59:59.999Z"), (253_402_300_800_000, "253402300800000 ms since 1970")],
)
def test_time_of_an_id_outside_pythons_calendar_is_refused(ms: int, text: str) -> None:
    with pytest.raises(errors.FieldError, match=f"^time {text} is outside what a datetime can hold") as caught:
        _ = Layout("time:40 node:8 sequence:8", epoch_ms=ms).parse(0).time
    assert code(caught) == "time.range"


def test_datetime_and_its_nanoseconds_have_the_same_bounds() -> None:
    assert (
        DEFAULT.min_at(utc(T))
        == DEFAULT.min_at(utc(T).astimezone(timezone(timedelta(hours=5))))
        == DEFAULT.min_at(ns(T))
    )


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_min_at_and_max_at_refuse_times_outside_the_layout(layout: Layout) -> None:
    for time in (ns(layout.epoch_ms) - 1, layout.expires):
        for bound in (layout.min_at, layout.max_at):
            with pytest.raises(errors.FieldError) as caught:
                bound(time)
            assert code(caught) == "time.range"


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_last_millisecond_before_expiry_fits(layout: Layout) -> None:
    last_tick = layout.expires - timedelta(milliseconds=layout.unit_ms)
    assert layout.parse(layout.max_at(layout.expires - timedelta(milliseconds=1))).time == last_tick


@pytest.mark.parametrize(
    ("layout", "expires"),
    [
        (DEFAULT, "2084-09-06T15:47:35.552000+00:00"),
        (TWITTER, "2080-07-10T17:30:30.209000+00:00"),
        (DISCORD, "2154-05-15T07:35:11.104000+00:00"),
        (INSTAGRAM, "2081-04-30T12:54:37.273000+00:00"),
        (SONYFLAKE, "2188-11-16T03:28:58.880000+00:00"),
    ],
    ids=["DEFAULT", "TWITTER", "DISCORD", "INSTAGRAM", "SONYFLAKE"],
)
def test_layout_tells_when_it_expires(layout: Layout, expires: str) -> None:
    assert layout.expires.isoformat() == expires


def test_layout_that_outlasts_the_calendar_expires_at_its_end() -> None:
    assert Layout("time:63", epoch_ms=0).expires == datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("layout", "bits", "nodes", "ids_per_second"),
    [
        (DEFAULT, 63, 1024, 4_096_000),
        (TWITTER, 63, 1024, 4_096_000),
        (DISCORD, 64, 1024, 4_096_000),
        (INSTAGRAM, 64, 8192, 1_024_000),
        (SONYFLAKE, 63, 65536, 25_600),
        (Layout("time:41", epoch_ms=0), 41, 1, 1000),
        (Layout("time:41 node:2", epoch_ms=0, unit_ms=2000), 43, 4, 0),
    ],
    ids=repr,
)
def test_layout_tells_its_capacity(layout: Layout, bits: int, nodes: int, ids_per_second: int) -> None:
    assert (layout.bits, layout.nodes, layout.ids_per_second) == (bits, nodes, ids_per_second)


def test_layout_names_its_fields_high_to_low_with_bits_and_shifts() -> None:
    assert list(TWITTER.fields) == [("time", 41, 22), ("datacenter", 5, 17), ("worker", 5, 12), ("sequence", 12, 0)]


def test_fields_beside_time_and_sequence_form_the_node_high_to_low() -> None:
    assert TWITTER.parse(TWITTER.compose(timestamp_ms=T, node=3 << 5 | 7)).fields == {
        "time": T - TWITTER.epoch_ms,
        "datacenter": 3,
        "worker": 7,
        "sequence": 0,
    }


def test_node_fields_may_surround_the_others() -> None:
    layout = Layout("region:3 time:40 zone:2 sequence:10 host:5", epoch_ms=0)
    assert layout.compose(timestamp_ms=1, node=0b101_10_00001, sequence=9) == 5 << 57 | 1 << 17 | 2 << 15 | 9 << 5 | 1


def test_times_are_floored_to_the_layouts_tick() -> None:
    assert SONYFLAKE.compose(timestamp_ms=SONYFLAKE.epoch_ms + 19) == SONYFLAKE.compose(
        timestamp_ms=SONYFLAKE.epoch_ms + 10
    )


@each_case(
    "fields",
    [
        "",
        "   ",
        "node:10 sequence:12",
        "time:41 time:3",
        "time:41 node:5 node:5",
        "time:41 sequence:6 increment:6",
        "time:41 node:12 sequence:12",
        "time:65",
        "time:64",
        "time:0 sequence:12",
        "time:-1",
        "time:41 node:0",
        "time:41 node:",
        "time:41 node",
        "time:41 :5",
        "time: 41",
        "time:41,node:10",
        "time:4.1",
        "time:0x29",
        "time:٤١",
        "time:41 näme:3",
        "time:41 1node:3",
        "time:41 no-de:3",
        "time:41 node:10:2",
        "time:41 node:99999999999999999999",
        "Time:41 sequence:12",
        "time:30 sequence:32",
        "time:52 sequence:12",
        "time:41\0node:3",
        "t" * 100_000,
        " ".join(f"n{i}:1" for i in range(100)),
    ],
    ids=lambda fields: fields[:30],
)
def test_nonsensical_declaration_is_refused(fields: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        Layout(fields, epoch_ms=0)
    assert code(caught) == "config.layout"
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_layout_survives_pickle_and_copies(layout: Layout) -> None:
    pickled = [pickle.loads(pickle.dumps(layout, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    assert [*pickled, copy.copy(layout), copy.deepcopy(layout)] == [layout] * (len(pickled) + 2)


def test_equal_declarations_are_equal_layouts() -> None:
    same = Layout("  time:41   node:10 sequence:12 ", epoch_ms=1_420_070_400_000)
    assert (same, hash(same)) == (DEFAULT, hash(DEFAULT))


@pytest.mark.parametrize(
    "other",
    [
        Layout("time:41 node:10 sequence:12", epoch_ms=0),
        Layout("time:41 node:10 sequence:12", epoch_ms=1_420_070_400_000, unit_ms=2),
        Layout("time:41 host:10 sequence:12", epoch_ms=1_420_070_400_000),
        Layout("time:41 sequence:12 node:10", epoch_ms=1_420_070_400_000),
    ],
    ids=repr,
)
def test_layouts_that_differ_anywhere_are_unequal(other: Layout) -> None:
    assert other != DEFAULT


def test_repr_of_a_layout_can_be_evaluated() -> None:
    assert eval(repr(SONYFLAKE), {"Layout": Layout}) == SONYFLAKE


def test_equal_parts_are_equal_and_hash_alike() -> None:
    assert (DEFAULT.parse(5), hash(DEFAULT.parse(5))) == (DEFAULT.parse(5), hash(DEFAULT.parse(5)))
    assert DEFAULT.parse(5) != DEFAULT.parse(6)


def test_parts_give_the_time_as_an_aware_datetime() -> None:
    assert DEFAULT.parse(DEFAULT.compose(timestamp_ms=T)).time == utc(T)


# ----------------------------------------------------------------------------------------------------------- policies


def used_up(clock: ManualClock, on_exhausted: Policy, **options: Any) -> Generator:
    """Return a generator whose current tick is exhausted."""
    generator = Generator(1, on_exhausted=on_exhausted, clock=clock, **options)
    generator.batch(1 << widths(generator.layout)["sequence"])
    return generator


def test_exhausted_tick_is_waited_for_by_default() -> None:
    clock = ManualClock(ns(T) + 300_000)
    assert parsed(DEFAULT, used_up(clock, "wait").new()) == (T + 1, 1, 0)
    assert clock.now_ns == ns(T + 1)


def test_exhausted_tick_beyond_max_wait_ms_is_refused_at_once() -> None:
    clock = ManualClock(ns(T) + 1_300_000)
    generator = used_up(clock, "wait", layout=SONYFLAKE, max_wait_ms=8)
    with pytest.raises(errors.GenerationError, match="all 256 sequence numbers") as caught:
        generator.new()
    assert (code(caught), caught.value.retry_after_ms) == ("sequence.exhausted", 9)


def test_exhausted_tick_advances_the_clock_with_advance() -> None:
    clock = ManualClock(ns(T))
    assert parsed(DEFAULT, used_up(clock, "advance").new()) == (T + 1, 1, 0)
    assert clock.now_ns == ns(T)


def test_exhausted_tick_raises_with_raise() -> None:
    generator = used_up(ManualClock(ns(T) + 300_000), "raise", max_wait_ms=FOREVER_MS)
    with pytest.raises(errors.GenerationError) as caught:
        generator.new()
    assert (code(caught), caught.value.retry_after_ms) == ("sequence.exhausted", 1)


def test_generator_ahead_of_its_clock_sees_no_rollback() -> None:
    clock = ManualClock(ns(T))
    generator = used_up(clock, "advance", on_rollback="raise")
    generator.batch(3 * 4096)
    clock.set(ns(T + 1))
    assert parsed(DEFAULT, generator.new()) == (T + 4, 1, 0)


def test_rollback_continues_at_the_last_tick_by_default() -> None:
    clock = ManualClock(ns(T))
    generator = Generator(1, clock=clock)
    generator.new()
    clock.set(ns(T - 5000))
    assert parsed(DEFAULT, generator.new()) == (T, 1, 1)
    assert clock.now_ns == ns(T - 5000)


def test_last_tick_lasts_until_the_clock_caught_up_after_a_rollback() -> None:
    clock = ManualClock(ns(T))
    generator = Generator(1, clock=clock)
    generator.new()
    clock.set(ns(T - 5000))
    assert parsed(DEFAULT, generator.new()) == (T, 1, 1)
    clock.set(ns(T - 1))
    assert parsed(DEFAULT, generator.new()) == (T, 1, 2)
    clock.set(ns(T + 1))
    assert parsed(DEFAULT, generator.new()) == (T + 1, 1, 0)


def test_ticks_after_a_rollback_advance_at_the_pace_of_the_clock() -> None:
    clock = ManualClock(ns(T))
    generator = Generator(1, clock=clock)
    generator.batch(4096)
    clock.set(ns(T - 5000))
    ids = generator.batch(3 * 4096)
    assert parsed(DEFAULT, ids[-1]) == (T + 3, 1, 4095)
    assert clock.now_ns == ns(T - 5000 + 3)


def test_rollback_is_waited_out_with_wait() -> None:
    clock = ManualClock(ns(T))
    generator = Generator(1, on_rollback="wait", clock=clock)
    generator.new()
    clock.set(ns(T - 7))
    assert parsed(DEFAULT, generator.new()) == (T, 1, 1)
    assert clock.now_ns == ns(T)


def test_rollback_is_waited_out_for_a_second_by_default() -> None:
    clock = ManualClock(ns(T))
    generator = Generator(1, on_rollback="wait", clock=clock)
    generator.new()
    clock.set(ns(T - 1000))
    generator.new()
    clock.set(ns(T - 1001))
    with pytest.raises(errors.GenerationError) as caught:
        generator.new()
    assert (code(caught), clock.now_ns) == ("clock.rollback", ns(T - 1001))


@pytest.mark.parametrize("on_rollback", ["wait", "raise"])
def test_refused_rollback_error_tells_its_length(on_rollback: Policy) -> None:
    clock = ManualClock(ns(T))
    generator = Generator(1, on_rollback=on_rollback, clock=clock, max_wait_ms=6)
    generator.new()
    clock.set(ns(T - 7))
    with pytest.raises(errors.GenerationError) as caught:
        generator.new()
    assert (code(caught), caught.value.retry_after_ms) == ("clock.rollback", 7)


def test_refused_call_changes_nothing() -> None:
    clock = ManualClock(ns(T))
    generator = Generator(1, on_rollback="raise", clock=clock)
    generator.new()
    clock.set(ns(T - 7))
    with pytest.raises(errors.GenerationError):
        generator.new()
    clock.set(ns(T))
    assert parsed(DEFAULT, generator.new()) == (T, 1, 1)


@given(
    st.sampled_from(POLICIES),
    st.sampled_from(POLICIES),
    st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 9)), max_size=30),
)
def test_numbers_increase_with_any_clock(
    on_rollback: Policy, on_exhausted: Policy, steps: list[tuple[int, int]]
) -> None:
    clock = ManualClock(ns(T))
    layout = Layout("time:41 node:10 sequence:2", epoch_ms=0)
    generator = Generator(1, layout=layout, on_rollback=on_rollback, on_exhausted=on_exhausted, clock=clock)
    may_refuse = suppress(errors.GenerationError) if "raise" in (on_rollback, on_exhausted) else nullcontext()
    minted = []
    for by, calls in steps:
        clock.advance(ns(by))
        for _ in range(calls):
            with may_refuse:
                minted.append(generator.new())
    assert all(a < b for a, b in pairwise(minted))


# ------------------------------------------------------------------------------------------------------------ minting


def test_batch_equals_as_many_single_calls() -> None:
    one_by_one, at_once = (Generator(1, clock=ManualClock(ns(T))) for _ in range(2))
    assert at_once.batch(5000).tolist() == [one_by_one.new() for _ in range(5000)]


def test_batch_exposes_unsigned_64_bit_integers() -> None:
    batch = Generator(1023, layout=DISCORD, clock=ManualClock(ns(4_000_000_000_000))).batch(3)
    view = memoryview(batch)
    assert (view.format, view.itemsize, view.readonly, view.contiguous, view.shape) == ("Q", 8, True, True, (3,))
    assert view.tolist() == batch.tolist() == list(batch) == [batch[0], batch[1], batch[-1]]
    assert batch[0] > 2**63
    with pytest.raises(TypeError, match="read-only"):
        view[0] = 1
    assert memoryview(snowflake.Array()).tolist() == []


def test_array_equals_sequences_of_its_integers() -> None:
    plain = array("Q", [1, 2, 3])
    ids = snowflake.Array(plain)
    assert ids == plain
    assert plain == ids
    assert ids == snowflake.Array(plain, TWITTER)
    assert hash(ids) == hash(snowflake.Array(plain))
    assert ids != array("Q", [1, 2])
    assert ids != array("d", [1, 2, 3])
    assert ids != [1, 2, 3]
    assert ids[1:] == array("Q", [2, 3])
    assert ids[::-1].tolist() == [3, 2, 1]
    assert 2 in ids
    assert not any(each in ids for each in (0, "2", 2.5, -1, 2**64, None))


@pytest.mark.parametrize("layout", [DEFAULT, DISCORD, JS_SAFE])
def test_array_knows_its_layout(layout: Layout) -> None:
    with Generator(1, layout=layout) as generator:
        ids = generator.batch(3)
    for same in (ids, ids[1:], pickle.loads(pickle.dumps(ids)), copy.deepcopy(ids)):
        assert same.layout == layout
        assert same[-1] == ids[2]
    assert repr(ids) == f"<snowflake.Array of 3: {ids[0]}, {ids[1]}, {ids[2]}>"


def test_array_holds_only_numbers_of_its_layout() -> None:
    top = array("Q", [0, 2**63])
    assert snowflake.Array(top, DISCORD).tolist() == [0, 2**63]
    assert snowflake.Array(array("q", [5])).tolist() == [5]
    for data, layout, error in (
        (top, DEFAULT, errors.FieldError),
        (array("q", [-1]), DEFAULT, errors.FieldError),
        (array("Q", [2**53]), JS_SAFE, errors.FieldError),
        (array("q", [1]), DISCORD, errors.ConfigError),
        (b"123", DEFAULT, errors.ParseError),
        (array("d", [1.0]), DEFAULT, errors.ConfigError),
        ([1], DEFAULT, errors.ArgumentError),
    ):
        with pytest.raises(error):
            snowflake.Array(data, layout)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError):
        snowflake.Array(b"", 1)  # type: ignore[arg-type]


def test_fill_writes_native_integers() -> None:
    buffer = array("Q", [0] * 5000)
    assert Generator(1, clock=ManualClock(ns(T))).fill(buffer) == 5000
    assert buffer == Generator(1, clock=ManualClock(ns(T))).batch(5000)


def test_fill_takes_plain_bytes_too() -> None:
    buffer = bytearray(16)
    assert Generator(1, clock=ManualClock(ns(T))).fill(buffer) == 2
    first = int.from_bytes(buffer[:8], sys.byteorder)
    assert first == Generator(1, clock=ManualClock(ns(T))).new()


def test_to_lines_writes_one_number_a_line() -> None:
    numbers = array("Q", [0, 7, 2**64 - 1])
    assert snowflake.to_lines(numbers) == b"0\n7\n18446744073709551615\n"
    assert snowflake.Array(numbers, DISCORD).to_lines() == b"0\n7\n18446744073709551615\n"


def test_to_lines_of_an_empty_array_is_empty() -> None:
    assert snowflake.to_lines(b"") == b""


def test_generator_is_an_iterator_of_ints() -> None:
    generator = Generator(1, clock=ManualClock(ns(T)))
    assert [DEFAULT.parse(number).sequence for number in islice(generator, 3)] == [0, 1, 2]


def test_generator_takes_any_callable_as_its_clock() -> None:
    readings = (ns(T + i // 10) for i in count())
    minted = list(islice(Generator(1, clock=lambda: next(readings)), 1000))
    assert minted == sorted(set(minted))


def test_generator_knows_its_node_and_layout() -> None:
    generator = Generator(7, layout=SONYFLAKE)
    assert (generator.node, generator.layout) == (7, SONYFLAKE)


def test_vd2org_snowflake_12_default_generators_lease_their_own_nodes() -> None:
    layout = Layout("time:41 node:3 sequence:12", epoch_ms=0)
    generators = [Generator(layout=layout) for _ in range(7)]
    # The eighth is for a process that cannot write the registry.
    assert {generator.node for generator in generators} == set(range(7))


def test_generator_with_a_clock_draws_a_node_number_that_fits() -> None:
    layout = Layout("time:41 node:3 sequence:12", epoch_ms=0)
    assert {Generator(layout=layout, clock=ManualClock(0)).node for _ in range(400)} == set(range(8))


def test_layout_without_a_sequence_mints_one_number_a_tick() -> None:
    layout = Layout("time:41 node:4", epoch_ms=0)
    minted = Generator(3, layout=layout, clock=ManualClock(ns(T))).batch(3)
    assert [parsed(layout, number) for number in minted] == [(T, 3, 0), (T + 1, 3, 0), (T + 2, 3, 0)]


def test_layout_of_31_sequence_bits_mints() -> None:
    layout = Layout("time:32 sequence:31", epoch_ms=T)
    assert Generator(layout=layout, clock=ManualClock(ns(T + 1))).batch(3).tolist() == [2**31, 2**31 + 1, 2**31 + 2]


def test_generator_mints_until_its_with_block_ends() -> None:
    with Generator(1) as generator:
        generator.new()
    with pytest.raises(errors.GenerationError) as caught:
        generator.new()
    assert code(caught) == "generator.closed"


def test_module_mints_increasing_numbers_of_now() -> None:
    minted = [snowflake.new() for _ in range(1000)]
    assert minted == sorted(set(minted))
    assert abs(DEFAULT.parse(minted[-1]).time - datetime.now(UTC)) < timedelta(minutes=1)


# --- advice ----------------------------------------------------------------------------------------------------------


@given(
    ids_per_second=st.integers(1, 10**7), nodes=st.integers(1, 10**6), years=st.integers(1, 200), js_safe=st.booleans()
)
def test_recommended_layout_meets_the_requirements(ids_per_second: int, nodes: int, years: int, js_safe: bool) -> None:
    try:
        advice = Layout.advise(ids_per_second=ids_per_second, nodes=nodes, years=years, js_safe=js_safe)
    except errors.ConfigError as error:
        refused = error
    else:
        layout = advice.layout
        assert layout.nodes >= nodes
        assert layout.ids_per_second >= ids_per_second
        assert layout.expires.year >= 2025 + years or layout.expires.year == 9999
        assert layout.bits <= (53 if js_safe else 63)
        assert {name for name, _, _ in advice.widths} == {name for name, _, _ in layout.fields}
        assert len(str(advice).splitlines()) == len(advice.widths)
        return
    assert refused.code == "config.layout"
    assert f"an ID has {53 if js_safe else 63}" in str(refused)


def test_notebook_shows_the_widths_of_an_advice() -> None:
    advice = Layout.advise(ids_per_second=1000, nodes=64, years=50)
    notebook: Any = advice
    assert notebook._repr_html_() == f"<pre>{advice}</pre>"
    assert not set("<>&") & set(str(advice))


@pytest.mark.parametrize("guess", ["parse", "ID"])
def test_guessed_name_of_the_module_leads_to_a_layout(guess: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{guess}': .*snowflake\.DEFAULT\.parse"):
        getattr(snowflake, guess)
    with pytest.raises(AttributeError, match=r"no attribute 'other'$"):
        getattr(snowflake, "other")  # noqa: B009


def test_ids_exact_in_javascript_have_53_bits() -> None:
    assert snowflake.JS_SAFE.bits == 53
    one = Generator(63, layout=snowflake.JS_SAFE).new()
    assert int(float(one)) == one < 2**53
    assert snowflake.JS_SAFE.parse(one).node == 63


@pytest.mark.parametrize(
    ("wrong", "code"),
    [({"nodes": 0}, "field.range"), ({"years": 10_001}, "field.range"), ({"ids_per_second": 1.5}, "argument.type")],
)
def test_impossible_requirement_is_refused(wrong: dict[str, Any], code: str) -> None:
    with pytest.raises(errors.MintError) as refused:
        Layout.advise(**{"nodes": 1, "years": 1, "ids_per_second": 1, **wrong})
    assert refused.value.code == code


# ------------------------------------------------------------------------------------------------------ of a given time


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_new_at_uses_the_given_tick_and_its_own_counter(layout: Layout) -> None:
    generator = Generator(3, layout=layout, clock=ManualClock(ns(T)))
    generator.new()
    ids = [generator.new_at(time) for time in (ns(T), utc(T), ns(T) + 999_999)]
    tick_ms = layout.parse(layout.min_at(ns(T))).timestamp_ms
    half = generator.capacity // 2
    assert [parsed(layout, one) for one in ids] == [(tick_ms, 3, half + n) for n in range(3)]
    assert parsed(layout, generator.new())[2] == 1


def test_new_at_repeats_no_sequence_number_before_a_full_lap() -> None:
    layout = Layout("time:41 node:10 sequence:3", epoch_ms=0)
    generator = Generator(3, layout=layout)
    assert [layout.parse(generator.new_at(ns(T))).sequence for _ in range(10)] == [*range(4, 8), *range(6)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_new_at_refuses_times_outside_the_layout(layout: Layout) -> None:
    generator = Generator(3, layout=layout)
    for time_ms in (layout.epoch_ms - 1, layout.epoch_ms + 2**43 * layout.unit_ms):
        with pytest.raises(errors.FieldError) as caught:
            generator.new_at(ns(time_ms))
        assert code(caught) == "time.range"


def test_only_a_never_used_lease_mints_numbers_of_the_past() -> None:
    clock = ManualClock(ns(T))
    store = MemoryStore(clock=lambda: clock.now_ns // 1_000_000)
    with Generator(store=store, clock=clock) as shared, pytest.raises(errors.LeaseError) as caught:
        shared.new_at(ns(T - 1000))
    assert code(caught) == "lease.history"
    with Generator(store=store, clock=clock, never_used=True) as own:
        assert DEFAULT.parse(own.new_at(ns(T - 1000))).timestamp_ms == T - 1000
        with pytest.raises(errors.LeaseError) as caught:
            own.new_at(ns(T))
        assert code(caught) == "lease.history"
