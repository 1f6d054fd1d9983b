"""Tests of the promises of every ID and generator; tests of a scheme have only its own."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage import (
    cuid,
    cuid2,
    ksuid,
    ksuid_ms,
    locality,
    nanoid,
    objectid,
    sandflake,
    sno,
    snowflake,
    typeid,
    ulid,
    uuid,
    xid,
)
from mintage.errors import ArgumentError, FieldError, GenerationError, LeaseError, MintError, ParseError
from mintage.formats.kinds import KINDS
from mintage.store.memory import MemoryStore
from mintage.testing import ManualClock
from tests.helpers.outcomes import documented_refusal
from tests.helpers.processes import Child, in_child

if TYPE_CHECKING:
    from types import ModuleType

TICKED = [ulid, ksuid, ksuid_ms, xid, objectid, sandflake, uuid]
"""Formats with a tick and a counter, which lease only on request."""
SCHEMES = [sno, locality, *TICKED]
NOW_NS = 1_700_000_000_123_456_789
MS, SECOND = 1_000_000, 1_000_000_000

each = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.__name__.split(".")[-1])
each_of_all = pytest.mark.parametrize(
    "scheme", [*SCHEMES, snowflake, nanoid, cuid, cuid2], ids=lambda scheme: scheme.__name__.split(".")[-1]
)
each_ticked = pytest.mark.parametrize("scheme", TICKED, ids=lambda scheme: scheme.__name__.split(".")[-1])


def size_of(scheme: ModuleType) -> int:
    size: int = scheme.Array.SIZE
    return size


def unit_ns(scheme: ModuleType) -> int:
    """Return the length of a tick in nanoseconds."""
    return SECOND if scheme in (ksuid, xid, objectid) else 4 * MS if scheme is ksuid_ms else MS


def pool_of(scheme: ModuleType) -> str:
    """Return the pool from which its generators lease."""
    return "uuid.v7" if scheme is uuid else scheme.__name__.split(".")[-1]


# --- IDs -------------------------------------------------------------------------------------------------------------


@each
@given(data=st.data())
def test_id_is_its_bytes_its_text_and_its_integer(scheme: Any, data: st.DataObject) -> None:
    raw = data.draw(st.binary(min_size=size_of(scheme), max_size=size_of(scheme)))
    one = scheme.ID(raw)
    assert bytes(one) == raw
    assert int(one) == int.from_bytes(raw, "big")
    for again in (scheme.ID.from_bytes(raw), scheme.ID.parse(str(one)), scheme.ID.from_int(int(one))):
        assert again == one
        assert hash(again) == hash(one)
    assert eval(repr(one), {one.__class__.__module__.split(".")[-1]: scheme}) == one
    assert pickle.loads(pickle.dumps(one)) == copy.copy(one) == copy.deepcopy(one) == one
    assert one != raw
    assert one != str(one)


@pytest.mark.parametrize("spec", ["", "s", ">40", "_^50s", ".5"])
def test_id_is_formatted_as_its_text(spec: str) -> None:
    ids = [each.ID(bytes(range(size_of(each)))) for each in SCHEMES]
    ids.append(typeid.ID("user", uuid.new()))
    assert [format(one, spec) for one in ids] == [format(str(one), spec) for one in ids]
    with pytest.raises(ValueError, match="Unknown format code 'd'"):
        format(ids[0], "d")


@each
@given(data=st.data())
def test_ids_sort_as_their_bytes_and_their_texts_do(scheme: Any, data: st.DataObject) -> None:
    raw = st.binary(min_size=size_of(scheme), max_size=size_of(scheme))
    few = data.draw(st.lists(raw, min_size=2, max_size=6))
    ids = sorted(scheme.ID(each) for each in few)
    assert [bytes(each) for each in ids] == sorted(few)
    assert [str(each) for each in ids] == sorted(str(scheme.ID(each)) for each in few)
    with pytest.raises(TypeError):
        assert ids[0] < bytes(ids[1])


@each
@given(text=st.text(max_size=60))
def test_text_is_an_id_or_an_error_with_the_position(scheme: Any, text: str) -> None:
    try:
        one = scheme.ID.parse(text)
    except ParseError as error:
        refused = error
    else:
        assert len(str(one)) == len(text)
        return
    assert refused.code in {"parse.length", "parse.character"}
    assert refused.code == "parse.length" or 0 <= (refused.position or 0) < len(text)


# --- arrays ----------------------------------------------------------------------------------------------------------


@each
def test_array_is_its_ids_in_order(scheme: Any) -> None:
    array = scheme.Generator().batch(50)
    ids = array.tolist()
    assert len(array) == len(set(ids)) == 50
    assert list(array) == ids == [array[i] for i in range(50)]
    assert array.tobytes() == bytes(memoryview(array)) == b"".join(map(bytes, ids))
    assert array.encode() == "".join(map(str, ids)).encode()
    assert array.to_lines() == "".join(f"{each}\n" for each in ids).encode()
    assert scheme.Array(array) == scheme.Array.parse(array.encode()) == pickle.loads(pickle.dumps(array)) == array
    assert array[3:40:5].tolist() == ids[3:40:5]
    assert array[::-1].tolist() == ids[::-1]
    assert ids[7] in array
    assert scheme.ID(b"\0" * size_of(scheme)) not in array
    assert "x" not in array
    for wrong in (50, -51):
        with pytest.raises(IndexError):
            array[wrong]


# --- generators ------------------------------------------------------------------------------------------------------


@each
def test_ids_minted_in_any_way_are_all_different(scheme: Any) -> None:
    with scheme.Generator() as generator:
        ids = [generator.new() for _ in range(1000)] + list(generator.batch(1000))
        buffer = bytearray(1000 * size_of(scheme))
        assert generator.fill(buffer) == 1000
        ids += [*scheme.Array(buffer), *(one for one, _ in zip(generator, range(1000), strict=False))]
        assert len(set(ids)) == 4000
    with pytest.raises(GenerationError) as refused:
        generator.new()
    assert refused.value.code == "generator.closed"


@each_of_all
def test_threads_that_share_a_generator_mint_no_id_twice(scheme: Any) -> None:
    generator, ids = scheme.Generator(), []

    def mint() -> None:
        ids.extend([generator.new() for _ in range(3000)])

    threads = [threading.Thread(target=mint) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 12_000


@each_of_all
def test_forked_children_repeat_no_id(scheme: Any) -> None:
    generator = scheme.Generator()
    generator.new()

    def mint() -> list[str]:
        return [str(generator.new()) for _ in range(200)] + [str(scheme.new()) for _ in range(200)]

    children = [Child(mint) for _ in range(4)]
    ids = mint() + [one for child in children for one in child.result()]
    assert len(set(ids)) == 2000


# --- wrong input ------------------------------------------------------------------------------------------------------

GENERATORS = [*SCHEMES, snowflake]
HUGE = 10**5000
each_generator = pytest.mark.parametrize("scheme", GENERATORS, ids=lambda scheme: scheme.__name__.split(".")[-1])


HEX, CROCKFORD = "0123456789abcdefABCDEF", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
UUID_TEXT = ["-" if at in (8, 13, 18, 23) else HEX for at in range(36)]
KSUID_TEXT = ["0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"] * 27
ALLOWED = {
    sno: ["23456789abcdefghijklmnopqrstuvwx"] * 16,
    locality: UUID_TEXT,
    uuid: UUID_TEXT,
    ulid: ["01234567OoIiLl", *[CROCKFORD + CROCKFORD.lower() + "OoIiLl"] * 25],  # read as 0 and 1
    ksuid: KSUID_TEXT,
    ksuid_ms: KSUID_TEXT,
    xid: [*["0123456789abcdefghijklmnopqrstuv"] * 19, "0g"],
    objectid: [HEX] * 24,
    sandflake: [*[CROCKFORD] * 25, "048CGMRW"],
}
"""The characters that each place of a text may have. A KSUID is no more than that of the largest bytes, besides."""
ODD_CHARACTERS = [
    *("0", "1", "y", "z", "A", "X", "G", "O", "l", "I", "g", "-", "_", "+", "=", "/", "\\", '"', "'", "%", "{", "?"),
    *(" ", "\t", "\n", "\r", "\v", "\0", "\x1f", "\x7f", "\x80", "\xa0", "\xff"),
    *("é", "ß", "İ", "ı", "ſ", "K"),  # some fold to ASCII letters
    *("２", "ａ", "а", "٣", "²", "①"),  # full-width, Cyrillic, Arabic, superscript, circled
    *("\u200b", "\u2028", "\u202e", "\u0301", "\ufeff", "\ufffd", "\uffff"),
    *("\ud800", "\udbff", "\udc00", "\udfff", "😀", "𝟚", "\U0010ffff"),
]


def good(scheme: ModuleType) -> str:
    return str(scheme.ID(bytes(range(101, 101 + size_of(scheme)))))


def odd_texts(scheme: ModuleType) -> dict[str, None]:
    """Return texts that are unlike an ID in one way each; a few are one nevertheless."""
    text = good(scheme)
    swapped = [text[:at] + odd + text[at + 1 :] for odd in ODD_CHARACTERS for at in (0, 8, len(text) - 1)]
    longer = [one for odd in ODD_CHARACTERS for one in (text + odd, odd + text, text[:-1] + odd + odd)]
    shorter = [text[:size] for size in range(len(text))]
    shouted = [text[:at] + text[at:].upper() for at in range(len(text))]
    padded = [f" {text}", f'"{text}"', f"{{{text}}}", f"urn:uuid:{text}", text * 2, text * 1000]
    emoji = ["😀" * len(text), "\ud83d\ude00" * (len(text) // 2)]
    unlike = ["null", "None", "-" * len(text), "2" * 10**6, text.replace("-", "")[:32], text[::-1], *emoji]
    return dict.fromkeys([*swapped, *longer, *shorter, *shouted, *padded, *unlike])


def fault(scheme: ModuleType, text: str, count: int = 1) -> tuple[str, int | None] | None:
    """Return the code and position of the error in the text of some IDs, by a check of one character at a time."""
    allowed = ALLOWED[scheme]
    if len(text) != count * len(allowed):
        return "parse.length", None
    for at, character in enumerate(text):
        if character not in allowed[at % len(allowed)]:
            return "parse.character", at
    if scheme in (ksuid, ksuid_ms):
        largest = str(scheme.ID(b"\xff" * size_of(scheme)))
        for begin in range(0, len(text), len(largest)):
            pairs = enumerate(zip(text[begin:], largest, strict=False), begin)
            at, (character, most) = next((each for each in pairs if each[1][0] != each[1][1]), (0, ("", "")))
            if character > most:
                return "parse.character", at
    return None


def read_fault(read: Any, text: str) -> tuple[str, int | None] | None:
    try:
        read(text)
    except MintError:
        error = documented_refusal(read, text)
        return error.code, getattr(error, "position", None)
    return None


@each
def test_malformed_text_is_refused_with_the_position(scheme: Any) -> None:
    expected = {text: fault(scheme, text) for text in odd_texts(scheme)}
    assert sum(each is not None for each in expected.values()) >= 200
    found = {text: read_fault(scheme.ID.parse, text) for text in expected}
    unlike = {ascii(text)[:50]: (found[text], expected[text]) for text in expected if found[text] != expected[text]}
    assert unlike == {}


@each
def test_array_error_has_the_position_in_the_whole_text(scheme: Any) -> None:
    """In characters, not in bytes."""
    whole = [good(scheme) * 3 + text for text in odd_texts(scheme)]
    expected = {text: fault(scheme, text, len(text) // len(good(scheme)) or 1) for text in whole}
    found = {text: read_fault(scheme.Array.parse, text) for text in whole}
    unlike = {ascii(text)[-50:]: (found[text], expected[text]) for text in whole if found[text] != expected[text]}
    assert unlike == {}


@each
def test_error_in_text_has_what_is_wrong_and_what_is_needed(scheme: Any) -> None:
    text = good(scheme)
    assert f"7 characters, needs {len(text)}" in str(documented_refusal(scheme.ID.parse, "x" * 7))
    assert "'!' at position 5" in str(documented_refusal(scheme.ID.parse, text[:5] + "!" + text[6:]))
    for value in (None, 5, 1.5, text.encode(), bytearray(16), [text], object()):
        error = documented_refusal(scheme.ID.parse, value)
        assert (error.code, str(error)) == ("argument.type", f"text must be str, not {type(value).__name__}")


@each
def test_bytes_of_another_length_are_no_id(scheme: Any) -> None:
    right = size_of(scheme)
    for size in {*range(65), 200} - {right}:
        for read in (scheme.ID, scheme.ID.from_bytes):
            error = documented_refusal(read, bytes(size))
            assert (error.code, f"{size} bytes, needs {right}" in str(error)) == ("parse.length", True)
        if size % right:
            assert documented_refusal(scheme.Array, bytes(size)).code == "parse.length"
        else:
            assert len(scheme.Array(bytes(size))) == size // right


@each
def test_only_contiguous_buffers_are_read(scheme: Any) -> None:
    for value in (None, 5, 1.5, "0123456789", [0] * 10, object()):
        for read in (scheme.ID.from_bytes, scheme.Array):
            assert documented_refusal(read, value).code == "argument.type"
    with_gaps = memoryview(bytes(20 * size_of(scheme)))[::20]
    for read in (scheme.ID, scheme.ID.from_bytes, scheme.Array):
        assert documented_refusal(read, with_gaps).code == "config.buffer"


@each
def test_only_a_uuid_is_read_as_one(scheme: Any) -> None:
    for value in (None, 5, str(UUID(int=7)), bytes(16), UUID) if hasattr(scheme.ID, "from_uuid") else ():
        assert documented_refusal(scheme.ID.from_uuid, value).code == "argument.type"


@each
def test_integers_outside_the_bits_are_refused(scheme: Any) -> None:
    top = 1 << 8 * size_of(scheme)
    assert bytes(scheme.ID.from_int(top - 1)) == b"\xff" * size_of(scheme)
    for wrong in (-1, top, -(2**63), top << 200, HUGE, -HUGE):
        error = documented_refusal(scheme.ID.from_int, wrong)
        limit = "2^160 - 1" if size_of(scheme) == 20 else top - 1
        assert (error.code, f"..{limit}" in str(error)) == ("field.range", True)
        assert abs(wrong) > top or f"{wrong} is outside" in str(error)
    for unfit in ("7", b"7", 1.0, float("nan"), None, True, [1], 1 + 0j, object):
        assert documented_refusal(scheme.ID.from_int, unfit).code == "argument.type"


class Zoneless(tzinfo):
    """A time zone without an offset: Python calls such a datetime naive too."""

    def utcoffset(self, when: datetime | None) -> None:
        return None

    def tzname(self, when: datetime | None) -> str:
        return "?"

    def dst(self, when: datetime | None) -> None:
        return None


@each_generator
def test_time_is_an_aware_datetime_or_nanoseconds_within_the_layout(scheme: Any) -> None:
    generator = scheme.Generator(**{KINDS[scheme.__name__.split(".")[-1]].node or "node": 1})
    bounds = snowflake.DEFAULT if scheme is snowflake else scheme
    calls = [generator.new_at, lambda time: generator.nth_at(time, 0)]
    calls += [getattr(bounds, name) for name in ("min_at", "max_at") if hasattr(bounds, name)]
    naive = datetime(2020, 1, 1)  # noqa: DTZ001
    for call in calls:
        for time in (naive, naive.replace(year=1), naive.replace(year=9999), naive.replace(tzinfo=Zoneless())):
            error = documented_refusal(call, time)
            assert (error.code, "no time zone" in str(error)) == ("time.naive", True)
        for unfit in (1.5, "2020-01-01T00:00:00Z", None, date(2020, 1, 1), timedelta(1)):
            assert documented_refusal(call, unfit).code == "argument.type"
        for outside in (datetime.min.replace(tzinfo=UTC), datetime.min.replace(tzinfo=timezone(timedelta(hours=2)))):
            assert documented_refusal(call, outside).code == "time.range"
        for count in (-1, 2**127, -(2**127), 2**128 - 1, 2**128, 2**200, -(2**200), HUGE, -HUGE):
            assert documented_refusal(call, count).code == "time.range"


@each_generator
def test_number_of_ids_is_an_int_up_to_31_bits(scheme: Any) -> None:
    generator = scheme.Generator()
    for wrong in (-1, 2**31, -(2**63), 2**130, HUGE, -HUGE):
        error = documented_refusal(generator.batch, wrong)
        assert (error.code, f"..{2**31 - 1}" in str(error)) == ("field.range", True)
        assert abs(wrong) > 2**31 or f"n {wrong} is outside" in str(error)
    for unfit in ("7", b"7", 1.0, float("nan"), None, [1], 1 + 0j, object):
        assert documented_refusal(generator.batch, unfit).code == "argument.type"


@each_generator
def test_only_writable_whole_contiguous_buffers_are_filled(scheme: Any) -> None:
    fill, size = scheme.Generator().fill, scheme.Array.SIZE
    for buffer in (bytes(size), memoryview(bytearray(size)).toreadonly()):
        error = documented_refusal(fill, buffer)
        assert (error.code, "read-only" in str(error)) == ("config.buffer", True)
    error = documented_refusal(fill, memoryview(bytearray(4 * size))[::2])
    assert (error.code, "contiguous" in str(error)) == ("config.buffer", True)
    for length in range(3 * size + 1, 4 * size):
        error = documented_refusal(fill, bytearray(length))
        assert (error.code, f"{length} bytes" in str(error), f"{size}" in str(error)) == ("config.buffer", True, True)
    for value in (None, 5, "x" * 80, [0] * 80):
        assert documented_refusal(fill, value).code == "argument.type"
    assert fill(bytearray()) == 0


@each_generator
def test_store_argument_is_a_url_of_a_known_store_or_a_store(scheme: Any) -> None:
    for url in ("", "?", "nowhere://host", "redis", "memory:?x=1", "sqlite:", "memory:#"):
        assert documented_refusal(partial(scheme.Generator, store=url)).code == "config.store"
    for value in (0, False, object(), b"memory:"):
        assert documented_refusal(partial(scheme.Generator, store=value)).code == "argument.type"


@each_generator
def test_password_of_a_store_url_is_never_repeated(scheme: Any) -> None:
    for url in ("nowhere://root:hunter2@host/ids", "sqlite://root:hunter2@host/ids", "redis://:hunter2@host:port/"):
        error = documented_refusal(partial(scheme.Generator, store=url))
        assert error.code == "config.store"
        assert "hunter2" not in str(error)


@each_generator
@pytest.mark.parametrize(
    ("argument", "code"),
    [
        ({"nodes": "12"}, "argument.type"),
        ({"nodes": b"12"}, "argument.type"),
        ({"nodes": 12}, "argument.type"),
        ({"nodes": [True]}, "argument.type"),
        ({"nodes": [1, "2"]}, "argument.type"),
        ({"nodes": set()}, "config.node"),
        ({"nodes": {-1}}, "config.node"),
        ({"nodes": {1, 2**60}}, "config.node"),
        ({"nodes": [range(5), range(7, 7)]}, "config.node"),
        ({"nodes": set(range(0, 130, 2))}, "config.node"),
        ({"nodes": range(0)}, "config.node"),
        ({"nodes": range(0, 10, 2)}, "config.node"),
        ({"nodes": range(-1, 5)}, "config.node"),
        ({"nodes": range(2**60)}, "config.node"),
        ({"span_ms": 999}, "config.span"),
        ({"span_ms": 86_400_001}, "config.span"),
        ({"span_ms": "10"}, "argument.type"),
        ({"pool": ""}, "config.name"),
        ({"pool": "a\nb"}, "config.name"),
        ({"pool": "x" * 129}, "config.name"),
        ({"pool": 5}, "argument.type"),
        ({"on_lease_lost": "ignore"}, "config.policy"),
        ({"on_lease_lost": 1}, "argument.type"),
        ({"max_wait_ms": -1}, "config.wait"),
        ({"max_wait_ms": 2**32}, "config.wait"),
        ({"max_wait_ms": "10"}, "argument.type"),
        ({"clock": 5}, "argument.type"),
        ({"clock": "now"}, "argument.type"),
        ({"clock": ...}, "argument.type"),
    ],
    ids=repr,
)
def test_invalid_lease_arguments_are_refused_before_any_store_is_asked(scheme: Any, argument: Any, code: str) -> None:
    assert documented_refusal(partial(scheme.Generator, **{"store": "memory:"} | argument)).code == code


@each_generator
def test_clock_returns_an_int_of_nanoseconds_within_the_layout(scheme: Any) -> None:
    for reading in (None, 1.5e18, "now", datetime.now(UTC)):
        error = documented_refusal(scheme.Generator(clock=lambda reading=reading: reading).new)
        assert (error.code, type(reading).__name__ in str(error)) == ("config.clock", True)
    for reading in (-1, 2**126, 2**127, 2**200, HUGE, -HUGE):
        error = documented_refusal(scheme.Generator(clock=lambda reading=reading: reading).new)
        assert error.code in {"clock.range", "config.clock"}


@each_generator
def test_exception_of_a_clock_reaches_the_caller(scheme: Any) -> None:
    def broken() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scheme.Generator(clock=broken).new()


@pytest.mark.parametrize(
    ("scheme", "keyword"),
    [*((each, "clock") for each in (*SCHEMES, snowflake, nanoid, cuid, cuid2)), (sno, "on_overflow")],
)
def test_collector_frees_a_generator_and_the_owner_of_its_callback(scheme: Any, keyword: str) -> None:
    class Owner:
        def __init__(self) -> None:
            own = {"partition": 7} if scheme is sno else {}
            self.generator = scheme.Generator(**own, **{keyword: self.call})

        def call(self, *_: object) -> int:
            return NOW_NS

    owner = Owner()
    owner.generator.new()
    freed = weakref.ref(owner)
    del owner
    gc.collect()
    assert freed() is None


@each_generator
def test_closed_generator_refuses_to_mint(scheme: Any) -> None:
    generator = scheme.Generator()
    generator.close()
    generator.close()
    calls = [generator.new, partial(next, generator), partial(generator.batch, 1)]
    calls += [partial(generator.fill, bytearray(240)), partial(generator.new_at, NOW_NS)]
    for call in [*calls, partial(generator.nth_at, NOW_NS, 0)]:
        assert documented_refusal(call).code == "generator.closed"


# --- formats of a tick and bits that count ----------------------------------------------------------------------------


@each_ticked
def test_ids_grow_when_the_clock_stops_or_goes_back(scheme: Any) -> None:
    clock = ManualClock(NOW_NS)
    generator = scheme.Generator(1, clock=clock)
    counts = scheme in (xid, objectid)
    last = generator.new()
    for step_ns in (0, 0, 3 * SECOND, 0, -2 * SECOND, 0, -3600 * SECOND, 0, 7200 * SECOND, 0):
        clock.advance(step_ns)
        one = generator.new()
        # The counter of a second starts anywhere in the lower half: IDs sort by time, and by count within it.
        assert one > last or (counts and one.timestamp_ns == last.timestamp_ns)
        assert one.timestamp_ns >= last.timestamp_ns
        last = one


@each_ticked
def test_python_ulid_57_id_uses_one_reading_of_the_clock(scheme: Any) -> None:
    """It read the clock twice, for time and count, which did not match in a new millisecond."""
    readings: list[int] = []

    def clock() -> int:
        readings.append(NOW_NS + len(readings) * unit_ns(scheme))
        return readings[-1]

    generator = scheme.Generator(1, clock=clock)
    generator.new()
    for _ in range(100):
        before = len(readings)
        one = generator.new()
        assert len(readings) == before + 1
        assert one.timestamp_ns == readings[-1] - readings[-1] % unit_ns(scheme)


@each_ticked
def test_time_in_every_unit_is_the_tick_of_the_clock(scheme: Any) -> None:
    one = scheme.Generator(clock=ManualClock(NOW_NS)).new()
    begin = NOW_NS - NOW_NS % unit_ns(scheme)
    assert (one.timestamp_ns, one.timestamp_ms) == (begin, begin // MS)
    assert one.time == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=begin // MS)


@each_ticked
def test_batch_shares_one_counter(scheme: Any) -> None:
    clock = ManualClock(NOW_NS)
    generator = scheme.Generator(clock=clock)
    ids = [generator.new(), *generator.batch(500), generator.new()]
    assert len(set(ids)) == 502
    assert len({one.timestamp_ns for one in ids}) == 1


@each_ticked
def test_generators_without_numbers_share_no_randomness(scheme: Any) -> None:
    clock = ManualClock(NOW_NS)
    ids = [one for _ in range(50) for one in scheme.Generator(clock=clock).batch(20)]
    assert len(set(ids)) == 1000


@each_ticked
def test_explicit_number_is_in_every_id_and_refused_after_a_fork(scheme: Any) -> None:
    clock = ManualClock(NOW_NS)
    first, second = scheme.Generator(0, clock=clock), scheme.Generator(1, clock=clock)
    if scheme is not uuid:  # its numbers are below the count
        tops = {(int(one) - int(scheme.min_at(NOW_NS))).bit_length() for one in first.batch(5)}
        assert max(tops) < max((int(one) - int(scheme.min_at(NOW_NS))).bit_length() for one in second.batch(5))
    term = "process" if scheme is objectid else "worker" if scheme is sandflake else "node"
    assert getattr(second, term) == 1

    def mint() -> str:
        try:
            return str(second.new())
        except GenerationError as error:
            return error.code

    assert in_child(mint) == "fork.shared_node"
    with pytest.raises(MintError) as refused:
        scheme.Generator(1 << 60)
    assert refused.value.code == "config.node"


@each_ticked
def test_cpython_89083_bounds_hold_exactly_the_ids_of_their_tick(scheme: Any) -> None:
    low, high = scheme.min_at(NOW_NS), scheme.max_at(NOW_NS)
    for one in scheme.Generator(clock=ManualClock(NOW_NS)).batch(100):
        assert low <= one <= high
    later = scheme.min_at(NOW_NS + unit_ns(scheme))
    assert high < later
    assert int(later) - int(high) == 1 or scheme is uuid  # whose version and variant lie between
    assert scheme.min_at(datetime.fromtimestamp(NOW_NS // SECOND, UTC)).time == datetime.fromtimestamp(
        NOW_NS // SECOND, UTC
    )
    for wrong in (-1, 1 << 90):
        with pytest.raises(FieldError) as refused:
            scheme.min_at(wrong)
        assert refused.value.code == "time.range"


@each_ticked
def test_langsmith_sdk_3290_id_of_a_given_time_is_random_and_of_it(scheme: Any) -> None:
    generator = scheme.Generator()
    old = 1_420_000_000 * SECOND
    ids = {generator.new_at(old) for _ in range(100)}
    assert {one.timestamp_ns for one in ids} == {old}
    assert len(ids) == 100


@pytest.mark.parametrize(
    ("scheme", "unit_ms"),
    [*((scheme, unit_ns(scheme) // MS) for scheme in TICKED), (sno, 4), (locality, 1), (snowflake, 1)],
)
def test_numbered_ids_of_a_tick_continue_in_later_ticks(scheme: Any, unit_ms: int) -> None:
    kind = KINDS[scheme.__name__.split(".")[-1]]
    generator = scheme.Generator(**{kind.node or "node": 5})
    old = 1_420_100_000 * SECOND

    def time_of(one: Any) -> datetime:
        time: datetime = (snowflake.DEFAULT.parse(one) if scheme is snowflake else one).time
        return time

    ids = [generator.nth_at(old + unit_ms * MS - 1, n) for n in range(500)]
    assert [generator.nth_at(old, n) for n in range(500)] == ids
    assert len(set(ids)) == 500
    begin = datetime.fromtimestamp(old // SECOND, UTC)
    assert {time_of(one) for one in ids} == {begin}
    if generator.capacity < 1 << 32:
        last, after = (generator.nth_at(old, generator.capacity - 1 + n) for n in range(2))
        assert (time_of(last), time_of(after)) == (begin, begin + timedelta(milliseconds=unit_ms))
        assert after == generator.nth_at(old + unit_ms * MS, 0)
    for wrong in (-1, 1 << 32):
        with pytest.raises(FieldError) as refused:
            generator.nth_at(old, wrong)
        assert refused.value.code == "field.range"
    with pytest.raises(FieldError) as refused:
        generator.nth_at(-1, 0)
    assert refused.value.code == "time.range"
    with pytest.raises(ArgumentError):
        generator.nth_at(old, "1")


@each_ticked
def test_numbered_ids_of_a_lease_are_of_times_before_it(scheme: Any) -> None:
    clock = ManualClock(NOW_NS)
    store = MemoryStore(clock=lambda: clock.now_ns // MS)
    with scheme.Generator(store=store, clock=clock, never_used=True) as generator:
        old = NOW_NS - 3600 * SECOND
        assert generator.nth_at(old, 3).timestamp_ns == old // unit_ns(scheme) * unit_ns(scheme)
        for time, n in ((NOW_NS + SECOND, 0), (NOW_NS - SECOND, 3 * generator.capacity * SECOND // unit_ns(scheme))):
            with pytest.raises(LeaseError) as refused:
                generator.nth_at(time, min(n, 2**32 - 1))
            assert refused.value.code == "lease.history"
    with scheme.Generator(store=store, clock=clock) as generator, pytest.raises(LeaseError) as refused:
        generator.nth_at(old, 0)
    assert refused.value.code == "lease.history"


GIVEN: dict[str, tuple[Any, int, str]] = {
    "sno": (sno.Generator, 2**16, "new_at"),
    "snowflake": (snowflake.Generator, 2**12, "nth_at"),
    "locality": (locality.Generator, 2**32, "nth_at"),
    "ulid": (ulid.Generator, 2**32, ""),
    "ksuid": (ksuid.Generator, 2**32, ""),
    "ksuid_ms": (ksuid_ms.Generator, 2**32, ""),
    "xid": (xid.Generator, 2**24, "nth_at"),
    "objectid": (objectid.Generator, 2**24, "nth_at"),
    "sandflake": (sandflake.Generator, 2**24, ""),
    "uuid v1": (partial(uuid.Generator, version=1), 2**27, ""),
    "uuid v6": (partial(uuid.Generator, version=6), 2**27, ""),
    "uuid v7": (partial(uuid.Generator, version=7), 2**24, ""),
}
"""Generators with ``new_at``, the numbers of a tick, and the source of equal IDs of ``new``."""
each_given = pytest.mark.parametrize(("make", "numbers", "shared"), GIVEN.values(), ids=GIVEN)


@each_given
@pytest.mark.parametrize("is_leased", [True, False])
def test_ids_of_given_times_differ_and_differ_from_numbered_ones(
    make: Any, numbers: int, shared: str, *, is_leased: bool
) -> None:
    clock = ManualClock(NOW_NS)
    lease = {"store": MemoryStore(clock=lambda: clock.now_ns // MS), "never_used": True} if is_leased else {}
    generator, old = make(clock=clock, **lease), NOW_NS - 3600 * SECOND
    calls = min(numbers // 2, 3000)
    ids = [generator.new_at(old + (n % 4) * SECOND // 2) for n in range(calls)]
    ids += [generator.nth_at(old + tick * SECOND, n) for tick in range(4) for n in range(calls // 2)]
    assert len(set(ids)) == calls + 4 * (calls // 2)
    once = min(numbers, 70_000)
    ids = [generator.new_at(old + 10 * SECOND) for _ in range(once)]
    assert len(set(ids)) == once


@each_given
def test_ids_of_given_times_differ_from_those_of_now(make: Any, numbers: int, shared: str) -> None:
    generator = make(clock=ManualClock(NOW_NS))
    now = [generator.new() for _ in range(1000)]
    if shared != "new_at":
        given = [generator.new_at(NOW_NS) for _ in range(1000)]
        assert not {*now} & {*given}
    if shared != "nth_at":
        assert not {*now} & {generator.nth_at(NOW_NS, n) for n in range(2000)}


@pytest.mark.parametrize("scheme", [ulid, sandflake, uuid], ids=lambda scheme: scheme.__name__.split(".")[-1])
def test_given_time_may_be_after_the_end_of_the_generators(scheme: Any) -> None:
    generator, time = scheme.Generator(5), datetime(9999, 12, 31, tzinfo=UTC)
    ids = generator.new_at(time), generator.nth_at(time, generator.capacity)
    assert [one.time for one in ids] == [time, time + timedelta(milliseconds=1)]


def test_snowflakes_of_given_times_repeat_after_a_full_lap() -> None:
    generator, old = snowflake.Generator(5), NOW_NS - 3600 * SECOND
    first, *_, last = [generator.new_at(old + n % 4096 * MS) for n in range(4097)]
    assert first == last


@each_ticked
def test_fields_compose_an_id_and_replace_some_of_it(scheme: Any) -> None:
    one = scheme.new()
    names = ["random", "payload", "machine", "pid", "counter", "process", "worker", "sequence", "rand_a", "rand_b"]
    fields = {name: getattr(one, name) for name in names if hasattr(one, name)}
    assert scheme.ID.from_parts(timestamp_ns=one.timestamp_ns, **fields) == one
    assert scheme.ID.from_parts(timestamp_ms=one.timestamp_ms, **fields) == one
    assert scheme.ID.from_parts(time=one.time, **fields) == one.replace(time=one.time) == one
    for name, value in fields.items():
        zero = "0" * len(value) if isinstance(value, str) else 0
        other = one.replace(**{name: zero})
        assert getattr(other, name) == zero
        assert other.replace(**{name: value}) == one
        assert one.replace(**{name: 0}) == other
        width = 4 * len(value) if isinstance(value, str) else 24
        for wrong in (-1, 1 << width):
            with pytest.raises(FieldError) as refused:
                one.replace(**{name: wrong})
            assert refused.value.code == "field.range"
        if isinstance(value, str):
            for text in ("", "x" * len(value), value + "0"):
                with pytest.raises(FieldError) as refused:
                    one.replace(**{name: text})
                assert refused.value.code == "field.format"
    later = one.replace(timestamp_ns=one.timestamp_ns + unit_ns(scheme))
    assert later > one
    assert {name: getattr(later, name) for name in fields} == fields
    for call in (
        scheme.ID.from_parts,
        lambda: scheme.ID.from_parts(timestamp_ms=1_500_000_000_000, timestamp_ns=1),
        lambda: one.replace(time=one.time, timestamp_ms=one.timestamp_ms),
        lambda: one.replace(colour=1),
        lambda: one.replace(time=1),
    ):
        with pytest.raises(TypeError):
            call()


@each_ticked
def test_leased_generators_have_different_numbers_in_one_tick(scheme: Any) -> None:
    clock = ManualClock(NOW_NS)
    store = MemoryStore(clock=lambda: clock.now_ns // MS)
    generators = [scheme.Generator(store=store, clock=clock) for _ in range(4)]
    ids = [one for generator in generators for one in generator.batch(50)]
    assert len(set(ids)) == 200
    term = "process" if scheme is objectid else "worker" if scheme is sandflake else "node"
    assert len({getattr(generator, term) for generator in generators}) == 4
    [pool] = store.list_pools()
    assert pool.name == pool_of(scheme)


@each_ticked
def test_leased_generator_mints_only_inside_its_windows(scheme: Any) -> None:
    clock = ManualClock(NOW_NS)
    store = MemoryStore(clock=lambda: clock.now_ns // MS)
    with scheme.Generator(store=store, clock=clock, span_ms=5_000) as generator:
        one = generator.new()
        [lease] = list(store.list_leases(pool_of(scheme)))
        assert lease.floor_ms <= one.timestamp_ms + unit_ns(scheme) // MS
        assert one.timestamp_ms < lease.until_ms
        with pytest.raises(LeaseError) as refused:
            generator.new_at(NOW_NS - 3600 * SECOND)
        assert refused.value.code == "lease.history"
