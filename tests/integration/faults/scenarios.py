"""The faults, each a function that causes it and returns what users saw."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mintage import open_store, rules
from tests.helpers.outcomes import eventually
from tests.integration.faults.crew import PATIENCE_S, ROOT, WIDTHS, Crew, cpu_s
from tests.servers import (
    Daemon,
    Etcd,
    EtcdCluster,
    Galera,
    Kubernetes,
    MariaDB,
    MariaDBPair,
    MySQL,
    MySQLGroup,
    PgBouncer,
    PostgreSQL,
    PostgreSQLHAProxy,
    PostgreSQLLogical,
    PostgreSQLPair,
    Redis,
    RedisClusterOfSix,
    RedisSentinel,
    RedisWithoutAOF,
    Valkey,
)
from tests.servers.kubernetes import between, said
from tests.servers.proxy import Proxy
from tests.servers.server import HOST, free_port, open_url, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.integration.faults.crew import Worker
    from tests.servers import Server
    from tests.servers.kubernetes import Answer
    from tests.servers.pair import Pair

RESTS: Final = f"node numbers rest for {(rules.SPAN_MS + rules.CLOCK_LIMIT_MS) // 1000 + 1} s"
FAR: Final = 1_000_000
"""A step that no worker uses up, so that at most one segment a worker is lost."""
LEASES: Final = [scheme for scheme in WIDTHS if scheme != "sequence"]


@dataclass(frozen=True)
class Row:
    """The result of one fault."""

    fault: str
    store: str
    waited_ms: int
    """The longest duration of a call."""
    refused: dict[str, int]
    """Refused calls, by code."""
    ids: int
    duplicates: int
    seen: str = ""
    """Further remarks."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Scenario:
    """A fault, and the stores on which it is run: kinds of servers, or ``None`` for an SQLite file."""

    run: Callable[[Any, Path], Row]
    stores: tuple[type[Server] | None, ...]
    is_quick: bool = True
    """True if the normal test run includes it."""

    @property
    def name(self) -> str:
        return self.run.__name__


POOLS: Final = {
    "sno": "sno/1",
    "snowflake": "snowflake time:41 node:10 sequence:12 @1420070400000 1ms",
    "locality": "locality",
    "uuid.v7": "uuid.v7",
    "ulid": "ulid",
    "objectid": "objectid",
}
"""The pools of workers, and the meaning of their node numbers."""


def url_of(server: Server | None, directory: Path) -> str:
    """Return the URL of the store, after creating its pools, as Redis quarantines unknown ones."""
    if server is None:
        return f"sqlite:///{directory / 'ids.db'}"
    url = f"{server.url}?volatile=1" if isinstance(server, RedisWithoutAOF) else server.url
    with open_store(url) as store:
        for pool, layout in POOLS.items():
            eventually(partial(store.create_pool, pool, layout=layout, never_used=True))
    return url


def row(fault: str, server: Server | None, crew: Crew, seen: str = "") -> Row:
    ids, duplicates = crew.counts()
    store = server.name if server else "sqlite"
    return Row(fault, store, crew.slowest_ms(), dict(crew.refusals().most_common()), ids, duplicates, seen)


def holder_killed_same_node(server: Server | None, directory: Path) -> Row:
    """Kill a holder; the next process waits until its window has ended."""
    with Crew(directory, url_of(server, directory), nodes=1, span_ms=3000, max_wait_ms=10_000) as crew:
        [first] = crew.start_minting(1)
        first.wait_for_more(1000)
        first.kill()
        [second] = crew.start_minting(1)
        second.wait_for_more(1000)
        crew.stop()
        return row("kill -9 of a process; the next one gets its node number", server, crew, "waits out the window")


def holder_killed_other_node(server: Server | None, directory: Path) -> Row:
    """Kill a holder; the next process gets another node number at once."""
    with Crew(directory, url_of(server, directory), nodes=2) as crew:
        [first] = crew.start_minting(1)
        first.wait_for_more(1000)
        first.kill()
        crew.start_minting(1)
        crew.workers[1].wait_for_more(1000)
        crew.stop()
        return row("kill -9 of a process; the next one gets another node number", server, crew)


def store_killed(server: Server, directory: Path) -> Row:
    """Kill a store that comes back with its data."""
    with Crew(directory, url_of(server, directory)) as crew:
        crew.start_minting(4)
        crew.all_mint_on()
        server.kill()
        for worker in crew.workers:
            worker.wait_for("refused")
        server.start()
        crew.all_mint_on()
        crew.stop()
        seen = f"{RESTS}: Redis may have lost writes" if isinstance(server, Redis) else ""
        return row("kill -9 of the store under load", server, crew, seen)


def store_flushed(server: Redis, directory: Path) -> Row:
    """Flush a store; leases are in quarantine for a span and the clock limit, as a holder may still mint."""
    with Crew(directory, url_of(server, directory), schemes=LEASES) as crew:
        crew.start_minting(4)
        crew.all_mint_on()
        server.ask("FLUSHALL")
        for worker in crew.workers:
            worker.wait_for("refused")
        crew.all_mint_on()
        crew.stop()
        return row("FLUSHALL under load", server, crew, RESTS)


def store_forgets_all(server: RedisWithoutAOF, directory: Path) -> Row:
    """Restart a Redis without persistence, which the URL has to allow."""
    with Crew(directory, url_of(server, directory), schemes=LEASES) as crew:
        crew.start_minting(4)
        crew.all_mint_on()
        server.kill()
        server.start()
        for worker in crew.workers:
            worker.wait_for("refused")
        crew.all_mint_on()
        crew.stop()
        return row("the store restarts without its data", server, crew, RESTS)


def store_fails_over(server: RedisSentinel, directory: Path) -> Row:
    """Promote a replica that has received everything."""
    with Crew(directory, url_of(server, directory)) as crew:
        crew.start_minting(4)
        crew.all_mint_on()
        server.failover()
        crew.all_mint_on()
        crew.stop()
        return row("failover to a replica that heard all", server, crew, RESTS)


def store_fails_over_and_forgets(server: RedisSentinel, directory: Path) -> Row:
    """Promote a replica that has not received the last writes."""
    with Crew(directory, url_of(server, directory), nodes=8) as crew:
        crew.start_minting(2, step=FAR)
        crew.all_mint_on()
        with server.failover_that_forgets():
            crew.start_minting(2, step=FAR)
            crew.all_mint_on()
        crew.all_mint_on()
        crew.stop()
        return row("failover to a replica that missed the last writes", server, crew, "integers are skipped")


def standby_promoted(server: Pair[Any], directory: Path) -> Row:
    """Promote a standby that has received everything."""
    with Crew(directory, url_of(server, directory)) as crew:
        crew.start_minting(4)
        crew.all_mint_on()
        server.failover()
        crew.all_mint_on()
        crew.stop()
        return row("failover to a standby that heard all", server, crew, RESTS)


def standby_promoted_and_forgets(server: Pair[Any], directory: Path) -> Row:
    """Promote a standby that has not received the last writes."""
    with Crew(directory, url_of(server, directory), nodes=8) as crew:
        crew.start_minting(2, step=FAR)
        crew.all_mint_on()
        with server.failover_that_forgets():
            crew.start_minting(2, step=FAR)
            crew.all_mint_on()
        crew.all_mint_on()
        crew.stop()
        return row("failover to a standby that missed the last writes", server, crew, f"{RESTS}; integers are skipped")


def subscriber_takes_over(server: PostgreSQLLogical, directory: Path) -> Row:
    """Promote a logical replica: another server with the received rows."""
    url_of(server, directory)
    server.subscribe()
    with Crew(directory, server.url, step=FAR) as crew:
        crew.start_minting(4)
        crew.all_mint_on()
        with server.failover_that_forgets():
            crew.all_mint_on()
        crew.all_mint_on()
        crew.stop()
        seen = f"{RESTS}; integers are skipped"
        return row("logical failover: a subscriber that missed the last rows takes over", server, crew, seen)


def member_lost(server: EtcdCluster, directory: Path) -> Row:
    """Stop members: two of three go on; one of three waits for another."""
    with Crew(directory, url_of(server, directory)) as crew:
        crew.start_minting(4)
        server.members[0].kill()
        crew.all_mint_on()
        server.members[1].kill()
        for worker in crew.workers:
            worker.wait_for("refused")
        server.members[0].start()
        crew.all_mint_on()
        crew.stop()
        seen = "two members go on; a minority of one does not, until another is back"
        return row("kill -9 of a member of three, and of a second one", server, crew, seen)


def member_frozen(server: EtcdCluster, directory: Path) -> Row:
    """Freeze each member in turn, the leader among them; the others go on, and the frozen one returns."""
    with Crew(directory, url_of(server, directory)) as crew:
        crew.start_minting(4)
        for member in server.members:
            member.pause()
            crew.all_mint_on()
            member.resume()
            crew.all_mint_on()
        crew.stop()
        seen = "the other two go on"
        return row("SIGSTOP of each member of three in turn", server, crew, seen)


def node_killed(server: Galera | MySQLGroup, directory: Path) -> Row:
    """Kill a server of a cluster while processes write to two of its servers."""
    with Crew(directory, url_of(server, directory)) as crew:
        here, there = start_at_two(crew, server)
        server.members[1].kill()
        wait_until_apart(here, there)
        server.start()
        crew.all_mint_on()
        crew.stop()
        seen = "those that write to the other server go on"
        return row("kill -9 of a server of three, while processes write to two", server, crew, seen)


def node_cut_off(server: Galera, directory: Path) -> Row:
    """Cut a node off from the others while processes write to it and to another one."""
    with Crew(directory, url_of(server, directory)) as crew:
        here, there = start_at_two(crew, server)
        with server.members[1].partitioned():
            wait_until_apart(here, there)
        server.start()
        crew.all_mint_on()
        crew.stop()
        seen = "the node that is cut off refuses; the majority goes on"
        return row("a server of three is cut off, while processes write to it and to another", server, crew, seen)


def node_frozen(server: Galera | MySQLGroup, directory: Path) -> Row:
    """Freeze a server of a cluster until the others expel it, while processes write to it and to another one."""
    with Crew(directory, url_of(server, directory)) as crew:
        here, there = start_at_two(crew, server)
        server.members[1].pause()
        wait_until_apart(here, there)
        server.members[1].resume()
        server.start()
        crew.all_mint_on()
        crew.stop()
        seen = "the others expel it; it joins them again"
        return row("SIGSTOP of a server of three, while processes write to it and to another", server, crew, seen)


def start_at_two(crew: Crew, server: Galera | MySQLGroup) -> tuple[list[Worker], list[Worker]]:
    """Start workers that name the first server, and others that name the second one."""
    here, there = (crew.start_minting(2, store=member.url) for member in server.members[:2])
    crew.all_mint_on()
    return here, there


def wait_until_apart(here: list[Worker], there: list[Worker]) -> None:
    """Wait until those at the second server are refused, while those at the first one mint on."""
    for worker in there:
        worker.wait_for("refused")
    for worker in here:
        worker.wait_for_more()


def pooler_killed(server: PgBouncer, directory: Path) -> Row:
    """Kill the pooler; then freeze it while its server crashes and comes back."""
    with Crew(directory, url_of(server, directory)) as crew:
        crew.start_minting(4)
        crew.all_mint_on()
        server.pooler.kill()
        for worker in crew.workers:
            worker.wait_for("refused")
        server.start()
        crew.all_mint_on()
        server.pooler.pause()
        server.server.kill()
        server.server.start()
        server.pooler.resume()
        crew.all_mint_on()
        crew.stop()
        return row("kill -9 of the pooler; SIGSTOP of it while its server is killed", server, crew)


def master_killed_and_slot_moved(server: RedisClusterOfSix, directory: Path) -> Row:
    """Move the slot of the integers to another master, and kill that of a pool; its replica takes over."""
    with Crew(directory, url_of(server, directory)) as crew:
        crew.start_minting(4)
        crew.all_mint_on()
        for key in ("mintage:{namespace:orders}", "mintage:{pool:ulid}"):
            server.move(int(server.ask("CLUSTER", "KEYSLOT", key)))
        crew.all_mint_on()
        slot = int(server.ask("CLUSTER", "KEYSLOT", "mintage:{pool:uuid.v7}"))
        victim = next(master for master in server.masters if master.serves(slot))
        victim.kill()
        server.until(lambda: any(master.serves(slot) for master in server.masters), "its replica takes over")
        crew.all_mint_on()
        server.start()
        crew.all_mint_on()
        crew.stop()
        return row("two slots move; kill -9 of a master of three, whose replica takes over", server, crew, RESTS)


def roles_swapped(server: PostgreSQLHAProxy, directory: Path) -> Row:
    """Swap the roles of two servers twice, and tell the proxy in front of them."""
    with Crew(directory, url_of(server, directory)) as crew:
        crew.start_minting(4)
        for _ in range(2):
            crew.all_mint_on()
            server.failover()
            crew.all_mint_on()
            server.start()
        crew.all_mint_on()
        crew.stop()
        return row("primary and standby behind HAProxy swap roles twice", server, crew, RESTS)


def process_stopped(server: Server | None, directory: Path) -> Row:
    """Stop a process past its window; it reports the loss of its number before it mints."""
    with Crew(directory, url_of(server, directory), schemes=LEASES, nodes=1, max_wait_ms=10_000, anew=False) as crew:
        [sleeper] = crew.start_minting(1)
        sleeper.wait_for_more(1000)
        sleeper.process.send_signal(signal.SIGSTOP)
        [heir] = crew.start_minting(1)
        sleeper.process.send_signal(signal.SIGCONT)
        sleeper.wait_for("ended")
        assert [ended["code"] for ended in sleeper.said("ended")] == ["lease.lost"]
        heir.wait_for_more(1000)
        crew.stop()
        return row("SIGSTOP of a process past its window, while another takes its node number", server, crew)


def process_stopped_and_moves(server: Server | None, directory: Path) -> Row:
    """Stop a process past its window that may move on to another number by itself."""
    orders = {"schemes": LEASES, "nodes": 2, "max_wait_ms": 10_000, "on_lease_lost": "move"}
    with Crew(directory, url_of(server, directory), **orders) as crew:
        [sleeper] = crew.start_minting(1)
        sleeper.wait_for_more(1000)
        sleeper.process.send_signal(signal.SIGSTOP)
        # One takes the unused number, the other the sleeper's.
        heirs = crew.start_minting(2)
        sleeper.process.send_signal(signal.SIGCONT)
        heirs[0].stop()
        sleeper.wait_for_more(1000)
        crew.stop()
        return row('the same with on_lease_lost="move", once a number is free', server, crew)


def clock_stepped(server: Server | None, directory: Path) -> Row:
    """Step clocks; they decide when an ID is minted, not whether it is unique."""
    with Crew(directory, url_of(server, directory), schemes=LEASES, nodes=4, stepped=True) as crew:
        workers = crew.start_minting(4)
        for ms in (-300, 800, -2000, 3000, -1500, 700, -60_000, 60_000):
            for worker in workers:
                worker.step(ms)
            if abs(ms) < 5000:
                crew.all_mint_on()
        crew.all_mint_on()
        crew.stop()
        return row("clocks step back and forward, by up to a minute", server, crew)


def reply_cut(server: Daemon, directory: Path) -> Row:
    """Lose the reply of a store that has executed the request."""
    with (
        Proxy(server) as proxy,
        Crew(directory, url_of(server, directory).replace(server.url, proxy.url), span_ms=1000, step=200) as crew,
    ):
        crew.start_minting(3)
        for reply in (1, 2, 3, 1, 2, 3, 5, 7):
            proxy.cut(reply)
            until(proxy_is_past(proxy, proxy.replies + reply), "the reply is cut")
            crew.all_mint_on()
        crew.stop()
        return row("connections cut in the middle of a reply, eight times", server, crew)


def proxy_is_past(proxy: Proxy, reply: int) -> Callable[[], bool]:
    return lambda: proxy.replies >= reply


def store_frozen(server: Server, directory: Path) -> Row:
    """Freeze a store: buffers are served, then callers are asked to retry, and the store is found again."""
    # Few integers are held: once the lease has ended, each turn takes 50 of them and waits a second for the lease.
    with Crew(directory, url_of(server, directory), schemes=["snowflake", "sequence"], span_ms=2000, step=500) as crew:
        [worker] = crew.start_minting(1)
        worker.wait_for_more()
        server.pause()
        held = worker.size("snowflake")
        worker.wait_for("refused", 2)
        served = (worker.size("snowflake") - held) // 8
        used_s, began_s = cpu_s(worker), time.monotonic()
        time.sleep(3)
        cpu = (cpu_s(worker) - used_s) / (time.monotonic() - began_s)
        server.resume()
        resumed_ms = time.time_ns() // 1_000_000
        sizes = worker.size("snowflake"), worker.size("sequence")
        until(lambda: worker.size("snowflake") > sizes[0], "leases are extended again", seconds=PATIENCE_S)
        until(lambda: worker.size("sequence") > sizes[1], "segments are fetched again", seconds=PATIENCE_S)
        recovered_ms = time.time_ns() // 1_000_000 - resumed_ms
        crew.stop()
        refused = worker.said("refused")
        assert {what["code"] for what in refused} == {"store.unavailable"}, refused
        assert all(what["retry_after_ms"] > 0 for what in refused), refused
        assert served > 0
        assert cpu < 0.2, "it asks again and again"
        seen = f"{served:,} IDs served meanwhile; {cpu:.1%} of a processor used; back after {recovered_ms} ms"
        return row("SIGSTOP of the store", server, crew, seen)


def preforked(server: Server | None, directory: Path) -> Row:
    """Fork gunicorn workers from a parent whose generators have minted already."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--preload", "--workers=4", f"--bind={HOST}:{port}"]
    command += ["--log-level=warning", "--no-control-socket", "tests.integration.faults.prefork:app"]
    environment = {**os.environ, "STORE": url_of(server, directory), "MINTAGE_HOME": str(directory / "home")}
    ids: Counter[tuple[str, int]] = Counter()
    pids = set()

    def ask(path: str) -> int:
        with open_url(f"http://{HOST}:{port}/{path}", timeout=PATIENCE_S) as answer:
            said = json.load(answer)
        ids.update((scheme, minted) for scheme, made in said["ids"].items() for minted in made)
        return int(said["pid"])

    with process(command, environment, directory / "gunicorn.log") as parent:
        until(lambda: is_served(port) or parent.poll() is not None, "gunicorn serves", seconds=PATIENCE_S)
        ask("parent")
        for turn in range(80):
            pid = ask("")
            pids.add(pid)
            if turn in {20, 40}:
                os.kill(pid, signal.SIGKILL)
                until(lambda: is_served(port), "gunicorn serves", seconds=PATIENCE_S)
    minted = sum(ids.values())
    store = server.name if server else "sqlite"
    fault = "gunicorn forks workers after minting; two of them are killed"
    return Row(fault, store, 0, {}, minted, minted - len(ids), f"{len(pids)} workers")


@contextmanager
def process(command: list[str], environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        started = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=file, stderr=file)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


def is_served(port: int) -> bool:
    try:
        with open_url(f"http://{HOST}:{port}/parent", timeout=PATIENCE_S):
            return True
    except OSError:
        return False


def api_killed(server: Kubernetes, directory: Path) -> Row:
    """Kill the API server alone."""
    return killed_alone(server, server.api, directory, "kill -9 of the API server")


def etcd_killed(server: Kubernetes, directory: Path) -> Row:
    """Kill the etcd behind the API server."""
    return killed_alone(server, server.etcd, directory, "kill -9 of the etcd behind the API server")


def killed_alone(server: Kubernetes, member: Daemon, directory: Path, fault: str) -> Row:
    with Crew(directory, url_of(server, directory), **IN_A_CLUSTER) as crew:
        crew.start_minting(3)
        crew.all_mint_on()
        member.kill()
        for worker in crew.workers:
            worker.wait_for("refused")
        server.start()
        crew.all_mint_on()
        crew.stop()
        return row(fault, server, crew)


def api_reply_cut(server: Kubernetes, directory: Path) -> Row:
    """Lose the answer of an API server that has executed the request."""
    url_of(server, directory)
    with (
        Proxy(server.api) as proxy,
        Crew(directory, server.add_context(server.api, proxy.port), **IN_A_CLUSTER) as crew,
    ):
        crew.start_minting(3)
        for reply in (1, 2, 3, 4, 5, 6, 7, 11):
            proxy.cut(reply)
            until(proxy_is_past(proxy, proxy.replies + reply), "the reply is cut")
            crew.all_mint_on()
        crew.stop()
        return row("answers dropped after the write, eight times", server, crew)


def api_busy(server: Kubernetes, directory: Path) -> Row:
    """Let the API refuse nine requests of ten for five seconds, as its priority and fairness does."""
    url_of(server, directory)
    asked, until_s = itertools.count(), [0.0]

    def answer(method: str, path: str) -> Answer | None:
        is_busy = time.monotonic() < until_s[0] and next(asked) % 10
        return said(429, "TooManyRequests", **{"Retry-After": "1"}) if is_busy else None

    with between(server, answer) as url, Crew(directory, url, **IN_A_CLUSTER) as crew:
        crew.start_minting(3)
        crew.all_mint_on()
        until_s[0] = time.monotonic() + 5
        until(lambda: time.monotonic() > until_s[0], "the storm ends")
        crew.all_mint_on()
        crew.stop()
        return row("the API answers 429 to nine requests of ten, for 5 s", server, crew)


def token_rotated(server: Kubernetes, directory: Path) -> Row:
    """Replace the token of the account, and let it expire once before the next one comes."""
    with Crew(directory, url_of(server, directory), **IN_A_CLUSTER) as crew:
        crew.start_minting(3)
        for _ in range(4):
            server.rotate()
            crew.all_mint_on()
        server.rotate("an-expired-token")
        for worker in crew.workers:
            worker.wait_for("refused")
        server.rotate()
        crew.all_mint_on()
        crew.stop()
        return row("the token of the pods is rotated five times, once too late", server, crew)


IN_A_CLUSTER: Final = {"schemes": ["snowflake", "sequence"], "span_ms": 2000, "step": 2000}

SCENARIOS: Final = (
    Scenario(holder_killed_same_node, (None, MariaDB)),
    Scenario(holder_killed_other_node, (None, Redis)),
    Scenario(process_stopped, (PostgreSQL,)),
    Scenario(process_stopped_and_moves, (Etcd,)),
    Scenario(clock_stepped, (None,)),
    Scenario(preforked, (None, PostgreSQL)),
    Scenario(store_killed, (MariaDB, MySQL, PostgreSQL, Redis, Valkey, Etcd, Kubernetes)),
    Scenario(api_killed, (Kubernetes,)),
    Scenario(etcd_killed, (Kubernetes,)),
    Scenario(api_reply_cut, (Kubernetes,)),
    Scenario(api_busy, (Kubernetes,)),
    Scenario(token_rotated, (Kubernetes,)),
    Scenario(reply_cut, (MariaDB, MySQL, Redis, Etcd)),
    Scenario(store_frozen, (MariaDB, Redis, Kubernetes)),
    Scenario(store_flushed, (Redis,)),
    Scenario(store_forgets_all, (RedisWithoutAOF,), is_quick=False),
    Scenario(store_fails_over, (RedisSentinel,), is_quick=False),
    Scenario(store_fails_over_and_forgets, (RedisSentinel,)),
    Scenario(standby_promoted, (PostgreSQLPair, MariaDBPair), is_quick=False),
    Scenario(standby_promoted_and_forgets, (PostgreSQLPair, MariaDBPair)),
    Scenario(subscriber_takes_over, (PostgreSQLLogical,), is_quick=False),
    Scenario(member_lost, (EtcdCluster,)),
    Scenario(member_frozen, (EtcdCluster,), is_quick=False),
    Scenario(node_killed, (Galera, MySQLGroup), is_quick=False),
    Scenario(node_cut_off, (Galera,), is_quick=False),
    Scenario(node_frozen, (Galera, MySQLGroup), is_quick=False),
    Scenario(pooler_killed, (PgBouncer,)),
    Scenario(master_killed_and_slot_moved, (RedisClusterOfSix,), is_quick=False),
    Scenario(roles_swapped, (PostgreSQLHAProxy,), is_quick=False),
)
