"""Former defects that repeated IDs, on the stores and servers on which they were found.

``python -m tests.stress.former_defects --scale 10`` tries each at ten times the size at which it first showed equal
IDs. Names of cases select them.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import json
import os
import select
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections import Counter
from contextlib import ExitStack, closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain, cycle, islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from mintage import Sequence, ksuid, ksuid_ms, locality, objectid, sandflake, sno, snowflake, ulid, uuid, xid
from mintage._core.formats import write_layout
from mintage.cli import main as main_of_mintage
from mintage.errors import CATALOGUE, MintError
from mintage.lease import keeper
from mintage.lease.registry import url as registry_url
from mintage.store import Store, open_store
from mintage.store.memory import MemoryStore
from mintage.store.sqlite import marks
from tests.helpers import file_copies
from tests.helpers.outcomes import eventually
from tests.helpers.processes import answers, first_of_a_namespace, forked, raw_clone
from tests.helpers.stores import LIMIT_MS, patient
from tests.servers import EtcdCluster, MariaDB, MariaDBPair, PostgreSQL, Redis, missing
from tests.servers.server import HOST, PASSWORD, ServerError, until
from tests.stress.registry import BOUND_S, MS_BIND, mount, unshare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MS: Final = 1_000_000
WAIT_MS: Final = 120_000
SHORT_MS: Final = 20_000
"""The longest wait of a generator that meets a quarantine: shorter than that, which is refused at once."""
LONG_S: Final = 1800
"""Seconds after which a case counts as stuck; never waited for otherwise."""
UNIT_MS: Final = 4
"""The unit of a timestamp of sno."""
AT_A_TICK: Final = 4096
"""Snowflakes of a millisecond."""


@dataclass
class Tally:
    """The counts of minted IDs and of errors."""

    ids: int = 0
    equal: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    """The number of refusals, by code."""
    failed: int = 0

    def count(self, minted: Iterable[object]) -> None:
        """Count the IDs of all holders of one scheme in one store."""
        every = list(minted)
        self.ids += len(every)
        self.equal += len(every) - len(set(every))

    def is_clean(self) -> bool:
        """Return True if nothing repeated, and no process hung."""
        return not (self.equal or self.failed)

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Count an error of mintage that ends the block."""
        try:
            yield
        except MintError as error:
            self.note({error.code: 1})

    def note(self, refused: dict[str, int]) -> None:
        """Count refusals in another tally as well."""
        self.refused = dict(Counter(self.refused) + Counter(refused))

    def __str__(self) -> str:
        refused = "".join(f", {count:,} refused with {code}" for code, count in self.refused.items())
        return f"{self.ids:,} IDs: {self.equal:,} equal{refused}{f', {self.failed} failed' if self.failed else ''}"


def integers_of(tally: Tally, children: list[tuple[int, int]], bound_s: float = BOUND_S) -> list[array[int]]:
    """Return the 64-bit integers that processes answer with, and before them the lines of their refusals."""
    found = []
    for answer in answers(children, bound_s):
        refused, _, integers = answer.partition(b"\n")
        if not answer:
            tally.failed += 1
            continue
        tally.note(json.loads(refused))
        found.append(array("Q", integers))
    return found


def answering(work: Callable[[Tally], array[int]]) -> bytes:
    """Write, in a process, the output that :func:`integers_of` reads."""
    tally = Tally()
    integers = work(tally)
    return json.dumps(tally.refused).encode() + b"\n" + integers.tobytes()


# --- stores ---------------------------------------------------------------------------------------------------------


GRANTED_S: Final = 4


# More than 60 lines: a scenario, one step after the other.
def switched_and_back(folder: Path, size: int) -> Tally:
    """Extend a lease on server B, lose the later grants of B, and switch back to A."""
    tally, each = Tally(), size // 2
    span_ms = 24_000 + each // AT_A_TICK
    begin = [os.pipe() for _ in range(3)]

    def hold(number: int) -> bytes:
        reading, _ = begin[number]

        def minted(tally: Tally) -> array[int]:
            with os.fdopen(reading) as told:
                url = told.readline().strip()
                generator = snowflake.Generator(
                    store=url, nodes=range(2), span_ms=span_ms, on_lease_lost="raise", max_wait_ms=WAIT_MS
                )
                ids = array("Q", [generator.new()])
                at_s = float(told.readline())
            time.sleep(max(0.0, at_s - time.time()))
            with tally.refusals():
                while len(ids) < (each if number else 1):
                    ids.extend(generator.batch(min(each - len(ids), 50 * AT_A_TICK)))
            return ids

        return answering(minted)

    def tell(number: int, word: object) -> None:
        os.write(begin[number][1], f"{word}\n".encode())

    # Before there are connections, which processes would inherit.
    children = [forked(partial(hold, number)) for number in range(3)]
    pair = MariaDBPair(folder)
    with ExitStack() as stack:
        stack.callback(pair.kill)
        pair.start()
        store = stack.enter_context(open_store(patient(pair.url)))

        def windows() -> list[int]:
            try:
                return [record.until_ms for record in store.list_leases() if record.token]
            except MintError:
                return []

        def granted(count: int) -> None:
            until(lambda: len(windows()) == count, f"{count} are leased")

        tell(0, patient(pair.url))
        granted(1)
        [first] = windows()
        pair.failover()
        came = pair.follower
        came.start()
        came.leader = pair.leader
        came.sql("SET GLOBAL gtid_slave_pos = @@gtid_binlog_pos;")
        came.sql((came.follows + came.follows_from).format(HOST, pair.leader.port, PASSWORD))
        until(lambda: max(windows(), default=0) > first, "its holder goes on")
        with pair.failover_that_forgets():
            tell(1, patient(pair.url))
            granted(2)
        tell(2, patient(pair.url))
        # Before its number is granted again, if it is.
        with suppress(ServerError):
            until(lambda: len(windows()) == 2, "it is granted again", seconds=GRANTED_S)
        for number in range(3):
            tell(number, time.time() + 1)
        minted = integers_of(tally, children)
    count_integers(tally, minted)
    return tally


ORDER: Final = (0, 0, 1, 1, 1, 1)
"""The time in which two of them reserve: the second needs a block of its own, and exhausts it."""


def schemas_with_one_cache(folder: Path, size: int) -> Tally:
    """Share one Redis between two roles of one database, each with a schema of its own."""
    tally = Tally()
    with ExitStack() as stack:
        postgresql, redis = PostgreSQL(folder / "postgresql"), Redis(folder / "redis")
        for server in (postgresql, redis):
            stack.callback(server.kill)
            server.start()
        roles = ("red", "blue")
        for name in roles:
            postgresql.sql(f"CREATE ROLE {name} LOGIN PASSWORD 'x'; CREATE SCHEMA {name} AUTHORIZATION {name};")
        rest = f"{patient(postgresql.url.rpartition('@')[2])}&block=3&cache={patient(redis.url)}"
        # With three segments a block each of them soon needs another from its own tables.
        stores = [stack.enter_context(open_store(f"postgresql://{name}:x@{rest}")) for name in roles]
        reserved: list[list[int]] = [[], []]
        for _ in range(size // len(ORDER)):
            for role in ORDER:
                reserved[role] += stores[role].reserve("n", 10).as_range()
        for integers in reserved:
            tally.count(integers)
    return tally


IDS_AN_INTEGER: Final = 490
"""As many as holders minted beside each integer when the defect was found."""
LOOKS: Final = ("doctor", "pools list", "leases list", "namespaces list")
"""The commands that somebody runs to see what is wrong."""


def two_stores_of_one_name(folder: Path, size: int) -> Tally:
    """Look at a store in use through another schema; then its holder mints on, beside a process that starts."""
    tally = Tally()
    postgresql = PostgreSQL(folder / "postgresql")

    def minted(tally: Tally, ready: int | None, go: int | None) -> array[int]:
        # Integers are odd in the answer, IDs are even.
        values = array("Q")
        with (
            tally.refusals(),
            open_store(patient(postgresql.url)) as store,
            snowflake.Generator(store=store, max_wait_ms=WAIT_MS) as generator,
        ):
            values.append(2 * generator.new())
            for at in range(0, size // 2, 10):
                values.extend(2 * each + 1 for each in store.reserve("n", 10).as_range())
                if ready is not None and go is not None and at == size // 4 // 10 * 10:
                    os.write(ready, b".")
                    os.read(go, 1)
            for _ in range(0, size // 2 * IDS_AN_INTEGER, AT_A_TICK):
                values.extend(2 * each for each in generator.batch(AT_A_TICK))
        return values

    def beside(look: Callable[[], object]) -> None:
        """Count what a holder mints before and after a look, and what a process mints that starts after it."""
        is_ready, ready = os.pipe()
        go, goes = os.pipe()
        holder = forked(partial(answering, partial(minted, ready=ready, go=go)))
        select.select([is_ready], [], [], BOUND_S)
        look()
        os.write(goes, b".")
        started = forked(partial(answering, partial(minted, ready=None, go=None)))
        values = np.concatenate([np.asarray(each) for each in integers_of(tally, [holder, started])])
        tally.ids += len(values)
        tally.equal += len(values) - len(np.unique(values))
        for end in (is_ready, ready, go, goes):
            os.close(end)

    def run_commands() -> None:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            for look in LOOKS:
                main_of_mintage([*look.split(), "--store", patient(f"{postgresql.url}?schema=mintage")])

    def begin_second_store() -> None:
        with open_store(patient(f"{postgresql.url}?schema=mintage")) as other:
            other.reserve("n", 10)

    with ExitStack() as stack:
        stack.callback(postgresql.kill)
        postgresql.start()
        beside(run_commands)
        beside(begin_second_store)
    return tally


BEFORE_A_DROP: Final = 800
"""Integers, of blocks of 300."""


def dropped_tables(folder: Path, size: int) -> Tally:
    """Drop the tables to start anew, while Redis in front of them keeps a block of the old ones."""
    tally = Tally()
    with ExitStack() as stack:
        postgresql, redis = PostgreSQL(folder / "postgresql"), Redis(folder / "redis")
        for server in (postgresql, redis):
            stack.callback(server.kill)
            server.start()
        url = f"{patient(postgresql.url)}&block=30&cache={patient(redis.url)}"
        for _ in range(max(1, size // BEFORE_A_DROP)):
            with open_store(url) as store:
                store.reserve("n", 10)
            postgresql.reset()
            with open_store(url) as store:
                tally.count(i for _ in range(BEFORE_A_DROP // 10) for i in store.reserve("n", 10).as_range())
            postgresql.reset()
    return tally


OF_BOTH: Final = 64
"""Snowflakes that each of two holders mints in turn, so that both mint in the same milliseconds."""


def created_after_a_loss(folder: Path, size: int) -> Tally:
    """Create a pool as soon as its store has lost it, while its holder mints."""
    tally, file = Tally(), folder / "ids.db"
    redis, postgresql, mariadb = Redis(folder / "redis"), PostgreSQL(folder / "postgresql"), MariaDB(folder / "mariadb")

    def statements(verb: str, *tables: str) -> str:
        return "".join(f"{verb}mintage_{table};" for table in tables)

    def replaced() -> None:
        file.write_bytes(file.with_name("copy.db").read_bytes())

    records = ("pool", "node", "namespace")
    with ExitStack() as stack:
        for server in (redis, postgresql, mariadb):
            stack.callback(server.kill)
            server.start()
        of_mariadb = statements("DROP TABLE mintage.", "schema", "name", "life", *records)
        for url, lose in (
            (patient(redis.url), partial(redis.ask, "FLUSHALL")),
            (patient(postgresql.url), partial(postgresql.sql, statements("DROP TABLE ", "schema", "name", *records))),
            (patient(postgresql.url), partial(postgresql.sql, statements("DELETE FROM ", *records))),
            (
                patient(mariadb.url),
                partial(mariadb.sql, of_mariadb),
            ),
            (f"sqlite:///{file}", replaced),
        ):
            if url.startswith("sqlite"):
                with open_store(url) as store:
                    store.reserve("n", 1)
                file.with_name("copy.db").write_bytes(file.read_bytes())
            count_integers(tally, _minted_by_both(tally, url, lose, size))
            postgresql.reset()
    return tally


def _minted_by_both(tally: Tally, url: str, lose: Callable[[], object], size: int) -> list[array[int]]:
    """Return the IDs of the holder, and of a second one if the store grants it a number after the loss."""
    found = [array("Q"), array("Q")]
    with open_store(url) as store, ExitStack() as stack:
        layout = f"snowflake {write_layout(snowflake.DEFAULT)}"
        store.create_pool("snowflake", layout=layout, never_used=True)
        terms: dict[str, Any] = {"store": store, "nodes": range(1)}
        holders = [stack.enter_context(snowflake.Generator(**terms, max_wait_ms=WAIT_MS))]
        found[0].append(holders[0].new())
        lose()
        with tally.refusals():
            store.create_pool("snowflake", layout=layout)
            second = stack.enter_context(snowflake.Generator(**terms, max_wait_ms=SHORT_MS))
            found[1].append(second.new())
            holders.append(second)
        while sum(map(len, found)) < size:
            for holder, ids in zip(holders, found, strict=False):
                ids.extend(holder.batch(OF_BOTH))
    return found


def created_names_after_a_loss(folder: Path, size: int) -> Tally:
    """Create a namespace without a start as soon as its store has lost it."""
    tally = Tally()
    with ExitStack() as stack:
        for server in (PostgreSQL(folder / "postgresql"), MariaDB(folder / "mariadb")):
            stack.callback(server.kill)
            server.start()
            place = "mintage." if isinstance(server, MariaDB) else ""
            with open_store(patient(server.url)) as store:
                integers = list(store.reserve("n", size // 2).as_range())
                server.sql(f"DELETE FROM {place}mintage_namespace;")
                for begin in (partial(store.create_namespace, "n"), partial(store.reserve, "n", size // 2)):
                    with tally.refusals():
                        begin()
                        integers += store.reserve("n", size // 2).as_range()
            tally.count(integers)
    return tally


def never_used_after_a_loss(folder: Path, size: int) -> Tally:
    """Mint IDs of a given time by a number that was never granted; lose the store, and do the same again."""
    tally, redis = Tally(), Redis(folder / "redis")
    layout, at_ns, ids = f"snowflake {write_layout(snowflake.DEFAULT)}", time.time_ns() - 3600 * 1_000_000_000, []
    with ExitStack() as stack:
        stack.callback(redis.kill)
        redis.start()
        store = stack.enter_context(open_store(patient(redis.url)))
        for is_sure in (True, False):
            store.create_pool("snowflake", layout=layout, never_used=is_sure)
            with (
                tally.refusals(),
                snowflake.Generator(store=store, nodes=range(1), never_used=True, max_wait_ms=SHORT_MS) as generator,
            ):
                ids += [generator.nth_at(at_ns + at // AT_A_TICK * MS, at % AT_A_TICK) for at in range(size)]
            redis.ask("FLUSHALL")
        tally.count(ids)
    return tally


STEPS: Final = (2, 5, 3)
"""Reservations before a copy, after it, and after the store went back to it. It loses half of what it skips."""


def gone_back(tally: Tally, url: str, save: Callable[[], object], lose: Callable[[], object], size: int) -> None:
    """Reserve integers and mint IDs before a copy of a store, after it, and once the store has gone back to it."""
    step, refused = size // sum(STEPS), Tally()
    terms: dict[str, Any] = {"nodes": range(2)}
    integers: list[int] = []
    with open_store(url) as store, ExitStack() as stack:
        holders = [stack.enter_context(snowflake.Generator(store=store, max_wait_ms=WAIT_MS, **terms))]
        ids = [[holders[0].new()]]
        for count, then in zip(STEPS, (save, lose, None), strict=True):
            for _ in range(count):
                integers += eventually(partial(store.reserve, "n", step)).as_range()
            with refused.refusals():
                holder = snowflake.Generator(store=store, max_wait_ms=SHORT_MS if then is None else WAIT_MS, **terms)
                ids.append([stack.enter_context(holder).new()])
                holders.append(holder)
            if then is not None:
                then()
            terms = {"nodes": range(2, 3)} if then is save else {"nodes": range(3)}
        while sum(map(len, ids)) < size * 10:
            for holder, its in zip(holders, ids, strict=False):
                its.extend(holder.batch(OF_BOTH))
    tally.count(integers)
    tally.count(chain.from_iterable(ids))
    tally.note(refused.refused)


def older_disk(folder: Path, size: int) -> Tally:
    """Start PostgreSQL on an older copy of its disk, which has the same id, while holders mint."""
    tally, server = Tally(), PostgreSQL(folder)
    data = folder / "data"

    def save() -> None:
        server.stop()
        subprocess.run(["cp", "-a", data, data.with_name("older")], check=True)
        server.start()

    def lose() -> None:
        server.stop()
        data.rename(data.with_name("newer"))
        data.with_name("older").rename(data)
        server.start()

    with ExitStack() as stack:
        stack.callback(server.kill)
        server.start()
        gone_back(tally, patient(server.url), save, lose, size)
    return tally


def older_rows(folder: Path, size: int) -> Tally:
    """Load older rows into the tables of PostgreSQL, as of ``pg_dump --data-only``, while holders mint."""
    tally, server = Tally(), PostgreSQL(folder)
    rows: dict[str, str] = {}

    def save() -> None:
        rows.update({kind: server.sql(f"COPY mintage_{kind} TO STDOUT") for kind in ("pool", "node", "namespace")})

    def lose() -> None:
        for kind, older in rows.items():
            server.sql(f"DELETE FROM mintage_{kind};\nCOPY mintage_{kind} FROM STDIN;\n{older}\\.\n")

    with ExitStack() as stack:
        stack.callback(server.kill)
        server.start()
        gone_back(tally, patient(server.url), save, lose, size)
    return tally


def older_cluster(folder: Path, size: int) -> Tally:
    """Make a new cluster of etcd from a member that lacks the last writes, while holders mint."""
    tally, cluster = Tally(), EtcdCluster(folder)
    stale = cluster.members[2]
    every = {"key": "AA==", "range_end": "AA=="}

    def heard() -> bool:
        counts = {
            member.call("/v3/kv/range", {**every, "serializable": True, "count_only": True})["header"]["revision"]
            for member in cluster.members
        }
        return len(counts) == 1

    def save() -> None:
        until(heard, "all members have all writes")
        stale.stop()

    def lose() -> None:
        for member in cluster.members:
            member.kill()
        stale.options = ("--force-new-cluster",)
        stale.start()
        cluster.until(stale.is_up, "it serves")

    with ExitStack() as stack:
        for member in cluster.members:
            stack.callback(member.kill)
        cluster.start()
        gone_back(tally, patient(cluster.url), save, lose, size)
    return tally


def removed_beside_a_holder(folder: Path, size: int) -> Tally:
    """Remove an SQLite file while its holder mints; then another process uses the store."""
    tally, file = Tally(), folder / "ids.db"
    url, step = f"sqlite:///{file}", size // 2

    def start() -> bytes:
        # As a process that was not forked from the holder.
        marks._remembered.clear()

        def minted(tally: Tally) -> array[int]:
            # Integers are odd in the answer, IDs are even.
            values = array("Q")
            with open_store(url) as store:
                values.extend(2 * each + 1 for each in store.reserve("n", step).as_range())
                with tally.refusals(), snowflake.Generator(store=store, max_wait_ms=SHORT_MS) as generator:
                    for _ in range(0, step * 10, OF_BOTH):
                        values.extend(2 * each for each in generator.batch(OF_BOTH))
            return values

        return answering(minted)

    with open_store(url) as store, snowflake.Generator(store=store, max_wait_ms=WAIT_MS) as holder:
        values = array("Q", [2 * holder.new()])
        values.extend(2 * each + 1 for each in store.reserve("n", step).as_range())
        for each in folder.glob("ids.db*"):
            each.unlink()
        started = forked(start)
        for _ in range(0, step * 10, OF_BOTH):
            values.extend(2 * each for each in holder.batch(OF_BOTH))
        count_integers(tally, [values, *integers_of(tally, [started])])
    return tally


def without_transactions(folder: Path, size: int) -> Tally:
    """Turn the tables to an engine without transactions, and reserve in four processes."""
    tally, server = Tally(), MariaDB(folder)
    with ExitStack() as stack:
        stack.callback(server.kill)
        server.start()
        with open_store(patient(server.url)) as store:
            store.reserve("n", 1)
        for kind in ("pool", "node", "namespace"):
            server.sql(f"ALTER TABLE mintage.mintage_{kind} ENGINE = MyISAM;")

        def reserved(tally: Tally) -> array[int]:
            integers = array("Q")
            with open_store(patient(server.url)) as store, tally.refusals():
                while len(integers) < size // 4:
                    integers.extend(store.reserve("n", 10).as_range())
            return integers

        children = [forked(partial(answering, reserved)) for _ in range(4)]
        count_integers(tally, integers_of(tally, children))
    return tally


def count_integers(tally: Tally, minted: list[array[int]]) -> None:
    """Count 64-bit integers. They are sorted in place: numpy.unique takes a minute for as many."""
    every = np.concatenate([np.frombuffer(ids, dtype=np.uint64) for ids in minted])
    every.sort()
    tally.ids += len(every)
    tally.equal += int((every[1:] == every[:-1]).sum())


AT_A_TURN: Final = 3
"""The number of reservations before tables are dropped or restored."""


def dropped_by_migrations(folder: Path, size: int) -> Tally:
    """Drop the tables of a store in the database of the application by migrations, repeatedly."""
    tally = Tally()
    with ExitStack() as stack:
        postgresql, mariadb = PostgreSQL(folder / "postgresql"), MariaDB(folder / "mariadb")
        for server in (postgresql, mariadb):
            stack.callback(server.kill)
            server.start()
        records = ("schema", "pool", "node", "namespace", "name")
        for server, option, place, tables in (
            (postgresql, "", "public", records),
            (postgresql, "?schema=ids", "ids", records),
            (mariadb, "", "mintage", (*records, "life")),
        ):
            store, integers = stack.enter_context(open_store(patient(f"{server.url}{option}"))), list[int]()
            for turn in range(size):
                for _ in range(AT_A_TURN):
                    with tally.refusals():
                        integers += store.reserve("invoice", 10).as_range()
                if turn:
                    store.raise_floor("invoice", max(integers) + 1)
                    integers += store.reserve("invoice", 10).as_range()
                server.sql("".join(f"DROP TABLE {place}.mintage_{table};" for table in tables))
            tally.count(integers)
    return tally


def restored_from_dumps(folder: Path, size: int) -> Tally:
    """Restore the table of namespaces from an older dump, while integers are reserved."""
    tally = Tally()
    with ExitStack() as stack:
        for server in (PostgreSQL(folder / "postgresql"), MariaDB(folder / "mariadb")):
            stack.callback(server.kill)
            server.start()
            store, integers = stack.enter_context(open_store(patient(server.url))), list[int]()
            for turn in range(size):
                integers += store.reserve("invoice", 10).as_range()
                dump = server.dump("mintage_namespace")
                for _ in range(AT_A_TURN):
                    integers += store.reserve("invoice", 10).as_range()
                young = list(store.reserve(f"young-{turn}", 10).as_range())
                if isinstance(server, MariaDB):
                    server.await_new_second()
                server.sql(dump)
                with tally.refusals():
                    young += store.reserve(f"young-{turn}", 10).as_range()
                tally.count(young)
                store.create_namespace(f"young-{turn}", start=11)
            integers += store.reserve("invoice", 10).as_range()
            tally.count(integers)
    return tally


def two_names(folder: Path, size: int, *, mounted: bool) -> Tally:
    """Use one SQLite file under two names in two processes."""
    tally = Tally()
    names = [folder / "here" / "ids.db", folder / "there" / "ids.db"]
    for name in names:
        name.parent.mkdir()
    with open_store(f"sqlite:///{names[0]}") as store:
        store.create_namespace("n")
    if mounted:
        names[1].touch()
    else:
        names[1].hardlink_to(names[0])

    def reserve(number: int) -> bytes:
        if mounted and number:
            unshare()
            mount(names[0], names[1], MS_BIND)

        def reserved(tally: Tally) -> array[int]:
            integers = array("Q")
            with tally.refusals(), open_store(f"sqlite:///{names[number]}?timeout_ms=60000") as store:
                while len(integers) < size // 2:
                    integers.extend(store.reserve("n", 2).as_range())
            return integers

        return answering(reserved)

    children = [forked(partial(reserve, number)) for number in range(2)]
    tally.count(integer for integers in integers_of(tally, children) for integer in integers)
    return tally


OF_A_COPY: Final = 100
"""Integers that are reserved between a copy and its return."""


def copies_of_a_store(folder: Path, size: int) -> Tally:
    """Restore older copies of a file in all ways, twice each, while a sequence is in use."""
    tally, place, copy = Tally(), folder / "store", folder / "copy"
    place.mkdir()
    url = f"sqlite:///{place}/{file_copies.NAME}?timeout_ms=60000"

    def elsewhere() -> array[int]:
        def reserved(tally: Tally) -> array[int]:
            integers = array("Q")
            with tally.refusals(), open_store(url) as store:
                for _ in range(OF_A_COPY // 20):
                    integers.extend(store.reserve("n", 10).as_range())
                    integers.extend(store.reserve("n", 10).as_range())
            return integers

        [found] = integers_of(tally, [forked(partial(answering, reserved))]) or [array("Q")]
        return found

    with Sequence("n", url, step=10) as live:
        integers = array("Q", [live.next()])

        def draw() -> None:
            # The keeper may meet the moment in which there is no file.
            for _ in range(15):
                with tally.refusals():
                    integers.append(live.next())

        ways = cycle(way for name, way in file_copies.WAYS.items() if not file_copies.lacks(name))
        for number, way in enumerate(islice(ways, size)):
            integers.extend(found := elsewhere())
            # A copy that is written over the file while somebody writes to it can damage it: the next one heals it.
            if found and number % 2 == 0:
                with marks.watched(str(place / file_copies.NAME), WAIT_MS):
                    file_copies.copied(place, copy)
            integers.extend(elsewhere())
            draw()
            with suppress(sqlite3.DatabaseError):
                way(place, copy)
            draw()
            integers.extend(elsewhere())
    tally.count(integers)
    return tally


def copies_of_the_registry(folder: Path, size: int) -> Tally:
    """Restore a copy of the registry that does not know a holder, while other processes start."""
    tally, place, copy = Tally(), folder / "home", folder / "copy"
    os.environ["MINTAGE_HOME"] = str(place)
    done_reading, done = os.pipe()
    begun, begin = os.pipe()

    def use() -> bytes:
        with snowflake.Generator() as generator:
            generator.new()
        return b""

    def hold() -> bytes:
        os.close(done)

        def minted(tally: Tally) -> array[int]:
            ids, generator = array("Q"), snowflake.Generator()
            ids.append(generator.new())
            os.write(begin, b".")
            while not select.select([done_reading], [], [], 0.001)[0]:
                with tally.refusals():
                    ids.extend(generator.batch(512).tolist())
            return ids

        return answering(minted)

    def come() -> bytes:
        def minted(tally: Tally) -> array[int]:
            ids = array("Q")
            with tally.refusals():
                ids.extend(snowflake.Generator().batch(20_000).tolist())
            return ids

        return answering(minted)

    list(answers([forked(use)]))
    file_copies.copied(place, copy)
    holders = [forked(hold) for _ in range(2)]
    for _ in holders:
        os.read(begun, 1)
    came: list[array[int]] = []
    for line in islice(cycle(REGISTRY_WAYS), size):
        subprocess.run(["sh", "-ec", line, "sh", place, copy], check=True)
        came += integers_of(tally, [forked(come) for _ in range(2)])
    os.close(done)
    minted = [*came, *integers_of(tally, holders)]
    every = np.concatenate([np.frombuffer(ids, dtype=np.uint64) for ids in minted])
    every.sort()
    tally.ids, tally.equal = len(every), int((every[1:] == every[:-1]).sum())
    return tally


REGISTRY_WAYS: Final = (
    'cp "$2"/registry.db "$1"/registry.db',
    'rm "$1"/registry.db*; cp "$2"/registry.db "$1"',
    'cp -r "$2"/. "$1"',
    'tar -C "$2" -c . | tar -C "$1" -x',
    'cp "$2"/registry.db "$1"/aside; mv "$1"/aside "$1"/registry.db',
)
"""The arguments are the directory of the registry and a copy of it."""


def read_as_well(folder: Path, size: int) -> Tally:
    """Reserve from a file in processes that also open, read and close it and its companions all the time."""
    tally, path = Tally(), folder / "ids.db"
    with open_store(f"sqlite:///{path}") as store:
        store.create_namespace("n")

    def reserve() -> bytes:
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                for ending in ("", "-wal", "-shm", "-guard"):
                    with suppress(FileNotFoundError):
                        Path(f"{path}{ending}").read_bytes()

        def reserved(tally: Tally) -> array[int]:
            integers = array("Q")
            with open_store(f"sqlite:///{path}?timeout_ms=60000") as store:
                while len(integers) < size // 4:
                    with tally.refusals():
                        integers.extend(store.reserve("n", 10).as_range())
            return integers

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        answer = answering(reserved)
        done.set()
        for thread in threads:
            thread.join()
        return answer

    children = [forked(reserve) for _ in range(4)]
    # Two threads of each process read without a pause, so the writers are slow.
    found = integers_of(tally, children, 10 * BOUND_S)
    tally.count(integer for integers in found for integer in integers)
    return tally


def changed_directory(folder: Path, size: int) -> Tally:
    """Change the directory between two generators with a relative URL."""
    tally = Tally()
    generators = []
    for name in ("one", "two"):
        (folder / name).mkdir()
        os.chdir(folder / name)
        generators.append(snowflake.Generator(store="sqlite:///rel.db", nodes=range(2)))
        generators[-1].new()
    ids = array("Q")
    while len(ids) < size:
        for generator in generators:
            ids.extend(generator.batch(1000).tolist())
    tally.count(ids)
    return tally


class Careless(MariaDB):
    """A server that flushes its log once a second."""

    name = "mariadb_careless"
    options: ClassVar = (*MariaDB.options, "--innodb-flush-log-at-trx-commit=0")


BEFORE_A_KILL: Final = 300
"""Integers that are reserved, in less than a second."""


def flushed_once_a_second(folder: Path, size: int) -> Tally:
    """Kill a server that answers before its log is written."""
    tally, server, reserved = Tally(), Careless(folder), list[int]()
    with ExitStack() as stack:
        stack.callback(server.kill)
        for _ in range(size // BEFORE_A_KILL + 1):
            server.start()
            with tally.refusals(), open_store(patient(server.url)) as store:
                for _ in range(BEFORE_A_KILL // 10):
                    reserved += store.reserve("n", 10).as_range()
            server.kill()
    tally.count(reserved)
    return tally


# --- released times --------------------------------------------------------------------------------------------------


def earlier_holders_times(folder: Path, size: int) -> Tally:
    """Call ``new_at`` with the store of the environment, at a time at which an earlier holder minted."""
    tally = Tally()
    os.environ["MINTAGE_STORE"] = f"sqlite:///{folder}/ids.db"

    def hold() -> bytes:
        with sno.Generator(nodes=range(1), max_wait_ms=WAIT_MS) as generator:
            return bytes(generator.new())

    def port(time_ns: int) -> bytes:
        def ported(tally: Tally) -> array[int]:
            minted = array("Q")
            with tally.refusals(), sno.Generator(nodes=range(1), max_wait_ms=WAIT_MS) as generator:
                minted.frombytes(bytes(6) + bytes(generator.new_at(time_ns)))
            return minted

        return answering(ported)

    for _ in range(size):
        [first] = answers([forked(hold)])
        minted = [first]
        for answer in integers_of(tally, [forked(partial(port, sno.ID(first).timestamp_ns))]):
            minted += [answer.tobytes()[6:]] if answer else []
        tally.count(minted)
    return tally


AT_A_TIME: Final = 100
"""IDs that are ported under one lease, each at a time of its own."""


def ported_and_given_back(folder: Path, size: int) -> Tally:
    """Port IDs to times around now, release the number, and let the next holder mint in all of them."""
    tally = Tally()
    Store.clock_limit_ms = LIMIT_MS

    def port(url: str) -> bytes:
        refused = Tally()
        with sno.Generator(store=url, nodes=range(1), never_used=True, span_ms=1000, max_wait_ms=WAIT_MS) as generator:
            # Its lease begins with this one, so that later times are refused, however slow the machine is.
            ported = bytes(generator.new_at(time.time_ns() - 3600 * 1_000_000_000))
            start_ms = time.time_ns() // MS - AT_A_TIME // 2 * UNIT_MS
            for number in range(AT_A_TIME):
                with refused.refusals():
                    ported += bytes(generator.new_at((start_ms + number * UNIT_MS) * MS))
        return json.dumps([start_ms, refused.refused]).encode() + b"\n" + ported

    def hold(url: str, start_ms: int) -> bytes:
        behind_ns, minted = time.time_ns() - (start_ms - UNIT_MS) * MS, b""

        def clock() -> int:
            return time.time_ns() - behind_ns

        with sno.Generator(store=url, nodes=range(1), clock=clock, span_ms=1000, max_wait_ms=WAIT_MS) as generator:
            while not minted or clock() < (start_ms + AT_A_TIME * UNIT_MS) * MS:
                # As many as were ported, so that every sequence number is met.
                minted += generator.batch(AT_A_TIME).tobytes()
        return minted

    for number in range(max(1, size // AT_A_TIME)):
        url = f"sqlite:///{folder}/{number}.db"
        [told] = answers([forked(partial(port, url))])
        head, _, ported = told.partition(b"\n")
        start_ms, refused = json.loads(head or b"[0, {}]")
        [minted] = answers([forked(partial(hold, url, start_ms))]) if told else [b""]
        tally.failed += not minted
        tally.note(refused)
        every = ported + minted
        tally.count(every[at : at + 10] for at in range(0, len(every), 10))
    return tally


def closed_in_a_clock(folder: Path, size: int) -> Tally:
    """Close a generator while another thread is in its clock; the next holder mints in the same time."""
    tally = Tally()
    Store.clock_limit_ms = LIMIT_MS  # a machine may stall, and these clocks stand still
    schemes: list[Any] = [sno.Generator, snowflake.Generator]

    def close(make: Any, reading: int, url: str) -> list[object]:
        with open_store(url) as store:
            now_ms = store.now_ms()
        minted: list[object] = []
        left, came, goes_on = 0, threading.Event(), threading.Event()

        def clock() -> int:
            nonlocal left
            if threading.current_thread() is minting:
                left -= 1
                if left == 0:
                    came.set()
                    goes_on.wait(BOUND_S)
            return now_ms * MS

        def mint(generator: Any) -> None:
            nonlocal now_ms
            with tally.refusals():
                for _ in range(20):
                    minted.append(generator.new())
                    now_ms += 10

        old, new = (make(store=url, nodes=range(1), clock=clock, max_wait_ms=WAIT_MS) for _ in range(2))
        minting, closing = threading.Thread(target=mint, args=[old]), threading.Thread(target=old.close)
        minted.append(old.new())
        left = reading
        minting.start()
        came.wait(BOUND_S)
        closing.start()
        # It may wait for the other thread; then the number is not granted before that one continues.
        closing.join(0.2)
        if not closing.is_alive():
            then = now_ms = now_ms + 10
            mint(new)
            now_ms = then
        goes_on.set()
        for thread in (minting, closing):
            thread.join(BOUND_S)
            tally.failed += thread.is_alive()
        new.close()
        return minted

    for number, (make, reading) in enumerate(islice(cycle(product(schemes, range(1, 6))), size)):
        tally.count(close(make, reading, f"sqlite:///{folder}/{number}.db"))
    return tally


# --- forks -----------------------------------------------------------------------------------------------------------


def fork_without_handlers() -> int:
    """Fork with ``_Fork`` of the C library, available since its version 2.34."""
    pid: int = ctypes.PyDLL(None)._Fork()
    return pid


def unseen_fork(folder: Path, size: int, *, fork: Callable[[], int], of_a_namespace: bool) -> Tally:
    """Fork without handlers in a process that holds a lease and a segment; both processes go on."""
    tally, integers = Tally(), size // 400
    url = f"sqlite:///{folder}/ids.db"

    def work() -> bytes:
        # Python cannot continue after such a fork beside a thread that waits for the GIL, so the keeper has no thread.
        keeper.use(keeper.Keeper(inline=True))
        generator = snowflake.Generator(store=url, max_wait_ms=WAIT_MS)
        orders = Sequence("orders", url, step=2 * integers, max_wait_ms=WAIT_MS)
        generator.new()
        orders.next()
        met = [os.pipe() for _ in range(2)]

        def mint(number: int) -> bytes:
            # Both start together.
            os.write(met[number][1], b".")
            os.read(met[1 - number][0], 1)
            ids = array("Q")
            while len(ids) < size // 2:
                ids.extend(generator.batch(500))
                time.sleep(0.0005)
            return ids.tobytes() + array("Q", [orders.next() for _ in range(integers // 2)]).tobytes()

        child = forked(partial(mint, 1), fork)
        mine = mint(0)
        [theirs] = answers([child])
        return mine + theirs

    [answer] = answers([forked(work, first_of_a_namespace if of_a_namespace else os.fork)])
    each = size // 2 + integers // 2
    every = array("Q", answer)
    tally.failed += len(every) != 2 * each
    halves = [every[:each], every[each:]]
    tally.count(integer for half in halves for integer in half[: size // 2])
    tally.count(integer for half in halves for integer in half[size // 2 :])
    return tally


def forked_in_a_clock(folder: Path, size: int) -> Tally:
    """Fork inside a reading of a clock; both processes mint on."""
    tally = Tally()
    Store.clock_limit_ms = LIMIT_MS
    schemes: list[Any] = [sno.Generator, snowflake.Generator, locality.Generator]

    def mint_on_both_sides(make: Any, reading: int, url: str) -> bytes:
        keeper.use(keeper.Keeper(inline=True))
        with open_store(url) as store:
            now_ms = store.now_ms()
        readings = 0
        answer, answering = os.pipe()
        pids: list[int] = []

        def clock() -> int:
            nonlocal readings, now_ms
            readings, now_ms = readings + 1, now_ms + 10
            if readings == reading:
                pids.append(os.fork())
            return now_ms * MS

        generator = make(store=url, clock=clock, max_wait_ms=WAIT_MS)
        ids: list[str] = []
        while not pids:
            ids.append(str(generator.new()))
        since = max(0, len(ids) - 1)
        ids += map(str, generator.batch(20))
        if pids == [0]:
            # The first call may have returned before the fork.
            os.write(answering, "\n".join(ids[since:]).encode())
            os._exit(0)
        os.close(answering)
        with os.fdopen(answer) as theirs:
            ids += theirs.read().split()
        os.waitpid(pids[0], 0)
        return "\n".join(ids).encode()

    for number, (make, reading) in enumerate(islice(cycle(product(schemes, range(1, 9))), size)):
        url = f"sqlite:///{folder}/{number}.db"
        [answer] = answers([forked(partial(mint_on_both_sides, make, reading, url))])
        minted = answer.decode().split()
        tally.failed += len(minted) < 40
        tally.count(minted)
    return tally


# --- tables ---------------------------------------------------------------------------------------------------------


RUNS: Final = 8
CROWDED: Final = ("xid", "objectid")
"""Formats whose count of a second has 24 bits."""


def refilled(folder: Path, size: int) -> Tally:
    """Fill and empty a table of one second repeatedly: with one node number, and with leased ones."""
    tally, url = Tally(), f"sqlite:///{folder}/shop.db"
    rows = size // (RUNS * len(CROWDED))
    for scheme, node in product(CROWDED, (["--node", "9"], ["--store", f"sqlite:{folder}/ids.db"])):
        words = ["--table", "t", "--time-column", "made", "--id-column", "id", "--scheme", scheme, *node]
        given: list[str] = []
        for _ in range(RUNS):
            with closing(sqlite3.connect(folder / "shop.db")) as shop:
                shop.executescript(
                    "DROP TABLE IF EXISTS t; CREATE TABLE t (n INTEGER PRIMARY KEY, made, id TEXT UNIQUE)"
                )
                shop.executemany("INSERT INTO t (made) VALUES (?)", [(1_577_880_000_000,)] * rows)
                shop.commit()
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                ended = main_of_mintage(["backfill", url, *words])
            if ended == CATALOGUE["config.node"].exit:
                tally.note({"config.node": 1})
                continue
            tally.failed += ended != 0
            with closing(sqlite3.connect(folder / "shop.db")) as shop:
                given += [text for (text,) in shop.execute("SELECT id FROM t")]
        tally.count(given)
    return tally


# --- one generator, one node, one snapshot ---------------------------------------------------------------------------


NUMBERS: Final[dict[str, tuple[Callable[..., Any], int]]] = {
    "sno": (sno.Generator, 1 << 16),
    "snowflake": (snowflake.Generator, AT_A_TICK),
    "locality": (locality.Generator, 1 << 32),
    "ulid": (ulid.Generator, 1 << 32),
    "ksuid": (ksuid.Generator, 1 << 32),
    "ksuid_ms": (ksuid_ms.Generator, 1 << 32),
    "xid": (xid.Generator, 1 << 24),
    "objectid": (objectid.Generator, 1 << 24),
    "sandflake": (sandflake.Generator, 1 << 24),
    "uuid v1": (partial(uuid.Generator, version=1), 1 << 27),
    "uuid v6": (partial(uuid.Generator, version=6), 1 << 27),
    "uuid v7": (partial(uuid.Generator, version=7), 1 << 24),
}
"""Generators, and how many numbers of a tick they have for ``new_at``."""


def given_times(folder: Path, size: int) -> Tally:
    """Mint IDs of one leased generator and one tick by ``new_at`` and by ``nth_at``, in every format."""
    tally = Tally()
    for make, numbers in NUMBERS.values():
        store = MemoryStore()
        for _ in range(-(-size // (numbers // 2))):
            with make(store=store, never_used=True, max_wait_ms=WAIT_MS) as generator:
                at_ns = time.time_ns() - 3600 * 1_000_000_000
                at_ns -= at_ns % 1_000_000_000
                count = min(size, numbers // 2)
                given = (generator.new_at(at_ns + number % 1000) for number in range(count))
                minted = [one if isinstance(one, int) else bytes(one) for one in given]
                here = min(count, generator.capacity)
                placed = (generator.nth_at(at_ns + 999_999, number) for number in range(here))
                tally.count(chain(minted, (one if isinstance(one, int) else bytes(one) for one in placed)))
    return tally


PROCESSES: Final = 300


def processes_of_one_node(folder: Path, size: int) -> Tally:
    """Mint UUIDs of one MAC address in many forked workers, and in four that share the clock sequence."""
    tally = Tally()

    def mint(count: int, *arguments: int) -> bytes:
        return b"".join(uuid.uuid1(uuid.getnode(), *arguments).bytes for _ in range(count))

    for workers, arguments in ((PROCESSES, ()), (4, (5,))):
        count = size // workers
        told = list(answers([forked(partial(mint, count, *arguments)) for _ in range(workers)]))
        tally.failed += told.count(b"")
        every = b"".join(told)
        tally.count(every[at : at + 16] for at in range(0, len(every), 16))
    return tally


def snapshots_of_leases(folder: Path, size: int) -> Tally:
    """Restore a snapshot of a leased partition beside its generator, after it, and after another holder."""
    tally, each = Tally(), size // 8
    os.environ["MINTAGE_HOME"] = str(folder)
    for url in (f"sqlite:///{folder}/ids.db", registry_url()):
        minted: list[bytes] = []

        def mint(generator: sno.Generator, minted: list[bytes] = minted) -> sno.Snapshot:
            ids = generator.batch(each).tobytes()
            minted += [ids[at : at + 10] for at in range(0, len(ids), 10)]
            return generator.snapshot()

        with sno.Generator(store=url, nodes=range(1), span_ms=1000, max_wait_ms=WAIT_MS) as first:
            snapshot = mint(first)
            with tally.refusals():
                mint(sno.Generator.restore(snapshot))
            mint(first)
        with sno.Generator.restore(snapshot, store=url, max_wait_ms=WAIT_MS) as restored:
            mint(restored)
        with sno.Generator(store=url, nodes=range(1), max_wait_ms=WAIT_MS) as other:
            mint(other)
            with tally.refusals():
                mint(sno.Generator.restore(snapshot))
        tally.count(minted)
    return tally


# --- all of them -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Defect:
    """A case to try."""

    size: int
    """The number of IDs or tries at which it first showed equal IDs."""
    run: Callable[[Path, int], Tally]
    servers: tuple[str, ...] = ()
    refusal: str | None = None
    """The code of the expected error."""
    for_root: bool = False


DEFECTS: Final = {
    "a server that comes back": Defect(4_000_000, switched_and_back, ("mariadb_pair",)),
    "two schemas with one cache": Defect(6, schemas_with_one_cache, ("postgresql", "redis")),
    "two stores under one name": Defect(5_000, two_stores_of_one_name, ("postgresql",), refusal="config.store"),
    "dropped tables behind a cache": Defect(BEFORE_A_DROP, dropped_tables, ("postgresql", "redis")),
    "a pool created after a loss": Defect(
        2_000_000, created_after_a_loss, ("redis", "postgresql", "mariadb"), refusal="lease.none_free"
    ),
    "a namespace created after a loss": Defect(
        5_000, created_names_after_a_loss, ("postgresql", "mariadb"), refusal="store.refused"
    ),
    "numbers never used after a loss": Defect(1_000, never_used_after_a_loss, ("redis",), refusal="lease.none_free"),
    "an older disk of a database": Defect(5_000, older_disk, ("postgresql",), refusal="lease.none_free"),
    "older rows without their tables": Defect(5_000, older_rows, ("postgresql",), refusal="lease.none_free"),
    "a cluster that went back": Defect(5_000, older_cluster, ("etcd_cluster",), refusal="lease.none_free"),
    "a file removed beside a holder": Defect(5_000, removed_beside_a_holder, refusal="lease.none_free"),
    "tables without transactions": Defect(135_500, without_transactions, ("mariadb",), refusal="config.volatile"),
    "tables dropped by migrations": Defect(
        3, dropped_by_migrations, ("postgresql", "mariadb"), refusal="store.refused"
    ),
    "a table restored from a dump": Defect(3, restored_from_dumps, ("postgresql", "mariadb"), refusal="store.refused"),
    "new_at with a store of the environment": Defect(3, earlier_holders_times, refusal="lease.history"),
    "ported, then given back": Defect(AT_A_TIME, ported_and_given_back, refusal="lease.history"),
    "closed in a user's clock": Defect(10, closed_in_a_clock),
    "a child with its parent's pid": Defect(
        20_000, partial(unseen_fork, fork=first_of_a_namespace, of_a_namespace=True), for_root=True
    ),
    "a raw clone": Defect(20_000, partial(unseen_fork, fork=raw_clone, of_a_namespace=False)),
    "a fork without handlers": Defect(20_000, partial(unseen_fork, fork=fork_without_handlers, of_a_namespace=False)),
    "a fork in a user's clock": Defect(24, forked_in_a_clock),
    "one generator's IDs of given times": Defect(100_000, given_times),
    "uuid1 of one node": Defect(100_500, processes_of_one_node),
    "a snapshot of a lease": Defect(40_000, snapshots_of_leases, refusal="config.snapshot"),
    "a file with two names": Defect(600, partial(two_names, mounted=False), refusal="store.refused"),
    "a file that is mounted by itself": Defect(
        600, partial(two_names, mounted=True), refusal="store.refused", for_root=True
    ),
    "a table that is emptied between runs": Defect(320_000, refilled, refusal="config.node"),
    "older copies of a store": Defect(20, copies_of_a_store),
    "older copies of the registry": Defect(20, copies_of_the_registry),
    "files that are read as well": Defect(10_340, read_as_well),
    "a relative path and another directory": Defect(40_000, changed_directory),
    "a log that is flushed once a second": Defect(
        BEFORE_A_KILL, flushed_once_a_second, ("mariadb",), refusal="config.volatile"
    ),
}


def why_not(defect: Defect) -> str | None:
    """Return the reason why it cannot be tried here, or None."""
    lacking = [reason for server in defect.servers if (reason := missing(server))]
    if defect.for_root and os.geteuid():
        lacking.append("only root can")
    return "; ".join(lacking) or None


def run(defect: Defect, size: int) -> Tally:
    """Run one case in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="mintage-") as folder:
        # Servers' accounts enter it.
        Path(folder).chmod(0o755)

        def inside() -> bytes:
            return json.dumps(asdict(defect.run(Path(folder) / "it", size))).encode()

        (Path(folder) / "it").mkdir(mode=0o755)
        [answer] = answers([forked(inside)], LONG_S)
    return Tally(**json.loads(answer)) if answer else Tally(failed=1)


def measure(found: dict[str, Defect], scale: int) -> bool:
    """Run the cases at a scale, print their results, and return True if nothing repeated."""
    is_clean = True
    for name, defect in found.items():
        if reason := why_not(defect):
            print(f"{name}: {reason}", flush=True)
            continue
        began = time.monotonic()
        tally = run(defect, defect.size * scale)
        print(f"{name}, {defect.size:,} x {scale}, {time.monotonic() - began:.0f} s: {tally}", flush=True)
        is_clean &= tally.is_clean()
    return is_clean


def main(found: dict[str, Defect], about: str | None) -> int:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("names", nargs="*", metavar="defect", help="these only")
    parser.add_argument("--scale", type=int, default=1)
    options = parser.parse_args()
    return not measure({name: found[name] for name in options.names or found}, options.scale)


if __name__ == "__main__":
    sys.exit(main(DEFECTS, __doc__))
