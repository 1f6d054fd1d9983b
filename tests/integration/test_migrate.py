"""Tests of the migrations from other counters, by the commands of ``docs/how-to/migrate.md``.

The old servers are simulated by the few lines that take integers, on tables of their layout in a real database; their
integers and those of the service must be disjoint.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import deque
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from redis import Redis as RedisClient
from redis import ResponseError

from benchmarks.timing import go_program
from mintage import locality, open_store, sno, snowflake
from mintage.server.config.settings import Settings
from tests.helpers.vectors import vectors
from tests.servers.server import HOST, PASSWORD, ServerError, until
from tests.service.load import Line
from tests.service.running import Running, running

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.servers import MariaDB, Redis

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "migrate.md"

ORIGINALS: Final = Path(__file__).parent / "originals"


def commands(section: str, language: str = "shell") -> list[str]:
    """Return the blocks of a section, in order."""
    sections = dict(re.findall(r"(?ms)^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8")))
    return re.findall(rf"(?ms)^ *```{language}\n(.*?)^ *```$", sections[section])


PREPARE, RAISE_OVER_HTTP = commands("To the service: four rules")
IDALLOC, ALLOC, IDALLOC_BESIDE, IDALLOC_CAME_TO = commands("From idalloc")
LEAF, LEAF_BESIDE, NEXT = commands("From Leaf")
TINYID, TINYID_BESIDE = commands("From tinyid")
REDIS, REDIS_BESIDE = commands("From Redis INCR")
SNO_CONTINUED, _, SNO_BESIDE = commands("From sno in Go", "python")
LOCALITY_PARSED, _, LOCALITY_BESIDE = commands("From locality-uuid in Ruby and Java", "python")
_, JAVA_READ, JAVA_BESIDE = commands("From a Java fleet with numbers from MAC addresses", "python")


class Place:
    """The hosts of the page: the old database and the old Redis, and a home for the service."""

    def __init__(self, home: Path, mariadb: MariaDB, redis: Redis) -> None:
        self.home = home
        self.mariadb = mariadb
        self.redis = redis
        self.service: Running | None = None

    @contextmanager
    def serving(self) -> Iterator[Running]:
        """Run the service, with the options of the page, on a database."""
        assert "export MINTAGE_STORE=" in PREPARE
        options = PREPARE.partition("mintage serve ")[2].split()
        with running(self.home / "service", *options, store=self.mariadb.url) as self.service:
            yield self.service
        self.service = None

    def run(self, script: str) -> str:
        """Return the output of the commands of the page, with existing hosts."""
        hosts = {
            r"mysql://ids:secret@db/\w+": self.mariadb.url,
            r"redis://cache/0": self.redis.url,
            r"\bmariadb -h db \w+": f"mariadb --no-defaults -h {HOST} -P {self.mariadb.port} -u mintage mintage",
            r"-h cache\b": f"-p {self.redis.port}",
        }
        if self.service:
            hosts |= {r"http://ids:8080": self.service.url, r"-h ids -p 6380": f"-p {self.service.redis[1]}"}
        for host, real in hosts.items():
            script = re.sub(host, real, script)
        assert not re.search(r"\b(ids:|-h \D)", script), script
        if "curl " in script and shutil.which("curl") is None:
            pytest.skip("curl is not installed")
        done = subprocess.run(
            ["bash", "-c", f'set -euo pipefail\nmintage() {{ "{sys.executable}" -m mintage "$@"; }}\n{script}'],
            env={"PATH": os.environ["PATH"], "MYSQL_PWD": PASSWORD, "MINTAGE_STORE": self.mariadb.url},
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def next(self, namespace: str, count: int = 1) -> list[int]:
        """Return an integer from the interface of the service."""
        assert self.service
        with Line(self.service.http[1]) as line:
            told = json.loads(line.http(f"/v1/sequences/{namespace}:next?count={count}").body)
        return [int(text) for text in told["ids"]]

    def alloc(self, name: str, count: int = 1) -> dict[str, Any]:
        """Return the answer of the service to a client of idalloc."""
        assert self.service
        with Line(self.service.http[1]) as line:
            told: dict[str, Any] = json.loads(
                line.http("/alloc", json.dumps({"serviceName": name, "count": count})).body
            )
        return told

    def sql(self, statements: str) -> str:
        return self.mariadb.sql(f"USE mintage; {statements}").strip()


@pytest.fixture
def place(tmp_path: Path, mariadb: MariaDB, redis: Redis) -> Place:
    return Place(tmp_path, mariadb, redis)


def check(old: Sequence[int], new: Sequence[int]) -> None:
    """Assert that no integer repeats, and that the new ones are above the old."""
    both = [*old, *new]
    assert old
    assert new
    assert len(set(both)) == len(both)
    assert min(new) > max(old)


def hand_out_until_refused(server: Leaf | Tinyid, name: str, fence: str) -> list[int]:
    """Return all integers that an old server can still hand out."""
    given: list[int] = []
    with suppress(ServerError):
        while len(given) < 10_000:
            given.append(server.next(name))
    with pytest.raises(ServerError, match=fence):
        server.next(name)
    return given


# --- idalloc ------------------------------------------------------------------------------------------------------


class Idalloc:
    """An idalloc server: it adds to the counter in Redis, hands out, and stores each tenth version."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._held: dict[str, deque[int]] = {}
        place.sql(
            "CREATE TABLE IF NOT EXISTS tbl_alloc_info (service_name VARCHAR(64) PRIMARY KEY,"
            " last_alloc_value BIGINT UNSIGNED NOT NULL DEFAULT 0, data_version BIGINT UNSIGNED NOT NULL DEFAULT 0)"
        )

    def alloc(self, service: str, count: int) -> list[int]:
        held = self._held.setdefault(service, deque())
        while len(held) < count:
            key = f"idalloc:alloc_info_{service}"
            last = int(self._place.redis.ask("HINCRBY", key, "lastAllocValue", "10000"))
            version = int(self._place.redis.ask("HINCRBY", key, "dataVersion", "1"))
            if version == 1 or version % 10 == 0:
                self._place.sql(f"REPLACE INTO tbl_alloc_info VALUES ('{service}', {last}, {version})")
            held.extend(range(last - 9_999, last + 1))
        return [held.popleft() for _ in range(count)]


def test_from_idalloc_with_its_servers_stopped_and_clients_unchanged(place: Place) -> None:
    servers = Idalloc(place), Idalloc(place)
    old = [integer for server in servers for _ in range(300) for integer in server.alloc("orders", 100)]
    users = servers[0].alloc("users", 100)
    assert int(place.sql("SELECT last_alloc_value FROM tbl_alloc_info WHERE service_name = 'orders'")) < max(old)
    place.run(IDALLOC)
    with place.serving():
        answer = json.loads(place.run(ALLOC))
        assert (answer["code"], answer["msg"]) == (0, "OK")
        check(old, answer["data"]["ids"] + place.alloc("Orders", 100)["data"]["ids"])
        check(users, place.alloc("users", 100)["data"]["ids"])


def test_from_idalloc_with_its_redis_lost(place: Place) -> None:
    server = Idalloc(place)
    old = list(chain.from_iterable(server.alloc("orders", 100) for _ in range(1850)))
    place.redis.ask("FLUSHALL")
    place.run(IDALLOC)
    with place.serving():
        check(old, place.alloc("orders", 100)["data"]["ids"])


def test_from_idalloc_while_both_run(place: Place) -> None:
    server = Idalloc(place)
    old, new = server.alloc("orders", 100), list[int]()
    place.run(IDALLOC_BESIDE)
    with place.serving():
        for _ in range(200):
            old += server.alloc("orders", 100)
            new += place.alloc("orders", 100)["data"]["ids"]
        check(old, new)
        assert max(old) <= int(place.run(IDALLOC_CAME_TO)) < min(new)
        # Namespaces that idalloc started meanwhile are not restarted here; another import takes them over.
        young = server.alloc("young", 100)
        assert place.alloc("young")["code"] == 404_000
        place.run(IDALLOC_BESIDE)
        until(lambda: place.alloc("young")["code"] == 0, "the import is seen")
        check(young, place.alloc("young", 100)["data"]["ids"])
        check(old, place.alloc("orders", 100)["data"]["ids"])


# --- Leaf ---------------------------------------------------------------------------------------------------------


class Leaf:
    """A Leaf server in segment mode: it adds the step to ``max_id``, and hands out the integers below."""

    TABLE = """
        CREATE TABLE leaf_alloc (
            biz_tag VARCHAR(128) NOT NULL DEFAULT '' PRIMARY KEY,
            max_id BIGINT NOT NULL DEFAULT 1,
            step INT NOT NULL,
            description VARCHAR(256),
            update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP
        );
        INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._held: dict[str, deque[int]] = {}

    def next(self, tag: str) -> int:
        """:raises ServerError: if the database refuses."""
        held = self._held.setdefault(tag, deque())
        if not held:
            max_id, step = self._place.sql(
                f"UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = '{tag}';"
                f" SELECT max_id, step FROM leaf_alloc WHERE biz_tag = '{tag}'"
            ).split()
            held.extend(range(int(max_id) - int(step), int(max_id)))
        return held.popleft()


def test_from_leaf_with_its_servers_stopped(place: Place) -> None:
    place.sql(Leaf.TABLE + "('orders', 1, 2000), ('leaf-segment-test', 700001, 100)")
    servers = Leaf(place), Leaf(place)
    old = [server.next("orders") for _ in range(2500) for server in servers]
    place.run(LEAF)
    with place.serving():
        answer = json.loads(place.run(NEXT))
        assert answer == {"namespace": "orders", "ids": ["8001", "8002", "8003"]}
        check(old, [int(each) for each in answer["ids"]])
        # No integer of this one was handed out since its row was made.
        assert place.next("leaf-segment-test") == [700_001]


def test_from_leaf_while_both_run_until_leaf_is_refused(place: Place) -> None:
    place.sql(Leaf.TABLE + "('orders', 4990001, 2000), ('a', 1, 5)")
    servers = Leaf(place), Leaf(place)
    old, new = [servers[0].next("orders")], list[int]()
    place.run(LEAF_BESIDE)
    with place.serving():
        for _ in range(1500):
            old += [server.next("orders") for server in servers]
            new += place.next("orders") if len(old) % 10 == 1 else ()
        for server in servers:
            old += hand_out_until_refused(server, "orders", "orders_moved")
        new += place.next("orders", 5000)
    check(old, new)
    assert min(new) == 5_000_000
    # The fence is that of one tag.
    assert servers[0].next("a") == 1


def test_leaf_snowflakes_have_the_layout_of_twitter_and_may_collide() -> None:
    def leafs(timestamp_ms: int, worker: int, sequence: int) -> int:
        return (timestamp_ms - 1_288_834_974_657) << 22 | worker << 12 | sequence

    now_ms = 1_795_000_000_000
    parts = snowflake.TWITTER.parse(leafs(now_ms, 700, 99))
    assert (parts.timestamp_ms, parts.node, parts.sequence) == (now_ms, 700, 99)
    four_years_ms = snowflake.DEFAULT.epoch_ms - 1_288_834_974_657
    assert 4 < four_years_ms / 86_400_000 / 365.25 < 5
    ours = snowflake.DEFAULT.compose(timestamp_ms=now_ms, node=700, sequence=99)
    assert ours == leafs(now_ms - four_years_ms, 700, 99)


def test_library_snowflakes_after_leaf_have_leased_node_numbers(place: Place) -> None:
    layout, nodes = snowflake.TWITTER, range(512, 1024)
    with (
        place.serving() as service,
        open_store(service.url) as store,
        snowflake.Generator(layout=layout, nodes=nodes, store=store, max_wait_ms=60_000) as one,
        snowflake.Generator(layout=layout, nodes=nodes, store=store, max_wait_ms=60_000) as other,
    ):
        assert {layout.parse(each.new()).node for each in (one, other)} == {512, 513}


# --- tinyid -------------------------------------------------------------------------------------------------------


class Tinyid:
    """A tinyid server, or its client: it hands out integers of ``remainder`` modulo ``delta``, up to ``max_id``."""

    TABLE = """
        CREATE TABLE tiny_id_info (
            id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
            biz_type VARCHAR(63) NOT NULL DEFAULT '' UNIQUE,
            begin_id BIGINT NOT NULL DEFAULT 0,
            max_id BIGINT NOT NULL DEFAULT 0,
            step INT DEFAULT 0,
            delta INT NOT NULL DEFAULT 1,
            remainder INT NOT NULL DEFAULT 0,
            create_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00',
            update_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00',
            version BIGINT NOT NULL DEFAULT 0
        );
        INSERT INTO tiny_id_info (biz_type, max_id, step, delta, remainder) VALUES """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._held: dict[str, deque[int]] = {}

    def next(self, kind: str) -> int:
        """:raises ServerError: if the database refuses."""
        held = self._held.setdefault(kind, deque())
        while not held:
            row = self._place.sql(
                f"UPDATE tiny_id_info SET max_id = max_id + step, version = version + 1 WHERE biz_type = '{kind}';"
                f" SELECT max_id, step, delta, remainder FROM tiny_id_info WHERE biz_type = '{kind}'"
            )
            max_id, step, delta, remainder = map(int, row.split())
            held.extend(each for each in range(max_id - step + 1, max_id + 1) if each % delta == remainder)
        return held.popleft()


def test_from_tinyid_with_its_servers_stopped(place: Place) -> None:
    place.sql(Tinyid.TABLE + "('orders', 1, 1000, 1, 0), ('odd', 1, 1000, 2, 1), ('third', 1, 1000, 3, 0)")
    servers = Tinyid(place), Tinyid(place)
    old = {
        kind: [server.next(kind) for _ in range(count) for server in servers]
        for kind, count in {"orders": 1000, "odd": 500, "third": 333}.items()
    }
    assert max(old["orders"]) == 2001  # the largest that its row allows
    place.run(TINYID)
    with place.serving():
        for kind, first, stride in (("orders", 2002, 1), ("odd", 2003, 2), ("third", 2004, 3)):
            new = place.next(kind, 3000)
            check(old[kind], new)
            assert new == list(range(first, first + 3000 * stride, stride))


def test_from_tinyid_while_both_run_until_tinyid_is_refused(place: Place) -> None:
    place.sql(Tinyid.TABLE + "('odd', 4990000, 2000, 2, 1)")
    servers = Tinyid(place), Tinyid(place)
    old, new = [servers[0].next("odd")], list[int]()
    place.run(TINYID_BESIDE)
    with place.serving():
        for server in servers:
            new += place.next("odd", 100)
            old += hand_out_until_refused(server, "odd", "odd_moved")
        new += place.next("odd", 5000)
    check(old, new)
    assert min(new) == 5_000_001
    assert all(integer % 2 == 1 for integer in new)


# --- Redis --------------------------------------------------------------------------------------------------------


def client(port: int) -> RedisClient:
    """Return a client as it was before the move: only its port changes."""
    return RedisClient(HOST, port, decode_responses=True)


def test_from_redis_with_a_moment_of_errors(place: Place) -> None:
    before = client(place.redis.port)
    old = [int(before.incr("order_id")) for _ in range(100)]
    place.run(REDIS)
    with pytest.raises(ResponseError, match="not an integer"):
        before.incr("order_id")
    with place.serving() as service:
        after = client(service.redis[1])
        new = [int(after.incr("order_id")) for _ in range(2500)]
        assert new == list(range(old[-1] + 1, old[-1] + 2501))
        assert after.incr("order_id", 10) == new[-1] + 10
        after.close()
    before.close()


def test_from_redis_without_an_error_while_clients_move_one_by_one(place: Place) -> None:
    before = client(place.redis.port)
    before.set("order_id", 1_234_567)
    look, raise_floor, move, take_away = REDIS_BESIDE.splitlines()
    assert place.run(look).strip() == "1234567"
    place.run(raise_floor)
    with place.serving() as service:
        clients = [before] * 5
        after = client(service.redis[1])
        old, new = list[int](), [int(place.run(move))]
        for moved in range(len(clients) + 1):
            for number in range(len(clients)):
                if number < moved:
                    new += [int(after.incr("order_id")) for _ in range(50)]
                else:
                    old += [int(before.incr("order_id")) for _ in range(50)]
        check(old, new)
        assert int(place.run(take_away)) == max(old) < 5_000_000 == min(new)
        with pytest.raises(ResponseError, match="not an integer"):
            before.incr("order_id")
        after.close()
    before.close()


# --- sno, locality-uuid and the Java class: their own programs, or what these minted ------------------------------


class Original:
    """A program that mints with an original library: it answers a line with a line."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line: str) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the program, at the end of its input."""
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0


class GoSno(Original):
    """A process with the Go library sno and one generator."""

    def __init__(self, snapshot: object = None) -> None:
        super().__init__(go_program(ORIGINALS / "snominter"))
        self.snapshot = self._ask(begin=True, snapshot=snapshot)["snapshot"]

    def mint(self, count: int, meta: int = 0) -> list[sno.ID]:
        told = self._ask(mint=count, meta=meta)
        self.snapshot = told["snapshot"]
        return [sno.ID.parse(text) for text in told["ids"]]

    def _ask(self, **members: object) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.ask(json.dumps(members)))
        return told


@pytest.fixture
def go() -> None:
    """Skip the test without Go."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")


def run_block(block: str, home: Path | None = None, **names: object) -> dict[str, Any]:
    """Run a block of the page with a store in a directory, and return its names."""
    namespace = dict(names)
    block = block.replace("sqlite:///", f"sqlite:///{home}/")
    exec(compile(block, str(PAGE), "exec"), namespace)
    return namespace


def continued(snapshot: object) -> sno.Generator:
    """Return the generator that the page makes of a snapshot of Go's."""
    block, replaced = re.subn(r'(?s)""".*?"""', repr(json.dumps(snapshot)), SNO_CONTINUED)
    assert replaced == 1
    generator: sno.Generator = run_block(block)["orders"]
    return generator


@pytest.mark.usefixtures("go")
def test_sno_continues_a_generator_of_go() -> None:
    go = GoSno({"partition": [171, 205]})
    old = go.mint(70_000, 7)
    saved = go.snapshot
    go.close()
    orders = continued(saved)
    new = list(orders.batch(70_000, 7))
    both = [*old, *new]
    assert both == sorted(both)
    assert len(set(both)) == 140_000
    assert {(each.partition, each.meta) for each in both} == {(171 * 256 + 205, 7)}


@pytest.mark.usefixtures("go")
def test_go_continues_a_generator_of_mintage() -> None:
    with sno.Generator(b"A\n") as generator:
        old = list(generator.batch(1000))
        saved = json.loads(generator.snapshot().to_json())
    go = GoSno(saved)
    both = [*old, *go.mint(1000)]
    go.close()
    assert both == sorted(both)
    assert len(set(both)) == 2000


@pytest.mark.usefixtures("go")
def test_go_reads_and_writes_the_ids_of_sno_as_mintage_does() -> None:
    go = GoSno()
    old = go.mint(1000, 200)
    go.close()
    first, second = go.snapshot["partition"]
    assert {(each.partition, each.meta) for each in old} == {(256 * first + second, 200)}
    assert abs(old[-1].timestamp_ms - time.time_ns() // 10**6) < 60_000


@pytest.mark.usefixtures("go")
def test_from_sno_in_go_while_both_run(tmp_path: Path) -> None:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE parcels (id BLOB PRIMARY KEY)")
    processes = [GoSno(), GoSno({"partition": [0, 1]}), GoSno({"partition": [255, 255]})]

    def insert(minted: Iterable[sno.ID]) -> None:
        database.executemany("INSERT INTO parcels VALUES (?)", [(bytes(each),) for each in minted])

    for process in processes:
        insert(process.mint(100))
    page = run_block(SNO_BESIDE, tmp_path, database=database, sno=sno)
    assert len(page["used"]) == 3
    for _ in range(20):
        for process in processes:
            insert(process.mint(100))
        insert(page["parcels"].batch(300))
    for process in processes:
        process.close()
    page["parcels"].close()
    assert database.execute("SELECT count(*) FROM parcels").fetchone() == (3 * 100 + 20 * 600,)


def test_from_locality_uuid_while_both_run(tmp_path: Path) -> None:
    run_block(LOCALITY_PARSED)
    cases = [case for case in vectors("locality_uuid")["generate"] if case["pid"] != 0]
    old = {case[language]["text"] for case in cases for language in ("java", "ruby")}
    assert len(old) > 50
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE visits (id TEXT PRIMARY KEY)")
    database.executemany("INSERT INTO visits VALUES (?)", [(text,) for text in old])
    page = run_block(LOCALITY_BESIDE, tmp_path, database=database, locality=locality)
    with page["visits"] as visits:
        database.executemany("INSERT INTO visits VALUES (?)", [(str(each),) for each in visits.batch(10_000)])


def mac_of(node: int) -> str:
    """Return a MAC address that hashes to a node number."""
    addresses = (f"0A:1B:2C:3D:{number >> 8:02X}:{number & 255:02X}" for number in range(65_536))
    return next(each for each in addresses if snowflake.node_from_macs([each]) == node)


def test_from_java_hosts_with_numbers_of_their_macs_while_both_run(tmp_path: Path) -> None:
    if (java := shutil.which("java")) is None:
        pytest.skip("Java is not installed")
    fleet = Original(java, str(ORIGINALS / "MacMinter.java"), *map(mac_of, (137, 586, 832)))
    old = [int(text) for text in fleet.ask("300").split()]
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE payments (id BIGINT PRIMARY KEY)")
    database.executemany("INSERT INTO payments VALUES (?)", [(each,) for each in old])
    # The page asserts their numbers.
    used = run_block(JAVA_READ, database=database)["used"]
    page = run_block(JAVA_BESIDE, tmp_path, used=used, snowflake=snowflake)
    (typed,) = re.findall(r"--snowflake-nodes\s+([0-9.,]+,[0-9.,]+)`", PAGE.read_text(encoding="utf-8"))
    assert Settings.load(["--snowflake-nodes", typed]).nodes == page["free"]
    with page["payments"] as payments:
        for _ in range(20):
            for each in (*map(int, fleet.ask("100").split()), *payments.batch(300)):
                database.execute("INSERT INTO payments VALUES (?)", (each,))
    fleet.close()


# --- the rules ----------------------------------------------------------------------------------------------------


def test_forgotten_namespace_is_refused_and_does_not_restart_at_1(place: Place) -> None:
    with place.serving() as service:
        assert place.alloc("forgotten")["code"] == 404_000
        with Line(service.http[1]) as line:
            assert json.loads(line.http("/v1/sequences/forgotten:next").body)["code"] == "request.namespace"
        with Line(service.redis[1]) as line:
            assert "(request.namespace)" in line.redis("INCR", "forgotten")


def test_floor_is_raised_over_http(place: Place) -> None:
    with place.serving():
        assert json.loads(place.run(RAISE_OVER_HTTP))["high_water"] == "4999999"
        assert place.next("orders", 3) == [5_000_000, 5_000_001, 5_000_002]


def test_floor_applies_after_a_restart_despite_an_early_request(place: Place) -> None:
    with place.serving():
        place.run("mintage namespaces create orders")
        assert place.next("orders") == [1]
        place.run(RAISE_OVER_HTTP)
        # This is why the floor comes first.
        assert place.next("orders") == [2]
    with place.serving():
        assert place.next("orders") == [5_000_000]
