"""Tests of the clients of a service against scripted peers: choice of host, retries, and checks of answers."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
import threading
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mintage
from mintage import AsyncClient, Client, locality, open_store, sno
from mintage.errors import (
    CATALOGUE,
    ConfigError,
    FieldError,
    GenerationError,
    LeaseError,
    MintError,
    RequestError,
    StoreError,
    UniquenessWarning,
)
from mintage.protocol.calls import Answer, Call, Lost, Outcome, ServiceProtocol
from mintage.protocol.url import StoreUrl
from mintage.rules import Lease, Segment
from tests.helpers import stores
from tests.helpers.outcomes import code_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mintage.store import Store

KEY = "mint_s3cr3t-w0rd"
URL = f"http://:{KEY}@a:1,b:2,c:3"
SPAN_MS = 10_000
NOW_MS = 1_763_719_200_000


def answer(body: object, status: int = 200, **headers: str) -> Answer:
    return Answer(status, headers, json.dumps(body).encode())


def problem(code: str, detail: str = "no", **members: object) -> Answer:
    return answer({"code": code, "detail": detail, **members}, CATALOGUE[code].http)


def unsent() -> Lost:
    return Lost("refused", False, OSError())


def sent() -> Lost:
    return Lost("it did not answer in time", True, TimeoutError())


class Scripted:
    """A transport that sends nothing: its answers are given in advance, and it records the requests."""

    def __init__(self, url: str, *outcomes: Outcome) -> None:
        self.service = ServiceProtocol(StoreUrl.parse(url))
        self.outcomes = list(outcomes)
        self.urls: list[str] = []
        self.requests: list[Any] = []

    def ask(self, call: Call[Any]) -> Any:
        steps = self.service.steps(call)
        try:
            request = next(steps)
            while True:
                self.requests.append(request)
                self.urls.append(request.url)
                request = steps.send(self.outcomes.pop(0))
        except StopIteration as done:
            return done.value

    @property
    def hosts(self) -> str:
        """Return the first letters of the hosts that were asked."""
        return "".join(url.removeprefix("http://")[0] for url in self.urls)


def scripted(*outcomes: Outcome, url: str = URL) -> tuple[Store, Scripted]:
    store: Any = open_store(url)
    store._sender = Scripted(url, *outcomes)
    return store, store._sender


def client_of(*outcomes: Outcome, url: str = URL) -> tuple[Client, Scripted]:
    client: Any = Client(url)
    client._sender = Scripted(url, *outcomes)
    return client, client._sender


SEGMENT: dict[str, object] = {
    "namespace": "n",
    "first": "1",
    "last": "10",
    "stride": 1,
    "count": 10,
    "floor": "0",
    "serial": 7,
}
LEASE: dict[str, object] = {"pool": "p", "node": 3, "floor_ms": 0, "until_ms": NOW_MS + SPAN_MS, "token": "t0ken"}
LONGER = LEASE | {"token": "next"}
HELD = Lease("p", 3, 0, NOW_MS + SPAN_MS, "t0ken")
NAMESPACE: dict[str, object] = {
    "namespace": "n",
    "high_water": "10",
    "maximum": "100",
    "stride": 1,
    "largest": 10,
    "identity": "i",
    "floor": "0",
    "serial": 7,
    "serial_before": 0,
    "retired": False,
}
POOL: dict[str, object] = {
    "name": "p",
    "layout": "test",
    "identity": "i",
    "span_ms": SPAN_MS,
    "floor_ms": 0,
    "quarantine_until_ms": 0,
    "history_lost": False,
    "changes": 0,
}
NODE: dict[str, object] = {
    "pool": "p",
    "node": 3,
    "floor_ms": 0,
    "until_ms": 9,
    "span_ms": SPAN_MS,
    "identity": "i",
    "held": True,
    "holder": None,
    "cloned_ms": 0,
    "changes": 0,
}
GRANT: dict[str, object] = {
    "pool": "p",
    "node": 3,
    "floor_ms": 0,
    "until_ms": 9,
    "since_ms": 1,
    "holder": "me",
}
RUN: dict[str, object] = {
    "namespace": "n",
    "first": "1",
    "last": "9",
    "holder": "me",
    "since_ms": 1,
    "until_ms": 2,
}
STORE: dict[str, object] = {
    "url": "sqlite:",
    "promise": "host",
    "server": "SQLite 3",
    "identity": "i",
    "now_ms": NOW_MS,
    "warnings": [],
}


acquire = partial(stores.acquire, nodes=range(8), now_ms=NOW_MS, span_ms=SPAN_MS)

VERBS: dict[str, tuple[Callable[[Store], object], object, bool]] = {
    "reserve": (lambda store: store.reserve("n", 10), SEGMENT, True),
    "give_back": (lambda store: store.give_back(Segment("n", 1, 10), 4), {"taken_back": True}, False),
    "acquire": (acquire, LEASE, True),
    "extend": (lambda store: store.extend(HELD, now_ms=NOW_MS + 5, next_token="next"), LONGER, True),
    "release": (lambda store: store.release(HELD, used_until_ms=NOW_MS), None, False),
    "revoke": (lambda store: store.revoke("p", 3), NODE, True),
    "create_pool": (lambda store: store.create_pool("p", layout="test"), POOL, True),
    "create_pool, never_used": (lambda store: store.create_pool("p", layout="test", never_used=True), POOL, False),
    "create_namespace": (lambda store: store.create_namespace("n"), NAMESPACE, False),
    "raise_floor": (lambda store: store.raise_floor("n", 11), NAMESPACE, True),
    "retire": (lambda store: store.retire("n"), NAMESPACE | {"retired": True}, True),
    "list_pools": (lambda store: store.list_pools(), {"pools": [POOL]}, True),
    "list_leases": (lambda store: store.list_leases("p"), {"leases": [NODE]}, True),
    "list_grants": (lambda store: store.list_grants("p", 3), {"grants": [GRANT]}, True),
    "list_runs": (lambda store: store.list_runs("n"), {"runs": [RUN]}, True),
    "get_pool": (lambda store: store.get_pool("p"), {"pools": [POOL]}, True),
    "list_namespaces": (lambda store: store.list_namespaces(), {"sequences": [NAMESPACE]}, True),
    "describe": (lambda store: store.describe(), STORE, True),
    "now_ms": (lambda store: store.now_ms(), STORE, True),
}
"""Each verb, an answer to it, and whether it may be asked twice."""
verbs = pytest.mark.parametrize(("verb", "good", "is_repeatable"), VERBS.values(), ids=VERBS)


# --- choice of the host and retries ---------------------------------------------------------------------------------


@verbs
def test_unsent_request_goes_to_the_next_host(verb: Any, good: object, is_repeatable: bool) -> None:
    store, sender = scripted(unsent(), unsent(), answer(good))
    verb(store)
    assert sender.hosts == "abc"


@verbs
def test_possibly_received_request_is_repeated_only_if_safe(verb: Any, good: object, is_repeatable: bool) -> None:
    store, sender = scripted(sent(), answer(good))
    if is_repeatable:
        verb(store)
        assert sender.hosts == "ab"
    else:
        assert code_of(lambda: verb(store)) == "store.unavailable"
        assert sender.hosts == "a"


def test_tail_is_given_back_only_once_whatever_the_result() -> None:
    for lost in (sent(), answer({}, 502), answer({}, 500), problem("store.unavailable"), answer("no")):
        store, sender = scripted(lost, answer({"taken_back": True}))
        code_of(lambda store=store: store.give_back(Segment("n", 1, 10), 4))  # type: ignore[misc]
        assert sender.hosts == "a"


def test_busy_service_has_done_nothing_and_the_next_is_asked() -> None:
    busy = problem("request.busy", retry_after_ms=1000)
    store, sender = scripted(busy, answer({"taken_back": True}))
    assert store.give_back(Segment("n", 1, 10), 4)
    assert sender.hosts == "ab"
    store, _ = scripted(busy, busy, busy)
    with pytest.raises(StoreError) as caught:
        store.reserve("n", 10)
    assert (caught.value.code, caught.value.retry_after_ms) == ("store.unavailable", 1000)


def test_host_without_a_store_is_skipped_and_a_good_one_kept() -> None:
    store, sender = scripted(problem("store.unavailable"), answer(SEGMENT), answer(SEGMENT), unsent(), answer(SEGMENT))
    for _ in range(3):
        store.reserve("n", 10)
    assert sender.hosts == "abbbc"


def test_refusal_is_final_and_not_repeated_elsewhere() -> None:
    for code in ("lease.none_free", "config.pool", "request.rights", "request.rate", "store.refused", "service.failed"):
        store, sender = scripted(problem(code), answer(LEASE))
        code_of(lambda store=store: acquire(store))  # type: ignore[misc]
        assert sender.hosts == "a"


def test_unavailable_service_is_one_clear_error() -> None:
    store, sender = scripted(unsent(), unsent(), unsent())
    with pytest.raises(
        StoreError, match=r"http://:\*\*\*@a:1,b:2,c:3/: refused: check that the service runs"
    ) as caught:
        store.reserve("n", 10)
    assert (caught.value.code, sender.hosts) == ("store.unavailable", "abc")
    assert isinstance(caught.value.__cause__, OSError)


# --- refusals -------------------------------------------------------------------------------------------------------


def test_client_without_a_key_is_told_to_add_one_to_the_url() -> None:
    said = problem("request.key", "send the header 'Authorization: Bearer KEY'")
    client, _ = client_of(said, url="http://a")
    with pytest.raises(RequestError) as caught:
        client.next("n")
    assert str(caught.value) == "http://a/: the service needs a key: put it into the URL, as http://:KEY@host"
    client, _ = client_of(problem("request.key", "the key is not known"))
    with pytest.raises(RequestError, match=r"the key is not known: check the one in the URL, http://:KEY@host"):
        client.next("n")
    store, _ = scripted(said, url="https://a")
    with pytest.raises(StoreError, match=r"put it into the URL, as https://:KEY@host") as refused:
        store.reserve("n", 10)
    assert refused.value.is_lasting


@pytest.mark.parametrize("code", CATALOGUE)
def test_client_raises_the_error_of_the_service(code: str) -> None:
    client, _ = client_of(*[problem(code, "because", retry_after_ms=7)] * 3)
    with pytest.raises(MintError, match="because") as caught:
        client.next("n")
    assert type(caught.value) is CATALOGUE[code].error
    assert caught.value.code == code
    assert getattr(caught.value, "retry_after_ms", 7) == 7


@pytest.mark.parametrize("code", [code for code, entry in CATALOGUE.items() if entry.error is RequestError])
def test_store_raises_a_refused_request_as_a_store_error(code: str) -> None:
    store, _ = scripted(*[problem(code)] * 3)
    with pytest.raises(StoreError, match=code) as caught:
        store.reserve("n", 10)
    passes = code in {"request.busy", "request.rate"}
    assert caught.value.code == ("store.unavailable" if passes else "store.refused")
    assert isinstance(caught.value.__cause__, RequestError)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (answer({"code": "lease.lost", "detail": "no"}, 500), "store.refused"),
        (answer({"code": "made.up", "detail": "no"}, 400), "store.refused"),
        (answer({"code": ["lease.lost"], "detail": "no"}, 409), "store.refused"),
        (answer({"code": "lease.lost"}, 409), "store.refused"),
        (answer({"code": "lease.lost", "detail": "n" * 5000}, 409), "store.refused"),
        (problem("lease.none_free", retry_after_ms=-1), "store.unavailable"),
        (problem("lease.none_free", retry_after_ms="soon"), "store.unavailable"),
        (problem("lease.none_free", retry_after_ms=1e300), "store.unavailable"),
        (problem("lease.none_free", retry_after_ms=2**70), "store.unavailable"),
        (answer([], 401), "store.refused"),
        (answer("forbidden", 403), "store.refused"),
        (answer("not found", 404), "store.refused"),
        (Answer(302, {"Location": "http://elsewhere"}, b""), "store.refused"),
        (Answer(101, {}, b""), "store.refused"),
        (Answer(502, {}, b"<html>"), "store.unavailable"),
        (Answer(503, {}, b"\xff\xfe"), "store.unavailable"),
        (Answer(504, {}, b"[" * 60_000), "store.unavailable"),
        (Answer(429, {}, b""), "store.unavailable"),
        (Answer(500, {}, b"9" * 60_000), "store.refused"),
    ],
    ids=str,
)
def test_malformed_refusal_is_an_error(outcome: Answer, code: str) -> None:
    store, _ = scripted(outcome, outcome, outcome)
    assert code_of(lambda: acquire(store)) == code


def test_message_of_a_service_is_one_short_line_without_the_key() -> None:
    store, _ = scripted(problem("lease.lost", f"\x1b[31m{KEY}\r\n\0" + "x" * 3000))
    with pytest.raises(StoreError) as refused:
        store.extend(HELD, now_ms=NOW_MS, next_token="next")
    assert refused.value.code == "store.refused"  # a NUL is no text
    store, _ = scripted(problem("lease.lost", f"\x1b[31m{KEY}\r\n" + "x" * 3000))
    with pytest.raises(LeaseError) as caught:
        store.extend(HELD, now_ms=NOW_MS, next_token="next")
    assert str(caught.value).startswith("�[31m***��xxx")
    assert len(str(caught.value)) <= 1001


# --- hostile answers ------------------------------------------------------------------------------------------------


@verbs
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"7", b'"x"', b"{}", b"\xff", b"[" * 60_000, b"9" * 60_000], ids=lambda b: b[:4]
)
def test_invalid_answer_is_refused(verb: Any, good: object, is_repeatable: bool, body: bytes) -> None:
    store, sender = scripted(Answer(200, {}, body))
    if good is None:  # a release has nothing to say
        verb(store)
    else:
        assert code_of(lambda: verb(store)) == "store.refused"
    assert sender.hosts == "a"


ANY_TEXT = {"identity", "server", "holder"}
UNREAD = {"url"}


def spoilt(members: dict[str, object]) -> Iterator[dict[str, object]]:
    """Yield the members with each of them missing, or of another type or size."""
    for name, good in members.items():
        if name in UNREAD:
            continue
        if name != "holder":
            yield {other: value for other, value in members.items() if other != name}
        wrong: list[object] = [[], {}, 1.5, -(2**80), 2**80, "n\0"]
        wrong += [] if name == "holder" else [None]
        wrong += [] if isinstance(good, bool) else [True]
        wrong += [] if name in ANY_TEXT else ["", "n" * 99, "١"]
        yield from ({**members, name: value} for value in wrong if value != good)


@pytest.mark.parametrize(
    ("verb", "good"),
    [
        (VERBS["reserve"][0], {name: value for name, value in SEGMENT.items() if name != "namespace"}),
        (acquire, LEASE),
        (VERBS["extend"][0], LONGER),
        (VERBS["create_pool"][0], POOL),
        (VERBS["raise_floor"][0], NAMESPACE),
        (VERBS["revoke"][0], NODE),
        (VERBS["describe"][0], STORE),
    ],
    ids=["reserve", "acquire", "extend", "create_pool", "raise_floor", "revoke", "describe"],
)
def test_missing_or_mistyped_member_is_refused(verb: Callable[[Store], object], good: dict[str, object]) -> None:
    for bad in spoilt(good):
        store, _ = scripted(answer(bad))
        assert code_of(lambda store=store: verb(store)) == "store.refused", bad  # type: ignore[misc]


@pytest.mark.parametrize(
    "wrong",
    [
        {"last": "11", "count": 11},
        {"last": "11"},
        {"count": 9},
        {"count": 0, "last": "0"},
        {"first": "-9", "last": "0"},
        {"first": "0", "last": str(2**63 - 1), "count": 10},
        {"first": str(2**63 - 5), "last": str(2**63 + 4)},
        {"first": "10", "last": "1"},
        {"stride": 2},
        {"stride": 0},
        {"stride": -1, "first": "10", "last": "1"},
        {"first": 1},
        {"first": " 1"},
        {"first": "1_0", "last": "19"},
        {"serial": 0},
        {"serial": "7"},
        {"serial": 2**53},
        {"serial": None},
    ],
    ids=str,
)
def test_unrequested_segment_is_refused(wrong: dict[str, object]) -> None:
    store, _ = scripted(answer(SEGMENT | wrong))
    assert code_of(lambda: store.reserve("n", 10)) == "store.refused"


def test_shorter_segment_is_what_is_left() -> None:
    store, _ = scripted(answer(SEGMENT | {"last": "7", "stride": 3, "count": 3}))
    assert store.reserve("n", 10) == Segment("n", 1, 7, 3)


@given(
    first=st.integers(-5, 2**63 + 5),
    last=st.integers(-5, 2**63 + 5),
    stride=st.integers(-1, 5),
    count=st.integers(-1, 20),
)
def test_answer_cannot_make_a_segment_larger_than_requested(first: int, last: int, stride: int, count: int) -> None:
    body = {"first": str(first), "last": str(last), "stride": stride, "count": count}
    store, _ = scripted(answer(body))
    try:
        segment = store.reserve("n", 10)
    except StoreError as error:
        assert error.code == "store.refused"  # noqa: PT017 (whether it is refused is not the question)
    else:
        assert len(segment.as_range()) <= 10
        assert segment.as_range()[-1] == segment.last < 2**63


@pytest.mark.parametrize(
    "wrong",
    [
        {"pool": "q"},
        {"node": 8},
        {"node": -1},
        {"node": 2**44},
        {"until_ms": NOW_MS + SPAN_MS + 1},
        {"token": ""},
        {"token": "a b"},
        {"token": "a\r\nX: y"},
        {"floor_ms": -1},
    ],
    ids=str,
)
def test_unrequested_lease_is_refused(wrong: dict[str, object]) -> None:
    store, _ = scripted(answer(LEASE | wrong))
    assert code_of(lambda: acquire(store)) == "store.refused"


def test_lease_may_begin_late_and_ends_a_span_later() -> None:
    store, _ = scripted(answer(LEASE | {"floor_ms": NOW_MS + 50, "until_ms": NOW_MS + 50 + SPAN_MS}))
    assert acquire(store).floor_ms == NOW_MS + 50


@pytest.mark.parametrize(
    "wrong",
    [
        {"node": 4},
        {"pool": "q"},
        {"token": "other"},
        {"token": "t0ken"},
        {"until_ms": NOW_MS + SPAN_MS - 1},
        {"until_ms": 2**53 - 1},
        {"floor_ms": -1},
    ],
    ids=str,
)
def test_extension_to_another_or_shorter_lease_is_refused(wrong: dict[str, object]) -> None:
    store, _ = scripted(answer(LONGER | wrong))
    assert code_of(lambda: store.extend(HELD, now_ms=NOW_MS, next_token="next")) == "store.refused"


def test_extended_lease_never_begins_earlier() -> None:
    held = Lease("p", 3, 100, NOW_MS, "t0ken")
    store, _ = scripted(answer(LONGER | {"floor_ms": 99}), answer(LONGER | {"floor_ms": 100}))
    assert code_of(lambda: store.extend(held, now_ms=NOW_MS, next_token="next")) == "store.refused"
    assert store.extend(held, now_ms=NOW_MS, next_token="next").floor_ms == 100


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX: y", "ü", "t" * 65])
def test_invalid_token_is_not_sent(token: str) -> None:
    store, sender = scripted()
    lease = Lease("p", 3, 0, NOW_MS, token)
    assert code_of(lambda: store.extend(lease, now_ms=NOW_MS, next_token="next")) == "lease.lost"
    assert code_of(lambda: store.release(lease, used_until_ms=NOW_MS)) == "lease.lost"
    assert sender.urls == []


def test_several_services_with_separate_stores_are_warned_of() -> None:
    store, _ = scripted(answer(STORE))
    assert "store that they share" in store.describe().warnings[0]
    for good, url in ((STORE | {"promise": "shared"}, URL), (STORE, "http://a")):
        store, _ = scripted(answer(good), url=url)
        described = store.describe()
        assert (described.warnings, described.promise) == ((), store.promise)


# --- requests -------------------------------------------------------------------------------------------------------


def test_key_and_token_are_sent_only_as_headers() -> None:
    store, sender = scripted(answer(LONGER))
    store.extend(HELD, now_ms=NOW_MS, next_token="next")
    (request,) = sender.requests
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["Lease-Token"] == HELD.token
    assert request.url == "http://a:1/v1/leases/p/3"
    assert HELD.token not in request.content.decode()
    # What is compressed may be much larger than what came.
    assert request.headers["Accept-Encoding"] == "identity"


def test_call_never_shows_its_token() -> None:
    call = Call("PATCH", "/v1/leases/p/3", lambda _: None, token="t0ken")
    assert "t0ken" not in repr(call)


def test_ipv6_addresses_and_omitted_ports_are_written_as_in_any_url() -> None:
    service = ServiceProtocol(StoreUrl.parse("https://[::1]:8443,ids"))
    assert service._hosts == ["https://[::1]:8443", "https://ids"]


@pytest.mark.parametrize(
    "url",
    [
        f"http://{KEY}@h",
        f"http://:{KEY}%0d%0aX:%20y@h",
        f"http://:{KEY}%20x@h",
        f"http://:{KEY}%C3%BC@h",
        "http://:@h",
        "http:",
        "http:///x",
        "http://h/path",
        "http://h?ca=/x",
        "http://h?timeout_ms=0",
        "https://h?prefix=x",
    ],
)
def test_unsupported_part_of_a_url_is_refused_and_the_key_not_shown(url: str) -> None:
    for make in (open_store, Client, AsyncClient):
        with pytest.raises(ConfigError) as caught:
            make(url)
        assert caught.value.code == "config.store"
        assert KEY not in f"{caught.value}"


@pytest.mark.parametrize("url", ["sqlite:///ids.db", "redis://h", "memory:", "ftp://h"])
def test_client_accepts_only_urls_of_services(url: str) -> None:
    for make in (Client, AsyncClient):
        assert code_of(lambda make=make: make(url)) == "config.store"  # type: ignore[misc]


def test_url_must_be_text() -> None:
    wrong: Any = 7
    assert code_of(lambda: Client(wrong)) == "argument.type"


def test_error_without_httpx_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mintage.store.http", raising=False)
    monkeypatch.setitem(sys.modules, "httpx", None)
    for make in (open_store, Client, AsyncClient):
        with pytest.raises(ConfigError, match=r"httpx: pip install 'mintage\[client\]'") as caught:
            make("http://h")
        assert caught.value.code == "config.driver"


def test_key_is_in_no_repr() -> None:
    for made in (Client(URL), AsyncClient(URL), open_store(URL)):
        assert KEY not in f"{made!r} {made}"
        assert ":***@a:1,b:2,c:3" in repr(made)


# --- the clients ----------------------------------------------------------------------------------------------------


def test_client_returns_integers_ranges_and_ids() -> None:
    minted, located = str(sno.new()), str(locality.new())
    client, sender = client_of(
        answer({"ids": ["7"]}),
        answer({"ids": ["8", "9"]}),
        answer(SEGMENT),
        answer({"ids": [minted]}),
        answer({"ids": ["175928847299117063"]}),
        answer({"ids": [located]}),
        answer(NAMESPACE),
        answer({"anatomies": [{"scheme": "sno"}]}),
        url="http://a",
    )
    assert client.next("n") == 7
    assert client.batch("n", 2) == [8, 9]
    assert client.reserve("n", 10) == range(1, 11)
    assert client.mint("sno", meta=7) == [sno.ID.parse(minted)]
    assert client.mint("snowflake") == [175928847299117063]
    assert client.mint("locality") == [locality.ID.parse(located)]
    assert client.describe("n").high_water == 10
    assert client.inspect("a/b?c#d%") == [{"scheme": "sno"}]
    assert [request.url.removeprefix("http://a") for request in sender.requests] == [
        "/v1/sequences/n:next?count=1",
        "/v1/sequences/n:next?count=2",
        "/v1/sequences/n:reserve?count=10",
        "/v1/ids/sno?count=1&meta=7",
        "/v1/ids/snowflake?count=1&meta=0",
        "/v1/ids/locality?count=1&meta=0",
        "/v1/sequences/n",
        "/v1/inspect/a%2Fb%3Fc%23d%25",
    ]


@pytest.mark.parametrize(
    "ids",
    [[], ["1"], ["1", "2", "3"], ["1", "1"], [1, 2], ["1", None], ["-1", "2"], ["1", str(2**63)], "12", None],
    ids=str,
)
def test_unrequested_integers_are_refused(ids: object) -> None:
    client, _ = client_of(answer({"ids": ids}))
    assert code_of(lambda: client.batch("n", 2)) == "store.refused"


@pytest.mark.parametrize("scheme", ["sno", "snowflake", "locality"])
@pytest.mark.parametrize("ids", [["x"], ["x\r\n" * 9], [7], [], ["-5"], ["9" * 400], ["٧"], None], ids=str)
def test_invalid_ids_are_refused(scheme: Any, ids: object) -> None:
    client, _ = client_of(answer({"ids": ids}))
    assert code_of(lambda: client.mint(scheme)) == "store.refused"


def test_duplicate_id_is_refused() -> None:
    client, _ = client_of(answer({"ids": ["7", "7"]}))
    assert code_of(lambda: client.mint("snowflake", 2)) == "store.refused"


def test_use_of_the_last_resort_is_warned_of() -> None:
    client, _ = client_of(Answer(200, {"X-Mintage-Fallback": "random"}, b'{"ids": ["7"]}'))
    with pytest.warns(UniquenessWarning, match="'n'"):
        assert client.next("n") == 7


def test_invalid_request_is_refused_before_it_is_sent() -> None:
    client, sender = client_of()
    wrong: Any
    for wrong in ("", "a b", "a/b", "..", 7, None):
        assert code_of(lambda wrong=wrong: client.next(wrong)) == "config.name"  # type: ignore[misc]
        assert code_of(lambda wrong=wrong: client.describe(wrong)) == "config.name"  # type: ignore[misc]
    for wrong in (0, -1, 2**31):
        assert code_of(lambda wrong=wrong: client.batch("n", wrong)) == "field.range"  # type: ignore[misc]
        assert code_of(lambda wrong=wrong: client.mint("sno", wrong)) == "field.range"  # type: ignore[misc]
    for wrong in (1.0, "1", True, None):
        assert code_of(lambda wrong=wrong: client.reserve("n", wrong)) == "argument.type"  # type: ignore[misc]
    wrong = "../x"
    assert code_of(lambda: client.mint(wrong)) == "request.malformed"
    wrong = 7
    assert code_of(lambda: client.inspect(wrong)) == "argument.type"
    assert sender.urls == []


# --- on a socket ----------------------------------------------------------------------------------------------------


class Peer:
    """A socket server that reads a request and then does what the test says."""

    def __init__(self, *answers: Callable[[socket.socket], None]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._answers = list(answers)
        self._has_ended = False
        self.requests: list[bytes] = []
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while self._answers and not self._has_ended:
            connection, _ = self._listener.accept()
            connection.settimeout(60)
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    chunk = connection.recv(65536)
                    if not chunk:
                        break
                    head += chunk
                if head:
                    self.requests.append(head)
                    try:
                        self._answers.pop(0)(connection)
                    except OSError:
                        continue  # the client had enough

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._has_ended = True
        with socket.create_connection(("127.0.0.1", self.port)):
            pass
        self._thread.join()
        self._listener.close()


def saying(data: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(data)


def http(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def endless(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(100):
        connection.sendall(b"10000\r\n" + b"[" * 65536 + b"\r\n")


def dripping(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(1000):
        connection.sendall(b"[")
        time.sleep(0.05)


def silent(connection: socket.socket) -> None:
    connection.recv(1)


def run_sync(url: str) -> list[int]:
    with Client(url) as client:
        return client.batch("n", 2)


def run_async(url: str) -> list[int]:
    async def run() -> list[int]:
        async with AsyncClient(url) as client:
            return await client.batch("n", 2)

    return asyncio.run(run())


both = pytest.mark.parametrize("run", [run_sync, run_async])


@both
@pytest.mark.parametrize(
    ("does", "code"),
    [
        (saying(b""), "store.unavailable"),
        (saying(b"hello\r\n\r\n"), "store.unavailable"),
        (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), "store.unavailable"),
        (saying(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"x" * 200_000), "store.unavailable"),
        (saying(http(b"{}")), "store.refused"),
        (saying(http(b'{"ids": ["1", "2"]}', "Content-Encoding: gzip")), "ok"),
        (saying(http(b"\x1f\x8b\x08\x00", "Content-Encoding: gzip")), "store.refused"),
        (saying(http(b"", "Location: http://127.0.0.1:1/", status="307 Temporary Redirect")), "store.refused"),
        (endless, "store.refused"),
        (dripping, "store.unavailable"),
        (silent, "store.unavailable"),
    ],
    ids=["nothing", "noise", "half", "headers", "empty", "plain", "gzip", "redirect", "endless", "dripping", "silent"],
)
def test_any_peer_gives_a_result_or_one_clear_error(run: Any, does: Any, code: str) -> None:
    with Peer(does) as peer:
        timeout_ms = 300 if does in {dripping, silent} else 60_000
        url = f"http://:{KEY}@127.0.0.1:{peer.port}?timeout_ms={timeout_ms}"
        if code == "ok":
            assert run(url) == [1, 2]
        else:
            with pytest.raises(StoreError) as caught:
                run(url)
            assert caught.value.code == code
            assert KEY not in "".join(traceback.format_exception(caught.value))
    assert len(peer.requests) == 1


@both
def test_host_that_dies_during_a_request_is_followed_by_the_next(run: Any) -> None:
    with Peer(saying(b"")) as dying, Peer(saying(http(b'{"ids": ["1", "2"]}'))) as living:
        assert run(f"http://127.0.0.1:1,127.0.0.1:{dying.port},127.0.0.1:{living.port}") == [1, 2]
    assert (len(dying.requests), len(living.requests)) == (1, 1)


@pytest.mark.parametrize("dies", [saying(b""), silent, saying(http(b"", status="502 Bad Gateway"))])
def test_sent_tail_is_given_back_to_no_other_host(dies: Any) -> None:
    with Peer(dies) as dying, Peer(saying(http(b'{"taken_back": true}'))) as living:
        hosts = f"127.0.0.1:{dying.port},127.0.0.1:{living.port}"
        timeout_ms = 300 if dies is silent else 60_000
        with open_store(f"http://{hosts}?timeout_ms={timeout_ms}") as store:
            assert code_of(lambda: store.give_back(Segment("n", 1, 10), 4)) == "store.unavailable"
    assert (len(dying.requests), len(living.requests)) == (1, 0)


def test_proxies_and_passwords_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with Peer(saying(http(b'{"ids": ["1", "2"]}'))) as peer:
        assert run_sync(f"http://127.0.0.1:{peer.port}") == [1, 2]
    assert b"authorization" not in peer.requests[0].lower()


@both
def test_key_is_in_no_log(run: Any, caplog: pytest.LogCaptureFixture) -> None:
    # The service, in a test before this one, may have set the level of httpx.
    with (
        caplog.at_level(logging.DEBUG),
        caplog.at_level(logging.DEBUG, "httpx"),
        Peer(saying(http(b'{"ids": ["1", "2"]}'))) as peer,
    ):
        run(f"http://:{KEY}@127.0.0.1:{peer.port}")
    assert KEY.encode() in peer.requests[0]
    assert KEY not in caplog.text
    assert any(record.name == "httpx" for record in caplog.records)


def test_unresolvable_host_is_unavailable() -> None:
    for host in ("a%20b", "xn--", "%FF"):
        with open_store(f"http://{host}") as store:
            assert code_of(lambda store=store: store.reserve("n", 1)) == "store.unavailable"  # type: ignore[misc]


def test_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> set[str]:
        return {name.removeprefix("a") if name == "aclose" else name for name in vars(kind) if not name.startswith("_")}

    assert methods(Client) == methods(AsyncClient)
    assert {"next", "batch", "reserve", "mint", "describe", "inspect", "close"} <= methods(Client)


def test_closed_client_refuses_calls_and_sends_nothing() -> None:
    client = Client("http://127.0.0.1:9")
    client.close()
    client.close()
    calls: list[Callable[[], object]] = [
        lambda: client.next("orders"),
        lambda: client.batch("orders", 2),
        lambda: client.reserve("orders", 2),
        lambda: client.mint("sno"),
        lambda: client.describe("orders"),
        lambda: client.inspect("x"),
    ]
    assert {code_of(call) for call in calls} == {"generator.closed"}

    async def ask() -> None:
        async with AsyncClient("http://127.0.0.1:9") as asking:
            pass
        await asking.next("orders")

    assert code_of(lambda: asyncio.run(ask())) == "generator.closed"


def test_clients_are_public_names_of_mintage() -> None:
    assert {"Client", "AsyncClient"} <= set(mintage.__all__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (mintage.Client, mintage.AsyncClient) == (Client, AsyncClient)


# --- shared requests -------------------------------------------------------------------------------------------------


class Counting:
    """A service of one namespace for `AsyncClient`: it answers on request of the test, and records its requests."""

    def __init__(self, _: ServiceProtocol, *, most: int = 10_000, left: int = 10**9) -> None:
        self.counts: list[int] = []
        self.most, self.left, self.given = most, left, 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def ask(self, call: Call[Any]) -> Any:
        count = int(call.query["count"])
        self.counts.append(count)
        await self.gate.wait()
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        if count > self.most:
            raise FieldError(f"count {count} is outside 1..{self.most}", code="field.range")
        if count > self.left:
            raise GenerationError(f"{self.left} left, not {count}", code="namespace.exhausted")
        first, self.given, self.left = self.given + 1, self.given + count, self.left - count
        return call.read(answer({"ids": [str(first + at) for at in range(count)]}))

    async def aclose(self) -> None:
        """Do nothing: the client notifies its callers."""


def counting(**how: int) -> tuple[AsyncClient, Callable[[], Counting]]:
    """Return a client, and a function that returns its peer once there was a request."""
    client: Any = AsyncClient("http://a")
    made: list[Counting] = []

    def make(service: ServiceProtocol) -> Counting:
        made.append(Counting(service, **how))
        return made[-1]

    def service() -> Counting:
        if not made:
            client._of_loop()
        return made[-1]

    client._make = make
    return client, service


async def started(*coroutines: Any) -> list[asyncio.Task[int]]:
    """Start tasks and let them run until they wait."""
    tasks = [asyncio.ensure_future(each) for each in coroutines]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


def test_gathered_callers_share_requests_and_are_served_in_order() -> None:
    async def run() -> None:
        client, service = counting()
        assert await asyncio.gather(*(client.next("n") for _ in range(2_500))) == list(range(1, 2_501))
        assert service().counts == [1000, 1000, 500]
        assert await client.next("n") == 2_501

    asyncio.run(run())


def test_caller_during_a_request_shares_the_next_one() -> None:
    async def run() -> None:
        client, service = counting()
        service().gate.clear()
        first = await started(client.next("n"))
        others = await started(*(client.next("n") for _ in range(5)))
        assert service().counts == [1]
        service().gate.set()
        assert await asyncio.gather(*first, *others) == [1, 2, 3, 4, 5, 6]
        assert service().counts == [1, 5]

    asyncio.run(run())


def test_namespaces_share_no_request() -> None:
    async def run() -> None:
        client, service = counting()
        service().gate.clear()
        tasks = await started(*(client.next(name) for name in "abab"))
        assert service().counts == [2, 2]
        service().gate.set()
        assert sorted(await asyncio.gather(*tasks)) == [1, 2, 3, 4]

    asyncio.run(run())


def test_service_with_small_answers_is_asked_for_less() -> None:
    async def run() -> None:
        client, service = counting(most=70)
        assert await asyncio.gather(*(client.next("n") for _ in range(1_000))) == list(range(1, 1_001))
        assert service().counts[:5] == [1000, 500, 250, 125, 62]
        # It is not asked for too many again.
        before = len(service().counts)
        await asyncio.gather(*(client.next("n") for _ in range(100)))
        assert service().counts[before:] == [62, 38]

    asyncio.run(run())


def test_last_integers_of_a_namespace_go_to_the_first_callers() -> None:
    async def run() -> None:
        client, service = counting(left=37)
        found = await asyncio.gather(*(client.next("n") for _ in range(1_000)), return_exceptions=True)
        assert found[:37] == list(range(1, 38))
        refused = [each for each in found if isinstance(each, GenerationError)]
        assert {each.code for each in refused} == {"namespace.exhausted"}
        assert len({id(each) for each in refused}) == len(refused) == 963
        assert len(service().counts) < 30

    asyncio.run(run())


def test_each_caller_of_a_failed_request_gets_its_own_error() -> None:
    async def run() -> None:
        client, service = counting()
        error = StoreError("away", code="store.unavailable", retry_after_ms=7)
        error.__cause__ = OSError()
        service().error = error
        found = await asyncio.gather(*(client.next("n") for _ in range(5)), return_exceptions=True)
        errors = [each for each in found if isinstance(each, StoreError)]
        assert len({id(each) for each in errors}) == 5
        assert {(str(each), each.code, each.retry_after_ms, each.__cause__) for each in errors} == {
            ("away", "store.unavailable", 7, error.__cause__)
        }
        service().error = None
        assert await client.next("n") == 1

    asyncio.run(run())


@pytest.mark.parametrize("gone", [{0}, {1}, {0, 2}, {0, 1, 2, 3}], ids=str)
def test_cancelled_caller_cancels_no_other(gone: set[int]) -> None:
    async def run() -> None:
        client, service = counting()
        service().gate.clear()
        under_way = await started(*(client.next("n") for _ in range(4)))
        waiting = await started(*(client.next("n") for _ in range(4)))
        for at in gone:
            under_way[at].cancel()
            waiting[at].cancel()
        await asyncio.sleep(0)
        service().gate.set()
        found = await asyncio.gather(*under_way, *waiting, return_exceptions=True)
        for at, each in enumerate(found):
            assert isinstance(each, asyncio.CancelledError) == (at % 4 in gone)
        kept = [each for each in found if isinstance(each, int)]
        assert kept == sorted(set(kept))
        # Nothing is requested for callers that gave up before.
        assert service().counts == [count for count in (4, 4 - len(gone)) if count]
        assert await client.next("n") == service().given

    asyncio.run(run())


def test_closing_client_refuses_waiting_callers() -> None:
    async def run() -> None:
        client, service = counting()
        service().gate.clear()
        under_way = await started(*(client.next("n") for _ in range(3)))
        waiting = await started(*(client.next("n") for _ in range(3)))
        await client.aclose()
        found = await asyncio.gather(*under_way, *waiting, return_exceptions=True)
        assert [getattr(each, "code", each) for each in found] == ["generator.closed"] * 6
        with pytest.raises(GenerationError, match="closed"):
            await client.next("n")
        assert {task for task in asyncio.all_tasks() if task is not asyncio.current_task()} == set()

    asyncio.run(run())


def test_nobody_waits_for_a_cancelled_task() -> None:
    async def run() -> None:
        client, service = counting()
        service().gate.clear()
        tasks = await started(*(client.next("n") for _ in range(3)))
        for task in asyncio.all_tasks() - {asyncio.current_task(), *tasks}:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in found] == [asyncio.CancelledError] * 3
        service().gate.set()
        assert await client.next("n") == 1

    asyncio.run(run())


def test_client_can_be_used_in_successive_event_loops() -> None:
    client, service = counting()

    async def ask() -> int:
        return (await asyncio.gather(*(client.next("n") for _ in range(3))))[-1]

    services = set()
    for _ in range(3):
        assert asyncio.run(ask()) == 3
        services.add(service())
    assert len(services) == 3
    assert len(client._loops) == 1


def test_event_loops_of_two_threads_share_no_request() -> None:
    client, _ = counting()
    found: list[list[int]] = []

    def run() -> None:
        async def ask() -> list[int]:
            return await asyncio.gather(*(client.next("n") for _ in range(500)))

        found.append(asyncio.run(ask()))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [list(range(1, 501))] * 2


@given(st.lists(st.sampled_from(["call", "cancel", "answer", "refuse", "turn"]), max_size=60), st.integers(1, 8))
def test_no_two_callers_get_the_same_integer(events: list[str], most: int) -> None:
    async def run() -> None:
        client, service = counting(most=most)
        service().gate.clear()
        tasks: list[asyncio.Task[int]] = []
        for event in events:
            service().error = None
            if event == "call":
                tasks.append(asyncio.ensure_future(client.next("n")))
            elif event == "cancel" and tasks:
                tasks[len(tasks) // 2].cancel()
            elif event in {"answer", "refuse"}:
                service().error = StoreError("away", code="store.unavailable") if event == "refuse" else None
                service().gate.set()
                for _ in range(4):
                    await asyncio.sleep(0)
                service().gate.clear()
            else:
                await asyncio.sleep(0)
        service().error = None
        service().gate.set()
        found = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
        given = [each for each in found if isinstance(each, int)]
        # In call order, each once, and no more integers lost than callers.
        assert given == sorted(set(given))
        assert service().given - len(given) <= len(found) - len(given)

    asyncio.run(run())


def test_timeout_of_a_request_starts_when_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx

    from mintage.protocol import calls
    from mintage.store import http as store_http

    clock = [0.0]

    def respond(_: httpx.Request) -> httpx.Response:
        clock[0] += 1.5
        return httpx.Response(200, stream=httpx.ByteStream(b'{"ids": ["1", "2"]}'))

    monkeypatch.setattr(store_http, "_MOST_AT_ONCE", 1)
    monkeypatch.setattr(store_http, "_arguments", lambda _: {"transport": httpx.MockTransport(respond)})
    monkeypatch.setattr(calls, "monotonic_s", lambda: clock[0])

    async def run() -> None:
        async with AsyncClient("http://a") as client:
            await asyncio.gather(*(client.batch("n", 2) for _ in range(10)))

    asyncio.run(run())
    with Client("http://a") as client, ThreadPoolExecutor(10) as threads:
        for each in [threads.submit(client.batch, "n", 2) for _ in range(10)]:
            assert each.result() == [1, 2]
    assert clock == [30.0]


def test_closing_an_asyncio_client_ends_its_requests() -> None:
    with Peer(silent) as peer:

        async def run() -> str:
            client = AsyncClient(f"http://127.0.0.1:{peer.port}?timeout_ms=60000")
            asked = asyncio.ensure_future(client.batch("n", 2))
            while not peer.requests:
                await asyncio.sleep(0.001)
            await client.aclose()
            with pytest.raises(GenerationError) as caught:
                await asked
            return caught.value.code

        assert asyncio.run(run()) == "generator.closed"
