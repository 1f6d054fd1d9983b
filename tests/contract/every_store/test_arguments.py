"""Tests of every store: invalid arguments of verbs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mintage.errors import MintError
from mintage.rules import MIN_SPAN_MS, Lease, Segment
from tests.contract.every_store.stores import LAYOUT, acquire, extend, new_pool
from tests.helpers.outcomes import refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mintage.store import Store

LEASE = Lease("p", 0, 0, 1, "t")
SEGMENT = Segment("n", 1, 10)
TERMS: dict[str, Any] = {"nodes": range(1), "layout": LAYOUT, "holder": "me", "now_ms": 1, "span_ms": MIN_SPAN_MS}
TERMS["never_used"] = False
GOOD: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "acquire": (("p",), TERMS),
    "extend": ((LEASE,), {"now_ms": 1, "next_token": "t2"}),
    "release": ((LEASE,), {"used_until_ms": 1}),
    "revoke": (("p", 0), {}),
    "create_pool": (
        ("p",),
        {"layout": LAYOUT, "span_ms": MIN_SPAN_MS, "history_ms": 1, "nodes": range(1), "wider_from_ms": 1},
    ),
    "reserve": (("n", 1), {"holder": "me"}),
    "give_back": ((SEGMENT, 4), {}),
    "create_namespace": (("n",), {"start": 1, "maximum": 9, "stride": 1, "offset": 0}),
    "raise_floor": (("n", 1), {}),
    "retire": (("n",), {}),
    "list_pools": (("p", 1), {}),
    "list_leases": (("p", 1, 1), {}),
    "list_grants": (("p", 1, 1, 1), {}),
    "get_pool": (("p",), {}),
    "get_namespace": (("n",), {}),
    "list_runs": (("n", 1, 1), {}),
    "list_namespaces": (("n", 1), {}),
}
OPTIONAL = {
    ("create_namespace", "start"),
    ("reserve", "holder"),
    *(("create_pool", name) for name in ("history_ms", "nodes", "wider_from_ms")),
}
"""Arguments that may be None."""
BAD_WHOLE: tuple[Any, ...] = (True, 1.0, 2.5, float("nan"), float("inf"), "77", b"1", None, [1], 1j)
BAD_TEXT: tuple[Any, ...] = (None, 7, True, b"x", ["x"], "a\0b", "x" * 10_000, "\udcff")


def wrong_arguments() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yield calls of every verb with each argument wrong in each way and the others right."""

    def wrong(value: Any) -> tuple[Any, ...]:
        match value:
            case bool():
                return (1, 0, None, "yes", 1.0)
            case int():
                return BAD_WHOLE
            case str():
                return BAD_TEXT
            case range():
                return (None, 7, [0], "0..1", range(0, 4, 2))
            case Lease() | Segment():
                fields = {
                    name: BAD_WHOLE if isinstance(getattr(value, name), int) else (None, 7, b"x")
                    for name in type(value).__dataclass_fields__
                    if name != "floor"
                }
                return (
                    None,
                    7,
                    ("p", 0),
                    *(replace(value, **{name: bad}) for name, all_bad in fields.items() for bad in all_bad),
                )
        raise AssertionError(value)

    for verb, (positional, named) in GOOD.items():
        for at, value in enumerate(positional):
            for bad in wrong(value):
                yield verb, (*positional[:at], bad, *positional[at + 1 :]), named
        for name, value in named.items():
            for bad in wrong(value):
                if bad is not None or (verb, name) not in OPTIONAL:
                    yield verb, positional, {**named, name: bad}


def test_invalid_arguments_are_refused_before_the_store_is_asked(store: Store) -> None:
    codes = set()
    for verb, positional, named in wrong_arguments():
        with pytest.raises(MintError) as caught:
            getattr(store, verb)(*positional, **named)
        assert caught.value.code not in {"store.refused", "store.unavailable"}, (verb, positional, named)
        assert len(str(caught.value)) < 300
        codes.add(caught.value.code)
    assert {"argument.type", "field.range", "config.name", "config.node"} <= codes
    assert not store.list_pools()
    assert not store.list_namespaces()


def test_times_beyond_the_limit_of_all_clocks_are_refused(store: Store, subtests: pytest.Subtests) -> None:
    new_pool(store)
    lease = acquire(store, store.now_ms())
    for value in (-1, 2**53, 2**63, 2**70, -(10**5_000), 10**5_000):
        with subtests.test(bits=value.bit_length()):
            with refused("field.range"):
                acquire(store, value, nodes=range(1, 2))
            with refused("field.range"):
                extend(store, lease, now_ms=value)


@pytest.mark.parametrize("value", [10**5_000, -(10**5_000), 2**64], ids=int.bit_length)
def test_refusal_of_a_number_of_any_length_is_one_short_line(store: Store, value: int) -> None:
    for call in (
        lambda: store.reserve("n", value),
        lambda: store.raise_floor("n", value),
        lambda: store.create_namespace("n", start=value),
        lambda: store.create_namespace("n", stride=value),
        lambda: store.create_pool("p", layout=LAYOUT, span_ms=value),
    ):
        with pytest.raises(MintError) as caught:
            call()
        assert len(str(caught.value)) < 200
    assert not store.list_namespaces()
