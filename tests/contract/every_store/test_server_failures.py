"""Tests of every store: killed, frozen and unreachable servers, and passwords."""

from __future__ import annotations

import traceback

import pytest

from mintage.errors import StoreError
from mintage.store import open_store
from tests.contract.every_store.stores import LAYOUT, SERVERS, acquire, extend, server
from tests.helpers.outcomes import code_of, eventually
from tests.helpers.stores import LONG_MS, patient


@pytest.mark.parametrize("name", SERVERS)
def test_result_of_a_verb_survives_a_kill_of_the_server(request: pytest.FixtureRequest, name: str) -> None:
    fails = server(request, name)
    # A patient one would wait for the killed server behind a Sentinel and in a cluster.
    with open_store(patient(fails.url)) as store, open_store(fails.url) as hasty:
        store.create_pool("p", layout=LAYOUT, span_ms=LONG_MS, never_used=True)
        now = store.now_ms()
        lease = acquire(store, now, span_ms=LONG_MS)
        segment = store.reserve("n", 10)
        eventually(hasty.now_ms)
        fails.kill()
        assert code_of(lambda: hasty.reserve("n", 1)) == "store.unavailable"
        assert code_of(lambda: acquire(hasty, now)) == "store.unavailable"
        fails.start()
        # Each closed connection may fail once.
        assert eventually(lambda: store.reserve("n", 10)).first > segment.last
        extended = eventually(lambda: extend(store, lease, now_ms=store.now_ms()))
        assert extended.until_ms >= lease.until_ms
        assert code_of(lambda: acquire(store, store.now_ms())) == "lease.none_free"


@pytest.mark.parametrize("name", SERVERS)
def test_server_that_does_not_answer_is_unavailable_after_the_timeout(
    request: pytest.FixtureRequest, name: str
) -> None:
    fails = server(request, name)
    with open_store(f"{fails.url}?timeout_ms=500") as store:
        segment = eventually(lambda: store.reserve("n", 10))
        fails.pause()
        try:
            assert code_of(lambda: store.reserve("n", 10)) == "store.unavailable"
        finally:
            fails.resume()
        # Requests sent meanwhile may take effect, but nobody gets their results.
        assert eventually(lambda: store.reserve("n", 10)).first > segment.last


@pytest.mark.parametrize("kind", ["mysql", "mariadb", "postgresql", "redis", "redis+cluster", "valkey", "etcd", "http"])
def test_error_never_shows_the_password(kind: str) -> None:
    database = "/ids" if kind in {"mysql", "mariadb", "postgresql"} else ""
    # Port 1 is reserved: nobody listens.
    with open_store(f"{kind}://user:s3cr3t-w0rd@127.0.0.1:1{database}") as store:
        with pytest.raises(StoreError) as caught:
            store.reserve("n", 1)
        assert caught.value.code == "store.unavailable"
        assert "s3cr3t-w0rd" not in "".join(traceback.format_exception(caught.value))
        assert "s3cr3t-w0rd" not in f"{store!r} {store.url} {store.url!r}"


@pytest.mark.parametrize("name", ["mariadb", "postgresql"])
def test_wrong_password_is_refused_and_not_shown(request: pytest.FixtureRequest, name: str) -> None:
    before, _, after = patient(server(request, name).url).rpartition("@")
    with open_store(f"{before}s3cr3t-w0rd@{after}") as store:
        with pytest.raises(StoreError) as caught:
            store.reserve("n", 1)
        assert caught.value.code == "store.refused"
        assert "s3cr3t-w0rd" not in "".join(traceback.format_exception(caught.value))
