"""The list of comparisons and their bars. Nothing is imported before a row is measured."""

import re
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.async_client import ASYNC_CLIENT
from benchmarks.busy_worker import BUSY_WORKER
from benchmarks.columns import COLUMNS
from benchmarks.formats import FORMATS
from benchmarks.frames import FRAMES
from benchmarks.free_threaded import FREE_THREADED, WIDE
from benchmarks.leases import LEASES
from benchmarks.row import UUID7, UUID7_NAME, Bar, Row, Unit, at_least, at_most, beside_uuid7, call, each, new
from benchmarks.servers import (
    DurableRedis,
    GoConstant,
    Idalloc,
    Measured,
    Mintage,
    MintageOnSQLite,
    MintageWithWorkers,
    QuietIdalloc,
    RedisInMemory,
)
from benchmarks.service import (
    CONNECTIONS,
    CROWD,
    busy,
    in_turn,
    increments,
    latency,
    memory_mb,
    posts,
    shared_memory_mb,
    start_ms,
    started,
)
from benchmarks.timing import (
    Loop,
    Measure,
    Side,
    UnavailableError,
    calls,
    go_threads,
    importing,
    saturation,
    side_by_side,
    tail,
    threads,
)

# Our sides.


def sno() -> Any:
    return resolve_name("mintage.sno:Generator")(partition=1)


def snowflake(fields: str | None = None, **options: object) -> Any:
    module = resolve_name("mintage.snowflake")
    if fields is not None:
        options["layout"] = module.Layout(fields, epoch_ms=module.DEFAULT.epoch_ms)
    return module.Generator(node=1, **options)


def wide() -> Any:
    return snowflake(WIDE)


def locality() -> Any:
    return resolve_name("mintage.locality:Generator")()


def leased(scheme: str, **options: Any) -> Any:
    return resolve_name(f"mintage.{scheme}:Generator")(store="memory:", **options)


def leased_wide() -> Any:
    module = resolve_name("mintage.snowflake")
    return leased("snowflake", layout=module.Layout(WIDE, epoch_ms=module.DEFAULT.epoch_ms))


def sequence() -> Any:
    return resolve_name("mintage:Sequence")("orders", "memory:", step=100_000_000)


@contextmanager
def sequence_of_mariadb() -> Iterator[Callable[[], int]]:
    """Return a sequence that refills from MariaDB repeatedly while it is measured."""
    servers = resolve_name("tests.servers")
    if missing := servers.missing("mariadb"):
        raise UnavailableError(missing)
    with TemporaryDirectory() as directory:
        server = servers.MariaDB(Path(directory))
        server.start()
        try:
            with resolve_name("mintage:Sequence")("orders", server.url, max_wait_ms=10_000) as ours:
                yield ours.next
        finally:
            server.stop()


def _uuid_to_text() -> Loop:
    return calls(str, resolve_name("uuid_utils:uuid4")())


def _text_to_uuid() -> Loop:
    return calls(resolve_name("uuid_utils:UUID"), str(resolve_name("uuid:uuid4")()))


def _sno_to_text() -> Loop:
    return calls(str, sno().new())


def _text_to_sno() -> Loop:
    return calls(resolve_name("mintage.sno:ID").parse, str(sno().new()))


# Bulk.

BLOCK = 65_536
"""IDs of one reused buffer, the size of ClickHouse's blocks within a few rows."""


def _fill_snowflakes() -> Loop:
    return calls(snowflake(on_exhausted="advance").fill, array("Q", bytes(8 * BLOCK)))


def _clickhouse() -> Loop:
    query = resolve_name("chdb.session:Session")().query
    return lambda n: query(f"SELECT max(generateSnowflakeID()) FROM zeros({n}) SETTINGS max_threads = 1")


IN_CACHE = 1_000
"""IDs of the bulk rows: 10,000 bytes and 16,000 bytes of text fit the first-level cache."""


def _sno_bytes_and_text() -> tuple[bytearray, bytearray]:
    ids = bytearray(10 * IN_CACHE)
    sno().fill(ids)
    text = bytearray(16 * IN_CACHE)
    resolve_name("mintage.sno:encode_into")(ids, text)
    return ids, text


def _encode() -> Loop:
    ids, text = _sno_bytes_and_text()
    return calls(resolve_name("mintage.sno:encode_into"), ids, text)


def _parse() -> Loop:
    ids, text = _sno_bytes_and_text()
    return calls(resolve_name("mintage.sno:parse_into"), text, ids)


def _copy_text() -> Loop:
    return calls(memoryview(bytearray(16 * IN_CACHE)).__setitem__, slice(None), bytes(16 * IN_CACHE))


def bulk(prepare: Callable[[], Loop]) -> Side:
    return Side(prepare, repeats=2_000, ids=IN_CACHE)


COPY = "memcpy of the 16,000 bytes of text"

# The service. Ours is `mintage serve` on MariaDB with Redis in front, for both interfaces.

IDALLOC = "idalloc that logs errors only"
GO = "a constant by Go's net/http"
IN_MEMORY = "Redis without persistence"
DURABLE = "Redis, appendfsync always"

ONE_CORE = (
    "One processor for the server, another for the client and the databases; 50 connections that stay open, unless the "
    "row says more."
)
PAIR = "`mintage serve` and idalloc each on the same MariaDB and Redis; `wrk` asks for one integer a request."
INCR = "`mintage serve` on MariaDB with Redis in front; `redis-benchmark`."
SHARED = (
    f"{INCR} A program that never waits takes its share of the server's processor, so that the server is the limit "
    "and not the client."
)
HALF = "At a fixed rate, half the peak of the slower of the two; an answer's time counts from when its request was due."
OWN_HALF = "At a fixed rate, each at half its own peak; an answer's time counts from when its request was due."


CLOSE = 3
"""If the two are close, this multiple of the rounds decides which is ahead."""

FRESH = "A fresh process that has just given its first integer; as it is by default, on SQLite, unless it says more."


def fresh(what: str, figure: Callable[[Measured, float], float], bar: Bar | None, unit: Unit, *, alone: bool) -> Row:
    on, ours, beside, peer = (
        ("", MintageOnSQLite, "redis-server", RedisInMemory) if alone else (" on the pair", Mintage, "idalloc", Idalloc)
    )
    note = FRESH if alone else f"{FRESH} With the drivers of MariaDB and Redis."
    return Row(f"mintage serve{on}: {what}", beside, started(figure, ours, peer), bar, unit, note, False, 1)


def served(what: str, beside: str, measure: Measure, bar: Bar | None, unit: Unit, note: str) -> Row:
    return Row(what, beside, measure, bar, unit, f"{note} {ONE_CORE}", pinned=False, processes=1)


def alloc(beside: str, peer: type[Measured], bar: Bar | None) -> Row:
    return served("POST /alloc", beside, in_turn(posts, Mintage, peer), bar, "k/s", PAIR)


def incr(pipeline: int, beside: str, peer: type[Measured], bar: Bar | None, *, alone: bool = False) -> Row:
    times = CLOSE if peer is RedisInMemory else 1
    measure = in_turn(increments(pipeline, 1 if alone else CONNECTIONS), Mintage, peer, times)
    what = f"INCR, pipeline {pipeline}" + ", one connection" * alone
    return served(what, beside, measure, bar, "k/s", INCR)


def incr_crowded(pipeline: int, limit: float) -> Row:
    measure = in_turn(increments(pipeline, CROWD), Mintage, RedisInMemory, CLOSE, crowded=True)
    return served(
        f"INCR, pipeline {pipeline}, half a processor, {CROWD} connections",
        IN_MEMORY,
        measure,
        at_least(limit),
        "k/s",
        SHARED,
    )


SERVICE: tuple[Row, ...] = (
    alloc(IDALLOC, QuietIdalloc, at_least(3)),
    alloc(GO, GoConstant, at_least(1.5)),
    alloc("idalloc as its README has it", Idalloc, None),
    incr(1, IN_MEMORY, RedisInMemory, at_least(1.0)),
    # No bar: either server fills the client, as the next row shows, and none can be far ahead. Half a processor tells.
    incr(16, IN_MEMORY, RedisInMemory, None),
    served(
        "INCR, pipeline 16: how busy the client is",
        IN_MEMORY,
        in_turn(busy(increments(16)), Mintage, RedisInMemory),
        None,
        "%",
        "The processor time of `redis-benchmark` in the time it runs.",
    ),
    incr(64, IN_MEMORY, RedisInMemory, at_least(1.3)),
    *(incr_crowded(pipeline, limit) for pipeline, limit in ((1, 1.0), (16, 1.1), (64, 1.3))),
    incr(1, DURABLE, DurableRedis, at_least(2), alone=True),
    # No bar: the client cannot send twice as much, as the next row shows.
    incr(1, DURABLE, DurableRedis, None),
    served(
        "INCR of Redis without persistence, pipeline 1",
        DURABLE,
        in_turn(increments(1), RedisInMemory, DurableRedis),
        None,
        "k/s",
        "`redis-benchmark`, which is the limit: the 50 connections share an fsync.",
    ),
    *(incr(pipeline, DURABLE, DurableRedis, at_least(2)) for pipeline in (16, 64)),
    *(
        served(
            f"{what}, P99 at half load",
            beside,
            latency(protocol, Mintage, peer, same_rate=same_rate),
            at_most(1.2) if same_rate else None,
            "µs",
            HALF if same_rate else OWN_HALF,
        )
        for what, protocol, beside, peer, same_rate in (
            ("POST /alloc", "http", IDALLOC, QuietIdalloc, True),
            ("POST /alloc", "http", GO, GoConstant, True),
            ("INCR", "redis", IN_MEMORY, RedisInMemory, True),
            ("INCR", "redis", DURABLE, DurableRedis, True),
            ("POST /alloc", "http", f"{IDALLOC}, its own half", QuietIdalloc, False),
            ("INCR", "redis", f"{IN_MEMORY}, its own half", RedisInMemory, False),
        )
    ),
    fresh("idle memory (RSS)", memory_mb, at_most(56, "figure"), "MB", alone=True),
    fresh("idle memory (RSS)", memory_mb, at_most(70, "figure"), "MB", alone=False),
    Row(
        "mintage serve --workers 2: idle memory (PSS)",
        "redis-server",
        started(shared_memory_mb, MintageWithWorkers, RedisInMemory),
        at_most(80, "figure"),
        "MB",
        f"{FRESH} All processes together; a page that several share counts once.",
        False,
        1,
    ),
    fresh("start to first integer", start_ms, at_most(300, "figure"), "ms", alone=True),
    fresh("start to first integer", start_ms, at_most(400, "figure"), "ms", alone=False),
)

USUAL = "dataclasses, re, typing, logging, json, sqlite3, socket"
"""Modules of the standard library that most programs have imported before their first ID."""

# Notes.

BURSTS = "Bursts of 50,000 from the beginning of a unit of 4 ms, which has 65,536 IDs: no call waits for the clock."
WIDE_NOTE = f"Layout `{WIDE}`, which no loop exhausts."
ISLICE = "`islice` ends the loop; its price is in the figure."
UNITS = "Over whole units, from the beginning of one, for 2 s a round."
WALL = "Wall time over all IDs. Duplicates are counted in as many more IDs, which the threads keep."

ROWS: tuple[Row, ...] = (
    beside_uuid7("snowflake.Generator.new()", new(wide), 1.0, WIDE_NOTE),
    beside_uuid7("sno.Generator.new()", new(sno), 1.0, BURSTS),
    beside_uuid7("sno.new()", call("mintage.sno:new"), 1.0, BURSTS),
    beside_uuid7("locality.Generator.new()", new(locality), 1.1),
    beside_uuid7("for id in snowflake.Generator", each(wide), 0.9, f"{WIDE_NOTE} {ISLICE}"),
    beside_uuid7("for id in sno.Generator", each(sno), 0.9, f"{BURSTS} {ISLICE}"),
    beside_uuid7("for id in locality.Generator", each(locality), 0.9, ISLICE),
    Row(
        "snowflake.Generator.new(), leased",
        "the same with a node number",
        side_by_side(new(leased_wide), new(wide)),
        at_most(1.03),
        note=f"The window of a lease, and the window of the whole layout. {WIDE_NOTE}",
    ),
    Row(
        "sno.Generator.new(), leased",
        "the same with a partition",
        side_by_side(new(lambda: leased("sno")), new(sno)),
        at_most(1.03),
        note=BURSTS,
    ),
    beside_uuid7("Sequence.next()", Side(lambda: calls(sequence().next)), 1.0, "From one segment."),
    Row(
        "Sequence.next(), P99.99 while refilling from MariaDB",
        f"{UUID7_NAME}, P99.99",
        tail(sequence_of_mariadb, "c_uuid_v7:uuid7", 999.9),
        at_most(1000, "figure"),
        note="A million single calls a round, as fast as they go, with the clock's price: it refills all the time.",
        pinned=False,
    ),
    Row(
        "for id in sno.Generator, one thread",
        "ceiling of the layout",
        saturation(sno, lambda: 65_536 * 250),
        at_least(0.99),
        unit="M/s",
        note=UNITS,
        pinned=False,
    ),
    Row(
        "for id in snowflake.Generator, one thread",
        "ceiling of the layout",
        saturation(snowflake, lambda: int(resolve_name("mintage.snowflake:DEFAULT").ids_per_second)),
        at_least(0.99),
        unit="M/s",
        note=UNITS,
        pinned=False,
    ),
    Row(
        "str(id) of sno",
        "str() of a uuid_utils.UUID",
        side_by_side(Side(_sno_to_text), Side(_uuid_to_text)),
        at_most(0.6),
    ),
    Row(
        "sno.ID.parse(text)",
        "uuid_utils.UUID(text)",
        side_by_side(Side(_text_to_sno), Side(_text_to_uuid)),
        at_most(0.5),
    ),
    Row(
        'snowflake fill, on_exhausted="advance"',
        "generateSnowflakeID() in chdb",
        side_by_side(Side(_fill_snowflakes, repeats=160, ids=BLOCK), Side(_clickhouse, repeats=50_000_000)),
        at_most(1.3, "figure"),
        note="A reused buffer of 65,536 IDs; `SELECT max(generateSnowflakeID()) FROM zeros(50000000)`, one thread.",
    ),
    Row(
        "sno.encode_into(), 1,000 IDs",
        COPY,
        side_by_side(bulk(_encode), bulk(_copy_text)),
        at_most(0.6, "figure"),
        note="An ID; the price of the call is in the figure.",
    ),
    Row(
        "sno.parse_into(), 1,000 IDs",
        COPY,
        side_by_side(bulk(_parse), bulk(_copy_text)),
        at_most(1.0, "figure"),
        note="An ID; the price of the call is in the figure.",
    ),
    Row(
        "two threads on one sno.Generator",
        "one thread",
        threads(sno),
        at_most(1.5, zero="duplicates"),
        note=f"{WALL} Both run into the ceiling of the layout, 61 ns an ID.",
        pinned=False,
    ),
    Row(
        "two threads on one snowflake.Generator",
        "one thread",
        threads(wide),
        at_most(1.5, zero="duplicates"),
        note=f"{WALL} {WIDE_NOTE}",
        pinned=False,
    ),
    Row(
        "two goroutines on one generator of Go sno",
        "one goroutine",
        go_threads(Path(__file__).parent / "peers" / "gosno"),
        note="Wall time over all IDs, which are kept; both run into the ceiling of the layout, 61 ns an ID.",
        pinned=False,
    ),
    Row(
        "import mintage",
        "start of the interpreter",
        importing("mintage"),
        at_most(5, "figure", zero="third-party modules"),
        unit="ms",
        note="Added to `python -c pass`.",
    ),
    Row(
        "first sno.new() of a process",
        "start of the interpreter",
        importing("mintage.sno", "mintage.sno.new()"),
        at_most(80, "figure", zero="third-party modules"),
        unit="ms",
        note="Added to `python -c pass`, with the import. Without a store: it leases from the registry of the machine.",
    ),
    Row(
        "first sno.new() of a process with usual imports",
        "start of the interpreter",
        importing("mintage.sno", "mintage.sno.new()", after=USUAL),
        at_most(50, "figure", zero="third-party modules"),
        unit="ms",
        note=f"Added to `python -c 'import {USUAL}'`.",
    ),
    *FORMATS,
    *FRAMES,
    *FREE_THREADED,
    *COLUMNS,
    *LEASES,
    *SERVICE,
    *ASYNC_CLIENT,
    *BUSY_WORKER,
    # Without a bar: other peers, and the floors under any function that Python calls.
    *(
        Row("sno.Generator.new()", name, side_by_side(new(sno), side), note=BURSTS)
        for name, side in (
            ("uuid_utils.uuid4()", call("uuid_utils:uuid4")),
            ("uuid_utils.uuid7()", call("uuid_utils:uuid7")),
            ("ulid_transform.ulid_now(), text", call("ulid_transform:ulid_now")),
            ("ulid.ULID()", call("ulid:ULID", repeats=5_000)),
            ("uuid.uuid4()", call("uuid:uuid4", repeats=10_000)),
            ("secrets.token_bytes(16)", call("secrets:token_bytes", 16, repeats=10_000)),
            ("time.time_ns()", call("time:time_ns")),
            ("a builtin call, ''.isascii()", Side(lambda: calls("".isascii))),
        )
    ),
    Row(
        "snowflake.Generator.new()",
        "snowflake.SnowflakeGenerator of snowflake-id",
        side_by_side(new(wide), Side(lambda: calls(resolve_name("snowflake:SnowflakeGenerator")(1).__next__), 10_000)),
        note=WIDE_NOTE,
    ),
    Row(
        'snowflake.Generator.new(), on_exhausted="advance"',
        UUID7_NAME,
        side_by_side(new(lambda: snowflake(on_exhausted="advance")), UUID7),
        note="The default layout: 4,096 IDs a millisecond, then the next millisecond ahead of the clock.",
    ),
    Row(
        "for id in sno.Generator",
        "for nothing in repeat(None)",
        side_by_side(each(sno), each(lambda: repeat(None))),
        note=f"{BURSTS} {ISLICE}",
    ),
)


def selected(pattern: str) -> list[Row]:
    """Return the rows whose key matches the regular expression."""
    return [row for row in ROWS if re.search(pattern, row.key)]
