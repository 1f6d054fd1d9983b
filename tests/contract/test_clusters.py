"""Tests of databases in which several servers accept writes: MariaDB Galera and MySQL's group replication."""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mintage import open_store
from mintage.protocol.url import StoreUrl
from mintage.store.sql.mysql import MySqlStore
from tests.contract.clients import POOL, crowd, overlaps
from tests.contract.every_store.stores import acquire, extend, new_pool
from tests.helpers.outcomes import code_of, eventually
from tests.helpers.stores import patient
from tests.servers import Galera

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mintage.store import Store
    from tests.contract.clients import History
    from tests.servers import MySQLGroup


CLUSTERS = os.environ.get("MINTAGE_CLUSTERS", "galera").split(",")
"""The kinds of clusters; ``make deep`` has ``mysql_group`` as well, which takes a minute to start."""
DIGITS = f"(SELECT 0 AS d {' '.join(f'UNION SELECT {digit}' for digit in range(1, 10))})"


@pytest.fixture(params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> Galera | MySQLGroup:
    found: Galera | MySQLGroup = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def two(cluster: Galera | MySQLGroup) -> Iterator[tuple[Store, Store]]:
    """Return stores on two servers of the cluster."""
    one, other = (patient(member.url) for member in cluster.members[:2])
    with open_store(one) as first, open_store(other) as second:
        new_pool(first)
        yield first, second


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def crowds(stores: tuple[Store, ...]) -> History:
    """Return what clients of all stores were given, who lease and reserve at the same time."""
    with ThreadPoolExecutor(len(stores)) as threads:
        given = threads.map(lambda store, seed: crowd(store, 3, 30, seed), stores, range(len(stores)))
        return [entry for history in given for entry in history]


def test_all_servers_of_a_cluster_are_one_store(two: tuple[Store, Store]) -> None:
    one, other = two
    assert one.describe().identity == other.describe().identity
    leases = [acquire(store, now_ms(), nodes=range(4)) for store in (one, other, one, other)]
    assert [lease.node for lease in leases] == [0, 1, 2, 3]
    assert extend(other, leases[0], now_ms=now_ms()).node == 0
    assert [store.reserve("n", 10).first for store in (one, other, one)] == [1, 11, 21]
    [pool] = one.list_pools()
    assert (pool.changes, pool.quarantine_until_ms) == (0, 0)


def test_crowds_on_two_servers_share_no_value(two: tuple[Store, Store]) -> None:
    new_pool(two[0], POOL)
    assert overlaps(crowds(two)) == []


def test_lagging_server_knows_a_lease_of_another(cluster: Galera | MySQLGroup, two: tuple[Store, Store]) -> None:
    one, other = two
    other.reserve("n", 1)
    # The other servers need some time for a transaction of many rows, which comes before that of the lease.
    cluster.members[0].sql(
        "USE mintage; CREATE TABLE others (id INT PRIMARY KEY, text CHAR(100)); INSERT INTO others "
        f"SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d, 'x' FROM {DIGITS} a, {DIGITS} b, {DIGITS} c, "
        f"{DIGITS} d, {DIGITS} e WHERE e.d < 5"
    )
    lease = acquire(one, now_ms())
    assert extend(other, lease, now_ms=now_ms()).node == lease.node
    assert other.describe().identity == one.describe().identity


class Uncertified(MySqlStore):
    """A store whose sessions replicate nothing, so no node certifies what another one wrote."""

    def connect(self) -> Any:
        connection = super().connect()
        connection.query("SET SESSION wsrep_on = OFF")
        return connection


def test_crowds_share_values_without_certification(galera: Galera) -> None:
    first = galera.members[0]
    first.sql("GRANT SUPER ON *.* TO mintage")
    with ExitStack() as stack:
        stack.callback(first.sql, "REVOKE SUPER ON *.* FROM mintage")
        stack.callback(galera.reset)  # its nodes differ now
        with open_store(patient(first.url)) as store:
            new_pool(store, POOL)
        urls = [StoreUrl.parse(node.url) for node in galera.members[:2]]
        assert overlaps(crowds(tuple(stack.enter_context(Uncertified(url)) for url in urls)))


def test_node_without_a_majority_refuses(galera: Galera) -> None:
    with open_store(galera.members[0].url) as one, open_store(galera.members[1].url) as other:
        eventually(lambda: other.reserve("n", 10))
        with galera.members[1].partitioned():
            reserved = eventually(lambda: one.reserve("n", 10))
            assert code_of(lambda: other.reserve("n", 10)) == "store.unavailable"
        galera.start()
        assert eventually(lambda: other.reserve("n", 10)).first > reserved.last


def test_older_copy_of_a_node_is_noticed_by_a_running_process() -> None:
    with tempfile.TemporaryDirectory(prefix="mintage-") as directory, ExitStack() as stack:
        Path(directory).chmod(0o755)
        node = Galera(Path(directory)).members[0]
        stack.callback(node.kill)
        node.start()
        with open_store(patient(node.url)) as store:
            for _ in range(5):
                store.reserve("n", 10)
            node.stop()
            node.run("cp", "-a", "data", "copy")
            node.start()
            last = max(store.reserve("n", 10).last for _ in range(5))
            before = store.describe().identity
            node.kill()
            node.run("rm", "-r", "data")
            node.run("mv", "copy", "data")
            node.start()
            assert eventually(lambda: store.reserve("n", 10)).first > last
            after = store.describe().identity
        assert after != before
        assert after.partition(":")[0] == before.partition(":")[0]


def test_dump_restored_into_a_cluster_is_not_noticed(galera: Galera) -> None:
    with open_store(patient(galera.members[0].url)) as store:
        store.reserve("n", 10)
        older = galera.members[0].dump()
        store.reserve("n", 10)
        galera.members[0].sql(older)
        assert store.reserve("n", 10).first == 11


def test_doctor_warns_of_a_node_that_needs_no_majority(galera: Galera) -> None:
    with open_store(patient(galera.url)) as store:
        assert store.describe().warnings == ()
        for node in galera.members:
            node.sql("SET GLOBAL wsrep_provider_options = 'pc.ignore_sb=true'")
        assert any("pc.ignore_sb" in warning for warning in store.describe().warnings)
        for node in galera.members:
            node.sql("SET GLOBAL wsrep_provider_options = 'pc.ignore_sb=false'")


of_groups = pytest.mark.skipif("mysql_group" not in CLUSTERS, reason="MINTAGE_CLUSTERS does not name it")


@of_groups
def test_server_outside_its_group_refuses(mysql_group: MySQLGroup) -> None:
    first, second, _ = mysql_group.members
    with open_store(first.url) as one, open_store(second.url) as other:
        one.reserve("n", 10)
        second.sql("STOP GROUP_REPLICATION; SET GLOBAL super_read_only = OFF; SET GLOBAL read_only = OFF")
        assert code_of(lambda: other.reserve("n", 10)) == "store.unavailable"
        mysql_group.start()
        assert eventually(lambda: other.reserve("n", 10)).first == 11


@of_groups
def test_doctor_names_the_right_to_see_the_group(mysql_group: MySQLGroup) -> None:
    first = mysql_group.members[0]
    right = "SELECT ON performance_schema.replication_group_members"
    with open_store(first.url) as store:
        assert store.describe().warnings == ()
    first.sql(f"REVOKE {right} FROM mintage")
    with open_store(first.url) as store:
        assert any(right in warning for warning in store.describe().warnings)
