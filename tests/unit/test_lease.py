"""Tests of the rules of leases and segments, without clocks, stores or threads."""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import sha1
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mintage import rules
from mintage.errors import ConfigError, FieldError, GenerationError, LeaseError, MintError
from mintage.rules import (
    CLOCK_LIMIT_MS,
    CLOCK_MARGIN_MS,
    COOLDOWN_MS,
    GAP,
    HISTORY_MS,
    MAX_COUNT,
    MAX_INTEGER,
    MAX_SPAN_MS,
    MAX_STRIDE,
    MIN_SPAN_MS,
    SPAN_MS,
    GrantRecord,
    Lease,
    NamespaceRecord,
    NodeRecord,
    PoolRecord,
    Segment,
    check_clock,
    check_int,
    check_layout,
    check_lease,
    check_name,
    check_nodes,
    check_quarantine,
    check_segment,
    check_span,
    check_text,
    check_token,
    choose,
    create_namespace,
    create_pool,
    declare_unused,
    end_of_windows,
    give_back,
    grant,
    history_begin,
    is_of_a_clone,
    keep_history,
    kept_from,
    note_server,
    note_server_of_namespace,
    past_grant,
    raise_floor,
    release,
    reserve,
    retire,
    revoke,
    set_share,
    share_of,
)
from tests.helpers.outcomes import code_of

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = 1_700_000_000_000
SPAN = 30_000
POOL = PoolRecord("p", "test", "here", SPAN)

moments = st.integers(NOW - 200_000, NOW + 200_000)
spans = st.integers(MIN_SPAN_MS, 100_000)


def extend(
    record: NodeRecord | None, lease: Lease, *, identity: str, next_token: str = "next", **options: Any
) -> NodeRecord:
    return rules.extend(record, lease, next_token=next_token, server_id=identity, **options)


def node(until_ms: int, number: int = 0) -> NodeRecord:
    return NodeRecord("p", number, NOW - 50_000, until_ms, SPAN, "here", "token", "me")


def granted(record: NodeRecord | None = None, *, pool: PoolRecord = POOL, now_ms: int = NOW) -> NodeRecord:
    return grant(pool, record, 0, token="new", holder="you", now_ms=now_ms, span_ms=SPAN)


# --- input ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "0", "A.b_c:d@e-f", "n" * 128])
def test_name_of_letters_digits_and_punctuation_is_valid(name: str) -> None:
    check_name(name, "pool")


@pytest.mark.parametrize("name", ["", "n" * 129, "a\n", "a b", "é", "٣", "-a", "a/b", "a{b}", "\0", None, 7, b"a"])
def test_any_other_name_is_refused(name: str) -> None:
    assert code_of(lambda: check_name(name, "pool")) == "config.name"


def test_long_name_is_shortened_in_the_error() -> None:
    with pytest.raises(ConfigError) as caught:
        check_name("x" * 100_000, "namespace")
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("nodes", [range(1), range(2**44), range(5, 9), range(2**44 - 1, 2**44)])
def test_node_numbers_are_a_range(nodes: range) -> None:
    check_nodes(nodes)


@pytest.mark.parametrize(
    "nodes",
    [range(0), range(5, 5), range(-1, 3), range(0, 4, 2), range(3, 0, -1), range(2**44 + 1), range(2**70), [1], 5],
)
def test_invalid_node_range_is_refused(nodes: range) -> None:
    assert code_of(lambda: check_nodes(nodes)) == "config.node"


def test_spans_have_limits() -> None:
    for span in (MIN_SPAN_MS, MAX_SPAN_MS):
        check_span(span)
    assert {code_of(lambda span=span: check_span(span)) for span in (MIN_SPAN_MS - 1, MAX_SPAN_MS + 1)} == {  # type: ignore[misc]
        "config.span"
    }


GOOD_LEASE = Lease("p", 0, 0, 1, "token")
GOOD_SEGMENT = Segment("n", 1, 10)


@pytest.mark.parametrize(
    ("check", "code", "says"),
    [
        (lambda: check_int("5", "node"), "argument.type", "node '5' is str, not int"),  # type: ignore[arg-type]
        (lambda: check_int(True, "node"), "argument.type", "node True is bool, not int"),
        (lambda: check_int(0, "node", 1, 4), "field.range", "node 0 is outside 1..4"),
        (lambda: check_int(10**59, "node", 1, 4), "field.range", f"node {10**59} is outside 1..4"),
        (lambda: check_int(10**60, "node", 1, 4), "field.range", f"node {10**59}… is outside 1..4"),
        (lambda: check_int(10**5000, "node", 1, 4), "field.range", "node of that many digits is outside 1..4"),
        (lambda: check_text(b"a", "layout", 1, 2), "argument.type", "layout b'a' is bytes, not str"),  # type: ignore[arg-type]
        *(
            (
                lambda text=text: check_text(text, "layout", 1, 2),
                "field.range",
                f"layout {text!r} is not 1 to 2 characters without NUL",
            )
            for text in ("", "abc", "a\0", "\ud800", "\udfff")
        ),
        (lambda: check_name("a b", "pool"), "config.name", "pool 'a b' is not 1 to 128 letters"),
        (lambda: check_name("/" * 58, "pool"), "config.name", f"pool '{'/' * 58}' is not 1 to 128 letters"),
        (lambda: check_name("/" * 59, "pool"), "config.name", f"pool '{'/' * 59}… is not 1 to 128 letters"),
        (lambda: check_nodes(range(0)), "config.node", f"nodes range(0, 0) is not a range of step 1 within 0..{2**44}"),
        (lambda: check_span(999), "config.span", "span_ms 999 is outside 1000..86400000"),
        (lambda: check_span(1e3), "argument.type", "span_ms 1000.0 is float, not int"),  # type: ignore[arg-type]
        (lambda: check_token("a b"), "field.range", "the next token is not 1 to 64 letters, digits and . _ -"),
        (lambda: check_token(b"a"), "field.range", "the next token is not"),  # type: ignore[arg-type]
        (lambda: check_lease("p"), "argument.type", "lease 'p' is str, not Lease"),  # type: ignore[arg-type]
        *(
            (lambda made=made: check_lease(made), code, says)
            for made, code, says in [
                (replace(GOOD_LEASE, pool=""), "config.name", "pool ''"),
                (replace(GOOD_LEASE, node="0"), "argument.type", "node '0'"),  # type: ignore[arg-type]
                (replace(GOOD_LEASE, floor_ms=0.5), "argument.type", "floor_ms 0.5"),  # type: ignore[arg-type]
                (replace(GOOD_LEASE, until_ms=None), "argument.type", "until_ms None"),  # type: ignore[arg-type]
                (replace(GOOD_LEASE, token=b""), "argument.type", "a lease's token is not str"),  # type: ignore[arg-type]
                (replace(GOOD_LEASE, previous=None), "argument.type", "a lease's token is not str"),  # type: ignore[arg-type]
                (replace(GOOD_LEASE, node=-1), "lease.lost", "a lease of pool 'p' is lost: node -1 is outside 0.."),
                (replace(GOOD_LEASE, node=2**44), "lease.lost", "a lease of pool 'p' is lost"),
            ]
        ),
        (lambda: check_segment((1, 10)), "argument.type", "segment (1, 10) is tuple, not Segment"),  # type: ignore[arg-type]
        *(
            (lambda made=made: check_segment(made), code, says)
            for made, code, says in [
                (replace(GOOD_SEGMENT, namespace="/"), "config.name", "namespace '/'"),
                (replace(GOOD_SEGMENT, first=-1), "field.range", f"first -1 is outside 0..{2**63 - 1}"),
                (replace(GOOD_SEGMENT, first=2**63), "field.range", f"first {2**63} is outside"),
                (replace(GOOD_SEGMENT, last=-1), "field.range", f"last -1 is outside 0..{2**63 - 1}"),
                (replace(GOOD_SEGMENT, last=2**63), "field.range", f"last {2**63} is outside"),
                (replace(GOOD_SEGMENT, stride=0), "field.range", f"stride 0 is outside 1..{2**31 - 1}"),
                (replace(GOOD_SEGMENT, stride=2**31), "field.range", f"stride {2**31} is outside"),
                (replace(GOOD_SEGMENT, serial=-1), "field.range", f"serial -1 is outside 0..{2**53 - 1}"),
                (replace(GOOD_SEGMENT, serial=2**53), "field.range", f"serial {2**53} is outside"),
            ]
        ),
        (lambda: check_clock(5_001, 0), "lease.clock", "this clock is 5001 ms ahead of the store's; the limit is 5000"),
        (lambda: check_clock(0, 5_001), "lease.clock", "this clock is 5001 ms behind the store's; the limit is 5000"),
        (lambda: check_layout(POOL, "other"), "config.pool", "pool 'p' holds node numbers of 'test', not of 'other'"),
    ],
)  # fmt: skip
def test_refusal_names_the_value_and_its_limits(check: Callable[[], None], code: str, says: str) -> None:
    with pytest.raises(MintError) as caught:
        check()
    assert (caught.value.code, str(caught.value)[: len(says)]) == (code, says)


def test_limits_themselves_are_valid() -> None:
    for whole in (1, 4):
        check_int(whole, "node", 1, 4)
    for text in ("a", "éa", "\ud7ff\ue000"):
        check_text(text, "layout", 1, 2)
    for token in ("a", "A.b_c-9", "t" * 64):
        check_token(token)
    for number in (0, 2**44 - 1):
        check_lease(replace(GOOD_LEASE, node=number, floor_ms=-1, until_ms=-1))
    check_segment(Segment("n", 0, 0, 1, serial=0))
    check_segment(Segment("n", MAX_INTEGER, MAX_INTEGER, MAX_STRIDE, serial=2**53 - 1))


@pytest.mark.parametrize("sign", [-1, 1])
def test_clock_offset_is_limited(sign: int) -> None:
    check_clock(NOW + sign * CLOCK_LIMIT_MS, NOW)
    with pytest.raises(LeaseError, match="ahead of" if sign > 0 else "behind") as caught:
        check_clock(NOW + sign * (CLOCK_LIMIT_MS + 1), NOW)
    assert caught.value.code == "lease.clock"
    assert str(CLOCK_LIMIT_MS + 1) in str(caught.value)


def test_pool_has_one_layout() -> None:
    check_layout(POOL, "test")
    assert code_of(lambda: check_layout(POOL, "Test")) == "config.pool"


# --- pools after a change of the server -----------------------------------------------------------------------------


def test_new_pool_has_no_history() -> None:
    assert create_pool("p", "test", SPAN, "here") == POOL
    check_quarantine(POOL, NOW, never_used=True)


def test_possibly_lost_pool_is_quarantined() -> None:
    pool = create_pool("p", "test", SPAN, "here", quarantine_until_ms=NOW + 15_000)
    assert (pool.floor_ms, pool.quarantine_until_ms, pool.history_lost) == (NOW + 15_000, NOW + 15_000, True)


def test_unchanged_server_changes_nothing() -> None:
    assert note_server(POOL, "here", NOW) is POOL


def test_new_server_grants_nothing_until_forgotten_windows_end() -> None:
    pool = note_server(POOL, "there", NOW)
    end = NOW + SPAN + CLOCK_LIMIT_MS + CLOCK_MARGIN_MS
    assert (pool.identity, pool.floor_ms, pool.quarantine_until_ms, pool.history_lost) == ("there", end, end, True)
    with pytest.raises(LeaseError) as caught:
        check_quarantine(pool, end - 1, never_used=False)
    assert (caught.value.code, caught.value.retry_after_ms) == ("lease.none_free", 1)
    check_quarantine(pool, end, never_used=False)


# --- shares -------------------------------------------------------------------------------------------------------

HALF = replace(POOL, first_node=512, last_node=1023)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (range(512, 1024), range(512, 1024)),
        (range(1024), range(512, 1024)),
        (range(2**44), range(512, 1024)),
        (range(600, 601), range(600, 601)),
        (range(1023, 2000), range(1023, 1024)),
        (range(513), range(512, 513)),
    ],
)
def test_numbers_to_choose_from_are_those_of_the_share(asked: range, found: range) -> None:
    assert share_of(HALF, asked) == found
    assert share_of(POOL, asked) == asked


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (range(512), "numbers 0..511 are"),
        (range(1024, 2**44), "numbers 1024..17592186044415 are"),
        (range(7, 8), "7 is"),
    ],
)
def test_numbers_outside_the_share_are_refused(asked: range, says: str) -> None:
    with pytest.raises(ConfigError, match=rf"{re.escape(says)} outside the share 512\.\.1023 of pool 'p'") as caught:
        share_of(HALF, asked)
    assert caught.value.code == "config.node"


def test_share_is_narrowed_at_once() -> None:
    assert set_share(POOL, range(512, 1024), NOW) == HALF
    assert set_share(HALF, range(512, 1024), NOW) == HALF
    assert set_share(HALF, range(700, 701), NOW).share == range(700, 701)


@pytest.mark.parametrize("nodes", [range(511, 1024), range(512, 1025), range(512), range(2**44)])
def test_share_is_not_widened_without_a_time(nodes: range) -> None:
    with pytest.raises(ConfigError, match=r"--wider-from TIME") as caught:
        set_share(HALF, nodes, NOW)
    assert caught.value.code == "config.node"


@pytest.mark.parametrize("nodes", [range(1024), range(512, 1024), range(512)])
def test_wider_share_grants_no_window_before_its_time(nodes: range) -> None:
    pool = set_share(HALF, nodes, NOW, wider_from_ms=NOW + CLOCK_LIMIT_MS)
    assert (pool.share, pool.floor_ms, pool.history_lost) == (nodes, NOW + CLOCK_LIMIT_MS, True)
    assert granted(pool=pool).floor_ms == NOW + CLOCK_LIMIT_MS
    assert set_share(pool, nodes, NOW, wider_from_ms=0).floor_ms == pool.floor_ms


def test_old_time_does_not_widen_a_share_again() -> None:
    with pytest.raises(ConfigError, match="86400001 ms ago; the limit for a wider share is 86400000 ms") as caught:
        set_share(HALF, range(1024), NOW, wider_from_ms=NOW - MAX_SPAN_MS - 1)
    assert caught.value.code == "config.node"
    assert set_share(HALF, range(1024), NOW, wider_from_ms=NOW - MAX_SPAN_MS).share == range(1024)
    assert set_share(HALF, range(600, 700), NOW, wider_from_ms=0).share == range(600, 700)


def test_wider_share_waits_for_its_time() -> None:
    with pytest.raises(ConfigError, match="5001 ms ahead of the store's clock; the limit is 5000 ms") as caught:
        set_share(HALF, range(1024), NOW, wider_from_ms=NOW + CLOCK_LIMIT_MS + 1)
    assert caught.value.code == "config.node"


def test_window_outside_the_share_is_not_extended() -> None:
    record = node(NOW + 10, 7)
    lease = record.as_lease()
    terms: dict[str, Any] = {"identity": "here", "now_ms": NOW, "store_now_ms": NOW}
    with pytest.raises(LeaseError, match=r"outside the share 512\.\.1023") as caught:
        extend(record, lease, share=HALF.share, **terms)
    assert caught.value.code == "lease.lost"
    extended = extend(record, lease, **terms)
    # The answer to an extension of before may be lost; it moved the end before the share was narrowed.
    assert extend(extended, lease, share=HALF.share, **terms) == extended


@given(spent=st.integers(0, 100_000), ahead=st.integers(-CLOCK_LIMIT_MS, CLOCK_LIMIT_MS), floor=moments)
def test_windows_end_by_the_time_that_a_narrower_share_names(spent: int, ahead: int, floor: int) -> None:
    pool = replace(POOL, floor_ms=floor)
    record = granted(pool=pool, now_ms=NOW + ahead)
    lease = record.as_lease()
    latest = extend(record, lease, identity="here", now_ms=NOW + spent + ahead, store_now_ms=NOW + spent)
    assert max(record.until_ms, latest.until_ms) <= end_of_windows(pool, NOW + spent)


def test_statement_of_never_used_numbers_frees_a_pool_without_grants() -> None:
    pool = create_pool("p", "test", SPAN, "here", quarantine_until_ms=NOW + 15_000)
    assert declare_unused(pool, has_granted=False) == POOL
    # The floor of a pool with grants and its history stays.
    known = replace(POOL, floor_ms=NOW)
    assert declare_unused(known, has_granted=True) == known


def test_pool_without_history_refuses_never_used_numbers_in_quarantine_too() -> None:
    pool = create_pool("p", "test", SPAN, "here", quarantine_until_ms=NOW + 15_000)
    with pytest.raises(LeaseError, match="cannot know which") as caught:
        check_quarantine(pool, NOW, never_used=True)
    assert caught.value.retry_after_ms is None


def test_pool_without_history_has_no_never_used_node_numbers() -> None:
    pool = note_server(POOL, "there", NOW)
    with pytest.raises(LeaseError) as caught:
        check_quarantine(pool, NOW + 10**6, never_used=True)
    assert (caught.value.code, caught.value.retry_after_ms) == ("lease.none_free", None)


@given(now=moments, skew=st.integers(-CLOCK_LIMIT_MS, CLOCK_LIMIT_MS), span=spans, later=st.integers(0, 100_000))
def test_no_forgotten_window_ends_after_a_quarantine(now: int, skew: int, span: int, later: int) -> None:
    # The forgotten write is a grant to a caller with a wrong clock, or an extension.
    pool = create_pool("p", "test", span, "here")
    record = grant(pool, None, 1, token="t", holder="h", now_ms=now + skew, span_ms=span)
    extended = extend(record, record.as_lease(), identity="here", now_ms=now + skew + later, store_now_ms=now + later)
    assert record.until_ms <= note_server(pool, "there", now).floor_ms
    assert extended.until_ms <= note_server(pool, "there", now + later).floor_ms


def test_earlier_floor_survives_a_change_of_server() -> None:
    pool = note_server(replace(POOL, floor_ms=NOW + 10**6, quarantine_until_ms=NOW + 2 * 10**6), "there", NOW)
    # Windows may begin as late as the floor, and end a span later.
    assert pool.floor_ms == NOW + 10**6 + SPAN + CLOCK_LIMIT_MS + CLOCK_MARGIN_MS
    assert pool.quarantine_until_ms == NOW + 2 * 10**6


def test_server_that_comes_back_is_a_new_one() -> None:
    first = grant(POOL, None, 0, token="t", holder="h", now_ms=NOW, span_ms=SPAN)
    back = note_server(note_server(POOL, "there", NOW), "here", NOW)
    assert (back.identity, back.changes) == ("here", 2)
    late = NOW + SPAN - CLOCK_LIMIT_MS - CLOCK_MARGIN_MS

    def extended(changes: int, now_ms: int) -> NodeRecord:
        return extend(first, first.as_lease(), identity="here", changes=changes, now_ms=now_ms, store_now_ms=now_ms)

    assert extended(0, late).changes == 0
    assert extended(back.changes, late - 1).changes == 2
    assert code_of(lambda: extended(back.changes, late)) == "lease.lost"
    assert not is_of_a_clone(replace(first, token="t2"), first.as_lease(), "here", back.changes)


@given(first=moments, later=st.integers(0, 10**6))
def test_second_change_of_server_shortens_no_quarantine(first: int, later: int) -> None:
    once = note_server(POOL, "there", first)
    twice = note_server(once, "here", first + later)
    assert twice.floor_ms >= once.floor_ms
    assert twice.quarantine_until_ms >= once.quarantine_until_ms


# --- the history of a pool ------------------------------------------------------------------------------------------


def test_history_begins_once() -> None:
    begun = keep_history(POOL, NOW)
    assert (begun.history_ms, begun.history_from_ms) == (HISTORY_MS, NOW)
    assert keep_history(begun, NOW + 5) == begun
    assert replace(begun, history_from_ms=0) == POOL


def test_longer_history_begins_where_the_shorter_one_did() -> None:
    short = keep_history(POOL, NOW, 1000)
    assert (short.history_ms, short.history_from_ms) == (1000, NOW)
    assert keep_history(short, NOW + 1000, 2000).history_from_ms == NOW
    assert keep_history(short, NOW + 1001, 2000).history_from_ms == NOW + 1
    assert keep_history(short, NOW + 5000, 500) == replace(short, history_ms=500)


def test_history_that_is_switched_off_begins_anew() -> None:
    off = keep_history(keep_history(POOL, NOW), NOW, 0)
    assert (off.history_ms, off.history_from_ms) == (0, 0)
    assert keep_history(off, NOW + 5) == off
    assert keep_history(off, NOW + 7, 1000).history_from_ms == NOW + 7


def test_history_reaches_back_to_the_latest_of_its_limits() -> None:
    pool = keep_history(POOL, NOW, 1000)
    assert history_begin(POOL, NOW) is None
    assert history_begin(keep_history(POOL, NOW, 0), NOW) is None
    assert history_begin(pool, NOW) == NOW
    assert history_begin(pool, NOW + 1001) == NOW + 1
    # A server that took over may have forgotten holders.
    assert history_begin(replace(pool, quarantine_until_ms=NOW + 9), NOW) == NOW + 9
    assert history_begin(pool, 0) == NOW


def test_past_grant_is_the_record_that_a_grant_replaces() -> None:
    record = replace(node(NOW), since_ms=NOW - 7)
    expected = GrantRecord("p", 0, NOW - 50_000, NOW, NOW - 7, "me")
    assert past_grant(POOL, record) == past_grant(POOL, replace(record, token=None)) == expected
    assert past_grant(POOL, replace(record, holder=None)) == replace(expected, holder="")


@pytest.mark.parametrize("replaced", [None, node(NOW - 50_000), node(NOW - 50_001)])
def test_window_that_nobody_used_is_no_past_grant(replaced: NodeRecord | None) -> None:
    assert past_grant(POOL, replaced) is None
    assert past_grant(replace(POOL, history_ms=0), node(NOW)) is None
    assert past_grant(POOL, node(NOW - 49_999)) is not None


def test_grants_are_kept_for_the_length_of_the_history() -> None:
    assert kept_from(replace(POOL, history_ms=1000), NOW) == NOW - 1000
    assert kept_from(POOL, 5) == 0


# --- leases ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "unused", "chosen"),
    [
        (None, 3, 3),
        (COOLDOWN_MS, 3, 0),
        (COOLDOWN_MS - 1, 3, 3),
        (COOLDOWN_MS - 1, None, 0),
        (0, None, 0),
    ],
)
def test_cooled_down_node_comes_before_unused_and_just_freed_ones(
    ended: int | None, unused: int | None, chosen: int
) -> None:
    oldest = None if ended is None else node(NOW - ended)
    assert choose(POOL, range(8), oldest, unused, NOW, never_used=False) == chosen


def test_pool_grants_at_most_its_own_span() -> None:
    assert create_pool("p", "test", SPAN_MS + 1, "here").span_ms == SPAN_MS + 1
    assert create_pool("p", "test", MIN_SPAN_MS, "here").span_ms == SPAN_MS
    with pytest.raises(ConfigError) as caught:
        grant(POOL, None, 0, token="t", holder="h", now_ms=NOW, span_ms=POOL.span_ms + 1)
    assert caught.value.code == "config.span"


@pytest.mark.parametrize(
    ("number", "longest", "span"),
    [
        (0, 10 * SPAN, SPAN),
        (100, 10 * SPAN, SPAN),
        (101, 10 * SPAN, 30_300),
        (500, 10 * SPAN, 5 * SPAN),
        (2**44 - 1, 10 * SPAN, 10 * SPAN),
        (2**44 - 1, SPAN, SPAN),
    ],
)
def test_number_of_a_large_pool_has_a_longer_span(number: int, longest: int, span: int) -> None:
    pool = replace(POOL, span_ms=longest)
    record = grant(pool, None, number, token="new", holder="you", now_ms=NOW, span_ms=SPAN)
    assert (record.span_ms, record.until_ms) == (span, NOW + span)


@pytest.mark.parametrize(("size", "writes"), [(100, 10), (300, 21), (1_000, 33), (10_000, 123)])
def test_writes_of_a_fleet_grow_slower_than_the_fleet(size: int, writes: int) -> None:
    pool = replace(POOL, span_ms=10 * SPAN)
    records = (grant(pool, None, each, token="", holder="", now_ms=NOW, span_ms=SPAN) for each in range(size))
    assert round(sum(3_000 / record.span_ms for record in records)) == writes


def test_grant_counts_server_changes_and_no_copy() -> None:
    record = granted(pool=replace(POOL, changes=2))
    assert (record.changes, record.cloned_ms) == (2, 0)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (
            lambda: check_quarantine(replace(POOL, quarantine_until_ms=NOW + 7), NOW, never_used=False),
            ("pool 'p' is in quarantine for 1 s, as it is new on this server, or the server changed or lost data, and "
            "its node numbers may still be in use: if no ID was ever minted with its node numbers, say so: mintage "
            "pools create p --never-used; else wait"),
        ),
        (
            lambda: check_quarantine(replace(POOL, history_lost=True), NOW, never_used=True),
            ("pool 'p' cannot know which node numbers were never used, as it is new on this server, got numbers "
            "of another store, or the server changed or lost data: if no ID was ever minted with its node numbers, "
            "say so: mintage pools create p --never-used; else lease numbers that no generator ever had from another "
            "pool, by nodes=range(...)"),
        ),
        (
            lambda: declare_unused(replace(POOL, history_lost=True), has_granted=True),
            ("pool 'p' has granted node numbers, so they were used: wait for the end of its quarantine, and see: "
            "mintage leases list p"),
        ),
        (
            lambda: choose(POOL, range(2, 8), None, None, NOW, never_used=True),
            "pool 'p' has no node number in 2..7 that was never used: create a pool with another name",
        ),
        (
            lambda: choose(POOL, range(2, 8), node(NOW + 7), None, NOW, never_used=False),
            ("all 6 node numbers of pool 'p' (2..7) are leased; the first comes free in 7 ms: stop a holder, or use a "
            "layout with more (see: mintage leases list p)"),
        ),
        (
            lambda: choose(POOL, range(3, 4), node(NOW + 7), None, NOW, never_used=False),
            ("node number 3 of pool 'p' is leased; it comes free in 7 ms at the earliest: wait, raise max_wait_ms, or "
            "stop the holder (see: mintage leases list p)"),
        ),
        (
            lambda: grant(POOL, None, 0, token="t", holder="h", now_ms=NOW, span_ms=SPAN + 1),
            ("span_ms is 30001; pool 'p' allows at most 30000: ask for less, or create a pool by: mintage pools create "
            "NAME --span-ms 30001"),
        ),
    ],
    ids=["quarantine", "lost history", "used", "never used", "all leased", "chosen", "longer span"],
)  # fmt: skip
def test_refused_lease_error_has_reason_and_remedy(rule: Callable[[], object], says: str) -> None:
    with pytest.raises(MintError) as caught:
        rule()
    assert str(caught.value) == says


def test_node_number_in_a_window_is_not_chosen() -> None:
    with pytest.raises(LeaseError) as caught:
        choose(POOL, range(1), node(NOW + 1), None, NOW, never_used=False)
    assert (caught.value.code, caught.value.retry_after_ms) == ("lease.none_free", 1)


def test_only_unused_node_numbers_are_never_used() -> None:
    assert choose(POOL, range(8), node(NOW - 10**9), 5, NOW, never_used=True) == 5
    assert code_of(lambda: choose(POOL, range(8), node(0), None, NOW, never_used=True)) == "lease.none_free"


def test_first_window_begins_at_the_floor_of_its_pool() -> None:
    assert (granted().floor_ms, granted().until_ms) == (0, NOW + SPAN)
    late = granted(pool=replace(POOL, floor_ms=NOW + 500))
    assert (late.floor_ms, late.until_ms) == (NOW + 500, NOW + 500 + SPAN)


@given(until=moments, floor=moments, now=moments, span=spans)
def test_window_begins_at_the_last_end_and_lasts_a_span(until: int, floor: int, now: int, span: int) -> None:
    pool = replace(POOL, floor_ms=floor, span_ms=100_000)
    record = grant(pool, node(until), 0, token="new", holder="you", now_ms=now, span_ms=span)
    assert record.floor_ms == max(until, floor)
    assert record.until_ms == max(record.floor_ms, now) + span
    assert (record.token, record.holder, record.identity) == ("new", "you", "here")


@given(until=moments, now=moments, wanted=st.integers(-(10**13), 10**13))
def test_only_release_moves_an_end_back_and_never_below_the_floor(until: int, now: int, wanted: int) -> None:
    assume(until >= NOW - 50_000)
    record = node(until)
    lease = record.as_lease()
    extended = extend(record, lease, identity="here", now_ms=now, store_now_ms=now)
    assert extended.until_ms == max(until, now + SPAN)
    assert revoke(record, "p", 0).until_ms == until
    released = release(record, lease, used_until_ms=wanted)
    assert record.floor_ms <= released.until_ms <= until
    assert released.until_ms in {record.floor_ms, until, wanted}
    assert granted(released).floor_ms == released.until_ms


@pytest.mark.parametrize(
    "record",
    [None, node(NOW + 1), replace(node(NOW + 1), token=None), replace(node(NOW + 1), token="")],
    ids=["never granted", "granted to another", "released", "empty"],
)
def test_only_the_token_of_the_last_grant_counts(record: NodeRecord | None) -> None:
    for token in ("another", "Token", "token "):
        lease = Lease("p", 0, NOW, NOW + 1, token)
        wrong = lambda lease=lease: extend(record, lease, identity="here", now_ms=NOW, store_now_ms=NOW)  # noqa: E731
        assert code_of(wrong) == "lease.lost"
        assert code_of(lambda lease=lease: release(record, lease, used_until_ms=NOW)) == "lease.lost"  # type: ignore[misc]


def test_lease_without_a_token_proves_nothing() -> None:
    record = revoke(node(NOW + 1), "p", 0)
    lease = record.as_lease()
    assert code_of(lambda: extend(record, lease, identity="here", now_ms=NOW, store_now_ms=NOW)) == "lease.lost"
    assert code_of(lambda: release(record, lease, used_until_ms=NOW)) == "lease.lost"


@pytest.mark.parametrize("record", [None, replace(node(NOW), holder=None)], ids=["none", "nobody's"])
def test_error_for_an_unheld_lost_lease_gives_only_the_reason(record: NodeRecord | None) -> None:
    says = "the lease of node 0 in pool 'p' is lost: it was granted to another, released or revoked"
    lease = Lease("p", 0, 0, NOW, "old")
    verbs: list[Callable[[], object]] = [
        lambda: release(record, lease, used_until_ms=0),
        lambda: extend(record, lease, identity="here", now_ms=NOW, store_now_ms=NOW),
    ]
    for verb in verbs:
        with pytest.raises(LeaseError) as caught:
            verb()
        assert str(caught.value) == says


def test_error_for_a_lost_lease_names_its_holder() -> None:
    with pytest.raises(LeaseError, match=r"node 0 in pool 'p'.*held by me"):
        release(node(NOW), Lease("p", 0, 0, NOW, "old"), used_until_ms=0)


@pytest.mark.parametrize(("left", "lost"), [(0, True), (1, False)])
def test_new_server_continues_a_lease_only_in_an_unbroken_window(left: int, lost: bool) -> None:
    record = node(NOW + CLOCK_LIMIT_MS + CLOCK_MARGIN_MS + left)

    def on_another() -> NodeRecord:
        return extend(record, record.as_lease(), identity="there", now_ms=NOW, store_now_ms=NOW)

    if lost:
        assert code_of(on_another) == "lease.lost"
    else:
        assert (on_another().until_ms, on_another().identity) == (NOW + SPAN, "there")


def test_extension_invalidates_older_tokens() -> None:
    first = node(NOW + 1)
    extended = extend(first, first.as_lease(), identity="here", now_ms=NOW, store_now_ms=NOW)
    assert extended.token == "next"

    def wrong(lease: Lease) -> NodeRecord:
        return extend(extended, lease, next_token="n3", identity="here", now_ms=NOW, store_now_ms=NOW)

    with pytest.raises(LeaseError, match="another copy of its holder") as caught:
        wrong(first.as_lease())
    assert caught.value.code == "lease.lost"
    assert is_of_a_clone(extended, first.as_lease(), "here")
    # On whichever server.
    moved = replace(extended, changes=2)
    with pytest.raises(LeaseError, match="goes on with it, as the process was cloned, or restored from a snapshot"):
        extend(moved, first.as_lease(), next_token="n3", identity="here", changes=2, now_ms=NOW, store_now_ms=NOW)
    # Nor is the previous token that of the holder.
    assert code_of(lambda: wrong(Lease("p", 0, first.floor_ms, NOW, "made up", "next"))) == "lease.lost"


def test_repeated_next_token_returns_the_same_record() -> None:
    first = node(NOW + 1)
    extended = extend(first, first.as_lease(), identity="here", now_ms=NOW, store_now_ms=NOW)
    for identity in ("here", "there"):
        again = extend(extended, first.as_lease(), identity=identity, now_ms=NOW + 500, store_now_ms=NOW + 500)
        assert again is extended
    over = replace(extended, token=None)
    assert (
        code_of(lambda: extend(over, first.as_lease(), identity="here", now_ms=NOW, store_now_ms=NOW)) == "lease.lost"
    )


@pytest.mark.parametrize("winner", [0, 1])
def test_server_that_forgot_accepts_one_copy_by_the_previous_token(winner: int) -> None:
    first = node(NOW + 1)
    held = extend(first, first.as_lease(), identity="here", now_ms=NOW, store_now_ms=NOW).as_lease("token")
    copies = [held, replace(first.as_lease(), until_ms=held.until_ms)]

    def there(record: NodeRecord, at: int, token: str) -> NodeRecord:
        return extend(record, copies[at], next_token=token, identity="there", now_ms=NOW, store_now_ms=NOW)

    moved = there(first, winner, "n1")
    assert (moved.token, moved.identity) == ("n1", "there")
    assert code_of(lambda: there(moved, 1 - winner, "n2")) == "lease.lost"


def test_previous_token_counts_only_after_a_failover_in_its_window() -> None:
    first = node(NOW + 1)
    lease = Lease("p", 0, first.floor_ms, NOW + SPAN, "forgotten", "token")
    late = NOW + SPAN - CLOCK_LIMIT_MS - CLOCK_MARGIN_MS
    refused = [("here", NOW), ("there", late)]
    for identity, now in refused:
        with pytest.raises(LeaseError):
            extend(first, lease, identity=identity, now_ms=now, store_now_ms=now)
    assert extend(first, lease, identity="there", now_ms=late - 1, store_now_ms=late - 1).token == "next"
    # A missing previous token matches no token.
    none = replace(lease, previous="")
    for record in (first, replace(first, token="")):
        with pytest.raises(LeaseError):
            extend(record, none, identity="there", now_ms=NOW, store_now_ms=NOW)


@pytest.mark.parametrize(
    ("changes", "is_clone"),
    [({}, False), ({"token": "t2"}, True), ({"token": None}, False), ({"token": "t2", "floor_ms": 1}, False),
     ({"token": "t2", "identity": "there"}, False)],
)  # fmt: skip
def test_copy_of_the_holder_is_detected_by_its_older_token(changes: dict[str, Any], is_clone: bool) -> None:
    record = node(NOW + 1)
    assert is_of_a_clone(replace(record, **changes), record.as_lease(), "here") is is_clone
    assert not is_of_a_clone(None, record.as_lease(), "here")


@pytest.mark.parametrize(("claimed", "believed"), [(32_000, 32_000), (36_000, 36_000), (10**15, 36_000)])
def test_holder_may_prove_a_forgotten_window_up_to_a_limit(claimed: int, believed: int) -> None:
    lease = replace(node(NOW).as_lease(), until_ms=NOW + claimed)
    assert extend(node(NOW), lease, identity="there", now_ms=NOW, store_now_ms=NOW).until_ms == NOW + believed


# --- segments -------------------------------------------------------------------------------------------------------

strides = st.one_of(st.integers(1, 5), st.integers(1, MAX_STRIDE))
values = st.one_of(st.integers(0, 100), st.integers(MAX_INTEGER - 2**34, MAX_INTEGER), st.integers(0, MAX_INTEGER))
counts = st.one_of(st.integers(1, 20), st.integers(1, MAX_COUNT))


@st.composite
def namespaces(draw: st.DrawFn) -> NamespaceRecord:
    stride = draw(strides)
    start, maximum = sorted([draw(values), draw(values)])
    try:
        return create_namespace(
            "n", "here", start=start, maximum=maximum, stride=stride, offset=draw(st.integers(0, stride - 1))
        )
    except FieldError:
        # Between the two is none of its integers.
        return create_namespace("n", "here", start=start, stride=stride, offset=start % stride)


def test_namespace_begins_at_1_with_nothing_reserved() -> None:
    assert create_namespace("n", "here") == NamespaceRecord("n", 0, MAX_INTEGER, 1, 0, "here", start=1)


def test_namespace_may_have_one_integer() -> None:
    namespace, segment = reserve(create_namespace("n", "here", start=0, maximum=0), 5)
    assert segment == Segment("n", 0, 0)
    with pytest.raises(GenerationError) as caught:
        reserve(namespace, 1)
    assert (
        str(caught.value) == "namespace 'n' is used up: its last integer is 0, its maximum 0; create another namespace"
    )


@given(start=values, stride=strides, offset=st.integers(0, MAX_STRIDE - 1))
def test_namespace_begins_with_its_first_integer_from_its_start(start: int, stride: int, offset: int) -> None:
    offset %= stride
    first = next(value for value in (start + (offset - start) % stride,) if value % stride == offset)
    assume(first <= MAX_INTEGER)
    namespace = create_namespace("n", "here", start=start, stride=stride, offset=offset)
    _, segment = reserve(namespace, 1)
    assert start <= segment.first == first < start + stride


@given(namespace=namespaces(), wanted=st.lists(counts, min_size=1, max_size=5))
def test_segments_follow_each_other_within_the_maximum(namespace: NamespaceRecord, wanted: list[int]) -> None:
    first = namespace.high_water + namespace.stride
    for count in wanted:
        before = namespace
        if first > namespace.maximum:
            assert code_of(lambda: reserve(before, count)) == "namespace.exhausted"  # noqa: B023
            return
        namespace, segment = reserve(namespace, count)
        assert segment.first == first
        assert segment.last <= namespace.maximum
        assert len(segment) == count or segment.last + segment.stride > namespace.maximum
        assert len(segment) == len(segment.as_range())
        assert (segment.as_range()[0], segment.as_range()[-1]) == (segment.first, segment.last)
        assert namespace.largest >= count
        first = segment.last + segment.stride


@given(namespace=namespaces(), value=values)
def test_floor_moves_forward_to_the_next_integer_and_never_back(namespace: NamespaceRecord, value: int) -> None:
    raised = raise_floor(namespace, value)
    assert raised.high_water >= namespace.high_water
    assert (raised.high_water - namespace.high_water) % namespace.stride == 0
    assert raised.high_water <= max(namespace.maximum, namespace.high_water)
    following = raised.high_water + raised.stride
    assert following >= value or following > raised.maximum
    if raised.high_water != namespace.high_water and following <= raised.maximum:
        assert following - raised.stride < value
    assert raised.floor == value
    assert raise_floor(raised, value - 1) == raised


@given(namespace=namespaces(), count=counts, at=st.integers(0, MAX_COUNT), value=values)
def test_integers_below_a_floor_are_neither_returned_nor_reserved(
    namespace: NamespaceRecord, count: int, at: int, value: int
) -> None:
    reserved, segment = reserve(namespace, count)
    first_unused = segment.as_range()[at % len(segment)]
    raised = raise_floor(reserved, value)
    back = give_back(raised, segment, first_unused)
    assert (back is None) == (value > segment.last)
    try:
        _, following = reserve(back or raised, 1)
    except GenerationError:
        return
    assert following.first >= value
    assert following.floor == value
    if back is not None:
        assert following.first - namespace.stride < max(value, first_unused)


def test_floor_survives_a_failover_that_forgets() -> None:
    namespace = replace(create_namespace("n", "here"), high_water=3, floor=50)
    assert reserve(namespace, 2)[1] == Segment("n", 50, 51)


@given(namespace=namespaces(), count=counts, at=st.integers(0, MAX_COUNT), other=st.integers(0, 3))
def test_only_the_tail_of_the_last_segment_is_taken_back(
    namespace: NamespaceRecord, count: int, at: int, other: int
) -> None:
    reserved, segment = reserve(namespace, count)
    first_unused = segment.as_range()[at % len(segment)]
    if other:
        try:
            moved, _ = reserve(reserved, other)
        except GenerationError:
            return
        assert give_back(moved, segment, first_unused) is None
    else:
        returned = give_back(reserved, segment, first_unused)
        assert returned is not None
        assert reserve(returned, 1)[1].first == first_unused
        assert give_back(returned, segment, first_unused) is None


@pytest.mark.parametrize("first_unused", [0, 4, 11, MAX_INTEGER])
def test_integers_outside_the_segment_are_not_taken_back(first_unused: int) -> None:
    namespace = NamespaceRecord("n", 10, 100, 1, 5, "here", serial=3)
    assert give_back(namespace, Segment("n", 5, 10, serial=3), 7) is not None
    assert give_back(namespace, Segment("n", 5, 10, serial=3), first_unused) is None


@pytest.mark.parametrize("serial", [0, 1, 3, 4, 7, 2**53 - 1])
def test_segment_with_only_the_same_end_is_not_taken_back(serial: int) -> None:
    namespace = NamespaceRecord("n", 10, 100, 1, 5, "here", serial=6, serial_before=5)
    assert give_back(namespace, Segment("n", 5, 10, serial=serial), 7) is None
    new = NamespaceRecord("n", 10, 100, 1, 5, "here")
    assert give_back(new, Segment("n", 5, 10, serial=serial), 7) is None


def test_tail_that_ends_below_the_floor_is_not_taken_back() -> None:
    namespace, segment = reserve(create_namespace("n", "here"), 10)
    assert give_back(raise_floor(namespace, 11), segment, 4) is None
    back = give_back(raise_floor(namespace, 10), segment, 4)
    assert back is not None
    assert back.high_water == 9


@given(namespace=namespaces(), turns=st.lists(st.tuples(counts, st.booleans(), st.booleans()), min_size=2, max_size=5))
def test_serials_are_unique(namespace: NamespaceRecord, turns: list[tuple[int, bool, bool]]) -> None:
    serials = [namespace.serial]
    for turn, (count, is_given_back, is_elsewhere) in enumerate(turns):
        try:
            namespace, segment = reserve(namespace, count)
        except GenerationError:
            return
        assert segment.serial == namespace.serial
        assert namespace.serial == serials[-1] + 1
        serials.append(namespace.serial)
        if is_given_back:
            back = give_back(namespace, segment, segment.first)
            assert back is not None
            assert back.serial == namespace.serial + 1
            namespace = back
            serials.append(namespace.serial)
        if is_elsewhere:
            namespace = note_server_of_namespace(namespace, f"server {turn}")
            serials.append(namespace.serial)
    assert len(serials) == len(set(serials))


@pytest.mark.parametrize("is_last", [True, False])
def test_returned_segment_cannot_be_returned_again(is_last: bool) -> None:
    namespace = create_namespace("n", "here", maximum=20)
    namespace, segment = reserve(namespace, 20 if is_last else 10)
    if not is_last:
        namespace, following = reserve(namespace, 10)
        back = give_back(namespace, following, following.first)
        assert back is not None
        namespace = back
    back = give_back(namespace, segment, 4)
    assert back is not None
    # Whatever the source of the high-water mark.
    assert give_back(replace(back, high_water=segment.last), segment, 4) is None


def test_nothing_from_before_a_failover_is_taken_back() -> None:
    namespace, segment = reserve(create_namespace("n", "here", maximum=10), 10)
    back = give_back(namespace, segment, 4)
    assert back is not None
    forgotten, theirs = reserve(back, 7)
    assert (theirs.last, forgotten.high_water) == (10, 10)
    # The other server has received only the first reservation.
    moved = note_server_of_namespace(namespace, "there")
    assert give_back(moved, segment, 4) is None
    assert give_back(moved, theirs, 4) is None


@pytest.mark.parametrize(
    "verb",
    [
        lambda namespace: reserve(namespace, 1),
        lambda namespace: give_back(namespace, Segment("n", 1, 10, serial=1), 4),
        lambda namespace: raise_floor(namespace, 50),
    ],
    ids=["reserve", "give_back", "raise_floor"],
)
def test_retired_namespace_does_not_change(verb: Callable[[NamespaceRecord], object]) -> None:
    namespace, _ = reserve(create_namespace("n", "here"), 10)
    with pytest.raises(GenerationError, match="namespace 'n' was retired for good") as caught:
        verb(retire(namespace))
    assert caught.value.code == "namespace.retired"
    assert retire(retire(namespace)) == replace(namespace, retired=True)
    assert note_server_of_namespace(retire(namespace), "there").retired


FIRST_SERIAL_THERE = int(sha1(b"there").hexdigest()[:13], 16)


def test_servers_that_take_over_from_one_replica_share_no_serial() -> None:
    namespace, _ = reserve(create_namespace("n", "here"), 10)
    first, other = (reserve(note_server_of_namespace(namespace, name), 10)[1] for name in ("there", "elsewhere"))
    assert first == other
    assert abs(first.serial - other.serial) > 2**32


@pytest.mark.parametrize(("largest", "skipped"), [(0, GAP), (1, GAP), (2, 2 * GAP), (7, 7 * GAP)])
def test_new_server_skips_more_than_can_be_forgotten(largest: int, skipped: int) -> None:
    namespace = NamespaceRecord("n", 100, MAX_INTEGER, 2, largest, "here", serial=5, serial_before=4)
    assert note_server_of_namespace(namespace, "here") is namespace
    moved = note_server_of_namespace(namespace, "there")
    assert (moved.high_water, moved.identity) == (100 + skipped * 2, "there")
    assert (moved.serial, moved.serial_before) == (FIRST_SERIAL_THERE, 0)


@given(namespace=namespaces(), wanted=st.lists(counts, max_size=3))
def test_skip_stays_on_the_integers_of_the_namespace(namespace: NamespaceRecord, wanted: list[int]) -> None:
    origin = namespace.high_water
    for count in wanted:
        try:
            namespace, _ = reserve(namespace, count)
        except GenerationError:
            break
    moved = note_server_of_namespace(namespace, "there")
    assert namespace.high_water <= moved.high_water <= namespace.maximum
    assert (moved.high_water - origin) % namespace.stride == 0


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"start": -1}, "-1"),
        ({"start": MAX_INTEGER + 1}, "start"),
        ({"maximum": -1}, "maximum -1"),
        ({"maximum": MAX_INTEGER + 1}, "maximum"),
        ({"start": 5, "maximum": 4}, "maximum 4"),
        ({"start": 6, "maximum": 9, "stride": 5}, "maximum 9"),
        ({"stride": 0}, "stride 0"),
        ({"stride": MAX_STRIDE + 1}, "stride"),
        ({"stride": 3, "offset": 3}, "offset 3"),
        ({"offset": -1}, "offset -1"),
    ],
    ids=str,
)
def test_namespace_without_integers_is_refused(options: dict[str, int], what: str) -> None:
    with pytest.raises(FieldError, match=what) as caught:
        create_namespace("n", "here", **options)
    assert caught.value.code == "field.range"
