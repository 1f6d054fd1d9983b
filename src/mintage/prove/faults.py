"""The faults that ``mintage prove`` causes one after another, and what came of each."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from mintage import snowflake
from mintage._core import kernel_random
from mintage._core.formats import write_layout
from mintage.errors import ConfigError, MintError, StoreError
from mintage.protocol.url import StoreUrl
from mintage.prove import FAULTS
from mintage.prove.crew import Crew, until
from mintage.prove.proxy import HOST, Proxy
from mintage.prove.report import Report, Row, Settings
from mintage.prove.verbs import Client, Clients, Interval, shared, union
from mintage.store import PAGE, open_store

PREFIX: Final = "mintage-prove-"
"""The first letters of the names of all pools and namespaces that a run creates."""
LAYOUTS: Final = {"snowflake": f"snowflake {write_layout(snowflake.DEFAULT)}", "locality": "locality"}
"""The pools, and the meaning of their node numbers."""
NODES: Final = 64
"""The node numbers of each fault, apart from those of the others: that is also the most processes."""
BATCH: Final = 50
IDS_A_VERB: Final = 100
"""The IDs that are minted for each verb of the store that a run may use."""
MOST_IDS: Final = 20_000_000
"""The most IDs of a run: those of a fault are compared in memory, at about 100 bytes each."""
STEPS_MS: Final = (-300, 800, -2000, 3000, -1500, 700, -60_000, 60_000)
PORTS: Final = {"mysql": 3306, "mariadb": 3306, "postgresql": 5432, "etcd": 2379, "http": 80}
"""The ports of URLs that name none; the others are Redis'."""
BLOCKED: Final = 4
"""The tries to stop processes, of which one may be within a transaction."""
STOP: Final = getattr(signal, "SIGSTOP", None)
CONTINUE: Final = getattr(signal, "SIGCONT", None)
OF_SERVERS: Final = ("redis+sentinel", "redis+cluster")


class NotRunError(Exception):
    """A fault cannot be caused here; the message says why."""


class Run:
    """A run of several faults on one store."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.name = PREFIX + kernel_random(5).hex()
        self.pools = {scheme: f"{self.name}-{scheme}" for scheme in LAYOUTS}
        rows = [Row(*each) for each in FAULTS.items() if not settings.names or each[0] in settings.names]
        self.report = Report(settings, rows)
        # A third of the verbs extend leases: two of each process, three times in each span.
        self.span_ms = max(1000, 3 * 6000 * settings.processes // settings.rate)
        self.row = Row("", "")
        """The row of the fault that is caused now."""
        self._integers: list[Interval] = []
        self._directory = Path()
        self._deadline = 0.0

    # --- the store ------------------------------------------------------------------------------------------------

    def create(self) -> None:
        """Create the pools and the namespace of this run, all processes at once.

        :raises StoreError: as the store's verbs.
        :raises ConfigError: ``config.store``: the store ends with its process; as the store's verbs.
        """
        with open_store(self.settings.url) as store:
            if store.promise == "process":
                raise ConfigError(f"{store.url} is a store of one process; name another", code="config.store")
            self.report.store = str(store.url)
            with suppress(StoreError):  # a key of the service may not read it
                self.report.server = store.describe().server
            if store.get_namespace(self.name) is not None:
                raise ConfigError(f"namespace {self.name} exists; try again", code="config.namespace")
        self.report.left = [*self.pools.values(), self.name]
        with closing(self._new_clients()) as clients:
            pools = clients.each(self._create_pools)
            made = clients.each(lambda client: client.store.create_namespace(self.name, start=1))
        created = sum(not isinstance(each, MintError) for each in made)
        for each in [*pools, *made]:
            # All but one find the namespace of another.
            if isinstance(each, MintError) and not (created and each.code == "config.namespace"):
                raise each
        self.report.rows[0].duplicates = created - 1

    def _create_pools(self, client: Client) -> None:
        for scheme, pool in self.pools.items():
            client.store.create_pool(pool, layout=LAYOUTS[scheme], span_ms=self.span_ms, never_used=True, history_ms=0)

    def clean(self) -> None:
        """End the leases and the namespace of this run. No verb removes their records."""
        if not self.report.left:
            return
        with open_store(self.settings.url) as store:
            for pool in self.pools.values():
                with suppress(MintError):
                    for lease in store.each_lease(pool):
                        if lease.token is not None and lease.until_ms > store.now_ms():
                            store.revoke(pool, lease.node)
            with suppress(MintError):
                store.retire(self.name)

    # --- the faults -----------------------------------------------------------------------------------------------

    def run(self, show: Callable[[Row], None]) -> None:
        """Cause all faults; what came of each is in its row, which is shown at its end."""
        share_s = self.settings.seconds / len(self.report.rows)
        for row in self.report.rows:
            self.row, self._deadline = row, time.monotonic() + share_s
            with TemporaryDirectory(prefix=PREFIX) as directory:
                self._directory = Path(directory)
                try:
                    CAUSES[row.name](self)
                except NotRunError as error:
                    row.not_run = str(error)
                except (MintError, OSError, RuntimeError) as error:
                    row.failed = (str(error).strip().splitlines() or [type(error).__name__])[-1]
                else:
                    if not row.ids:
                        row.failed = f"the store gave nothing; its errors: {', '.join(row.refused) or 'none'}"
            row.is_done = True
            show(row)

    def goes_on(self) -> bool:
        """Return True while the time of this fault lasts, and always before its first attempt."""
        return time.monotonic() < self._deadline or not self.row.attempts

    def compare(self, integers: Iterable[Interval]) -> None:
        """Compare the integers of this fault with those of the faults before: all are of one namespace."""
        mine = union(integers)
        self.row.duplicates += shared([*self._integers, *mine])
        self._integers = union([*self._integers, *mine])

    def _new_clients(self) -> Clients:
        settings, pool = self.settings, self.pools["locality"]
        return Clients(settings.url, settings.processes, settings.rate, pool, LAYOUTS["locality"], self.name)

    @property
    def first_node(self) -> int:
        """The first of the node numbers of this fault."""
        return [*FAULTS].index(self.row.name) * NODES

    @contextmanager
    def clients(self) -> Iterator[Clients]:
        """Yield clients of the store on threads, and count what they were given."""
        clients, row = self._new_clients(), self.row
        try:
            yield clients
        finally:
            clients.close()
            row.ids, repeated = clients.found()
            row.duplicates += repeated
            self.compare(clients.integers())
            row.waited_ms = round(max(client.waited_s for client in clients.clients) * 1000)
            row.refused = dict(sum((client.refused for client in clients.clients), Counter()).most_common())

    @contextmanager
    def crew(self, **orders: Any) -> Iterator[Crew]:
        """Yield processes that mint, and count their IDs, also those before an error."""
        if getattr(sys, "frozen", False):
            raise NotRunError("a bundled program has no Python that could start its processes")
        settings, row = self.settings, self.row
        given: dict[str, Any] = {
            "schemes": [*LAYOUTS, "sequence"],
            "pools": self.pools,
            "namespace": self.name,
            "first_node": self.first_node,
            "nodes": NODES,
            "span_ms": self.span_ms,
            "max_wait_ms": self.span_ms + 10_000,
            "step": 3 * IDS_A_VERB,
            "batch": BATCH,
            "pause_s": 3 * BATCH * settings.processes / (settings.rate * IDS_A_VERB),
            "patience_s": 60 + self.span_ms / 1000,
            **orders,
        }
        crew = Crew(self._directory, given.pop("store", settings.url), **given)
        try:
            with crew:
                yield crew
                crew.stop()
        finally:
            row.ids, repeated = crew.counts()
            row.duplicates += repeated
            self.compare(
                (0, each, each + 1) for data in crew.data("sequence") for each in array("Q", data[: len(data) & -8])
            )
            row.waited_ms, row.refused = crew.slowest_ms(), dict(crew.refusals().most_common())

    @contextmanager
    def proxied(self) -> Iterator[tuple[Proxy, str]]:
        """Yield a proxy in front of the store's server, and the URL that leads through it."""
        text, url = self.settings.url, StoreUrl.parse(self.settings.url)
        if url.scheme in OF_SERVERS:
            raise NotRunError("the servers tell clients their own addresses")
        if url.socket is not None or not url.hosts or url.scheme == "kubernetes":  # a context is no host
            raise NotRunError("the URL names no host that a proxy can stand in front of")
        address = (url.host, url.port(PORTS.get(url.scheme, 6379)))
        kind, _, rest = text.partition("://")
        authority = re.split("[/?]", rest, maxsplit=1)[0]
        user, at, _ = authority.rpartition("@")
        with Proxy(lambda: address) as proxy:
            through = f"{kind}://{user}{at}{HOST}:{proxy.port}{rest[len(authority) :]}"
            try:
                with open_store(through) as store:
                    store.now_ms()
            except MintError as error:
                raise NotRunError(f"no connection through a proxy, perhaps as TLS checks names: {error}") from None
            if not proxy.replies:
                raise NotRunError("an option of the URL leads past a proxy")
            yield proxy, through

    def attempted(self, count: int, crew: Crew | None = None) -> None:
        """Note attempts, and the IDs so far."""
        self.row.attempts += count
        if crew is not None:
            self.row.ids = crew.minted()

    def wait(self, crew: Crew) -> None:
        """Wait for the end of this fault's time, while processes mint."""
        while time.monotonic() < self._deadline:
            self.attempted(0, crew)
            time.sleep(0.1)
        crew.all_mint_on()
        crew.stop()

    @property
    def few(self) -> int:
        """Half of the processes, for faults that start another for each."""
        return max(1, self.settings.processes // 2)


def clean(url: str) -> list[str]:
    """Retire the namespaces that killed runs left, but for runs that have windows now; return their names.

    :raises MintError: as the store's verbs.
    """
    retired: list[str] = []
    with open_store(url) as store:
        now_ms, after = store.now_ms(), PREFIX
        while page := store.list_namespaces(after, PAGE):
            for each in page:
                if not each.name.startswith(PREFIX):
                    return retired
                pools = (f"{each.name}-{scheme}" for scheme in LAYOUTS)
                is_running = any(lease.until_ms > now_ms for pool in pools for lease in store.list_leases(pool))
                if not each.retired and not is_running:
                    store.retire(each.name)
                    retired.append(each.name)
            after = page[-1].name
    return retired


def use_verbs(run: Run) -> None:
    """Use all verbs at once, and compare windows and integers."""
    with run.clients() as clients:
        while run.goes_on():
            clients.each(Client.work)
            run.row.attempts = sum(client.verbs for client in clients.clients)
    for what in ("windows", "integers"):
        if not any(getattr(client, what) for client in clients.clients):
            raise RuntimeError(f"the store gave no {what}; its errors: {', '.join(run.row.refused) or 'none'}")


def contend(run: Run) -> None:
    """Let all ask for one node number at once, and let two extend one lease."""
    with run.clients() as clients:
        while run.goes_on():
            run.attempted(1)
            run.row.duplicates += clients.contend(run.first_node)


def start_together(run: Run) -> None:
    """Let all processes create their generators and mint first at the same times."""
    round_s = max(0.5, 6 * run.settings.processes / run.settings.rate)  # six verbs a process
    with run.crew(round_s=round_s) as crew:
        crew.start_minting(run.settings.processes)
        run.wait(crew)
    run.attempted(crew.total("rounds"))


def kill(run: Run) -> None:
    """Kill processes; each time others take their node numbers."""
    with run.crew(nodes=run.few) as crew:
        holders = crew.start_minting(run.few)
        while run.goes_on():
            for holder in holders:
                holder.kill()
            holders = crew.start_minting(run.few)
            run.attempted(run.few, crew)


def stop(run: Run) -> None:
    """Stop processes until others have their node numbers, and let them go on."""
    if STOP is None or CONTINUE is None:
        raise NotRunError("this system stops no processes")
    patience_s = 15 + run.span_ms / 1000
    with run.crew(nodes=run.few, schemes=[*LAYOUTS], anew=False, patience_s=patience_s) as crew:
        holders, blocked = crew.start_minting(run.few), 0
        while run.goes_on():
            for holder in holders:
                holder.process.send_signal(STOP)
            heirs = [crew.start() for _ in holders]
            try:
                for heir in heirs:
                    heir.wait_until_minting()
            except TimeoutError:
                blocked += 1
                if blocked == BLOCKED:
                    raise
                # One was stopped within a transaction, which locks records, or all of SQLite's file.
                for holder in holders:
                    holder.kill()
                for heir in heirs:
                    heir.wait_until_minting()
            else:
                for holder in holders:
                    holder.process.send_signal(CONTINUE)
                    holder.wait_for("ended")
                run.attempted(run.few, crew)
            holders = heirs


def fork(run: Run) -> None:
    """Fork processes that mint; parents and children mint on with the same generators."""
    if not hasattr(os, "fork"):
        raise NotRunError("this system forks no processes")
    # Eight verbs a child.
    with run.crew(forks=True, pause_s=8 * run.few / run.settings.rate) as crew:
        crew.start_minting(run.few)
        run.wait(crew)
    run.attempted(crew.total("forks"))


def step_clocks(run: Run) -> None:
    """Step the clocks of generators; the system's clock stays as it is."""
    with run.crew(schemes=[*LAYOUTS], stepped=True) as crew:
        workers = crew.start_minting(run.settings.processes)
        steps = cycle(STEPS_MS)
        while run.goes_on():
            ms = next(steps)
            for worker in workers:
                worker.step(ms)
            # A minute is too long to wait for.
            if abs(ms) < 5000:
                crew.all_mint_on()
            run.attempted(len(workers), crew)
        crew.all_mint_on()


def cut(run: Run) -> None:
    """Cut the connections of processes in the middle of an answer, or before it."""
    with run.proxied() as (proxy, url), run.crew(store=url) as crew:
        crew.start_minting(run.few)
        replies, halves = cycle((1, 2, 3, 5, 7)), cycle((True, False))
        while run.goes_on():
            proxy.cut(next(replies), sends_half=next(halves))
            until(proxy.has_cut, "an answer is cut", 60)
            crew.all_mint_on()
            run.attempted(1, crew)


CAUSES: Final[dict[str, Callable[[Run], None]]] = {
    "verbs": use_verbs,
    "holders": contend,
    "crowd": start_together,
    "kill": kill,
    "stop": stop,
    "fork": fork,
    "clock": step_clocks,
    "cut": cut,
}
