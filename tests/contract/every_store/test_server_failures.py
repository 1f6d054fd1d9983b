"""Tests of every store: killed, frozen and unreachable servers, and passwords."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pytest

from mintage.errors import StoreError
from mintage.store import open_store
from tests.contract.every_store.stores import PAST_MS, SERVERS, acquire, extend, new_pool, server, url_of
from tests.helpers.outcomes import code_of, eventually

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", SERVERS)
def test_result_of_a_verb_survives_a_kill_of_the_server(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    fails = server(request, name)
    with open_store(url_of(request, tmp_path, name)) as store:
        new_pool(store)
        # The window must outlast a slow start.
        now = store.now_ms() + PAST_MS
        lease = acquire(store, now)
        segment = store.reserve("n", 10)
        fails.kill()
        assert code_of(lambda: store.reserve("n", 1)) == "store.unavailable"
        assert code_of(lambda: acquire(store, now)) == "store.unavailable"
        fails.start()
        # Each closed connection may fail once.
        assert eventually(lambda: store.reserve("n", 10)).first > segment.last
        extended = eventually(lambda: extend(store, lease, now_ms=store.now_ms()))
        assert extended.until_ms >= lease.until_ms
        assert code_of(lambda: acquire(store, store.now_ms())) == "lease.none_free"


@pytest.mark.parametrize("name", SERVERS)
def test_server_that_does_not_answer_is_unavailable_after_the_timeout(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    fails = server(request, name)
    with open_store(f"{url_of(request, tmp_path, name)}?timeout_ms=500") as store:
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
def test_wrong_password_is_refused_and_not_shown(request: pytest.FixtureRequest, tmp_path: Path, name: str) -> None:
    before, _, after = url_of(request, tmp_path, name).rpartition("@")
    with open_store(f"{before}s3cr3t-w0rd@{after}") as store:
        with pytest.raises(StoreError) as caught:
            store.reserve("n", 1)
        assert caught.value.code == "store.refused"
        assert "s3cr3t-w0rd" not in "".join(traceback.format_exception(caught.value))
