"""Tests of the test servers: which data they keep and lose, and the proxy in front of them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.servers import (
    KINDS,
    Daemon,
    Etcd,
    MariaDB,
    PostgreSQL,
    Redis,
    RedisCluster,
    RedisSentinel,
    missing,
    must_run,
)
from tests.servers.proxy import Proxy
from tests.servers.server import PASSWORD, Server, ServerError, free_port, until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
DURABLE = ["mariadb", "mysql", "postgresql", "redis", "redis_sentinel", "redis_cluster", "valkey", "etcd"]
BOUND_S = 60
"""Seconds after which a socket counts as stuck; never waited for otherwise."""


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def put(server: Server) -> None:
    match server:
        case MariaDB():
            server.sql("CREATE TABLE mintage.kept (word VARCHAR(9)); INSERT INTO mintage.kept VALUES ('mint')")
        case PostgreSQL():
            server.sql("CREATE TABLE kept (word TEXT); INSERT INTO kept VALUES ('mint')")
        case RedisSentinel():
            server.master.ask("SET", "kept", "mint")
        case Redis() | RedisCluster():
            server.ask("SET", "kept", "mint")
        case Etcd():
            server.call("/v3/kv/put", {"key": "a2VwdA==", "value": "bWludA=="})


def holds(server: Server) -> bool:
    match server:
        case MariaDB():
            return server.sql("SHOW TABLES FROM mintage") == "kept\n" and bool(server.sql("SELECT * FROM mintage.kept"))
        case PostgreSQL():
            return server.sql("SELECT to_regclass('kept')") == "kept\n" and bool(server.sql("SELECT * FROM kept"))
        case RedisSentinel():
            return server.master.ask("GET", "kept") == "mint"
        case Redis() | RedisCluster():
            return server.ask("GET", "kept") == "mint"
        case Etcd():
            return "kvs" in server.call("/v3/kv/range", {"key": "a2VwdA=="})
    raise AssertionError(server)


@pytest.mark.parametrize("server", DURABLE, indirect=True)
def test_killed_server_comes_back_with_its_data(server: Server) -> None:
    url = server.url
    put(server)
    server.kill()
    assert not server.is_up()
    server.start()
    assert holds(server)
    assert server.url == url


@pytest.mark.parametrize("server", DURABLE, indirect=True)
def test_restarted_server_keeps_its_data(server: Server) -> None:
    put(server)
    server.restart()
    assert holds(server)


@pytest.mark.parametrize("server", [*DURABLE, "redis_without_aof"], indirect=True)
def test_reset_server_is_empty(server: Server) -> None:
    put(server)
    assert holds(server)
    server.reset()
    assert not holds(server)


@pytest.mark.parametrize("server", [*DURABLE, "redis_without_aof"], indirect=True)
def test_paused_server_answers_again_once_continued(server: Server) -> None:
    put(server)
    server.pause()
    assert not server.is_up()
    server.resume()
    until(server.is_up, "it answers again")
    assert holds(server)


@pytest.mark.parametrize("name", [*DURABLE, "redis_without_aof"])
def test_each_test_finds_its_server_running_and_empty(name: str, servers: Any) -> None:
    server = servers.get(KINDS[name])
    put(server)
    server.kill()
    server = servers.get(KINDS[name])
    assert not holds(server)
    server.pause()
    assert not holds(servers.get(KINDS[name]))


def test_redis_without_a_file_forgets_and_has_a_new_run_id(redis_without_aof: Redis) -> None:
    put(redis_without_aof)
    run = redis_without_aof.info("server")["run_id"]
    redis_without_aof.kill()
    redis_without_aof.start()
    assert not holds(redis_without_aof)
    assert redis_without_aof.info("server")["run_id"] != run


def test_redis_writes_its_file_before_it_answers(redis: Redis) -> None:
    assert redis.ask("CONFIG", "GET", "appendfsync") == "appendfsync\nalways"
    assert redis.info("persistence")["aof_enabled"] == "1"


def test_mariadb_accepts_the_options_of_its_url(mariadb: MariaDB) -> None:
    url = urlsplit(mariadb.url)
    assert unquote(url.password or "") == PASSWORD
    words = [f"--user={url.username}", f"--password={unquote(url.password or '')}", f"--host={url.hostname}"]
    answer = mariadb.run(
        "mariadb",
        "--no-defaults",
        "--protocol=tcp",
        *words,
        f"--port={url.port}",
        "--execute=SELECT USER()",
        url.path[1:],
    )
    assert "mintage@127.0.0.1" in answer
    with pytest.raises(ServerError, match="Access denied"):
        mariadb.run("mariadb", "--no-defaults", *words[:1], *words[2:], f"--port={url.port}", "--password=wrong")


def test_postgresql_accepts_the_options_of_its_url(postgresql: PostgreSQL) -> None:
    assert postgresql.run("psql", "-X", "-A", "-t", "-c", "SELECT current_user", postgresql.url) == "mintage\n"
    with pytest.raises(ServerError, match="password authentication failed"):
        postgresql.run("psql", "-X", "-c", "SELECT 1", postgresql.url.replace("p%40", "q%40"))


@pytest.mark.parametrize("server", ["mariadb", "postgresql"], indirect=True)
def test_killed_database_leaves_no_process(server: Daemon) -> None:
    pids = server.family()
    server.kill()
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "all have ended")


def test_account_of_the_url_can_create_tables_after_a_reset(postgresql: PostgreSQL) -> None:
    postgresql.run("psql", "-X", "-c", "CREATE TABLE own ()", postgresql.url)


def test_failover_keeps_replicated_writes(redis_sentinel: RedisSentinel) -> None:
    put(redis_sentinel)
    master, replica = redis_sentinel.master, redis_sentinel.replica
    redis_sentinel.failover()
    assert redis_sentinel.master is replica
    assert not master.is_up()
    assert holds(redis_sentinel)
    redis_sentinel.start()
    assert redis_sentinel.replica is master
    assert holds(redis_sentinel)


def test_lossy_failover_loses_only_the_last_writes(redis_sentinel: RedisSentinel) -> None:
    master, replica = redis_sentinel.master, redis_sentinel.replica
    master.ask("SET", "heard", "1")
    until(lambda: replica.heard() == master.heard(), "the replica has heard it")
    with redis_sentinel.failover_that_forgets():
        put(redis_sentinel)
    assert redis_sentinel.master is replica
    assert replica.ask("GET", "heard") == "1"
    assert not holds(redis_sentinel)
    redis_sentinel.start()
    assert not holds(redis_sentinel)


def test_each_member_of_the_cluster_has_slots_of_its_own(redis_cluster: RedisCluster) -> None:
    assert len(redis_cluster.members[0].ask("CLUSTER", "SLOTS").split("127.0.0.1")) == 4
    for word in range(20):
        redis_cluster.ask("SET", f"word:{word}", "mint")
    held = [int(member.ask("DBSIZE")) for member in redis_cluster.members]
    assert sum(held) == 20
    assert all(held)


def test_server_ends_with_the_test_process(tmp_path: Path) -> None:
    if reason := missing("redis"):
        pytest.skip(reason)
    code = """
import sys, time
from pathlib import Path
from tests.servers import Redis
server = Redis(Path(sys.argv[1]) / "redis")
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], cwd=ROOT, stdout=subprocess.PIPE) as tests:
        assert tests.stdout
        pid = int(tests.stdout.readline())
        os.kill(pid, 0)
        tests.kill()
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the server has died too")


@pytest.fixture
def spare(tmp_path: Path) -> Iterator[Redis]:
    """Return a server that has not started yet."""
    if reason := missing("redis"):
        pytest.skip(reason)
    server = Redis(tmp_path / "redis")
    yield server
    server.kill()


def test_server_that_cannot_start_shows_its_log(spare: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare, "options", ("--appendonly", "perhaps"))
    with pytest.raises(ServerError, match="perhaps"):
        spare.start()


def test_server_whose_port_was_taken_reports_it(spare: Redis) -> None:
    spare.start()
    spare.stop()
    with socket.create_server(("127.0.0.1", spare.port)), pytest.raises(ServerError, match="Address already in use"):
        spare.start()
    spare.start()
    assert spare.ask("PING") == "PONG"


def test_new_server_takes_another_port_if_its_own_was_taken(spare: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter([taken.getsockname()[1], free_port()])
        monkeypatch.setattr("tests.servers.server.free_port", lambda: next(ports))
        spare.start()
        assert spare.ask("PING") == "PONG"
        assert spare.port != taken.getsockname()[1]


def test_parallel_tests_take_different_ports() -> None:
    program = "from tests.servers.server import free_port; print(*(free_port() for _ in range(1000)))"
    found: set[str] = set()
    for worker in ("gw0", "gw1", "gw2"):
        environment = {**os.environ, "PYTEST_XDIST_WORKER": worker, "PYTEST_XDIST_WORKER_COUNT": "3"}
        words = [sys.executable, "-c", program]
        done = subprocess.run(words, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
        found.update(done.stdout.split())
    assert len(found) == 3000


def test_missing_server_fails_the_tests_where_servers_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redis, "programs", ("no-such-server",))
    assert "no-such-server" in (missing("redis") or "")
    for variable in ("CI", "MINTAGE_REQUIRE_SERVERS"):
        monkeypatch.delenv(variable, raising=False)
    assert not must_run("redis")
    monkeypatch.setenv("CI", "true")
    assert must_run("redis")
    assert not must_run("valkey")


class Client:
    """A connection to Redis that sends single words."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=BOUND_S)

    def say(self, line: str) -> None:
        self.socket.sendall(f"{line}\r\n".encode())

    def hear(self) -> str:
        """Return a line, or nothing if the connection has ended."""
        try:
            return self.socket.recv(1000).decode().strip()
        except ConnectionError:
            return ""

    def ask(self, line: str) -> str:
        self.say(line)
        return self.hear()


@pytest.fixture
def proxy(redis: Redis) -> Iterator[Proxy]:
    with Proxy(redis) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: Proxy) -> Iterator[Client]:
    client = Client(proxy.port)
    with client.socket:
        yield client


def test_proxy_forwards_everything_and_counts_replies(redis: Redis, proxy: Proxy, client: Client) -> None:
    assert proxy.url == f"redis://127.0.0.1:{proxy.port}/0"
    assert client.ask("SET kept mint") == "+OK"
    assert client.ask("GET kept") == "$4\r\nmint"
    assert proxy.replies == 2
    client.say("SETRANGE large 999999 x")
    assert client.hear() == ":1000000"
    client.say("GET large")
    heard = b""
    while len(heard) < 1_000_012:
        heard += client.socket.recv(1 << 20)
    assert proxy.replies == 4


def test_cut_reply_is_lost_after_the_request_was_executed(redis: Redis, proxy: Proxy, client: Client) -> None:
    other = Client(proxy.port)
    proxy.cut(3)
    assert client.ask("INCR count") == ":1"
    assert client.ask("INCR count") == ":2"
    assert client.ask("INCR count") == ""
    assert redis.ask("GET", "count") == "3"
    with other.socket:
        assert other.ask("INCR count") == ":4"
    with Client(proxy.port).socket as again:
        again.sendall(b"INCR count\r\n")
        assert again.recv(100) == b":5\r\n"


def test_refusing_proxy_ends_connections_and_accepts_none(proxy: Proxy, client: Client) -> None:
    assert client.ask("PING") == "+PONG"
    proxy.refuse()
    assert client.hear() == ""
    with pytest.raises(ConnectionRefusedError):
        Client(proxy.port)
    proxy.heal()
    again = Client(proxy.port)
    with again.socket:
        assert again.ask("PING") == "+PONG"


def test_bytes_swallowed_by_a_black_hole_arrive_late(redis: Redis, proxy: Proxy, client: Client) -> None:
    assert client.ask("INCR count") == ":1"
    proxy.blackhole()
    client.say("INCR count")
    fresh = Client(proxy.port)
    fresh.say("PING")
    for waiting in (client, fresh):
        waiting.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            waiting.hear()
        waiting.socket.settimeout(BOUND_S)
    assert redis.ask("GET", "count") == "1"
    proxy.heal()
    assert client.hear() == ":2"
    assert fresh.hear() == "+PONG"
    fresh.socket.close()


def test_black_hole_can_be_closed_or_refuse(proxy: Proxy, client: Client) -> None:
    proxy.blackhole()
    client.say("PING")
    proxy.refuse()
    assert client.hear() == ""
    proxy.heal()
    with Client(proxy.port).socket as again:
        proxy.blackhole()
        again.sendall(b"PING\r\n")
        proxy.close()
        with pytest.raises(ConnectionResetError):
            again.recv(100)


def test_proxy_of_a_dead_server_resets_its_clients(redis: Redis, proxy: Proxy) -> None:
    redis.kill()
    # As the connection is made, or when the first reply is waited for.
    with pytest.raises(ConnectionError), socket.create_connection(("127.0.0.1", proxy.port), timeout=BOUND_S) as dead:
        dead.recv(1)
    redis.start()
    again = Client(proxy.port)
    with again.socket:
        assert again.ask("PING") == "+PONG"


@pytest.mark.parametrize("server", ["mariadb", "postgresql"], indirect=True)
def test_database_is_reached_through_a_proxy(server: MariaDB | PostgreSQL) -> None:
    with Proxy(server) as proxy:
        url = urlsplit(proxy.url)
        assert url.port == proxy.port
        if isinstance(server, PostgreSQL):
            assert server.run("psql", "-X", "-A", "-t", "-c", "SELECT 1", proxy.url) == "1\n"
        else:
            words = [f"--password={PASSWORD}", "--user=mintage", "--host=127.0.0.1", f"--port={url.port}"]
            assert "1" in server.run("mariadb", "--no-defaults", *words, "--execute=SELECT 1")
        assert proxy.replies >= 2


def test_only_the_main_thread_starts_servers(redis: Redis) -> None:
    redis.stop()
    failed: list[BaseException] = []

    def start() -> None:
        try:
            redis.start()
        except AssertionError as error:
            failed.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert len(failed) == 1
    assert redis.pid is None


def test_stop_ends_paused_processes_too(redis: Redis) -> None:
    put(redis)
    redis.pause()
    redis.stop()
    assert redis.pid is None
    redis.start()
    assert holds(redis)
