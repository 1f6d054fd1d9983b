"""A store behind an unreliable network, whose server may fail over and forget."""

from __future__ import annotations

import itertools
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mintage import rules
from mintage.errors import MintError, StoreError
from mintage.protocol.records import key_of
from mintage.rules import GrantRecord, NamespaceRecord, NodeRecord, PoolRecord
from mintage.store.memory import MemoryStore, Records

if TYPE_CHECKING:
    from collections.abc import Callable

    from mintage.protocol.records import Record
    from mintage.rules import Lease, Segment
    from mintage.store.ledger import ServerIdentity, Transaction
    from tests.simulator.world import World

T = TypeVar("T")
DEEPEST: Final = 3
"""The number of processes that can be stopped in the middle of a verb at once."""


class Ledgerbook(Records):
    """Records that can be rolled back by some transactions."""

    def __init__(self) -> None:
        super().__init__()
        self._past: deque[tuple[dict[Any, Any], Any, Any] | None] = deque(maxlen=50_000)
        self.transactions = 0
        """The number of transactions, including forgotten ones."""

    def _note(self, where: dict[Any, Any], key: Any) -> None:
        self._past.append((where, key, where.get(key)))

    def put(self, record: Record) -> None:
        self._note(self.tables[type(record)], key_of(record))
        super().put(record)

    def remove(self, record: Record) -> None:
        self._note(self.tables[type(record)], key_of(record))
        super().remove(record)

    def committed(self) -> None:
        """Record the end of a transaction."""
        if self._past and self._past[-1] is not None:
            self._past.append(None)
            self.transactions += 1

    def forget(
        self,
        transactions: int,
        may_return_to: Callable[[NamespaceRecord | None], bool],
        copied: set[tuple[str, int]],
    ) -> int:
        """Roll back the last transactions, as many as allowed; return how many.

        ``may_return_to`` says whether a namespace may fall back to a record. A pool is never forgotten altogether, nor
        are changes of the node numbers of holders that were ``copied``.
        """
        for done in range(transactions):
            changes = []
            for change in itertools.islice(reversed(self._past), 1, None):
                if change is None:
                    break
                changes.append(change)
            if not changes:
                return done
            for where, _, before in changes:
                if (where is self.tables[PoolRecord] and before is None) or (
                    where is self.tables[NamespaceRecord] and not may_return_to(before)
                ):
                    return done
                if isinstance(before, NodeRecord) and (before.pool, before.node) in copied:
                    return done
            self._past.pop()
            for where, key, before in changes:
                self._past.pop()
                if before is None:
                    del where[key]
                else:
                    where[key] = before
        return transactions

    def flush(self) -> None:
        """Lose all pools, node numbers and past grants."""
        self.tables[PoolRecord].clear()
        self.tables[NodeRecord].clear()
        self.tables[GrantRecord].clear()
        self._past.clear()


class VirtualStore(MemoryStore):
    """A store behind an unreliable network.

    ``forgets_pools`` makes it one that cannot tell a new pool from a lost one. While there is a ``second`` store, the
    name leads to two.
    """

    def __init__(self, world: World, *, forgets_pools: bool) -> None:
        super().__init__(clock=lambda: world.now_ms + self.ahead_ms)
        self._records = self.book = Ledgerbook()
        self.second: Ledgerbook | None = None
        self.finders: set[int] = set()
        """The processes that found the store under its name, by serial."""
        self._world = world
        self.forgets_pools = forgets_pools
        self.away_until_ms = self.busy_until_ms = self.newer_until_ms = 0
        self.ahead_ms = 0
        self.clock_limit_ms = world.limit_ms
        self.highest: dict[str, int] = {}
        """The highest integer of each namespace that was ever reserved, whatever the store remembers."""
        self.taken_back: deque[tuple[Segment, int]] = deque(maxlen=10)
        """The last returned tails."""
        self.identities = [self.book.identity]
        """The ids of all servers."""
        self.has_forgotten = False
        """True if a failover lost writes."""

    def find(self) -> Ledgerbook:
        """Return the store that the current process has found. Refuse one that finds two under the name."""
        serial = self._world.current.serial
        if self.second is not None and serial not in self.finders:
            raise StoreError("the name leads to two stores", code="config.store")
        self.finders.add(serial)
        return self.book

    def _apply(self, book: Ledgerbook, verb: Callable[[Transaction], T], begin: Callable[[], Any] | None) -> T:
        book.epoch, self._records = self.book.epoch, book
        try:
            return super()._run(verb, begin)
        finally:
            self._records = self.book
            book.committed()

    def _run(self, verb: Callable[[Transaction], T], begin: Callable[[], Any] | None = None) -> T:
        world, book = self._world, self.find()
        fault = world.draw_on_the_way()
        if self.away_until_ms > world.now_ms:
            raise _away("the store is away")
        if self.newer_until_ms > world.now_ms:
            raise StoreError("the store has a newer schema", code="store.schema")
        if self.busy_until_ms > world.now_ms:
            if world.depth < DEEPEST:
                world.meanwhile()
            if self.busy_until_ms > world.now_ms:
                raise _away("the store is busy")
        if fault is None or fault == "garbled":
            return self._apply(book, verb, begin)
        world.faults[fault] += 1
        if fault == "request lost":
            raise _away(fault)
        if fault == "request too late":
            world.plan(world.random.choice((1, 5, 20)) * world.grid_ms, lambda: self._apply(book, verb, begin))
            raise _away(fault)
        if fault == "sent twice":
            with suppress(MintError):
                self._apply(book, verb, begin)
            if world.depth < DEEPEST:
                world.meanwhile()
            return self._apply(book, verb, begin)
        if fault == "reply lost":
            with suppress(MintError):
                self._apply(book, verb, begin)
            raise _away(fault)
        if fault == "request late":
            world.meanwhile()
            return self._apply(book, verb, begin)
        try:
            return self._apply(book, verb, begin)
        finally:
            world.meanwhile()

    def _new_pool(self, t: Transaction, name: str, layout: str, span_ms: int, server: ServerIdentity) -> PoolRecord:
        made = rules.create_pool(name, layout, span_ms, server.identity)
        made = rules.set_share(made, self._world.share, server.now_ms)
        if not self.forgets_pools:
            return made
        # As if another server had taken over from one that knew the copy.
        return rules.note_server(replace(made, identity=""), server.identity, server.now_ms, self.clock_limit_ms)

    def acquire(self, pool: str, **terms: Any) -> Lease:
        lease = super().acquire(pool, **terms | {"holder": str(self._world.current.serial)})
        self._world.note("acquires", pool, lease)
        return self._garbled(lease)

    def extend(self, lease: Lease, *, now_ms: int, next_token: str) -> Lease:
        extended = super().extend(lease, now_ms=now_ms, next_token=next_token)
        self._world.note("extends", lease.pool, extended)
        for share in self._world.shares:
            if share.token == next_token:
                share.until_ms = max(share.until_ms, extended.until_ms)
        return self._garbled(extended)

    def _garbled(self, answer: T) -> T:
        """Return the invalid answer of a broken service, where the request was meant to meet one."""
        is_garbled, self._world.is_garbled = self._world.is_garbled, False
        if not is_garbled:
            return answer
        known: Any = answer
        wrong: list[dict[str, Any]] = (
            [{"first": known.first + 0.5}, {"last": known.last + 2**40}, {"namespace": "another"}, {"stride": 0}]
            if isinstance(known, rules.Segment)
            else [
                {"until_ms": known.until_ms + 0.5},
                {"pool": "another"},
                {"floor_ms": known.until_ms},
                {"token": ""},
            ]
        )
        garbled: Any = replace(known, **self._world.random.choice(wrong)) if self._world.random.random() < 0.8 else None
        return garbled  # type: ignore[no-any-return]

    def release(self, lease: Lease, *, used_until_ms: int) -> None:
        self._world.note("releases", lease.pool, lease, used_until_ms)
        self._world.gives_back()
        super().release(lease, used_until_ms=used_until_ms)

    def reserve(self, namespace: str, count: int, **_: Any) -> Segment:
        segment = super().reserve(namespace, count, holder=str(self._world.current.serial))
        self._world.note("reserves", namespace, segment)
        answer = self._garbled(segment)
        if answer is segment and self._world.current.keeper.is_at_work:
            self._world.current.told_floor = segment.floor
        return answer

    def give_back(self, segment: Segment, first_unused: int) -> bool:
        self._world.note("gives back", segment.namespace, segment, first_unused)
        self._world.gives_back()
        is_taken = super().give_back(segment, first_unused)
        if is_taken:
            self.taken_back.append((segment, first_unused))
        return is_taken

    def fail_over(self, transactions: int, to: str = "") -> None:
        """Switch to another server, or a given one, that has not received the last transactions."""
        for record in self.book.page(NamespaceRecord, ""):
            self.highest[record.name] = max(self.highest.get(record.name, 0), record.high_water)
        copied = {(share.region, share.node) for share in self._world.shares if share.node is not None}
        forgotten = self.book.forget(transactions, self._may_return_to, copied)
        self.has_forgotten |= forgotten > 0
        known = [identity for identity in self.identities if identity != self.book.identity]
        if to:
            self.book.identity = to
        elif known and self._has_seen_all() and self._world.random.random() < 0.7:
            self.book.identity = self._world.random.choice(known)
            self._world.faults["server came back"] += 1
        else:
            self.book.identity = f"server {self._world.serial()}"
            self.identities.append(self.book.identity)
        apart_ms = self._world.apart_ms
        self.ahead_ms = self._world.random.choice((0, 0, apart_ms, self._world.random.randint(0, apart_ms)))
        self._world.note("fails over", self.book.identity, f"and forgets {forgotten} transactions")

    def _has_seen_all(self) -> bool:
        """Return True if all records show writes of the last server: then an earlier one may come back."""
        identity = self.book.identity
        pools = all(self.has_seen(pool.name) for pool in self.book.page(PoolRecord, ""))
        return pools and all(namespace.identity == identity for namespace in self.book.page(NamespaceRecord, ""))

    def has_seen(self, pool: str) -> bool:
        """Return True if this server wrote anything of a pool, whether or not the rules noted the server."""
        records: list[Any] = [*self.book.page(PoolRecord, ""), *self.book.tables[NodeRecord].values()]
        return any(
            record.identity == self.book.identity
            for record in records
            if (record.name if isinstance(record, PoolRecord) else record.pool) == pool
        )

    def _may_return_to(self, record: NamespaceRecord | None) -> bool:
        """Return True if the gap covers the loss of a record: the promise of stores for namespaces."""
        if record is None:
            return False
        gap = rules.GAP * max(1, record.largest) * record.stride
        if self._world.promise == "each":
            return bool(self.book.tables[NamespaceRecord][record.name,].high_water - record.high_water <= gap)
        return self.highest[record.name] - record.high_water <= gap


def _away(why: str) -> StoreError:
    return StoreError(why, code="store.unavailable")
