"""Tests of what the console says before an action: the effects, and which later states make it stale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mintage.errors import ConfigError, FieldError, GenerationError, LeaseError, MintError
from mintage.rules import MAX_INTEGER, NamespaceRecord, NodeRecord, PoolRecord
from mintage.server.console import review

ORDERS = NamespaceRecord("orders", 1_123, 9_999, 1, 1_000, "server 1", serial=7)
HELD = NodeRecord("sno", 17, 1_000_000, 1_030_000, 30_000, "server 1", "token", "web-1:4242:1700000000:1:0.1.0")
POOL = PoolRecord("sno", "sno/1", "server 1", 30_000)


# --- floors -------------------------------------------------------------------------------------------------------


def test_raised_floor_names_the_integers_that_are_skipped() -> None:
    effects = review.floor("orders", ORDERS, 5_000).effects
    assert "It skips 3,876 integers: those from 1,124 to 4,999." in effects
    assert "The last integer that is reserved is 1,123." in effects


def test_raised_floor_counts_by_the_stride() -> None:
    odd = replace(ORDERS, stride=2)
    assert "It skips 1 integer: those from 1,125 to 1,125." in review.floor("orders", odd, 1_127).effects


def test_floor_below_the_last_integer_skips_nothing() -> None:
    assert "It skips no integer: the namespace is past this floor already." in review.floor("orders", ORDERS, 5).effects


def test_floor_above_the_maximum_leaves_nothing() -> None:
    effects = review.floor("orders", ORDERS, 10_000).effects
    assert "No integer is left then: the maximum of the namespace is 9,999." in effects


def test_floor_of_a_missing_namespace_creates_it() -> None:
    assert review.floor("new", None, 5).effects[0] == "There is no namespace new: this creates it."


def test_use_of_a_namespace_does_not_make_its_review_stale() -> None:
    later = replace(ORDERS, high_water=1_500, serial=8)
    assert review.floor("orders", ORDERS, 5_000).basis == review.floor("orders", later, 5_000).basis


@pytest.mark.parametrize(
    "later",
    [None, replace(ORDERS, floor=2_000), replace(ORDERS, high_water=6_000), replace(ORDERS, maximum=MAX_INTEGER)],
)
def test_other_state_of_a_namespace_makes_its_review_stale(later: NamespaceRecord | None) -> None:
    assert review.floor("orders", ORDERS, 5_000).basis != review.floor("orders", later, 5_000).basis


def test_floor_that_was_raised_makes_the_review_stale() -> None:
    later = replace(ORDERS, floor=5_000, high_water=4_999)
    assert review.floor("orders", ORDERS, 5_000).basis != review.floor("orders", later, 5_000).basis


@pytest.mark.parametrize("value", [-1, MAX_INTEGER + 1])
def test_floor_outside_the_range_is_refused(value: int) -> None:
    with pytest.raises(FieldError):
        review.floor("orders", ORDERS, value)


def test_retired_namespace_has_no_actions() -> None:
    retired = replace(ORDERS, retired=True)
    with pytest.raises(GenerationError, match="retired for good"):
        review.floor("orders", retired, 5)
    with pytest.raises(GenerationError, match="retired for good"):
        review.retire("orders", retired)


# --- retirement ---------------------------------------------------------------------------------------------------


def test_retirement_names_the_integers_that_nobody_gets() -> None:
    effects = review.retire("orders", ORDERS).effects
    assert effects[0].endswith("Nothing undoes this.")
    assert "Nobody will get the 8,876 integers that are left." in effects


def test_retirement_of_a_missing_namespace_is_said() -> None:
    assert "this creates it as a retired one" in review.retire("new", None).effects[1]


# --- new namespaces and pools -------------------------------------------------------------------------------------


def test_new_namespace_says_its_integers() -> None:
    found = review.namespace("odd", None, start=10, maximum=99, stride=2, offset=1)
    assert found.effects[0] == "odd hands out 45 integers, from 11 to at most 99, each 2 above the one before."
    assert found.typed == "odd"


def test_namespace_that_exists_is_not_created() -> None:
    with pytest.raises(ConfigError) as error:
        review.namespace("orders", ORDERS, start=1, maximum=9, stride=1, offset=0)
    assert error.value.code == "config.namespace"


def test_new_pool_says_its_numbers_and_its_end() -> None:
    found = review.pool("tweets", None, layout="twitter", span_ms=60_000, never_used=False, now_ms=0)
    assert "1,024 node numbers, and IDs until 2080-" in found.effects[0]
    assert "60 s" in found.effects[1]
    assert found.typed == "tweets"


def test_unused_pool_must_be_typed_out() -> None:
    quarantined = replace(POOL, quarantine_until_ms=5_000, history_lost=True)
    found = review.pool("sno", quarantined, layout="sno", span_ms=30_000, never_used=True, now_ms=1_000)
    assert found.typed == "sno was never used"
    assert "This ends its quarantine." in found.effects
    assert found.effects[-1].endswith("If this is false, IDs repeat.")


def test_narrower_share_says_what_becomes_of_other_holders() -> None:
    found = review.pool(
        "sno", POOL, layout="sno", span_ms=30_000, never_used=False, now_ms=1_000, share=range(100, 2_000)
    )
    assert found.typed == "sno"
    assert found.effects[-2].startswith("A holder of a number outside its share mints to the end of its window")
    assert found.effects[-1] == "It grants only the numbers 100 to 1,999: its share."
    other = replace(POOL, first_node=5)
    again = review.pool(
        "sno", other, layout="sno", span_ms=30_000, never_used=False, now_ms=1_000, share=range(100, 2_000)
    )
    assert again.basis != found.basis
    with pytest.raises(ConfigError) as error:
        review.pool("sno", other, layout="sno", span_ms=30_000, never_used=False, now_ms=1_000, share=range(100))
    assert error.value.code == "config.node"


def test_layout_that_is_not_known_leads_to_those_that_are() -> None:
    terms: dict[str, Any] = {"span_ms": 30_000, "never_used": False, "now_ms": 0}
    with pytest.raises(ConfigError, match="'nanoid' is not a layout; use sno, ") as error:
        review.pool("new", None, layout="nanoid", **terms)
    named = str(error.value).partition("use ")[2].partition(", sno/N")[0].split(", ")
    assert {"uuid.v7", "default", "ulid"} < set(named)
    for name in named:
        assert review.pool("new", None, layout=name, **terms)


def test_pool_of_one_node_number_has_one() -> None:
    layout = "snowflake time:41 sequence:22 @1735689600000 1ms"
    found = review.pool("alone", None, layout=layout, span_ms=30_000, never_used=False, now_ms=0)
    assert "it has 1 node number, and IDs until 2094-" in found.effects[0]


@pytest.mark.parametrize(
    ("name", "layout", "code"),
    [
        ("sno", "sno", "config.pool"),
        ("sno", "twitter", "config.pool"),
        ("new", "no such", "config.layout"),
        ("new", "snowflake time:90 node:10 sequence:12 @0 1ms", "config.layout"),
    ],
)
def test_pool_that_cannot_be_created_is_refused(name: str, layout: str, code: str) -> None:
    record = POOL if name == "sno" else None
    with pytest.raises(MintError) as error:
        review.pool(name, record, layout=layout, span_ms=30_000, never_used=False, now_ms=0)
    assert error.value.code == code


# --- leases -------------------------------------------------------------------------------------------------------


def test_revocation_names_the_holder_and_the_end_of_its_window() -> None:
    found = review.revoke(HELD, 1_007_001)
    assert found.effects[0].startswith("The holder is process 4242 on web-1, started 2023-11-14 22:13:20 UTC")
    assert "in 23 s (1970-01-01 00:17:10 UTC)" in found.effects[1]
    assert found.typed == "sno/17"


def test_extension_does_not_make_a_revocation_stale() -> None:
    extended = replace(HELD, until_ms=1_040_000, token="next")
    assert review.revoke(HELD, 1_007_000).basis == review.revoke(extended, 1_017_000).basis


def test_next_holder_makes_a_revocation_stale() -> None:
    granted = replace(HELD, floor_ms=1_030_000, until_ms=1_060_000, holder="web-2:1")
    assert review.revoke(HELD, 1_007_000).basis != review.revoke(granted, 1_035_000).basis


@pytest.mark.parametrize("record", [replace(HELD, token=None), replace(HELD, until_ms=1_007_000)])
def test_number_without_a_holder_is_not_revoked(record: NodeRecord) -> None:
    with pytest.raises(LeaseError, match="nothing to revoke"):
        review.revoke(record, 1_007_000)
