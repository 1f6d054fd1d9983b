"""Tests of Kubernetes: its Role, tokens, deleted and restored objects, busy and several servers, and kubeconfigs."""

from __future__ import annotations

import json
import os
import shutil
import threading
import traceback
from base64 import b64encode
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mintage import sno
from mintage.errors import StoreError
from mintage.rules import GAP, MAX_NODES, NamespaceRecord, NodeRecord, PoolRecord
from mintage.store import Forwarding, Store, new_token, open_store
from mintage.store import kubernetes as kubernetes_store
from mintage.store.kubernetes import (
    ANCHOR,
    FINALIZER,
    GRANTS,
    INCARNATION,
    MOST_PAST,
    PROBED,
    RECORD,
    RUNS,
    object_name,
)
from tests.contract.clients import overlaps
from tests.helpers.outcomes import code_of, eventually, refusal
from tests.helpers.stores import LIMIT_MS, LONG_MS, acquire, extend, patient
from tests.servers import Proxy
from tests.servers.kubernetes import LEASES, NAMESPACE, between, said
from tests.servers.server import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers import Kubernetes

MANY = range(1_000)
"""Node numbers of a pool that is listed to find a free one."""


@pytest.fixture
def store(kubernetes: Kubernetes) -> Iterator[Store]:
    with open_store(patient(kubernetes.url)) as opened:
        yield opened


@pytest.fixture
def pod(kubernetes: Kubernetes, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of the store in a process that believes to be in a pod."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", HOST)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(kubernetes.api.port))
    return f"kubernetes:?account={kubernetes.account}"


def remove(kubernetes: Kubernetes, name: str) -> None:
    """Remove an object in spite of its finalizer, as an operator can."""
    kubernetes.api.call("DELETE", f"{LEASES}/{name}")
    kubernetes.api.call("PATCH", f"{LEASES}/{name}", {"metadata": {"finalizers": None}})


# --- objects ------------------------------------------------------------------------------------------------------


def test_objects_can_be_read_by_people(kubernetes: Kubernetes, store: Store) -> None:
    lease = acquire(store, "sno", holder="shop-5d9f", span_ms=60_000)
    store.reserve("orders", 5)
    assert sorted(kubernetes.names()) == [
        "mintage",
        "mintage.namespace.orders",
        "mintage.node.sno.0",
        "mintage.pool.sno",
    ]
    found = kubernetes.lease("mintage.node.sno.0")
    assert found["spec"]["holderIdentity"] == "shop-5d9f"
    assert found["spec"]["leaseDurationSeconds"] == 60
    assert found["spec"]["renewTime"].startswith("20")
    assert found["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "mintage",
        "mintage/kind": "node",
        "mintage/pool": "sno",
    }
    assert json.loads(found["metadata"]["annotations"][RECORD])["until_ms"] == lease.until_ms
    store.release(lease, used_until_ms=lease.floor_ms)
    assert "holderIdentity" not in kubernetes.lease("mintage.node.sno.0")["spec"]


NAMES = [
    "a",
    "A",
    "a.b",
    "a-b",
    "a:b",
    "a_b",
    "sno.7",
    "sno-7",
    "x" * 128,
    "X" * 128,
    "1@:._-",
    "uuid.v7",
    "0",
    "a-",
    "a-a",
]


def test_no_two_records_have_the_name_of_one_object(store: Store) -> None:
    names = [
        object_name(kind, *key)
        for name in NAMES
        for kind, keys in ((NamespaceRecord, [()]), (PoolRecord, [()]), (NodeRecord, [(0,), (7,), (2**44 - 1,)]))
        for key in ((name, *more) for more in keys)
    ]
    assert len(set(names)) == len(names)
    for name in NAMES:
        store.reserve(name, 5)
        acquire(store, name)
    assert [each.name for each in store.list_namespaces()] == sorted(NAMES)
    assert [each.name for each in store.list_pools()] == sorted(NAMES)
    assert [each.pool for each in store.list_leases()] == sorted(NAMES)
    assert all(store.reserve(name, 1).first == 6 for name in NAMES)


@pytest.mark.parametrize("value", [None, "", "no", "[]", "{}", '{"name": "m"}'])
def test_foreign_values_in_our_objects_are_refused(kubernetes: Kubernetes, store: Store, value: str | None) -> None:
    store.reserve("n", 1)
    kubernetes.api.call("PATCH", f"{LEASES}/mintage.namespace.n", {"metadata": {"annotations": {RECORD: value}}})
    assert code_of(lambda: store.reserve("n", 1)) == "store.refused"
    assert store.reserve("other", 1).first == 1


def test_object_with_another_objects_record_is_refused(kubernetes: Kubernetes, store: Store) -> None:
    store.reserve("n", 1)
    store.reserve("m", 1)
    annotations = kubernetes.lease("mintage.namespace.m")["metadata"]["annotations"]
    kubernetes.api.call("PATCH", f"{LEASES}/mintage.namespace.n", {"metadata": {"annotations": annotations}})
    assert code_of(lambda: store.reserve("n", 1)) == "store.refused"


def test_record_of_a_newer_version_is_refused(kubernetes: Kubernetes, store: Store) -> None:
    store.reserve("n", 1)
    record = json.loads(kubernetes.lease("mintage.namespace.n")["metadata"]["annotations"][RECORD])
    newer = {RECORD: json.dumps({**record, "colour": 7})}
    kubernetes.api.call("PATCH", f"{LEASES}/mintage.namespace.n", {"metadata": {"annotations": newer}})
    assert code_of(lambda: store.reserve("n", 1)) == "store.schema"


def test_number_keeps_its_last_hundred_grants(kubernetes: Kubernetes, store: Store) -> None:
    now = store.now_ms()
    lease = acquire(store, nodes=range(1), holder="first")
    store.release(lease, used_until_ms=now - 4_000)
    found = kubernetes.lease("mintage.node.p.0")["metadata"]["annotations"]
    kept = [[at, at + 1, at, "🐙" * 200] for at in range(now - 5_000, now - 5_000 - MOST_PAST, -1)]
    record = json.loads(found[RECORD]) | {"floor_ms": now - 4_500}
    changed = {**found, RECORD: json.dumps(record), GRANTS: json.dumps(kept, ensure_ascii=False)}
    kubernetes.api.call("PATCH", f"{LEASES}/mintage.node.p.0", {"metadata": {"annotations": changed}})
    acquire(store, nodes=range(1), holder="🐙" * 200)
    grants = store.list_grants("p", 0)
    assert len(grants) == MOST_PAST
    assert grants[0].holder == "first"
    assert grants[-1].floor_ms == kept[-2][0]


def test_namespace_keeps_its_last_hundred_runs(kubernetes: Kubernetes, store: Store) -> None:
    store.reserve("n", 1_000, holder="first")
    now = store.now_ms()
    kept = [[at, at, "🐙" * 200, now, now] for at in range(MOST_PAST + 1, 1, -1)]
    changed = {RUNS: json.dumps(kept, ensure_ascii=False)}
    kubernetes.api.call("PATCH", f"{LEASES}/mintage.namespace.n", {"metadata": {"annotations": changed}})
    store.reserve("n", 1, holder="🐙" * 200)
    assert len(store.list_runs("n")) == MOST_PAST


@pytest.mark.parametrize("wrong", ["no", "[[1]]", "[[1, 2, 3, 4]]", "7", "null"])
def test_damaged_runs_make_no_reservation_fail(kubernetes: Kubernetes, store: Store, wrong: str) -> None:
    store.reserve("n", 1, holder="one")
    kubernetes.api.call("PATCH", f"{LEASES}/mintage.namespace.n", {"metadata": {"annotations": {RUNS: wrong}}})
    assert store.reserve("n", 1, holder="two").first == 2
    assert [run.holder for run in store.list_runs("n")] == ["one"]


@pytest.mark.parametrize("wrong", ["no", "[[1]]", "[[1, 2, 3, 4]]", "7", "null"])
def test_foreign_history_is_refused(kubernetes: Kubernetes, store: Store, wrong: str) -> None:
    acquire(store, nodes=range(1))
    kubernetes.api.call("PATCH", f"{LEASES}/mintage.node.p.0", {"metadata": {"annotations": {GRANTS: wrong}}})
    assert code_of(lambda: store.list_grants("p", 0)) == "store.refused"


# --- rights and tokens --------------------------------------------------------------------------------------------


def test_account_has_no_more_rights_than_it_needs(kubernetes: Kubernetes, store: Store) -> None:
    acquire(store)
    token = (kubernetes.account / "token").read_text()
    for method, path in (
        ("DELETE", f"{LEASES}/{ANCHOR}"),
        ("PATCH", f"{LEASES}/{ANCHOR}"),
        ("GET", f"{LEASES.replace(NAMESPACE, 'default')}"),
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets"),
    ):
        assert kubernetes.api.request(method, path, {}, token=token)[0] == 403


def test_account_without_the_role_is_refused_with_the_remedy(kubernetes: Kubernetes) -> None:
    with open_store(patient(kubernetes.api.url_through(kubernetes.api.port, "default"))) as store:
        error = refusal(lambda: store.reserve("n", 1))
    assert isinstance(error, StoreError)
    assert (error.code, error.is_lasting) == ("store.refused", True)
    assert "Role of deploy/kubernetes/store" in str(error)


def test_pod_needs_no_more_than_its_mounted_files(pod: str) -> None:
    with open_store(patient(pod)) as store:
        assert store.reserve("n", 5).first == 1
        assert acquire(store).node == 0
        assert store.describe().server.startswith("Kubernetes v1.")
        assert str(store.url) == "kubernetes:///?account=…&timeout_ms=…"


def test_token_is_read_again_after_its_rotation(kubernetes: Kubernetes, pod: str) -> None:
    with open_store(patient(pod)) as store:
        store.reserve("n", 5)
        kubernetes.rotate("an-expired-token")
        error = refusal(lambda: store.reserve("n", 5))
        assert error.code == "store.unavailable"
        assert "an-expired-token" not in f"{error} {error!r}"
        kubernetes.rotate()
        assert store.reserve("n", 5).first == 6


def test_missing_token_is_an_outage(kubernetes: Kubernetes, pod: str) -> None:
    with open_store(patient(pod)) as store:
        for text in ("", "two\nlines", "smörgås"):
            (kubernetes.account / "token").write_text(text)
            assert code_of(lambda: store.reserve("n", 5)) == "store.unavailable"
        kubernetes.rotate()
        assert store.reserve("n", 5).first == 1


def test_process_outside_a_pod_is_told_of_kubeconfigs() -> None:
    with open_store("kubernetes:") as store:
        assert "kubernetes://CONTEXT/NAMESPACE" in str(refusal(lambda: store.reserve("n", 1)))


@pytest.mark.parametrize("namespace", ["..%2Fdefault", "A", "a" * 64, "a.b", "-"])
def test_malformed_namespace_is_refused(kubernetes: Kubernetes, namespace: str) -> None:
    with open_store(f"{kubernetes.api.url_through(kubernetes.api.port, namespace)}") as store:
        assert code_of(lambda: store.reserve("n", 1)) == "config.store"


# --- objects that are gone, or older than they were ---------------------------------------------------------------


def test_deleted_objects_stay_and_work_on(kubernetes: Kubernetes, store: Store) -> None:
    held = acquire(store, nodes=range(1))
    last = store.reserve("n", 10).last
    kubernetes.api.call("DELETE", LEASES)
    with open_store(patient(kubernetes.url)) as other:
        assert other.reserve("n", 10).first == last + 1
        assert code_of(lambda: acquire(other, nodes=range(1))) == "lease.none_free"
        assert extend(store, held, 1).until_ms >= held.until_ms
        [warned] = other.describe().warnings
    assert FINALIZER in warned


@pytest.mark.parametrize("name", ["mintage.namespace.n", "mintage.node.p.0", "mintage.pool.p", ANCHOR])
def test_process_notices_that_its_object_was_removed(kubernetes: Kubernetes, store: Store, name: str) -> None:
    acquire(store, nodes=range(1))
    last = store.reserve("n", 10).last
    remove(kubernetes, name)
    for _ in range(2):
        for _ in range(2):
            if name == "mintage.namespace.n":
                assert "namespaces create n --start N" in str(refusal(lambda: store.reserve("n", 1)))
            else:
                # Until it has noticed, all others are as they were.
                assert store.reserve("n", 1).first > last
        assert code_of(lambda: acquire(store, nodes=range(1))) == "lease.none_free"
    assert "history was lost" in store.describe().warnings[0]


def test_new_process_does_not_notice_that_an_object_was_removed(kubernetes: Kubernetes, store: Store) -> None:
    store.reserve("n", 10)
    remove(kubernetes, "mintage.namespace.n")
    with open_store(patient(kubernetes.url)) as other:
        assert other.reserve("n", 10).first == 1


def test_cluster_that_goes_back_counts_as_a_server_that_forgot(kubernetes: Kubernetes, tmp_path: Path) -> None:
    data = kubernetes.etcd.directory / "data"
    with open_store(patient(kubernetes.url)) as store, open_store(patient(kubernetes.url)) as other:
        held = acquire(store, span_ms=LONG_MS)
        store.reserve("n", 100)
        other.reserve("n", 100)
        kubernetes.stop()
        shutil.copytree(data, tmp_path / "data")
        kubernetes.start()
        held = eventually(lambda: extend(store, held, 4_000))
        last = store.reserve("n", 100).last
        acquire(store, nodes=range(1, 4))
        identity = store.describe().identity
        kubernetes.stop()
        shutil.rmtree(data)
        shutil.copytree(tmp_path / "data", data)
        kubernetes.start()
        # A process that has not seen the later writes repeats them.
        assert eventually(lambda: other.reserve("n", 100)).last == last
        assert eventually(lambda: store.reserve("n", 1)).first > last
        assert code_of(lambda: acquire(store, nodes=range(1, 4))) == "lease.none_free"
        found = store.describe().identity
        assert found.startswith(f"{identity}:")
        # Its holder continues by the token before.
        assert extend(store, held).until_ms >= held.until_ms
        assert code_of(lambda: acquire(store, pool="q")) == "lease.none_free"
        assert "namespaces create m --start N" in str(refusal(lambda: store.reserve("m", 1)))
        # Another process that notices it gives the cluster no further incarnation.
        assert other.reserve("n", 1).first > last
        assert other.describe().identity == found
        [warned] = store.describe().warnings
        assert warned.endswith(f"then run: kubectl annotate lease {ANCHOR} {INCARNATION}-")
        kubernetes.api.call("PATCH", f"{LEASES}/{ANCHOR}", {"metadata": {"annotations": {INCARNATION: None}}})
        assert store.describe().warnings == ()
        assert store.reserve("new", 1).first == 1


def test_annotation_by_hand_makes_a_cluster_another_one(kubernetes: Kubernetes, store: Store) -> None:
    acquire(store)
    last = store.reserve("n", 100).last
    restored = {"metadata": {"annotations": {INCARNATION: "restored-1"}}}
    kubernetes.api.call("PATCH", f"{LEASES}/{ANCHOR}", restored)
    assert store.reserve("n", 1).first == last + GAP * 100 + 1
    assert code_of(lambda: acquire(store)) == "lease.none_free"


# --- others that write at the same time ---------------------------------------------------------------------------


def test_crowd_of_processes_gets_numbers_without_a_search_for_each(kubernetes: Kubernetes) -> None:
    nodes: list[int] = []

    def use(store: Store) -> None:
        nodes.extend(acquire(store, nodes=MANY).node for _ in range(2))

    with ExitStack() as stack:
        stores = [stack.enter_context(open_store(patient(kubernetes.url))) for _ in range(16)]
        threads = [threading.Thread(target=use, args=[store]) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(nodes)) == len(nodes) == 32


def test_threads_of_two_servers_on_one_etcd_share_a_store(kubernetes: Kubernetes) -> None:
    another = kubernetes.another()
    another.start()
    try:
        with (
            open_store(patient(kubernetes.url)) as one,
            open_store(patient(kubernetes.add_context(another))) as other,
        ):
            segments: list[tuple[str, int, int]] = []
            nodes: list[int] = []

            def use(store: Store) -> None:
                nodes.append(acquire(store, nodes=range(16)).node)
                for _ in range(8):
                    segment = store.reserve("n", 3)
                    segments.append(("n", segment.first, segment.last + 1))

            threads = [threading.Thread(target=use, args=[store]) for store in (one, other) * 4]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(set(nodes)) == len(nodes) == 8
            assert len(segments) == 64
            assert not overlaps(segments)
    finally:
        another.kill()


def test_window_is_decided_again_if_the_pool_changes_meanwhile(kubernetes: Kubernetes) -> None:
    changes: list[int] = []

    def answer(method: str, path: str) -> None:
        if method in {"POST", "PUT"} and changes:
            # Somebody else changes the pool just before the write of the number.
            with open_store(patient(kubernetes.url)) as other:
                other.create_pool("p", layout="test", history_ms=changes.pop())

    with between(kubernetes, answer) as url, open_store(patient(url)) as store:
        store.create_pool("p", layout="test")
        changes.append(5_001)
        lease = acquire(store)
        # Nobody has the window that was taken back, so the number is granted again.
        [record] = store.list_leases("p")
        assert (record.node, record.token) == (lease.node, lease.token) == (0, lease.token)
        assert list(store.list_grants("p", 0)) == []
        changes.append(5_002)
        extended = extend(store, lease, 2_000)
        assert [(each.until_ms, each.token) for each in store.list_leases("p")] == [(extended.until_ms, extended.token)]
        pool = store.get_pool("p")
        assert not changes
        assert pool is not None
        assert pool.history_ms == 5_002


def test_extension_costs_five_requests(kubernetes: Kubernetes) -> None:
    asked: list[str] = []
    with between(kubernetes, lambda method, path: asked.append(method)) as url, open_store(patient(url)) as store:
        lease = acquire(store)
        asked.clear()
        extend(store, lease, 1)
        assert sorted(asked) == ["GET"] * 5 + ["PUT"]  # one of them is for the clock of the test
        asked.clear()
        store.reserve("n", 5)
        store.reserve("n", 5)
        assert sorted(asked) == ["GET"] * 4 + ["POST", "PUT"]


def test_record_of_one_number_is_read_without_a_list(kubernetes: Kubernetes) -> None:
    asked: list[str] = []
    with between(kubernetes, lambda method, path: asked.append(path)) as url, open_store(patient(url)) as store:
        for node in (0, 1, 3):
            acquire(store, nodes=range(node, node + 1))
        asked.clear()
        for client in (store, Forwarding(store)):
            assert [client.get_lease("p", node) is not None for node in (0, 1, 2, 3)] == [True, True, False, True]
        for wrong in (-1, MAX_NODES):
            assert code_of(partial(store.get_lease, "p", wrong)) == "field.range"
        assert code_of(lambda: store.get_lease("p/q", 0)) == "config.name"
        assert [each.node for each in store.list_leases("p", 0, 1)] == [1]
        assert not any("labelSelector" in path for path in asked)
        assert [each.node for each in store.list_leases("p", 1, 1)] == [3]


def test_search_lists_a_pool_once_a_minute(kubernetes: Kubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    lists: list[str] = []

    def answer(method: str, path: str) -> None:
        if "labelSelector" in path:
            lists.append(path)

    with between(kubernetes, answer) as url, open_store(patient(url)) as store:
        for _ in range(5):
            acquire(store, nodes=MANY)
        assert len(lists) == 1
        monkeypatch.setattr(kubernetes_store, "LIST_S", 0)
        acquire(store, nodes=MANY)
        assert len(lists) == 2


def test_search_takes_no_record_of_a_list_for_current(kubernetes: Kubernetes, store: Store) -> None:
    many = range(PROBED + 1)
    with open_store(patient(kubernetes.url)) as other:
        store.clock_limit_ms = other.clock_limit_ms = LIMIT_MS
        now = store.now_ms()
        leases = [acquire(store, nodes=many, now_ms=now - 4_000, span_ms=1_000) for _ in many]
        assert acquire(other, nodes=many, now_ms=now).node == 0
        for lease in leases[1:-1]:
            store.extend(lease, now_ms=now, next_token=new_token())
        # All but one of those that the list showed as free are taken.
        assert acquire(other, nodes=many, now_ms=now).node == many[-1]


def test_lists_longer_than_a_page_are_complete(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_store, "PAGE", 3)
    names = [f"n{number}" for number in range(10)]
    for name in names:
        store.reserve(name, 1)
    assert [each.name for each in store.list_namespaces()] == names
    assert [each.name for each in store.list_namespaces("n4", 3)] == names[5:8]
    assert store.count_namespaces() == 10


# --- servers that are busy or lose answers ------------------------------------------------------------------------


def test_busy_server_is_asked_again_when_it_says(kubernetes: Kubernetes) -> None:
    busy = [said(429, "TooManyRequests", **{"Retry-After": "1"}) for _ in range(3)]

    def answer(method: str, path: str) -> tuple[int, dict[str, str], bytes] | None:
        return busy.pop() if busy else None

    with between(kubernetes, answer) as url, open_store(patient(url)) as store:
        error = refusal(lambda: store.reserve("n", 5))
        assert isinstance(error, StoreError)
        assert (error.code, error.retry_after_ms, len(busy)) == ("store.unavailable", 1000, 1)
        assert store.reserve("n", 5).first == 1


@pytest.mark.parametrize(
    ("answered", "code"),
    [
        (said(401, "Unauthorized"), "store.refused"),
        (said(403, "Forbidden"), "store.refused"),
        (said(404, "NotHere"), "store.refused"),
        (said(422, "Invalid"), "store.refused"),
        (said(429, "TooManyRequests", **{"Retry-After": "9999"}), "store.unavailable"),
        (said(500, "InternalError"), "store.unavailable"),
        (said(503, "ServiceUnavailable"), "store.unavailable"),
        (said(504, "Timeout"), "store.unavailable"),
        ((200, {}, b"welcome"), "store.refused"),
        ((200, {}, b'{"kind": "Pod"}'), "store.refused"),
        ((200, {}, b'{"kind": "Lease"}'), "store.refused"),
        ((301, {"Location": "https://example.invalid"}, b"{}"), "store.refused"),
        ((404, {}, b"not found"), "store.refused"),
        (said(409, "Conflict"), "store.unavailable"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else value,
)
def test_invalid_answer_is_an_error(
    kubernetes: Kubernetes, answered: tuple[int, dict[str, str], bytes], code: str
) -> None:
    with between(kubernetes, lambda method, path: answered) as url, open_store(patient(url)) as store:
        assert code_of(lambda: store.reserve("n", 1)) == code


def test_refusal_after_a_good_answer_is_an_outage(kubernetes: Kubernetes) -> None:
    refused = [said(403, "Forbidden")]

    def answer(method: str, path: str) -> tuple[int, dict[str, str], bytes] | None:
        return refused.pop() if is_starting and refused else None

    is_starting = False
    with between(kubernetes, answer) as url, open_store(patient(url)) as store:
        assert store.reserve("n", 5).first == 1
        is_starting = True
        error = refusal(lambda: store.reserve("n", 5))
        assert isinstance(error, StoreError)
        assert (error.code, error.is_lasting) == ("store.unavailable", False)
        assert store.reserve("n", 5).first == 6


def test_server_without_a_clock_is_refused(kubernetes: Kubernetes) -> None:
    body = json.dumps({"kind": "Lease", "metadata": {"name": ANCHOR, "uid": "1", "resourceVersion": "1"}}).encode()
    for headers in ({}, {"Date": "yesterday"}):
        with (
            between(kubernetes, lambda *_, headers=headers: (200, headers, body)) as url,
            open_store(patient(url)) as store,
        ):
            assert code_of(store.now_ms) == "store.refused"


def test_list_whose_version_is_gone_begins_again(kubernetes: Kubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = [said(410, "Expired")]
    monkeypatch.setattr(kubernetes_store, "PAGE", 2)

    def answer(method: str, path: str) -> tuple[int, dict[str, str], bytes] | None:
        return gone.pop() if gone and "continue=" in path else None

    with between(kubernetes, answer) as url, open_store(patient(url)) as store:
        for name in "abc":
            store.reserve(name, 1)
        assert [each.name for each in store.list_namespaces()] == ["a", "b", "c"]
    assert not gone


def test_lost_answer_fails_the_verb_and_repeats_nothing(kubernetes: Kubernetes) -> None:
    with (
        Proxy(kubernetes.api) as proxy,
        open_store(patient(kubernetes.add_context(kubernetes.api, proxy.port))) as store,
    ):
        first = store.reserve("n", 10)
        held = acquire(store)
        before = proxy.replies
        store.reserve("n", 10)
        requests = proxy.replies - before
        proxy.cut(requests)
        assert code_of(lambda: store.reserve("n", 10)) == "store.unavailable"
        # It took effect, and is skipped.
        assert store.reserve("n", 10).first == first.last + 21
        token = new_token()
        for reply in range(1, 6):
            proxy.cut(reply + 1)  # the first is the handshake of TLS
            with suppress(StoreError):
                held = store.extend(held, now_ms=store.now_ms(), next_token=token)
            held = eventually(lambda: store.extend(held, now_ms=store.now_ms(), next_token=token))  # noqa: B023
            token = new_token()
        assert held.until_ms == store.list_leases("p")[0].until_ms


def test_longest_request_is_that_of_the_option(kubernetes: Kubernetes) -> None:
    with Proxy(kubernetes.api) as proxy:
        with open_store(kubernetes.add_context(kubernetes.api, proxy.port) + "?timeout_ms=300") as store:
            eventually(lambda: store.reserve("n", 5))
            proxy.blackhole()
            assert code_of(lambda: store.reserve("n", 5)) == "store.unavailable"
        proxy.heal()


# --- spans --------------------------------------------------------------------------------------------------------


def test_leases_have_a_span_of_two_minutes_by_default(kubernetes: Kubernetes, store: Store) -> None:
    generator = sno.Generator(store=kubernetes.url, pool="p", max_wait_ms=60_000)
    generator.new()
    [record] = store.list_leases("p")
    generator.close()
    assert record.span_ms == 120_000
    assert store.create_pool("q", layout="test").span_ms == 120_000


# --- kubeconfigs --------------------------------------------------------------------------------------------------


def write(path: Path, cluster: dict[str, Any], user: dict[str, Any], **more: Any) -> None:
    entry = {"name": "c", "context": {"cluster": "c", "user": "c", **more}}
    config = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "c", "user": user}],
        "contexts": [entry, {**entry, "name": "admin@c"}, {**entry, "name": "arn:x/c"}],
    }
    path.write_text(json.dumps(config))


@pytest.fixture
def cluster(kubernetes: Kubernetes) -> dict[str, Any]:
    authority = kubernetes.api.certified().authority.read_bytes()
    server = f"https://{HOST}:{kubernetes.api.port}"
    return {"server": server, "certificate-authority-data": b64encode(authority).decode()}


def test_contexts_namespace_and_names_of_tools_are_understood(
    kubernetes: Kubernetes, cluster: dict[str, Any], tmp_path: Path
) -> None:
    write(tmp_path / "config", cluster, {"token": kubernetes.new_token()}, namespace=NAMESPACE)
    firsts = []
    for name in ("c", "admin@c", "arn%3Ax%2Fc"):
        with open_store(patient(f"kubernetes://{name}?kubeconfig={tmp_path}/config")) as store:
            firsts.append(store.reserve("n", 5).first)
    assert firsts == [1, 6, 11]


def test_entries_of_several_kubeconfigs_count_together(
    kubernetes: Kubernetes, cluster: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "one", cluster, {"token": "wrong"}, namespace=NAMESPACE)
    config = json.loads((tmp_path / "one").read_text())
    (tmp_path / "one").write_text(json.dumps({**config, "users": None}))
    write(tmp_path / "two", {"server": "https://other"}, {"token": kubernetes.new_token()})
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/one{os.pathsep}{tmp_path}/two")
    with open_store(patient("kubernetes://c")) as store:
        assert store.reserve("n", 5).first == 1


@pytest.mark.parametrize("is_inline", [True, False])
def test_client_certificate_stands_for_a_token(
    kubernetes: Kubernetes, cluster: dict[str, Any], tmp_path: Path, is_inline: bool
) -> None:
    tls = kubernetes.api.certified()
    kubernetes.api.run(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-days", "2", "-subj", "/O=system:masters/CN=admin", "-addext", "basicConstraints=critical,CA:FALSE"),
        *("-CA", str(tls.authority), "-CAkey", str(tls.authority.with_suffix(".key"))),
        *("-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")),
    )
    user = {
        "client-certificate-data": b64encode((tmp_path / "cert.pem").read_bytes()).decode(),
        "client-key-data": b64encode((tmp_path / "key.pem").read_bytes()).decode(),
    }
    # A relative path begins at the folder of the kubeconfig.
    write(
        tmp_path / "config", cluster, user if is_inline else {"client-certificate": "cert.pem", "client-key": "key.pem"}
    )
    with open_store(patient(f"kubernetes://c/{NAMESPACE}?kubeconfig={tmp_path}/config")) as store:
        assert store.reserve("n", 5).first == 1


SECRET = "s3cr3t-w0rd"


@pytest.mark.parametrize(
    ("changed", "user", "words"),
    [
        ({}, {"exec": {"command": "aws"}}, "has exec, and mintage starts no program"),
        ({}, {"auth-provider": {"name": "gcp"}}, "has auth-provider"),
        ({}, {}, "neither a token"),
        ({}, {"username": "me", "password": SECRET}, "neither a token"),
        ({}, {"token": f"{SECRET}\nX-Evil: 1"}, "neither a token"),
        ({"server": "http://127.0.0.1"}, {"token": SECRET}, "does not begin with https://"),
        ({"server": 7}, {"token": SECRET}, "does not begin with https://"),
        ({"certificate-authority-data": "!"}, {"token": SECRET}, "not text in base64"),
        ({"certificate-authority-data": "aGVsbG8="}, {"token": SECRET}, "or a certificate that is none"),
        ({}, {"client-certificate-data": "aGVsbG8=", "client-key-data": "aGVsbG8="}, "or a certificate that is none"),
        ({}, {"client-certificate": "missing.pem", "token": SECRET}, "cannot be read"),
    ],
)
def test_kubeconfig_that_cannot_work_is_refused(
    cluster: dict[str, Any], tmp_path: Path, changed: dict[str, Any], user: dict[str, Any], words: str
) -> None:
    write(tmp_path / "config", cluster | changed, user)
    with open_store(f"kubernetes://c/{NAMESPACE}?kubeconfig={tmp_path}/config") as store:
        error = refusal(lambda: store.reserve("n", 1))
    assert error.code == "config.store"
    assert words in str(error)
    assert SECRET not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    "text", [f"a: [{SECRET}", "7", "[]", "contexts: [{name: c}]", "contexts: 7", "\0", "clusters: [7]"]
)
def test_file_that_is_no_kubeconfig_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with open_store(f"kubernetes://c?kubeconfig={tmp_path}/config") as store:
        error = refusal(lambda: store.reserve("n", 1))
    assert error.code == "config.store"
    assert SECRET not in "".join(traceback.format_exception(error))


def test_missing_context_is_named_with_those_that_there_are(cluster: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path / "config", cluster, {"token": SECRET})
    with open_store(f"kubernetes://nowhere/ids?kubeconfig={tmp_path}/config") as store:
        assert "has no context 'nowhere': it has admin@c, arn:x/c, c" in str(refusal(lambda: store.reserve("n", 1)))


@pytest.mark.parametrize(
    "url",
    [
        "kubernetes://a,b/ids",
        "kubernetes://c:8080/ids",
        "kubernetes://u:p@c/ids",
        "kubernetes:?prefix=a",
        "kubernetes:?timeout_ms=0",
    ],
)
def test_url_that_kubernetes_does_not_have_is_refused(url: str) -> None:
    assert code_of(lambda: open_store(url)) == "config.store"
