"""Tests of the service as a store, and of its clients: restarts, several services, keys and TLS."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import sys
import time
import traceback
import warnings
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mintage import AsyncClient, Client, Sequence, locality, open_store, sno, snowflake
from mintage.errors import LeaseError, RequestError, StoreError
from mintage.rules import Segment
from mintage.store import new_token
from mintage.testing import ManualClock
from tests.helpers.outcomes import code_of
from tests.helpers.stores import PATIENCE_MS, acquire, extend, patient
from tests.servers import Proxy
from tests.servers.server import HOST, free_port, until
from tests.service.running import certificate, key_toml, locked
from tests.service.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mintage.store import Store
    from tests.servers import MariaDB, PostgreSQL
    from tests.servers.mintage import Http

SPAN_MS = 10_000


@contextmanager
def serving(directory: Path, store: str, toml: str = "", **settings: object) -> Iterator[Serving]:
    directory.mkdir()
    config = directory.parent / f"{directory.name}.toml"
    config.write_text(toml, encoding="utf-8")
    service = Serving(directory, store, config=config, **settings)
    try:
        service.start()
        yield service
    finally:
        service.kill()


def window_ms(store: Store) -> int:
    """Return the end of the only window that was granted."""
    (record,) = store.list_leases()
    return record.until_ms


# --- the library on the service -------------------------------------------------------------------------------------


def test_sequence_uses_its_buffer_while_the_service_is_away(http: Http) -> None:
    url = patient(http.url)
    with Sequence("orders", store=url, step=50, max_wait_ms=PATIENCE_MS) as orders, open_store(url) as store:
        seen = [orders.next() for _ in range(10)]
        until(lambda: orders.buffered >= 40, "a segment is held")
        http.kill()
        seen += [orders.next() for _ in range(orders.buffered)]
        assert code_of(lambda: store.reserve("orders", 1)) == "store.unavailable"
        http.start()
        seen += [number for row in orders.batch(200) for number in row]
    assert len(seen) >= 250
    assert len(set(seen)) == len(seen)
    assert all(before < after for before, after in pairwise(seen))


def test_generator_mints_and_keeps_its_node_during_a_restart(http: Http) -> None:
    with snowflake.Generator(store=patient(http.url), span_ms=3000, max_wait_ms=PATIENCE_MS) as generator:
        seen = generator.batch(1000).tolist()
        with open_store(patient(http.url)) as store:
            before_ms = window_ms(store)
            http.stop()
            seen += generator.batch(1000)
            http.start()
            # Long enough for an extension, with or without the service.
            until(lambda: window_ms(store) > before_ms, "the lease is extended")
            seen += generator.batch(1000)
            assert len(set(seen)) == 3000
            assert len({snowflake.DEFAULT.parse(each).node for each in seen}) == 1


def test_killed_processes_of_a_service_repeat_no_integer(mariadb: MariaDB, tmp_path: Path) -> None:
    with ExitStack() as stack:
        one, other = (stack.enter_context(serving(tmp_path / name, patient(mariadb.url))) for name in ("one", "other"))
        url = f"http://{HOST}:{one.port},{HOST}:{other.port}?timeout_ms={PATIENCE_MS}"
        orders = stack.enter_context(Sequence("orders", store=url, step=100, max_wait_ms=PATIENCE_MS))
        generator = stack.enter_context(sno.Generator(store=url, max_wait_ms=PATIENCE_MS))
        client = stack.enter_context(Client(url))
        numbers, ids = [], []
        for dies, comes_back in ((one, None), (other, one)):
            numbers += [orders.next() for _ in range(500)] + client.batch("orders", 10)
            ids += [generator.new() for _ in range(500)]
            dies.kill()
            if comes_back is not None:
                comes_back.start()
            numbers += [orders.next() for _ in range(500)] + client.batch("orders", 10)
            ids += [generator.new() for _ in range(500)]
        assert len(numbers) == len(set(numbers)) == 2040
        assert len(ids) == len(set(ids)) == 2000


def test_service_and_client_both_give_back_their_tails(http: Http) -> None:
    with Sequence("orders", store=patient(http.url), step=100, max_wait_ms=60_000) as orders:
        assert [orders.next() for _ in range(3)] == [1, 2, 3]
    with Sequence("orders", store=patient(http.url), step=100, max_wait_ms=60_000) as orders:
        assert orders.next() == 4


@pytest.mark.parametrize("has_one_store", [True, False])
def test_services_and_processes_repeat_nothing_if_they_share_a_store(tmp_path: Path, *, has_one_store: bool) -> None:
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("one", "one" if has_one_store else "other")]
    with ExitStack() as stack:
        services = [stack.enter_context(serving(tmp_path / f"s{at}", url)) for at, url in enumerate(urls)]
        stores = [patient(service.url) for service in services] + urls[:has_one_store]
        minted: list[int] = []
        clock = ManualClock(time.time_ns(), auto_advance=False)
        generators = []
        for store in stores:
            orders = stack.enter_context(Sequence("orders", store=store, step=10, max_wait_ms=60_000))
            generator = stack.enter_context(
                snowflake.Generator(store=store, clock=clock, nodes=range(len(stores)), max_wait_ms=60_000)
            )
            minted += [orders.next() for _ in range(25)]
            clock.set(time.time_ns())  # a store leases nothing to a clock that is seconds behind
            minted.append(generator.new())
            generators.append(generator)
        minted += [generator.new() for generator in generators]
        assert (len(set(minted)) == len(minted)) == has_one_store


def test_lost_answer_leaves_a_gap_and_repeats_nothing(http: Http) -> None:
    with Proxy(http) as proxy, open_store(patient(proxy.url)) as store:
        assert store.reserve("n", 10) == Segment("n", 1, 10)
        proxy.cut()
        assert code_of(lambda: store.reserve("n", 10)) == "store.unavailable"
        assert store.reserve("n", 10) == Segment("n", 21, 30)


def test_tail_whose_answer_was_lost_is_taken_back_once(http: Http) -> None:
    # The other URL of the same service must not be used for this.
    with Proxy(http) as proxy, open_store(patient(f"{proxy.url},{HOST}:{http.port}")) as store:
        segment = store.reserve("n", 10)
        proxy.cut()
        assert code_of(lambda: store.give_back(segment, 4)) == "store.unavailable"
        assert store.reserve("n", 10) == Segment("n", 4, 13)


def test_lost_answer_is_requested_again_from_another_host(http: Http) -> None:
    with Proxy(http) as proxy, open_store(patient(f"{proxy.url},{HOST}:{http.port}")) as store:
        store.create_pool("p", layout="test", never_used=True)
        first = acquire(store)
        proxy.cut()
        second = acquire(store)
        assert first.node != second.node
        assert store.reserve("n", 10) == Segment("n", 1, 10)


@pytest.mark.skipif(sys.platform != "linux", reason="forks beside threads are Linux's")
def test_forked_child_and_parent_do_not_share_connections(http: Http) -> None:
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    with open_store(patient(http.url)) as store, Client(patient(http.url)) as client:

        def take() -> list[int]:
            return [number for _ in range(100) for number in (store.reserve("n", 1).first, client.next("forks"))]

        # Both have a connection that the child inherits.
        mine = [store.reserve("n", 1).first, client.next("forks")]
        with warnings.catch_warnings():
            # Python 3.12 warns of forks beside threads, which are the subject of this test.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = context.Process(target=lambda: sending.send(take()))
            child.start()
        try:
            mine += take()
            assert receiving.poll(PATIENCE_MS / 1000), "the child is stuck"
            theirs = receiving.recv()
        finally:
            child.kill()
            child.join()
    for at in (0, 1):
        assert not {*mine[at::2]} & {*theirs[at::2]}
        assert len({*mine[at::2], *theirs[at::2]}) == 201


def test_kind_of_the_store_behind_the_service_can_be_asked(http: Http) -> None:
    with open_store(patient(http.url)) as store, open_store(http.store) as behind:
        described, itself = store.describe(), behind.describe()
        assert described.promise == itself.promise == "host"
        assert described.server == f"mintage with {itself.server}"
        assert described.identity == itself.identity


def test_namespace_that_the_service_may_not_create_is_refused(tmp_path: Path) -> None:
    toml = "auto_create = false\nmax_reserve = 100\n"
    with (
        serving(tmp_path / "s", f"sqlite:///{tmp_path}/ids.db", toml) as service,
        open_store(patient(service.url)) as store,
    ):
        with pytest.raises(StoreError, match=r"auto_create is off.*request\.namespace") as caught:
            store.reserve("n", 10)
        assert caught.value.code == "store.refused"
        store.create_namespace("n")
        assert code_of(lambda: store.reserve("n", 101)) == "field.range"
        assert len(store.reserve("n", 100)) == 100


def test_namespace_created_through_a_service_after_a_loss_needs_a_start(tmp_path: Path, postgresql: PostgreSQL) -> None:
    with open_store(patient(postgresql.url)) as behind:
        behind.reserve("n", 100)
    postgresql.sql("DELETE FROM mintage_namespace")
    with serving(tmp_path / "s", patient(postgresql.url)) as service, open_store(patient(service.url)) as store:
        for create in (lambda: store.reserve("n", 1), lambda: store.create_namespace("n")):
            with pytest.raises(StoreError, match="has lost namespaces") as caught:
                create()
            assert caught.value.code == "store.refused"
        store.create_namespace("n", start=101)
        assert store.reserve("n", 1).first == 101


# --- keys and TLS ---------------------------------------------------------------------------------------------------

RIGHTS = {
    "orders": {"orders": ["reserve"]},
    "counter": {"orders": ["next"]},
    "minter": {"p": ["lease"]},
    "reader": {"*": ["describe"]},
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Yield a service with a key for each kind of right."""
    directory = tmp_path_factory.mktemp("guarded")
    toml = "auto_create = true\n" + "\n".join(key_toml(name, f"mint_{name}-s3cr3t", RIGHTS[name]) for name in RIGHTS)
    with serving(directory / "service", f"sqlite:///{directory}/ids.db", toml) as service:
        yield service


def with_key(service: Serving, name: str) -> str:
    return patient(service.url.replace("://", f"://:mint_{name}-s3cr3t@"))


def test_key_allows_what_its_rights_say(guarded: Serving) -> None:
    with open_store(with_key(guarded, "orders")) as store:
        segment = store.reserve("orders", 10)
        assert store.give_back(segment, segment.first)
    with open_store(with_key(guarded, "reader")) as reader, open_store(with_key(guarded, "minter")) as store:
        assert [record.name for record in reader.list_namespaces()] == ["orders"]
        now_ms = reader.now_ms()
        lease = store.acquire("p", nodes=range(4), layout="test", holder="me", now_ms=now_ms, span_ms=SPAN_MS)
        store.release(store.extend(lease, now_ms=now_ms, next_token=new_token()), used_until_ms=now_ms)
    with Client(with_key(guarded, "counter")) as client:
        assert len(client.batch("orders", 5)) == 5


@pytest.mark.parametrize(
    ("name", "verb"),
    [
        ("orders", lambda store: store.reserve("others", 1)),
        ("orders", lambda store: store.now_ms()),
        ("orders", lambda store: store.create_namespace("orders")),
        ("orders", lambda store: store.raise_floor("orders", 5)),
        ("counter", lambda store: store.reserve("orders", 1)),
        ("counter", lambda store: store.give_back(Segment("orders", 1, 10), 5)),
        ("minter", lambda store: store.create_pool("p", layout="test")),
        ("minter", lambda store: store.revoke("p", 0)),
        ("reader", lambda store: store.reserve("orders", 1)),
        ("nobody", lambda store: store.reserve("orders", 1)),
        ("", lambda store: store.reserve("orders", 1)),
    ],
)
def test_key_without_the_right_is_refused_and_not_shown(
    guarded: Serving, name: str, verb: Callable[[Store], object], caplog: pytest.LogCaptureFixture
) -> None:
    url = with_key(guarded, name) if name else patient(guarded.url)
    with caplog.at_level(logging.DEBUG), open_store(url) as store, pytest.raises(StoreError) as caught:
        verb(store)
    assert caught.value.code == "store.refused"
    assert f"(request.{'rights' if name in RIGHTS else 'key'})" in str(caught.value)
    told = "".join(traceback.format_exception(caught.value))
    for text in (told, repr(caught.value.__cause__), f"{store!r} {store.url!r}", caplog.text, guarded.logged()):
        assert "s3cr3t" not in text


def test_client_without_the_right_gets_an_error(guarded: Serving) -> None:
    with Client(with_key(guarded, "reader")) as client:
        assert client.inspect(str(sno.new()))
        for call in (
            lambda: client.next("orders"),
            lambda: client.reserve("orders", 5),
            lambda: client.mint("sno"),
        ):
            with pytest.raises(RequestError) as caught:
                call()
            assert caught.value.code == "request.rights"
            assert "s3cr3t" not in "".join(traceback.format_exception(caught.value))


def test_service_certificate_must_come_from_the_configured_authority(tmp_path: Path) -> None:
    ca, key = certificate(tmp_path, "ids")
    with serving(tmp_path / "s", f"sqlite:///{tmp_path}/ids.db", tls_cert=ca, tls_key=key) as service:
        url = service.url.replace("http:", "https:")
        with open_store(patient(f"{url}?ca={ca}")) as store, Client(patient(f"{url}?ca={ca}")) as client:
            assert store.reserve("n", 5).first == 1
            assert client.reserve("n", 5) == range(6, 11)
        for other in (url, service.url):
            with open_store(other) as store:
                assert code_of(lambda store=store: store.reserve("n", 5)) == "store.unavailable"  # type: ignore[misc]


def test_client_certificate_is_sent_to_a_service_that_requires_it(tmp_path: Path) -> None:
    ca, key = certificate(tmp_path, "ids")
    cert, cert_key = certificate(tmp_path, "shop")
    (tmp_path / "both.pem").write_text(Path(cert).read_text() + Path(cert_key).read_text())
    tls = {"tls_cert": ca, "tls_key": key, "tls_client_ca": cert}
    with serving(tmp_path / "s", f"sqlite:///{tmp_path}/ids.db", **tls) as service:
        url = f"{patient(service.url.replace('http:', 'https:'))}&ca={ca}"
        for shown in (f"cert={cert}&cert_key={cert_key}", f"cert={tmp_path}/both.pem"):
            with (
                Sequence("orders", store=f"{url}&{shown}", max_wait_ms=60_000) as orders,
                Client(f"{url}&{shown}") as client,
            ):
                assert orders.next() != client.next("orders")
        for refused in (url, f"{url}&cert={ca}&cert_key={key}"):
            with open_store(refused) as store:
                assert code_of(lambda store=store: store.reserve("n", 5)) == "store.unavailable"  # type: ignore[misc]


def test_invalid_certificate_files_and_locked_keys_are_refused(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "shop")
    for options in (
        "ca=",
        f"ca={tmp_path}/missing.pem",
        f"ca={key}",
        f"cert={cert}",
        f"cert_key={key}",
        f"cert={tmp_path}/missing.pem&cert_key={key}",
        f"cert={cert}&cert_key={locked(key)}",
    ):
        with open_store(f"https://{HOST}:{free_port()}?{options}") as store:
            assert code_of(lambda store=store: store.reserve("n", 1)) == "config.store"  # type: ignore[misc]


def test_sequence_accepts_segments_smaller_than_requested(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "s", f"sqlite:///{tmp_path}/ids.db", max_reserve=300) as service,
        Sequence("orders", store=service.url, min_step=1000, max_wait_ms=60_000) as orders,
    ):
        assert len({orders.next() for _ in range(5_000)}) == 5_000


# --- the clients ----------------------------------------------------------------------------------------------------


def test_client_gets_integers_and_ids_from_the_service(http: Http) -> None:
    with Client(patient(http.url)) as client:
        first = client.next("clients")
        assert client.batch("clients", 100) == list(range(first + 1, first + 101))
        row = client.reserve("clients", 1000)
        assert len(row) == 1000
        assert client.describe("clients").high_water >= row[-1]
        marks = client.mint("sno", 3, meta=7)
        assert [mark.meta for mark in marks] == [7, 7, 7]
        assert len({*client.mint("snowflake", 100)}) == 100
        assert all(isinstance(each, locality.ID) for each in client.mint("locality", 2))
        assert client.inspect(str(marks[0]))[0]["scheme"] == "sno"


def test_asynchronous_client_sends_requests_concurrently(http: Http) -> None:
    async def ask() -> list[int]:
        async with AsyncClient(patient(http.url)) as client:
            numbers = await asyncio.gather(*(client.batch("tasks", 10) for _ in range(50)), client.batch("tasks", 10))
            assert len(await client.reserve("tasks", 5)) == 5
            assert (await client.mint("sno", meta=7))[0].meta == 7
            assert (await client.describe("tasks")).name == "tasks"
            assert (await client.inspect("01ARZ3NDEKTSV4RRFFQ69G5FAV"))[0]["scheme"] == "ulid"
            return [await client.next("tasks"), *(number for batch in numbers for number in batch)]

    numbers = asyncio.run(ask())
    assert len(set(numbers)) == 511


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda client: client.batch("clients", 10_001), "field.range"),
        (lambda client: client.mint("sno", meta=256), "field.range"),
        (lambda client: client.describe("nobody"), "request.namespace"),
        (lambda client: client.inspect("no ID"), "parse.unknown"),
        (lambda client: client.inspect("\udcff"), "parse.unknown"),
        (lambda client: client.inspect(""), "request.path"),
    ],
)
def test_clients_raise_the_errors_of_the_service(http: Http, call: Callable[[Client], object], code: str) -> None:
    with Client(patient(http.url)) as client:
        assert code_of(lambda: call(client)) == code

    async def ask() -> None:
        async with AsyncClient(patient(http.url)) as twin:
            await call(twin)  # type: ignore[arg-type, misc]

    assert code_of(lambda: asyncio.run(ask())) == code


def test_client_reports_an_absent_service_and_reconnects(http: Http) -> None:
    with Client(patient(http.url)) as client:
        first = client.next("away")
        http.kill()
        for _ in range(2):
            with pytest.raises(StoreError) as caught:
                client.next("away")
            assert caught.value.code == "store.unavailable"
        http.start()
        assert client.next("away") > first


def test_lease_held_by_another_is_lost_as_in_any_store(http: Http) -> None:
    with open_store(patient(http.url)) as store:
        lease = acquire(store)
        store.release(lease, used_until_ms=lease.floor_ms)
        acquire(store)
        with pytest.raises(LeaseError, match="lost") as caught:
            extend(store, lease)
        assert (caught.value.code, caught.value.retry_after_ms) == ("lease.lost", None)
