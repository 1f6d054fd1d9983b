"""Tests of etcd: replaced clusters, passwords, members, TLS, and the clock in HTTP headers."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from base64 import b64decode, b64encode
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from mintage.errors import ConfigError, LeaseError, StoreError
from mintage.rules import GAP, HISTORY_MS
from mintage.store import PAGE, new_token, open_store
from mintage.store.etcd import RUNS_MS, SHARED_S
from tests.helpers.outcomes import code_of, eventually
from tests.helpers.sql_servers import refusal_text
from tests.helpers.stores import LONG_MS, acquire, extend, patient
from tests.servers import Etcd, EtcdCluster, Proxy
from tests.servers.server import until
from tests.service.running import certificate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mintage.store import Store

SPAN_MS = 10_000
EVERYTHING = {"key": "AA==", "range_end": "AA=="}
Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""


def keys(etcd: Etcd) -> dict[str, str]:
    pairs = etcd.call("/v3/kv/range", EVERYTHING).get("kvs", [])
    return {b64decode(pair["key"]).decode(): b64decode(pair["value"]).decode() for pair in pairs}


@contextmanager
def gateway(answer: Callable[[str, dict[str, Any]], Answer], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Yield the URL of a fake gateway of etcd with given answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers, text = answer(self.path, body)
            self.send_response_only(status)
            for name, value in {"Content-Length": str(len(text)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield f"{'etcd' if tls is None else 'etcds'}://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def answering(body: object, status: int = 200, **headers: str) -> Callable[[str, dict[str, Any]], Answer]:
    dated = {"Date": formatdate(usegmt=True), **headers}
    return lambda path, asked: (status, dated, json.dumps(body).encode())


def test_records_are_readable_keys(etcd: Etcd) -> None:
    with open_store(patient(etcd.url)) as store:
        lease = acquire(store)
        store.reserve("orders", 5)
    found = keys(etcd)
    assert sorted(found) == ["mintage/namespace/orders", "mintage/node/p/00000000000000", "mintage/pool/p"]
    assert json.loads(found["mintage/namespace/orders"])["high_water"] == 5
    assert json.loads(found["mintage/node/p/00000000000000"])["until_ms"] == lease.until_ms


def test_prefixes_keep_stores_apart(etcd: Etcd) -> None:
    with open_store(f"{patient(etcd.url)}&prefix=a/") as one, open_store(f"{patient(etcd.url)}&prefix=b") as other:
        assert [store.reserve("n", 5).first for store in (one, other, one)] == [1, 1, 6]
    assert sorted(keys(etcd)) == ["a/namespace/n", "bnamespace/n"]


def test_restored_cluster_grants_nothing_that_may_be_forgotten(etcd: Etcd, tmp_path: Path) -> None:
    with open_store(patient(etcd.url)) as store:
        held = acquire(store)
        segment = store.reserve("n", 100)
        kept = keys(etcd)
        acquire(store)
        store.reserve("n", 100)
    other = Etcd(tmp_path / "etcd")
    other.start()
    try:
        for key, value in kept.items():
            body = {"key": b64encode(key.encode()).decode(), "value": b64encode(value.encode()).decode()}
            other.call("/v3/kv/put", body)
        with open_store(patient(other.url)) as store:
            with pytest.raises(LeaseError) as caught:
                acquire(store)
            assert caught.value.code == "lease.none_free"
            assert caught.value.retry_after_ms is not None
            assert caught.value.retry_after_ms > SPAN_MS
            # A holder with an unbroken window continues.
            assert extend(store, held, 4_000).until_ms > held.until_ms
            assert store.reserve("n", 100).first == segment.last + 10 * 100 + 1
            assert store.create_pool("p", layout="test").floor_ms > held.until_ms
            assert code_of(lambda: acquire(store)) == "lease.none_free"
    finally:
        other.kill()


def test_cluster_that_goes_back_counts_as_a_server_that_forgot(tmp_path: Path) -> None:
    cluster = EtcdCluster(tmp_path / "cluster")
    cluster.start()
    stale = cluster.members[2]
    try:
        with open_store(patient(cluster.url)) as store:
            held = acquire(store, span_ms=LONG_MS)
            store.reserve("n", 100)
            # The member has what the others have written until now.
            eventually(lambda: stale.call("/v3/kv/range", {**EVERYTHING, "serializable": True})["kvs"][2])
            identity = store.describe().identity
            stale.stop()
            held = extend(store, held, 4_000)
            last = store.reserve("n", 100).last
            acquire(store, nodes=range(1, 4))
            for member in cluster.members:
                member.kill()
        stale.options = ("--force-new-cluster",)
        stale.start()
        cluster.until(stale.is_up, "it serves")
        # A process that has not seen the later writes repeats them.
        program = "import mintage, sys; print(mintage.open_store(sys.argv[1]).reserve('n', 100).last)"
        newcomer = subprocess.check_output([sys.executable, "-c", program, patient(stale.url)], text=True, timeout=60)
        assert int(newcomer) <= last
        with open_store(patient(stale.url)) as store:
            assert store.reserve("n", 1).first > last
            assert code_of(lambda: acquire(store, nodes=range(1, 4))) == "lease.none_free"
            assert store.describe().identity.startswith(f"{identity}:")
            # Its holder continues by the token before.
            assert extend(store, held).until_ms >= held.until_ms
            # A pool without a record may be lost.
            assert code_of(lambda: acquire(store, pool="q")) == "lease.none_free"
            # A namespace without a record may be lost.
            for begin in (lambda: store.reserve("m", 1), lambda: store.create_namespace("m")):
                assert "namespaces create m --start N" in refusal_text(begin)
            assert store.create_namespace("m", start=101).high_water == 100
            first = store.reserve("n", 1).first
            assert store.reserve("n", 1).first == first + 1
            [said] = store.describe().warnings
            assert said.endswith("then run: etcdctl del mintage/incarnation")
            stale.call("/v3/kv/deleterange", {"key": b64encode(b"mintage/incarnation").decode()})
            assert store.describe().warnings == ()
            assert store.reserve("new", 1).first == 1
            assert store.reserve("n", 1).first > first + 1
    finally:
        for member in cluster.members:
            member.kill()


def test_key_written_by_hand_makes_a_cluster_another_one(etcd: Etcd) -> None:
    with open_store(patient(etcd.url)) as store:
        acquire(store)
        last = store.reserve("n", 100).last
        body = {"key": "mintage/incarnation", "value": "restored-1"}
        etcd.call("/v3/kv/put", {name: b64encode(text.encode()).decode() for name, text in body.items()})
    with open_store(patient(etcd.url)) as store:
        assert store.reserve("n", 1).first == last + GAP * 100 + 1
        assert code_of(lambda: acquire(store)) == "lease.none_free"


@pytest.mark.parametrize("back", [{"revision": "6", "raft_term": "3"}, {"revision": "8", "raft_term": "2"}])
def test_lower_revision_or_term_shows_that_a_cluster_went_back(back: dict[str, str]) -> None:
    headers = [{"revision": "7", "raft_term": "3"}, back]
    written: list[dict[str, Any]] = []
    cluster = new_token()

    def answer(path: str, asked: dict[str, Any]) -> Answer:
        if path == "/v3/kv/put":
            written.append({name: b64decode(text).decode() for name, text in asked.items()})
        header = headers.pop(0) if len(headers) > 1 else headers[0]
        return answering({"header": {"cluster_id": cluster, **header}, "succeeded": True})(path, asked)

    with gateway(answer) as url, open_store(patient(url)) as store:
        for _ in range(3):
            store.now_ms()
    assert written == [{"key": "mintage/incarnation", "value": back["raft_term"]}]


def test_verb_fails_if_the_cluster_is_replaced_during_it() -> None:
    identities = iter("12")

    def answer(path: str, asked: dict[str, Any]) -> Answer:
        header = {"cluster_id": next(identities), "revision": "7"}
        return answering({"header": header, "succeeded": True})(path, asked)

    with gateway(answer) as url, open_store(patient(url)) as store:
        assert code_of(lambda: store.reserve("n", 1)) == "store.unavailable"


def test_time_is_that_of_the_server() -> None:
    header = {"cluster_id": "1", "revision": "7"}
    with (
        gateway(answering({"header": header}, Date="Thu, 01 Jan 2026 00:00:00 GMT")) as url,
        open_store(patient(url)) as store,
    ):
        assert store.now_ms() == 1_767_225_600_500
        assert code_of(lambda: acquire(store, now_ms=1_767_225_600_500 - 5_001)) == "lease.clock"


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_server_without_a_clock_is_refused(date: str) -> None:
    header = {"cluster_id": "1", "revision": "7"}
    with gateway(answering({"header": header}, Date=date)) as url, open_store(patient(url)) as store:
        assert code_of(store.now_ms) == "store.refused"


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (200, "welcome", "store.refused"),
        (200, {"index": "html"}, "store.refused"),
        (301, {}, "store.refused"),
        (404, "not found", "store.refused"),
        (404, {"error": "Not Found", "code": 5}, "store.refused"),
        (403, {"error": "etcdserver: permission denied", "code": 7}, "store.refused"),
        (503, {"error": "etcdserver: no leader", "code": 14}, "store.unavailable"),
        (503, {"error": "etcdserver: request timed out", "code": 14}, "store.unavailable"),
        (504, {"error": "context deadline exceeded", "code": 4}, "store.unavailable"),
        (429, {"error": "etcdserver: too many requests", "code": 8}, "store.unavailable"),
        (429, {"error": "etcdserver: mvcc: database space exceeded", "code": 8}, "store.refused"),
        (503, {"error": "etcdserver: mvcc: database space exceeded", "code": 8}, "store.refused"),
    ],
    ids=str,
)
def test_invalid_answer_is_an_error(status: int, body: object, code: str) -> None:
    with gateway(answering(body, status)) as url, open_store(patient(url)) as store:
        assert code_of(lambda: store.reserve("n", 1)) == code


def test_compacted_revision_is_read_again(etcd: Etcd) -> None:
    asked: list[str] = []

    def answer(path: str, body: dict[str, Any]) -> Answer:
        asked.append(path)
        if len(asked) == 1:
            return answering({"error": "etcdserver: mvcc: required revision has been compacted", "code": 11}, 400)(
                path, body
            )
        return answering(etcd.call(path, body))(path, body)

    with gateway(answer) as url, open_store(patient(url)) as store:
        assert store.reserve("n", 5).first == 1
    assert len(asked) == 4


@pytest.mark.parametrize("value", ["", "no", "[]", "{}", '{"name": "n", "colour": 7}', "\0"], ids=ascii)
def test_foreign_values_at_our_keys_are_refused(etcd: Etcd, value: str) -> None:
    body = {"key": b64encode(b"mintage/namespace/n").decode(), "value": b64encode(value.encode()).decode()}
    etcd.call("/v3/kv/put", body)
    with open_store(patient(etcd.url)) as store:
        assert code_of(lambda: store.reserve("n", 1)) == "store.refused"
        assert code_of(store.list_namespaces) == "store.refused"
        assert store.reserve("other", 1).first == 1


def test_lists_longer_than_a_page_are_complete(etcd: Etcd) -> None:
    with open_store(patient(etcd.url)) as store:
        store.reserve("n0", 1)
        template = keys(etcd)["mintage/namespace/n0"]
        for first in range(1, PAGE + 2, 100):
            puts = [
                {
                    "request_put": {
                        "key": b64encode(f"mintage/namespace/n{number}".encode()).decode(),
                        "value": b64encode(template.replace("n0", f"n{number}").encode()).decode(),
                    }
                }
                for number in range(first, first + 100)
            ]
            etcd.call("/v3/kv/txn", {"success": puts})
        names = [namespace.name for namespace in store.list_namespaces()]
    assert len(names) > PAGE
    assert names == sorted({f"n{number}" for number in range(len(names))})


def test_lists_ask_for_no_sort_before_which_etcd_reads_all_keys() -> None:
    orders: list[str] = []

    def answer(path: str, asked: dict[str, Any]) -> Answer:
        if "limit" in asked:
            orders.append(asked.get("sort_order", "NONE"))
        return answering({"header": {"cluster_id": "1", "revision": "7"}})(path, asked)

    with gateway(answer) as url, open_store(url) as store:
        assert [*store.list_namespaces(), *store.list_pools(), *store.list_leases("p")] == []
    assert orders == ["NONE"] * 3


def use(store: Store, *holders: str) -> None:
    """Lease and release a node number once for each holder."""
    now = store.now_ms()
    for holder in holders:
        lease = acquire(store, nodes=range(1), holder=holder, now_ms=now)
        store.release(lease, used_until_ms=max(lease.floor_ms, now - 1_000) + 1)


def within_an_hour(store: Store) -> None:
    """Wait for the next hour in the last minute of one: each hour has a lease of its own."""
    left_s = SHARED_S - store.now_ms() // 1_000 % SHARED_S
    if left_s <= 60:
        time.sleep(left_s + 1)


def test_past_grants_end_with_a_lease_that_processes_share(etcd: Etcd) -> None:
    with open_store(patient(etcd.url)) as store, open_store(patient(etcd.url)) as other:
        within_an_hour(store)
        use(store, "one", "two")
        use(other, "three")
        key = b64encode(b"mintage/grant/p/").decode()
        pairs = etcd.call("/v3/kv/range", {"key": key, "range_end": b64encode(b"mintage/grant/p0").decode()})["kvs"]
        [lease] = {pair["lease"] for pair in pairs}
        ttl = int(etcd.call("/v3/lease/timetolive", {"ID": lease})["grantedTTL"])
        assert HISTORY_MS // 1000 <= ttl <= HISTORY_MS // 1000 + SHARED_S
        assert [grant.holder for grant in store.list_grants("p", 0)] == ["two", "one"]
        etcd.call("/v3/lease/revoke", {"ID": lease})
        assert list(store.list_grants("p", 0)) == []
        use(store, "four", "five")
        assert [grant.holder for grant in store.list_grants("p", 0)] == ["four", "three"]


def test_past_runs_end_with_a_lease_of_a_day(etcd: Etcd) -> None:
    with open_store(patient(etcd.url)) as store:
        within_an_hour(store)
        for name in ("one", "two", "three"):
            store.reserve("n", 10, holder=name)
        key, end = (b64encode(text).decode() for text in (b"mintage/run/n/", b"mintage/run/n0"))
        pairs = etcd.call("/v3/kv/range", {"key": key, "range_end": end})["kvs"]
        [lease] = {pair["lease"] for pair in pairs}
        ttl = int(etcd.call("/v3/lease/timetolive", {"ID": lease})["grantedTTL"])
        assert RUNS_MS // 1000 <= ttl <= RUNS_MS // 1000 + SHARED_S
        etcd.call("/v3/lease/revoke", {"ID": lease})
        assert list(store.list_runs("n")) == []
        assert store.reserve("n", 10, holder="four").first == 31
        assert [run.holder for run in store.list_runs("n")] == ["three"]


def test_past_grants_that_outlived_their_pool_block_no_number(etcd: Etcd) -> None:
    with open_store(patient(etcd.url)) as store:
        use(store, "one", "two")
        for first, end in (("mintage/pool/", "mintage/pool0"), ("mintage/node/", "mintage/node0")):
            etcd.call(
                "/v3/kv/deleterange",
                {"key": b64encode(first.encode()).decode(), "range_end": b64encode(end.encode()).decode()},
            )
        [past] = store.list_grants("p", 0)
        use(store, "three", "four")
        assert [(grant.floor_ms, grant.holder) for grant in store.list_grants("p", 0)] == [(past.floor_ms, "three")]


def test_past_grants_that_are_too_old_go_by_themselves(etcd: Etcd) -> None:
    with open_store(patient(etcd.url)) as store:
        store.create_pool("p", layout="test", history_ms=1)
        use(store, "one", "two")
        until(lambda: not store.list_grants("p", 0), "etcd has removed them")
        store.create_pool("p", layout="test", history_ms=HISTORY_MS)
        use(store, "three")
        assert [grant.holder for grant in store.list_grants("p", 0)] == ["two"]


def test_lost_reply_fails_the_verb_and_repeats_nothing(etcd: Etcd) -> None:
    with Proxy(etcd) as proxy, open_store(patient(proxy.url)) as store:
        first = store.reserve("n", 10)
        proxy.cut(3)
        assert code_of(lambda: store.reserve("n", 10)) == "store.unavailable"
        # It took effect, and is skipped.
        assert store.reserve("n", 10).first == first.last + 11


def test_running_member_is_asked_among_several(etcd: Etcd) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"etcd://127.0.0.1:{nobody.getsockname()[1]},127.0.0.1:{etcd.port}"
        with open_store(patient(url)) as store:
            assert [store.reserve("n", 5).first for _ in range(3)] == [1, 6, 11]


def test_member_that_does_not_answer_is_skipped_next_time(etcd: Etcd) -> None:
    with Proxy(etcd) as proxy:
        with open_store(f"etcd://127.0.0.1:{proxy.port},127.0.0.1:{etcd.port}?timeout_ms=300") as store:
            proxy.blackhole()
            assert code_of(lambda: store.reserve("n", 5)) == "store.unavailable"
            # A slow machine may answer late what the member has done by then.
            assert eventually(lambda: store.reserve("n", 5)).first % 5 == 1
        proxy.heal()


@pytest.fixture
def guarded(etcd: Etcd) -> Iterator[Etcd]:
    """Yield an etcd that requires a user whose password contains special characters."""
    etcd.call("/v3/auth/user/add", {"name": "root", "password": "p@ss:w/rd"})
    etcd.call("/v3/auth/role/add", {"name": "root"})
    etcd.call("/v3/auth/user/grant", {"user": "root", "role": "root"})
    etcd.call("/v3/auth/enable", {})
    try:
        yield etcd
    finally:
        etcd.kill()
        etcd.is_new = True


def test_user_is_authenticated_and_stays_authenticated(guarded: Etcd) -> None:
    with open_store(patient(guarded.url.replace("://", "://root:p%40ss%3Aw%2Frd@"))) as store:
        first = store.reserve("n", 5)
        assert acquire(store).node == 0
        assert store.describe().server.startswith("etcd 3.")
        # It forgets its tokens.
        guarded.restart()
        assert store.reserve("n", 5).first == first.last + 1


@pytest.mark.parametrize("who", ["", "root:wr0ng@", "root@", "nobody:p%40ss%3Aw%2Frd@"])
def test_failed_authentication_is_reported(guarded: Etcd, who: str) -> None:
    with open_store(patient(guarded.url.replace("://", f"://{who}"))) as store:
        with pytest.raises(StoreError) as caught:
            store.reserve("n", 5)
        assert caught.value.code == "store.refused"
        assert "wr0ng" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "etcd://127.0.0.1/database",
        "etcd://127.0.0.1?ca=/etc/ca.pem",
        "etcd://127.0.0.1?timeout_ms=0",
        "etcd://127.0.0.1?volatile=1",
    ],
)
def test_option_that_etcd_does_not_have_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert caught.value.code == "config.store"


def test_invalid_certificate_authority_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for name in ("ca.pem", "missing.pem"):
        with open_store(f"etcds://127.0.0.1?ca={tmp_path}/{name}") as store:
            assert code_of(lambda: store.reserve("n", 1)) == "config.store"


def test_tls_verifies_server_and_client(tmp_path: Path) -> None:
    ca, key = certificate(tmp_path, "etcd")
    cert, cert_key = certificate(tmp_path, "shop")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=cert)
    tls.load_cert_chain(ca, key)
    tls.verify_mode = ssl.CERT_REQUIRED
    header = {"cluster_id": "1", "revision": "7"}
    shown = f"cert={cert}&cert_key={cert_key}"
    with gateway(answering({"header": header, "succeeded": True}), tls) as url:
        with open_store(patient(f"{url}?ca={ca}&{shown}")) as store:
            assert store.reserve("n", 5).first == 1
        for refused in (f"{url}?ca={ca}", f"{url}?{shown}"):
            with open_store(patient(refused)) as store:
                assert code_of(lambda store=store: store.reserve("n", 5)) == "store.unavailable"  # type: ignore[misc]
