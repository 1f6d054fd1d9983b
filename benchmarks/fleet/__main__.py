"""Measure a fleet on each store.

`python -m benchmarks.fleet` starts each store on an empty directory. A few processes hold many leases there, with the
real keeper; 64 processes with a generator each live through an outage of 30 s and a rolling restart. `crowd` starts
1,000 processes in a minute on a PostgreSQL with its 100 connections, by `connections=close`, lets them mint, and stops
them. `--grow sqlite postgresql` measures the verbs of a pool that grows to 65,536 leases.
"""

import argparse
import resource
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import render
from benchmarks.environment import environment, slug
from benchmarks.fleet import run
from benchmarks.fleet.grow import grow
from benchmarks.fleet.record import Fleet, FleetRecord, Grown, Run, Steady
from benchmarks.growth import SERVERS
from mintage.store import open_store
from tests.service.serving import Serving

STORES = ("postgresql", "mariadb", "redis", "etcd", "service", "kubernetes", "crowd")
SLOW = ("etcd", "kubernetes")
"""Stores without locks, where acquires of one pool collide: a tenth of the leases is measured."""


def started(name: str, place: Path, stack: ExitStack) -> Any:
    """Start a store in a directory."""
    if name == "kubernetes":
        from tests.servers.kubernetes import Kubernetes

        kind = Kubernetes
    else:
        kind = SERVERS["postgresql" if name in {"service", "crowd"} else name]
    server = kind(place / name)
    stack.callback(server.kill)
    server.start()
    return server


def measure(name: str, args: argparse.Namespace) -> Run:
    """Return the figures of one store."""
    with TemporaryDirectory(prefix="mintage-") as directory, ExitStack() as stack:
        place = Path(directory)
        place.chmod(0o755)  # the servers run as other users
        server = started(name, place, stack)
        url = server.url
        if name == "service":
            service = Serving(place / "serving", url)
            stack.callback(service.kill)
            service.start()
            url = service.url
        with open_store(server.url) as store:
            version = store.describe().server.partition(",")[0]
        steady: Steady | None = None
        fleet: Fleet | None = None
        if name == "crowd":
            url, version = f"{url}?connections=close&timeout_ms=30000&sslmode=disable", f"{version}, connections=close"
            spread_s = args.processes * 0.06
            fleet = run.day(url, server, processes=args.processes, away_s=0, spread_s=spread_s, span_ms=30_000)
        else:
            leases = args.leases // 10 if name in SLOW else args.leases
            steady = run.steady(url, server, processes=4, leases=leases, seconds=args.seconds)
            if name not in args.without_outage:
                is_frozen = name == "redis"
                fleet = run.day(url, server, processes=64, away_s=args.away, is_frozen=is_frozen, span_ms=run.SHORT_MS)
        return Run(name, f"service on {version}" if name == "service" else version, steady, fleet)


def grown(name: str) -> list[Grown]:
    """Return what a pool of a store costs as it grows."""
    with TemporaryDirectory(prefix="mintage-") as directory, ExitStack() as stack:
        place = Path(directory)
        place.chmod(0o755)  # the servers run as other users
        url = f"sqlite:///{place / 'ids.db'}" if name == "sqlite" else started(name, place, stack).url
        return list(grow(name, url))


def main() -> int:
    """Run, print the tables, and write a record if asked."""
    has_kubernetes = (render.ROOT / ".cache" / "kubernetes").is_dir()
    all_stores = [name for name in STORES if name != "kubernetes" or has_kubernetes]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fleet", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stores", nargs="*", metavar="STORE", help=f"{', '.join(STORES)}; by default all")
    parser.add_argument("--leases", type=int, default=10_000, help="on each store (default: 10,000)")
    parser.add_argument("--seconds", type=float, default=20, help="of steady extensions (default: 20)")
    parser.add_argument("--away", type=float, default=30, help="seconds of an outage (default: 30)")
    parser.add_argument("--without-outage", nargs="*", default=[], metavar="STORE", help="stores that stay")
    parser.add_argument("--processes", type=int, default=1_000, help="of the crowd (default: 1,000)")
    parser.add_argument(
        "--grow", nargs="*", default=[], metavar="STORE", help="stores whose pool grows to 65,536 leases"
    )
    parser.add_argument("--record", action="store_true", help="write a record, pages and charts")
    args = parser.parse_args()
    if unknown := {*args.stores, *args.without_outage} - {*STORES}:
        parser.error(f"the stores are {', '.join(STORES)}, not {', '.join(sorted(unknown))}")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    runs = []
    for name in args.stores or ([] if args.grow else all_stores):
        runs.append(measure(name, args))
        print(runs[-1], flush=True)
    pools = []
    for name in args.grow:
        pools += grown(name)
        print(*pools[-4:], sep="\n", flush=True)
    if args.record:
        path = FleetRecord(datetime.now(UTC).isoformat(timespec="seconds"), environment(), runs, pools).save(slug())
        print(f"record: {path.name}; rendered: {', '.join(render.write())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
