"""Measure how a service answers over a store with many namespaces, beside the same store with ten.

`python -m benchmarks.growth mariadb redis --namespaces 1000000` starts each store on an empty directory, measures the
service over ten namespaces, adds the others, and measures again. It prints one row of a Markdown table for each store:
the median with ten and with all, in milliseconds. Names are read evenly over the whole store.
"""

import argparse
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from mintage.rules import create_namespace
from mintage.store import open_store
from tests.servers import Etcd, MariaDB, MySQL, PostgreSQL, Redis
from tests.service.serving import Serving

FEW: Final = 10
ROUNDS: Final = 5
"""The number of services that are started, one after the other."""
AT_ONCE: Final = 8
"""The number of requests that are sent at the same time."""
OPENED: Final = 1_000
"""The number of namespaces that are opened to measure the memory of one."""
BATCH: Final = 100

SERVERS: Final[dict[str, Any]] = {
    "postgresql": PostgreSQL,
    "mariadb": MariaDB,
    "mysql": MySQL,
    "redis": Redis,
    "etcd": Etcd,
    "sqlite": None,
}
DIGITS: Final = "(SELECT 0 AS d" + "".join(f" UNION ALL SELECT {d}" for d in range(1, 10)) + ")"
NUMBERS: Final = {
    "postgresql": "generate_series({first}, {last}) AS numbers(n)",
    "mariadb": "(SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d + 100000 * g.d AS n FROM "
    + ", ".join(f"{DIGITS} AS {name}" for name in "abcefg")
    + ") AS numbers WHERE n BETWEEN {first} AND {last}",
    "sqlite": "(WITH RECURSIVE each(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM each WHERE n < {last}) "
    "SELECT n FROM each) AS numbers",
}


def name_of(number: int) -> str:
    return f"n{number:07}"


def fill_tables(kind: str, run: Callable[[str], object], first: int, last: int) -> None:
    """Add namespaces by SQL, with the names and the number of them that the store keeps."""
    kind = "mariadb" if kind == "mysql" else kind
    text = "LPAD({n}, 7, '0')" if kind != "sqlite" else "printf('%07d', {n})"
    text = text.format(n="CAST(n AS TEXT)" if kind == "postgresql" else "n")
    name = f"CONCAT('n', {text})" if kind == "mariadb" else f"'n' || {text}"
    columns = "name, high_water, maximum, stride, largest, identity, floor, serial, serial_before, retired"
    numbers = NUMBERS[kind].format(first=first, last=last)
    one = "(SELECT {} FROM mintage_namespace AS one LIMIT 1)"
    run(
        f"INSERT INTO mintage_namespace ({columns}) SELECT {name}, 10, 1000000000, 1, 10, {one.format('identity')}, "
        f"0, 1, 0, {one.format('retired')} FROM {numbers}"
    )
    if kind != "sqlite":
        run(f"INSERT INTO mintage_name SELECT 'namespace', {name}, n + 1 FROM {numbers}")
        run(f"UPDATE mintage_schema SET namespaces = {last + 1} WHERE version = 1")


def fill(kind: str, server: Any, url: str, first: int, last: int) -> None:
    """Add the namespaces from one number to another; the store has at least one already."""
    if kind == "sqlite":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database, database:
            fill_tables(kind, database.execute, first, last)
    elif kind == "postgresql":
        fill_tables(kind, server.sql, first, last)
        server.sql("VACUUM ANALYZE")
    elif kind in {"mariadb", "mysql"}:
        fill_tables(kind, lambda sql: server.sql(f"USE mintage; {sql}"), first, last)
        server.sql("USE mintage; ANALYZE TABLE mintage_namespace, mintage_name")
    elif kind == "redis":
        fill_redis(url, first, last)
    else:
        with open_store(url) as store:
            numbers = iter(range(first, last + 1))
            while batch := list(islice(numbers, BATCH)):
                with store._begin() as keys:  # type: ignore[attr-defined]
                    for number in batch:
                        keys.put(create_namespace(name_of(number), keys.server().identity))


def fill_redis(url: str, first: int, last: int) -> None:
    from redis import Redis as Client

    with closing(Client.from_url(url, decode_responses=True)) as client:
        record: Any = client.hgetall(f"mintage:{{namespace:{name_of(0)}}}")
        numbers = iter(range(first, last + 1))
        while batch := list(islice(numbers, 10 * BATCH)):
            with client.pipeline(transaction=False) as pipeline:
                for number in batch:
                    pipeline.hset(f"mintage:{{namespace:{name_of(number)}}}", mapping=record)
                pipeline.zadd("mintage:names:namespace", {name_of(number): 0 for number in batch})
                pipeline.execute()


def timed(call: Callable[[], object]) -> float:
    """Return the time of a call in milliseconds."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def asked(service: Serving, method: str, path: str) -> float:
    def ask() -> None:
        with service.http() as line:
            answer = line.http(path, method=method)
        if answer.status != 200:
            raise SystemExit(f"{method} {path}: {answer.status} {answer.body[:300]!r}")

    return timed(ask)


def spread(count: int, most: int, at: int = 0) -> Iterator[int]:
    """Yield ``most`` numbers of namespaces, evenly over the store, others in each round."""
    step = count / min(most, count)
    yield from (int(i * step + at * step / (2 * ROUNDS)) for i in range(min(most, count)))


def measure(serve: Callable[[], Serving], count: int, fresh: Iterator[int]) -> dict[str, float]:
    """Return the medians over several services on one store, in milliseconds."""
    seen: dict[str, list[float]] = {}
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for at in range(ROUNDS):
            service = serve()
            seen.setdefault("start", []).append(timed(service.start))
            names = [name_of(number) for number in spread(count, AT_ONCE, at)]
            new = [f"new{number}" for number in islice(fresh, AT_ONCE)]
            for what, method, paths in (
                ("first use", "POST", [f"/v1/sequences/{name}:next" for name in names]),
                ("first use of a new one", "POST", [f"/v1/sequences/{name}:next" for name in new]),
                ("GET of one", "GET", [f"/v1/sequences/{name}" for name in names]),
                ("count", "GET", ["/v1/sequences:count"]),
            ):
                seen.setdefault(what, []).extend(threads.map(partial(asked, service, method), paths))
            for name in names[:: AT_ONCE // 2]:
                path = f"/v1/sequences?limit=10&after={name}"
                seen.setdefault("page of 10", []).append(asked(service, "GET", path))
            service.stop()
    return {what: median(times) for what, times in seen.items()}


def first_line(url: str) -> float:
    """Return how long `mintage namespaces list` takes to print its first line, in milliseconds."""

    def show() -> None:
        program = [sys.executable, "-m", "mintage", "namespaces", "list", "--json", "--store", url]
        with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as command:
            assert command.stdout is not None
            json.loads(command.stdout.readline())
            command.kill()

    return median(timed(show) for _ in range(ROUNDS))


def memory_kb(serve: Callable[[], Serving], count: int) -> float:
    """Return the memory of an open namespace that had one request, in kilobytes."""
    service = serve()
    service.start()
    names = [name_of(number) for number in spread(count, 2 * OPENED)]
    for name in names[::2]:
        asked(service, "POST", f"/v1/sequences/{name}:next")
    before = service.memory_mb()
    for name in names[1::2]:
        asked(service, "POST", f"/v1/sequences/{name}:next")
    after = service.memory_mb()
    service.stop()
    return (after - before) * 1e3 / OPENED


def measure_store(kind: str, count: int, directory: Path) -> None:
    """Measure one kind of store, and print its rows."""
    server = SERVERS[kind] and SERVERS[kind](directory / kind)
    url = f"sqlite:///{directory / 'ids.db'}"
    if server is not None:
        server.start()
        url = server.url
    try:
        with open_store(url) as store:
            for number in range(FEW):
                store.reserve(name_of(number), 10)
        directories = (directory / f"service-{kind}-{number}" for number in range(100))

        def serve() -> Serving:
            return Serving(next(directories), url, max_namespaces=1_000_000)

        fresh = iter(range(10**9))
        few = measure(serve, FEW, fresh) | {"first line of namespaces list": first_line(url)}
        print(f"{kind}: filled in {timed(lambda: fill(kind, server, url, FEW, count - 1)) / 1e3:.1f} s", flush=True)
        many = measure(serve, count, fresh) | {"first line of namespaces list": first_line(url)}
        for what, time_ms in few.items():
            print(f"| {kind} | {what} | {time_ms:.1f} | {many[what]:.1f} | {many[what] / time_ms:.2f} |", flush=True)
        print(f"| {kind} | memory of an open one, KB | - | {memory_kb(serve, count):.1f} | - |", flush=True)
    finally:
        if server is not None:
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("stores", nargs="+", choices=SERVERS)
    parser.add_argument("--namespaces", type=int, default=999_000, help="at most 999,000 (the default)")
    args = parser.parse_args()
    for kind in args.stores:
        with TemporaryDirectory() as directory:
            Path(directory).chmod(0o755)  # the servers run as other users
            measure_store(kind, args.namespaces, Path(directory))


if __name__ == "__main__":
    main()
