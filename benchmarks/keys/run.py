"""Insert rows by eight writers into the table of each key, part by part in turn, and read them."""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any, Final

from benchmarks.keys.databases import Database
from benchmarks.keys.kinds import Key, Mint
from benchmarks.keys.record import Counters, Part, Reads, Result, Run

WRITERS: Final = 8
BATCH: Final = 500
"""The mean number of rows of a batch; the smallest has one, the largest almost twice as many."""
PARTS: Final = 10
"""The number of parts of a table. A noisy minute falls on one part of every key."""
POINTS: Final = 2_000
"""The number of reads by key."""
TURNS: Final = 5
"""The number of turns in which the reads of all keys alternate."""
RANGES: Final = 20
SECOND_MS: Final = 1000


@dataclass
class Plan:
    """The size of a run."""

    rows: int
    """Rows of each table."""
    minutes: float
    """The time after which no other part begins, so that all tables have as many rows."""
    batch: int = BATCH
    parts: int = PARTS
    ranges: int = RANGES
    say: Callable[[str], None] = print
    is_interrupted: threading.Event = field(default_factory=threading.Event)
    """The handler of a signal sets it. An exception of a handler may be lost in a finalizer, which runs anywhere."""

    def check(self) -> None:
        """Raise KeyboardInterrupt if the run is interrupted."""
        if self.is_interrupted.is_set():
            raise KeyboardInterrupt


@dataclass
class Loaded:
    """A key while its table is filled and read."""

    key: Key
    mints: list[Mint]
    parts: list[Part] = field(default_factory=list)
    spans: list[tuple[float, float]] = field(default_factory=list)
    """The Unix time at which each part began and ended."""
    samples: list[Any] = field(default_factory=list)
    """One key of each batch."""


def sizes_of(rows: int, batch: int, seed: int) -> list[int]:
    """Return the sizes of random batches that add up to a number of rows; the same for each key."""
    chance, sizes = random.Random(seed), []
    while rows > 0:
        sizes.append(min(rows, chance.randrange(1, 2 * batch)))
        rows -= sizes[-1]
    return sizes


class Writers:
    """The threads that insert one part of a table."""

    def __init__(self, database: Database, loaded: Loaded, plan: Plan, sizes: Sequence[int], seed: int) -> None:
        self.database = database
        self.check = plan.check
        self.loaded = loaded
        self.pending = iter(sizes)
        self.chance = random.Random(seed)
        self.lock = threading.Lock()
        self.is_ended = threading.Event()
        self.times_ms: list[float] = []

    def write(self, connection: Any, number: int) -> None:
        """Insert batches until there are no more: one writer."""
        key, mint = self.loaded.key, self.loaded.mints[number] if self.loaded.mints else None
        while not self.is_ended.is_set():
            self.check()
            with self.lock:
                count = next(self.pending, 0)
            if not count:
                return
            created_ms = time.time_ns() // 1_000_000
            values = mint(count) if mint else None
            began = time.perf_counter()
            self.database.insert(connection, key, values, count, created_ms)
            took_ms = (time.perf_counter() - began) * 1e3
            with self.lock:
                self.times_ms.append(took_ms)
                if values:
                    self.loaded.samples.append(self.chance.choice(values))

    def run(self, count: int) -> float:
        """Return the seconds that all of them take. An error or an interrupt ends each after its batch."""
        with ExitStack() as stack:
            lines = [stack.enter_context(closing(self.database.open())) for _ in range(count)]
            threads = stack.enter_context(ThreadPoolExecutor(count))
            stack.callback(self.is_ended.set)
            began = time.perf_counter()
            writers = [threads.submit(self.write, line, number) for number, line in enumerate(lines)]
            for writer in writers:
                writer.result()
            return time.perf_counter() - began


def insert_part(database: Database, loaded: Loaded, plan: Plan, sizes: Sequence[int], seed: int) -> None:
    """Insert one part of a table, and add its figures."""
    database.checkpoint()
    before, began = database.counters(loaded.key), time.time()
    writers = Writers(database, loaded, plan, sizes, seed)
    seconds = writers.run(WRITERS)
    loaded.spans.append((began, began + seconds))
    counted = database.counters(loaded.key).since(before)
    times = writers.times_ms
    p99 = quantiles(times, n=100)[98] if len(times) > 1 else times[0]
    loaded.parts.append(Part(sum(sizes), round(seconds, 6), round(median(times), 2), round(p99, 2), *counted))


def read_points(database: Database, loaded: Loaded, count: int, chance: random.Random) -> tuple[float, Counters]:
    """Return the median time of reads by key in microseconds, and what they added to the counters."""
    key, rows = loaded.key, sum(part.rows for part in loaded.parts)
    keys = [chance.choice(loaded.samples) if loaded.samples else chance.randrange(1, rows + 1) for _ in range(count)]
    mark = "?" if database.name == "sqlite" else "%s"
    statement = f"SELECT body FROM {database.place(key)} WHERE id = {mark}"
    before, times = database.counters(key), []
    with closing(database.open()) as connection:
        cursor = connection.cursor()
        for each in keys:
            began = time.perf_counter()
            cursor.execute(statement, (each,))
            found = cursor.fetchall()
            times.append((time.perf_counter() - began) * 1e6)
            if len(found) != 1:
                raise SystemExit(f"{database.name}, {key.label}: {len(found)} rows have the key {each!r}")
    return median(times), database.counters(key).since(before)


def seconds_of(spans: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
    """Return the whole seconds inside of parts, as bounds in milliseconds; of parts without any, those around them."""
    inside = [(at, at + 1) for began, ended in spans for at in range(int(began) + 1, int(ended))]
    around = [(int(began), int(ended) + 1) for began, ended in spans]
    return [(begin * SECOND_MS, end * SECOND_MS) for begin, end in inside or around]


def read_range(database: Database, loaded: Loaded, bounds_ms: tuple[int, int]) -> tuple[float, int, Counters]:
    """Return the microseconds of a read of all rows of a time, their number, and what that added to the counters."""
    key, mark = loaded.key, "?" if database.name == "sqlite" else "%s"
    column = "id" if key.kind else "created"
    bounds = [key.bound(at_ms, database.name) if key.kind else at_ms for at_ms in bounds_ms]
    statement = f"SELECT COUNT(*), SUM(LENGTH(body)) FROM {database.place(key)} WHERE {column} >= {mark}"
    before = database.counters(key)
    with closing(database.open()) as connection:
        cursor = connection.cursor()
        began = time.perf_counter()
        cursor.execute(f"{statement} AND {column} < {mark}", bounds)
        [(count, _)] = cursor.fetchall()
        took = time.perf_counter() - began
    return took * 1e6, count, database.counters(key).since(before)


def read(database: Database, each: list[Loaded], plan: Plan) -> Iterator[tuple[Loaded, Reads, Reads, int]]:
    """Yield the reads by key, those by time, and the bytes of an index of the time where the key has none."""
    points: dict[str, list[tuple[float, Counters]]] = {}
    ranges: dict[str, list[tuple[float, int, Counters]]] = {}
    time_index: dict[str, int] = {}
    for turn in range(TURNS):
        plan.say(f"{database.name}: reads by key, turn {turn + 1} of {TURNS}")
        for loaded in each if turn % 2 else reversed(each):
            plan.check()
            read_at = read_points(database, loaded, POINTS // TURNS, random.Random(turn))
            points.setdefault(loaded.key.label, []).append(read_at)
    for loaded in each:
        if not loaded.key.kind:
            plan.check()
            plan.say(f"{database.name}: index of the time, {loaded.key.label}")
            before = sum(database.sizes(loaded.key))
            database.index_time(loaded.key)
            database.analyze(loaded.key)
            time_index[loaded.key.label] = sum(database.sizes(loaded.key)) - before
    for turn in range(plan.ranges):
        for loaded in each if turn % 2 else reversed(each):
            plan.check()
            bounds = random.Random(turn).choice(seconds_of(loaded.spans))
            ranges.setdefault(loaded.key.label, []).append(read_range(database, loaded, bounds))
    for loaded in each:
        label = loaded.key.label
        yield (
            loaded,
            Reads.of([(took, POINTS // TURNS, counted) for took, counted in points[label]]),
            Reads.of([(took / max(1, count), count, counted) for took, count, counted in ranges[label]]),
            time_index.get(label, 0),
        )


def measure(database: Database, keys: Sequence[Key], plan: Plan) -> Run:
    """Fill a table for each key, and read them. The schema exists, and only the caller removes it."""
    ends = time.monotonic() + plan.minutes * 60
    each = []
    for key in keys:
        database.create_table(key)
        each.append(Loaded(key, [key.minter(database.name) for _ in range(WRITERS)] if key.writer else []))
    checkpoints, load = database.checkpoint(), []
    for part in range(plan.parts):
        if part and time.monotonic() > ends:
            break
        rows = plan.rows * (part + 1) // plan.parts - plan.rows * part // plan.parts
        sizes = sizes_of(rows, plan.batch, part)
        for loaded in reversed(each) if part % 2 else each:
            insert_part(database, loaded, plan, sizes, part)
            done = loaded.parts[-1]
            rate = done.rows / done.seconds
            plan.say(f"{database.name}: part {part + 1} of {plan.parts}, {loaded.key.label}: {rate:,.0f} rows a second")
        load.append(round(os.getloadavg()[0], 1))
    sizes_by_key = {}
    for loaded in each:
        database.analyze(loaded.key)
        sizes_by_key[loaded.key.label] = database.sizes(loaded.key)
    results = [
        Result(
            loaded.key.label,
            database.column(loaded.key),
            loaded.parts,
            *sizes_by_key[loaded.key.label],
            time_index,
            points,
            ranges,
        )
        for loaded, points, ranges, time_index in read(database, each, plan)
    ]
    return Run(
        database.name,
        database.version(),
        database.log,
        {setting: database.show(setting) for setting in database.settings},
        checkpoints,
        WRITERS,
        plan.batch,
        load,
        results,
    )
