"""Tests of the common promises of nanoid, cuid and cuid2: IDs that are text without a binary form."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from mintage import clones, cuid, cuid2, nanoid
from mintage.errors import ConfigError, FieldError, GenerationError, ParseError
from mintage.testing import ManualClock
from tests.helpers.cases import each_case
from tests.helpers.outcomes import refusal
from tests.helpers.processes import in_child
from tests.helpers.vectors import vectors

VECTORS = {name: vectors(name) for name in ("nanoid", "cuid")}
BASE36 = set("0123456789abcdefghijklmnopqrstuvwxyz")
FORMATS = {nanoid: 21, cuid: 25, cuid2: 24}
NOW_NS = 1_700_000_000_123_456_789
MS = 1_000_000

each = pytest.mark.parametrize("scheme", FORMATS, ids=lambda scheme: scheme.__name__.split(".")[-1])


# --- all of them -----------------------------------------------------------------------------------------------------


@each
def test_ids_minted_in_any_way_are_all_different(scheme: Any) -> None:
    size = FORMATS[scheme]
    with scheme.Generator() as generator:
        ids = [generator.new() for _ in range(1000)] + generator.batch(1000)
        ids += [one for one, _ in zip(generator, range(1000), strict=False)]
        buffer = bytearray(1000 * size)
        assert generator.fill(buffer) == 1000
        ids += [buffer[at : at + size].decode() for at in range(0, len(buffer), size)]
        assert len(set(ids)) == 4000
        assert {type(one) for one in ids} == {str}
        assert {len(one) for one in ids} == {size}
    for call in (generator.new, lambda: next(generator), lambda: generator.batch(1), lambda: generator.fill(buffer)):
        assert refusal(call).code == "generator.closed"
    generator.close()
    assert generator.batch(0) == []


@each
def test_module_function_can_be_pickled(scheme: Any) -> None:
    assert pickle.loads(pickle.dumps(scheme.new)) is scheme.new
    assert len({scheme.new() for _ in range(100)}) == 100
    with pytest.raises(TypeError):
        scheme.new(1)


def test_cuid_generator_first_used_in_children_has_their_fingerprints() -> None:
    generator = cuid.Generator()
    first, second = (in_child(generator.new) for _ in range(2))
    assert first.isalnum()
    assert first[13:17] != second[13:17]


@each
def test_restored_copy_continues_from_an_unpredictable_place(scheme: Any) -> None:
    generator = scheme.Generator()
    before = generator.new()

    def restored() -> list[str]:
        clones.after_restore()
        return [generator.new() for _ in range(100)]

    # In a child, as the effect is permanent.
    assert len({before, *in_child(restored)}) == 101


@each
def test_wrong_counts_and_buffers_are_refused(scheme: Any) -> None:
    generator, size = scheme.Generator(), FORMATS[scheme]
    for wrong in (-1, 1 << 31):
        assert refusal(generator.batch, wrong).code == "field.range"
    assert refusal(generator.batch, "1").code == "argument.type"
    assert refusal(generator.fill, "text").code == "argument.type"
    for buffer in (bytes(size), bytearray(size + 1)):
        assert refusal(generator.fill, buffer).code == "config.buffer"


# --- nanoid ----------------------------------------------------------------------------------------------------------


def test_nanoid_uses_the_characters_of_both_originals() -> None:
    seen = set("".join(nanoid.Generator().batch(2000)))
    assert seen == set(VECTORS["nanoid"]["js"]["url_alphabet"]) == set(VECTORS["nanoid"]["python"]["alphabet"])


@each_case("alphabet", ["ab", "abc", "0123456789", "äöüß€𝄞", "".join(map(chr, range(256, 512)))])
@each_case("size", [1, 21, 64, 65, 1024])
def test_any_alphabet_and_size_are_accepted(alphabet: str, size: int) -> None:
    generator = nanoid.Generator(size, alphabet)
    assert (generator.size, generator.alphabet) == (size, alphabet)
    ids = [*generator.batch(20), generator.new(), next(generator)]
    assert {len(one) for one in ids} == {size}
    assert set("".join(ids)) <= set(alphabet)


@pytest.mark.parametrize("count", [2, 3, 10, 33, 49, 62, 64, 100, 128])
def test_all_characters_are_equally_likely(count: int) -> None:
    alphabet = "".join(map(chr, range(count)))
    text = "".join(nanoid.Generator(1000, alphabet).batch(50) + nanoid.Generator(50, alphabet).batch(1000))
    expected = len(text) / count
    # Chi-squared has a mean of count - 1 and a deviation of sqrt(2 (count - 1)); seven of these are out of reach.
    chi_squared = sum((text.count(character) - expected) ** 2 / expected for character in alphabet)
    assert abs(chi_squared - (count - 1)) < 7 * (2 * (count - 1)) ** 0.5 + 10


def test_buffer_accepts_only_ascii_alphabets() -> None:
    assert refusal(nanoid.Generator(4, "äöü").fill, bytearray(8)).code == "config.buffer"
    numbers = bytearray(70 * 100)
    assert nanoid.Generator(70, "01").fill(numbers) == 100
    assert set(numbers) == set(b"01")


@pytest.mark.parametrize("size", [0, -1, 1025, 1 << 70])
def test_unsafe_sizes_are_refused_unlike_the_originals(size: int) -> None:
    error = refusal(nanoid.Generator, size)
    assert (type(error), error.code) == (FieldError, "field.range")


@pytest.mark.parametrize("alphabet", ["", "a", "aa", "abca", "ab\ud800", "".join(map(chr, range(257)))])
def test_alphabets_without_a_fair_choice_are_refused(alphabet: str) -> None:
    error = refusal(nanoid.Generator, alphabet=alphabet)
    assert (type(error), error.code) == (FieldError, "field.format")


def test_arguments_of_other_types_are_refused() -> None:
    for call in (
        lambda: nanoid.Generator("21"),  # type: ignore[arg-type]
        lambda: nanoid.Generator(21, b"ab"),  # type: ignore[arg-type]
        lambda: nanoid.Generator(None),  # type: ignore[arg-type]
        lambda: cuid2.Generator("24"),  # type: ignore[arg-type]
        lambda: cuid.Generator(fingerprint=5),  # type: ignore[arg-type]
        lambda: cuid.Generator(clock=5),  # type: ignore[arg-type]
        lambda: cuid.parse(5),  # type: ignore[arg-type]
    ):
        assert refusal(call).code == "argument.type"


# --- cuid ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", [case for case in VECTORS["cuid"]["js"]["generate"] if case.get("time_ms", 0) > 1e12 and "cuid" in case]
)
def test_fields_of_a_cuid_are_read_back(case: dict[str, Any]) -> None:
    fields = cuid.parse(case["cuid"])
    assert (fields.timestamp_ms, fields.counter, fields.fingerprint) == (
        case["time_ms"],
        case["counter"],
        case["fingerprint"],
    )
    assert fields.time.timestamp() == case["time_ms"] / 1000


def test_generator_writes_its_configured_fields() -> None:
    clock = ManualClock(NOW_NS)
    generator = cuid.Generator(fingerprint="ab12", clock=clock)
    first, second = cuid.parse(generator.new()), cuid.parse(generator.new())
    assert (first.timestamp_ms, first.fingerprint) == (NOW_NS // MS, "ab12")
    assert second.counter == (first.counter + 1) % 36**4
    assert first.random != second.random
    old = cuid.parse(generator.new_at(NOW_NS - 10**18))
    assert (old.timestamp_ms, old.fingerprint) == ((NOW_NS - 10**18) // MS, "ab12")


def test_clock_rollback_is_held() -> None:
    clock = ManualClock(NOW_NS)
    generator = cuid.Generator(clock=clock)
    generator.new()
    clock.advance(-3600 * 10**9)
    assert cuid.parse(generator.new()).timestamp_ms == NOW_NS // MS


def test_fingerprint_depends_on_process_and_host() -> None:
    generator = cuid.Generator()
    mine = cuid.parse(generator.new()).fingerprint
    theirs = in_child(lambda: cuid.parse(generator.new()).fingerprint)
    assert mine[2:] == theirs[2:]
    assert mine[:2] != theirs[:2]
    for wrong in ("", "abc", "abcde", "ABCD", "ab_d", "äbc"):
        assert refusal(cuid.Generator, fingerprint=wrong).code == "field.format"


def test_all_random_block_values_occur_unlike_in_node() -> None:
    assert max(block["block"] for block in VECTORS["cuid"]["js"]["random_block_range"]) == "i000"
    ids = [cuid.parse(one) for one in cuid.Generator().batch(500)]
    assert max(one.random[:4] for one in ids) > "r000"
    assert max(one.random[4:] for one in ids) > "r000"


def test_times_before_1972_are_refused_unlike_in_the_original() -> None:
    short = [case for case in VECTORS["cuid"]["js"]["generate"] if case.get("length") == 18]
    assert short
    assert refusal(cuid.parse, short[0]["cuid"]).code == "parse.length"
    assert refusal(cuid.Generator(clock=ManualClock(0)).new).code == "clock.range"
    for time in (0, 36**7 * MS - 1, 36**9 * MS, -1):
        assert refusal(cuid.Generator().new_at, time).code == "time.range"


def test_texts_grow_in_2059_where_bounds_end() -> None:
    last = 36**8 - 1
    clock = ManualClock(last * MS)
    generator = cuid.Generator(clock=clock)
    assert generator.fill(bytearray(25)) == 1
    assert cuid.min_at(last * MS) < generator.new() < cuid.max_at(last * MS)
    clock.advance(MS)
    later = generator.new()
    assert (len(later), cuid.parse(later).timestamp_ms) == (26, 36**8)
    assert later < cuid.min_at(last * MS), "no bound would hold"
    assert generator.fill(bytearray(26)) == 1
    for bound in (cuid.min_at, cuid.max_at):
        assert refusal(bound, 36**8 * MS).code == "time.range"


def test_bounds_hold_exactly_the_ids_of_their_millisecond() -> None:
    low, high = cuid.min_at(NOW_NS), cuid.max_at(NOW_NS)
    assert all(low <= one <= high for one in cuid.Generator(clock=ManualClock(NOW_NS)).batch(50))
    assert high < cuid.min_at(NOW_NS + MS)
    assert cuid.max_at(NOW_NS - MS) < low
    assert cuid.parse(low).time == cuid.parse(high).time


@pytest.mark.parametrize("case", VECTORS["cuid"]["js"]["validate"] + VECTORS["cuid"]["go_lucsky"]["validate"])
def test_cuids_are_read_strictly_unlike_in_the_originals(case: dict[str, Any]) -> None:
    """That of JavaScript checks the first letter alone; that of Go is not anchored."""
    text = case["input"]
    if text == "ch72gsb320000udocl363eofy":
        assert cuid.parse(text).fingerprint == "udoc"
    else:
        assert isinstance(refusal(cuid.parse, text), (ParseError, TypeError))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("Ch72gsb320000udocl363eofy", 0),
        ("dh72gsb320000udocl363eofy", 0),
        ("c072gsb320000udocl363eofy", 1),
        ("ch72gsb320000udocl363eofY", 24),
        ("ch72gsb32000\u0661udocl363eofy", 12),
    ],
)
def test_wrong_character_is_named_by_its_position(text: str, position: int) -> None:
    error = refusal(cuid.parse, text)
    assert isinstance(error, ParseError)
    assert (error.code, error.position) == ("parse.character", position)


# --- cuid2 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2, 10, 24, 32])
def test_cuid2_is_a_letter_and_base_36_digits(length: int) -> None:
    generator = cuid2.Generator(length)
    assert generator.length == length
    ids = generator.batch(2000)
    assert {len(one) for one in ids} == {length}
    assert {one[0] for one in ids} == BASE36 - set("0123456789")
    assert set("".join(one[1:] for one in ids)) == BASE36


@pytest.mark.parametrize("length", [-1, 0, 1, 33])
def test_unsafe_lengths_are_refused_unlike_in_the_original(length: int) -> None:
    assert VECTORS["cuid"]["cuid2_js"]["too_long"]["error"].endswith("Received: 33")
    error = refusal(cuid2.Generator, length)
    assert (type(error), error.code) == (FieldError, "field.range")


def test_errors_have_actionable_classes() -> None:
    generator = nanoid.Generator()
    generator.close()
    assert isinstance(refusal(generator.new), GenerationError)
    assert isinstance(refusal(generator.fill, bytes(21)), ConfigError)
