"""Tests of store URLs as hosting providers and other clients write them: driver options, Unix sockets, URL objects."""

from __future__ import annotations

import traceback
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.engine import make_url

from mintage import Sequence, open_store, sno
from mintage.errors import MintError
from mintage.store.sql.base import Database
from tests.helpers.outcomes import code_of
from tests.helpers.sql_servers import refusal_text
from tests.helpers.stores import acquire, patient
from tests.servers.server import PASSWORD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers import MariaDB, MySQL, PostgreSQL, Redis

OF_POSTGRESQL = [
    "sslmode=require&channel_binding=require",
    "sslmode=require&target_session_attrs=read-write&application_name=shop&connect_timeout=60",
    "options=-c%20work_mem%3D8MB&keepalives=1&keepalives_idle=30&gssencmode=disable",
    "ssl=require",
    "pgbouncer=true&connection_limit=1&pool_timeout=0",
    "schema=public&connect_timeout=0",
]
OF_MYSQL = [
    "ssl-mode=REQUIRED",
    "ssl_mode=required&charset=utf8mb4&connect_timeout=60",
    "ssl_mode=DISABLED&charset=utf8&read_timeout=60&write_timeout=60",
    "ssl_mode=PREFERRED&program_name=shop",
]


def is_a_store(url: str) -> None:
    with open_store(patient(url)) as store:
        first = store.reserve("n", 10).first
        assert store.reserve("n", 10).first == first + 10
        acquire(store, nodes=range(64))
        assert store.describe().warnings == ()


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OF_POSTGRESQL)
def test_options_of_libpq_reach_the_driver(postgresql: PostgreSQL, options: str) -> None:
    is_a_store(f"{postgresql.url}?{options}")


def test_application_name_and_settings_reach_postgresql(postgresql: PostgreSQL) -> None:
    with open_store(f"{patient(postgresql.url)}&application_name=shop&options=-c%20work_mem%3D8MB") as store:
        assert isinstance(store, Database)
        with store.transaction("SELECT current_setting('application_name'), current_setting('work_mem')") as (
            _,
            rows,
            _,
        ):
            assert list(rows) == [("shop", "8MB")]


@pytest.mark.parametrize("options", OF_MYSQL)
@pytest.mark.parametrize("name", ["mariadb", "mysql"])
def test_options_of_mysql_clients_reach_the_driver(request: pytest.FixtureRequest, name: str, options: str) -> None:
    server: MariaDB = request.getfixturevalue(name)
    is_a_store(f"{server.url}?{options}")


@pytest.mark.parametrize(("mode", "is_encrypted"), [("REQUIRED", True), ("PREFERRED", True), ("DISABLED", False)])
def test_ssl_mode_decides_whether_mysql_encrypts(mariadb: MariaDB, mode: str, is_encrypted: bool) -> None:
    with open_store(f"{patient(mariadb.url)}&ssl-mode={mode}") as store:
        assert isinstance(store, Database)
        with store.transaction("SHOW SESSION STATUS LIKE 'Ssl_cipher'") as (_, [(_, cipher)], _):
            assert bool(cipher) is is_encrypted


def test_ssl_mode_required_refuses_a_server_without_tls(mysql: MySQL) -> None:
    with mysql.without_tls():
        for options, authority in (("ssl-mode=REQUIRED", ""), ("ssl-mode=VERIFY_CA", mysql.certified().authority)):
            with open_store(f"{patient(mysql.url)}&{options}{f'&ssl-ca={authority}' if authority else ''}") as store:
                assert code_of(partial(store.reserve, "n", 1)) == "store.unavailable"


def test_verify_ca_accepts_a_certificate_of_another_host(mariadb: MariaDB) -> None:
    url = f"{mariadb.url}?ssl-ca={mariadb.certified().authority}".replace("127.0.0.1:", "localhost:")
    is_a_store(f"{url}&ssl-mode=VERIFY_CA")
    with open_store(patient(f"{url}&ssl-mode=VERIFY_IDENTITY")) as store:
        assert "certificate" in refusal_text(lambda: store.reserve("n", 1))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://h/d?client_encoding=latin1", "mintage sends UTF8"),
        ("postgresql://h/d?replication=database", "replicates nothing"),
        ("postgresql://h/d?service=x", "the URL alone"),
        ("postgresql://h/d?dbname=x", "the path"),
        ("mysql://h/d?autocommit=true", "commits its transactions"),
        ("mysql://h/d?init-command=x", "sets up its sessions"),
        ("mariadb://h/d?sql_mode=ANSI", "strict"),
        ("mysql://h/d?charset=latin1", "utf8mb4"),
        ("mysql://h/d?ssl_mode=maybe", "VERIFY_IDENTITY"),
        ("mysql://h/d?ssl_mode=VERIFY_CA", "needs ssl_ca"),
        ("postgresql://h/d?ssl=true", "verify-full"),
        ("postgresql://h/d?sslmdoe=require", "did you mean sslmode"),
        ("mysql://h/d?ssl_mod=REQUIRED", "did you mean ssl_mode"),
        ("postgresql://h/d?host=/run/x", "twice"),
        ("mysql://h/d?unix_socket=/run/x", "twice"),
        ("postgresql:///d?host=/run/x,/run/y", "one host"),
        ("postgresql://h/d?connect_timeout=soon", "connect_timeout"),
        ("unix:///", "absolute path"),
        ("unix://run/redis.sock", "absolute path"),
        ("unix:///run/redis.sock?db=one", "option db"),
        ("redis://h?db=1", "no option 'db'"),
    ],
)
def test_option_that_mintage_sets_is_refused_with_the_reason(url: str, reason: str) -> None:
    def use() -> None:
        with open_store(url) as store:
            store.now_ms()

    assert reason in refusal_text(use, "config.store")


def test_wrong_value_of_a_driver_option_is_no_outage(postgresql: PostgreSQL) -> None:
    with open_store(f"{patient(postgresql.url)}&channel_binding=perhaps") as store:
        assert "channel_binding" in refusal_text(lambda: store.reserve("n", 1))


# --- sockets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["postgresql", "mariadb", "mysql", "redis", "valkey"])
def test_server_is_reached_by_its_unix_socket(request: pytest.FixtureRequest, name: str) -> None:
    server: Any = request.getfixturevalue(name)
    with open_store(patient(server.url)) as by_network, open_store(patient(server.socket_url)) as by_socket:
        assert [store.reserve("n", 10).first for store in (by_network, by_socket, by_network)] == [1, 11, 21]
        assert by_network.describe().identity == by_socket.describe().identity
        assert PASSWORD not in f"{by_socket!r} {by_socket.url!r}"


@pytest.mark.parametrize("kind", ["unix", "redis+unix", "redis+socket", "valkey+unix"])
def test_socket_of_redis_has_the_names_of_other_clients(redis: Redis, kind: str) -> None:
    url = redis.socket_url.replace("unix:", f"{kind}:")
    with (
        open_store(patient(url)) as store,
        open_store(f"{patient(url)}&db=1") as other,
        open_store(patient(redis.url)) as usual,
    ):
        assert [each.reserve("n", 1).first for each in (store, other, usual)] == [1, 1, 2]
        assert repr(store) == f"<RedisStore {redis.socket_url}?timeout_ms=…>"


def test_socket_directory_may_be_the_host_of_postgresql(postgresql: PostgreSQL) -> None:
    who, _, _ = postgresql.url.rpartition("@")
    directory = str(postgresql.directory).replace("/", "%2F")
    with open_store(patient(f"{who}@{directory}:{postgresql.port}/mintage")) as store:
        assert store.reserve("n", 1).first == 1


def test_user_and_password_may_be_options_of_postgresql(postgresql: PostgreSQL) -> None:
    who, _, _ = postgresql.url.removeprefix("postgresql://").rpartition("@")
    user, _, password = who.partition(":")
    url = f"postgresql:///mintage?host={postgresql.directory}&port={postgresql.port}&user={user}&password={password}"
    with open_store(patient(url)) as store:
        assert store.reserve("n", 1).first == 1
        assert PASSWORD not in f"{store!r} {store.url!r}"


def test_database_behind_a_socket_may_have_a_cache(postgresql: PostgreSQL, redis: Redis) -> None:
    with open_store(f"{patient(postgresql.socket_url)}&cache={patient(redis.socket_url)}") as store:
        assert [store.reserve("n", 10).first for _ in range(3)] == [1, 11, 21]
        assert store.describe().server.endswith("Redis " + redis.info("server")["redis_version"])


# --- URL objects ------------------------------------------------------------------------------------------------------


def test_url_object_of_sqlalchemy_is_a_store(postgresql: PostgreSQL) -> None:
    url: Any = make_url(postgresql.url).set(drivername="postgresql+psycopg")
    assert "***" in str(url)
    with open_store(url) as store:
        assert store.reserve("n", 10).last == 10
    with Sequence("n", store=url) as sequence, sno.Generator(store=url, max_wait_ms=60_000) as generator:
        assert sequence.next() == 11
        assert generator.new()
    with open_store(patient(postgresql.url)) as store:
        assert [pool.name for pool in store.list_pools()] == ["sno"]


def test_url_object_shows_no_password() -> None:
    url: Any = make_url("postgresql://me:s3cr3t@127.0.0.1:1/d")
    with open_store(url) as store, pytest.raises(MintError) as caught:
        store.reserve("n", 1)
    shown = "".join(traceback.format_exception(caught.value))
    assert "s3cr3t" not in f"{shown}{store!r}"


def test_url_object_of_a_file_is_a_store(tmp_path: Path) -> None:
    url: Any = make_url(f"sqlite+aiosqlite:///{tmp_path}/ids.db")
    with open_store(url) as store:
        assert store.reserve("n", 1).first == 1


@pytest.mark.parametrize("store", [7, b"memory:", ["memory:"], object()])
def test_other_objects_are_no_stores(store: Any) -> None:
    assert code_of(lambda: Sequence("n", store=store).next()) == "argument.type"
    assert code_of(lambda: open_store(store)) == "argument.type"
