"""The verbs of all stores with transactions: read the records, apply a rule of :mod:`mintage.rules`, write them.

A store of this kind implements only the begin of a transaction, and the reads and writes of records in it.
"""

from __future__ import annotations

import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from mintage import rules
from mintage.errors import ConfigError, LeaseError, MintError, StoreError
from mintage.process import jitter
from mintage.process.holder import holder as this_process
from mintage.rules import LATEST_MS, MAX_COUNT, GrantRecord, NamespaceRecord, NodeRecord, PoolRecord, RunRecord
from mintage.store import Description, Store, new_token

if TYPE_CHECKING:
    from mintage.protocol.records import Past, R, Record
    from mintage.rules import Lease, Segment

    T = TypeVar("T")

ATTEMPTS: Final = 20
"""The number of times that a verb is tried if other transactions conflict with it."""
FORGOTTEN: Final = 1_000
"""The most past grants that one transaction removes when a pool's history is switched off."""


class ConflictError(Exception):
    """Another transaction conflicted with this one. Nothing was written; a retry may succeed."""


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The server of a transaction."""

    identity: str
    """The id of the server; a server that takes over has another one."""
    now_ms: int
    """The server's clock, in milliseconds since the Unix epoch."""
    began_ms: int | None = None
    """The time since which it may lack records that it had before; ``None`` if it lacks none."""
    has_lost: bool = False
    """True if it went back to older data, and so may have lost any record."""


class Transaction(Protocol):
    """The records within a transaction. No other client can change the records that it has read.

    All writes take effect when the transaction ends, or none of them.
    """

    is_new: bool = False
    """True if there are no tables yet."""

    def server(self) -> ServerIdentity:
        """Return the server that this transaction runs on, and its clock."""

    def get(self, kind: type[R], *key: str | int) -> R | None:
        """Return a record and lock it, so that the acquires of a pool are serialized; ``None`` if there is none."""

    def get_unlocked(self, kind: type[R], *key: str | int) -> R | None:
        """Return a record, without a lock in stores where a lock makes other transactions wait."""
        return self.get(kind, *key)

    def put(self, record: Record) -> None:
        """Write a record, new or not."""

    def page(self, kind: type[R], *after: str | int, limit: int = rules.MAX_COUNT) -> Sequence[R]:
        """Return the first records of a kind whose keys sort after a key, by key, at most ``limit``.

        Records of node numbers are those of the pool in ``after``.
        """

    def oldest(self, pool: str, nodes: range) -> NodeRecord | None:
        """Return the record in ``nodes`` with the lowest ``until_ms``, and of those the lowest number; locked."""

    def unused(self, pool: str, nodes: range) -> int | None:
        """Return the lowest of ``nodes`` without a record; ``None`` if all have one."""

    def keep(self, record: Past, ended_ms: int) -> None:
        """Write a past grant or run, and remove about ``rules.PRUNED`` others that ended before a time.

        Those are of the same pool or namespace. A store that cannot keep a run goes on without: that must not make a
        reservation fail.
        """

    def past(self, kind: type[R], *place: str | int, highest: int, limit: int) -> Sequence[R]:
        """Return the past grants of a node number, or the past runs of a namespace, the latest or highest first.

        ``place`` is their key without its last field, which is at most ``highest``.
        """

    def forget_grants(self, pool: str) -> bool:
        """Remove up to :data:`FORGOTTEN` past grants of a pool; return True if it may have more."""

    def count_namespaces(self) -> int:
        """Return the number of namespaces."""


def _end_frames(error: BaseException | None, handled: BaseException | None) -> None:
    """Clear the frames that an exception and those before it came through, and so end what they have open.

    An exception of a signal's handler, or a lack of stack or memory, may skip the exit of a generator's ``with`` block.
    Its locks and its transaction would then last as long as the traceback, which loggers and notebooks keep.
    ``handled`` is the exception that the caller handles, whose frames are its own.
    """
    while error is not None and error is not handled:
        traceback = error.__traceback__
        while traceback is not None:
            with suppress(RuntimeError):  # a frame that runs or waits
                traceback.tb_frame.clear()
            traceback = traceback.tb_next
        error = error.__context__


class Ledger(Store):
    """A store whose verbs are transactions over records. A subclass implements :meth:`_begin`."""

    is_ascending = True

    @abstractmethod
    def _begin(self) -> AbstractContextManager[Transaction]:
        """Return a transaction. It commits durably when the block ends, and rolls back if the block raises.

        :raises ConflictError: another transaction conflicted.
        :raises StoreError: as the verbs.
        """

    def _look(self) -> AbstractContextManager[Transaction]:
        """Return a transaction that only reads. It creates no tables and no file: a store without them is empty."""
        return self._begin()

    def _read(self, verb: Callable[[Transaction], T]) -> T:
        """Run a verb that only reads."""
        return self._run(verb, self._look)

    def _run(self, verb: Callable[[Transaction], T], begin: Callable[[], Any] | None = None) -> T:
        handled = sys.exc_info()[1]
        for attempt in range(ATTEMPTS):
            try:
                return self._attempt(verb, begin or self._begin)
            except ConflictError:
                # Full jitter: transactions that collided once should not collide again.
                time.sleep(jitter.uniform(0, 0.002 * 2 ** min(attempt, 6)))
            except MintError:
                raise
            except BaseException as error:
                _end_frames(error, handled)
                raise
        raise StoreError(
            f"{self.url}: {ATTEMPTS} attempts collided with other transactions: try again, or use more pools",
            code="store.unavailable",
        )

    def _attempt(self, verb: Callable[[Transaction], T], begin: Callable[[], Any]) -> T:
        # This has a frame of its own, which can be cleared.
        with begin() as transaction:
            return verb(transaction)

    def _write(self, make: Callable[[Transaction], R]) -> R:
        """Run a verb that writes one record, and return the record."""

        def verb(t: Transaction) -> R:
            record = make(t)
            t.put(record)
            return record

        return self._run(verb)

    def _describe(
        self, server: ServerIdentity, product: str, warnings: Iterable[str] = (), *, is_new: bool = False
    ) -> Description:
        return Description(
            str(self.url), self.promise, product, server.identity, server.now_ms, tuple(warnings), is_new
        )

    def prepare(self) -> None:
        """Create the tables, or the file, if they are missing, as any verb does that writes."""
        self._run(lambda _: None)

    def identify(self, kind: str = "", name: str = "") -> str:  # noqa: ARG002
        """Return the id of the server; empty if there are no tables yet."""
        return self._read(lambda t: "" if t.is_new else t.server().identity)

    def acquire(
        self,
        pool: str,
        *,
        nodes: range,
        layout: str,
        holder: str,
        now_ms: int,
        span_ms: int,
        never_used: bool = False,
    ) -> Lease:
        def verb(t: Transaction) -> Lease:
            server = t.server()
            rules.check_clock(now_ms, server.now_ms, self.clock_limit_ms)
            record = self._pool(t, pool, layout, span_ms, server, asked=nodes)
            own = rules.share_of(record, nodes)
            rules.check_quarantine(record, server.now_ms, never_used=never_used)
            oldest, unused = t.oldest(pool, own), t.unused(pool, own)
            node = rules.choose(record, own, oldest, unused, now_ms, never_used=never_used)
            last = oldest if oldest is not None and oldest.node == node else None
            granted = rules.grant(record, last, node, token=new_token(), holder=holder, now_ms=now_ms, span_ms=span_ms)
            t.put(granted)
            past = rules.past_grant(record, last)
            if past is not None:
                t.keep(past, rules.kept_from(record, server.now_ms))
            return granted.as_lease()

        return self._refused_after_commit(verb)

    def _refused_after_commit(self, verb: Callable[[Transaction], T]) -> T:
        """Run a verb and commit even if it refuses, so that a change of the server stays recorded."""

        def commit(t: Transaction) -> T | LeaseError:
            try:
                return verb(t)
            except LeaseError as refusal:
                return refusal

        outcome = self._run(commit)
        if isinstance(outcome, LeaseError):
            raise outcome
        return outcome

    def _pool(
        self,
        t: Transaction,
        name: str,
        layout: str,
        span_ms: int,
        server: ServerIdentity,
        *,
        never_used: bool = False,
        history_ms: int | None = None,
        nodes: range | None = None,
        wider_from_ms: int | None = None,
        asked: range = rules.ALL_NODES,
    ) -> PoolRecord:
        """Return the pool after it has noted this server; create a missing pool.

        ``never_used`` is True if the caller states that no ID was ever minted with its node numbers. ``history_ms`` is
        the new length of its history, ``nodes`` its new share, ``asked`` the numbers of which its share must have one.
        """
        known = t.get(PoolRecord, name)
        if known is None:
            record = self._new_pool(t, name, layout, max(span_ms, self.span_ms), server)
        else:
            rules.check_layout(known, layout)
            rules.share_of(known, asked)
            record = rules.note_server(known, server.identity, server.now_ms, self.clock_limit_ms)
        if never_used:
            has_granted = t.oldest(name, rules.ALL_NODES) is not None
            record = rules.declare_unused(record, has_granted=has_granted)
        if nodes is not None:
            record = rules.set_share(
                record, nodes, server.now_ms, wider_from_ms=wider_from_ms, limit_ms=self.clock_limit_ms
            )
        record = rules.keep_history(record, server.now_ms, history_ms)
        if record != known:
            t.put(record)
        return record

    def _new_pool(self, t: Transaction, name: str, layout: str, span_ms: int, server: ServerIdentity) -> PoolRecord:
        """Return a new pool, in quarantine if a lost one of its name may have granted leases that are in use."""
        lost_ms = server.now_ms if self._has_lost(t, PoolRecord, name) else server.began_ms
        longest_ms = max(span_ms, rules.SPAN_MS)  # of the windows of the lost pool
        ends_ms = 0 if lost_ms is None else rules.end_of_quarantine(lost_ms, longest_ms, self.clock_limit_ms)
        return rules.create_pool(name, layout, span_ms, server.identity, quarantine_until_ms=ends_ms)

    def _has_lost(self, t: Transaction, kind: type[Record], name: str) -> bool:  # noqa: ARG002
        """Return True if the missing record of this name may have existed, as records of that kind were lost."""
        return t.server().has_lost

    def extend(self, lease: Lease, *, now_ms: int, next_token: str) -> Lease:
        def verb(t: Transaction) -> Lease:
            server = t.server()
            rules.check_clock(now_ms, server.now_ms, self.clock_limit_ms)
            pool = self._noted(t, lease.pool, server)
            changes, share = (0, rules.ALL_NODES) if pool is None else (pool.changes, pool.share)
            record = t.get(NodeRecord, lease.pool, lease.node)
            try:
                extended = rules.extend(
                    record,
                    lease,
                    next_token=next_token,
                    server_id=server.identity,
                    changes=changes,
                    share=share,
                    now_ms=now_ms,
                    store_now_ms=server.now_ms,
                    limit_ms=self.clock_limit_ms,
                )
            except LeaseError:
                if record is not None and rules.is_of_a_clone(record, lease, server.identity, changes):
                    t.put(replace(record, cloned_ms=server.now_ms))
                raise
            if extended != record:
                t.put(extended)
            return extended.as_lease(lease.token)

        return self._refused_after_commit(verb)

    def _noted(self, t: Transaction, name: str, server: ServerIdentity) -> PoolRecord | None:
        """Return the pool after it has noted this server, without a lock if it had."""
        pool = t.get_unlocked(PoolRecord, name)
        if pool is not None and pool.identity != server.identity:
            # Lock it now; another transaction may have noted the change meanwhile.
            pool = t.get(PoolRecord, name)
            if pool is not None:
                pool = rules.note_server(pool, server.identity, server.now_ms, self.clock_limit_ms)
                t.put(pool)
        return pool

    def release(self, lease: Lease, *, used_until_ms: int) -> None:
        def released(t: Transaction) -> NodeRecord:
            return rules.release(t.get(NodeRecord, lease.pool, lease.node), lease, used_until_ms=used_until_ms)

        self._write(released)

    def revoke(self, pool: str, node: int) -> NodeRecord:
        return self._write(lambda t: rules.revoke(t.get(NodeRecord, pool, node), pool, node))

    def create_pool(self, pool: str, *, layout: str, span_ms: int = rules.SPAN_MS, **terms: Any) -> PoolRecord:
        record = self._run(lambda t: self._pool(t, pool, layout, span_ms, t.server(), **terms))
        while terms.get("history_ms") == 0 and self._run(lambda t: t.forget_grants(pool)):
            pass
        return record

    def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
        named = this_process() if holder is None else holder

        def verb(t: Transaction) -> Segment:
            record, segment = rules.reserve(self._namespace(t, namespace, is_implied=True), count)
            now_ms = t.server().now_ms
            record, past = rules.note_run(record, segment, named, now_ms)
            t.put(record)
            if past is not None:
                t.keep(past, now_ms - rules.HISTORY_MS)
            return segment

        return self._run(verb)

    def give_back(self, segment: Segment, first_unused: int) -> bool:
        def verb(t: Transaction) -> bool:
            record = t.get(NamespaceRecord, segment.namespace)
            taken = rules.give_back(record, segment, first_unused) if record is not None else None
            # Another server may have forgotten a later reservation.
            if taken is None or taken.identity != t.server().identity:
                return False
            t.put(rules.shorten_run(taken))
            return True

        return self._run(verb)

    def create_namespace(self, namespace: str, **terms: Any) -> NamespaceRecord:
        def created(t: Transaction) -> NamespaceRecord:
            known = t.get(NamespaceRecord, namespace)
            if known is not None:
                rules.check_not_retired(known)
                raise ConfigError(
                    f"namespace {namespace!r} exists: only its floor can change; use another name",
                    code="config.namespace",
                )
            if terms.get("start") is None:
                self._check_new(t, namespace)
            return rules.create_namespace(namespace, t.server().identity, **terms)

        return self._write(created)

    def raise_floor(self, namespace: str, value: int) -> NamespaceRecord:
        return self._write(lambda t: rules.raise_floor(self._namespace(t, namespace), value))

    def retire(self, namespace: str) -> NamespaceRecord:
        return self._write(lambda t: rules.retire(self._namespace(t, namespace)))

    def _namespace(self, t: Transaction, name: str, *, is_implied: bool = False) -> NamespaceRecord:
        """Return the namespace after it has noted this server; create a missing namespace.

        ``is_implied`` is True if the caller said nothing of where it begins: see :meth:`_check_new`.
        """
        record, server_id = t.get(NamespaceRecord, name), t.server().identity
        if record is not None:
            return rules.note_server_of_namespace(record, server_id)
        if is_implied:
            self._check_new(t, name)
        return rules.create_namespace(name, server_id)

    def _check_new(self, t: Transaction, name: str) -> None:
        """Check that a missing namespace may begin at 1.

        :raises StoreError: ``store.refused``: the store has lost namespaces, so it may have existed.
        """
        if self._has_lost(t, NamespaceRecord, name):
            raise StoreError(
                f"{self.url}: namespace {name!r} is missing, and the store has lost namespaces, as tables were "
                "dropped, emptied or replaced by a dump, or a cluster went back: create it above all its integers, by: "
                f"mintage namespaces create {name} --start N; mintage doctor shows how to end this state",
                code="store.refused",
            )

    def list_pools(self, after: str = "", limit: int = rules.MAX_COUNT) -> Sequence[PoolRecord]:
        return self._read(lambda t: t.page(PoolRecord, after, limit=limit))

    def list_leases(
        self, pool: str | None = None, after: int = -1, limit: int = rules.MAX_COUNT
    ) -> Sequence[NodeRecord]:
        def verb(t: Transaction) -> list[NodeRecord]:
            found: list[NodeRecord] = []
            for name in [pool] if pool is not None else [each.name for each in t.page(PoolRecord, "")]:
                if (left := limit - len(found)) > 0:
                    found += t.page(NodeRecord, name, after, limit=left)
            return found

        return self._read(verb)

    def get_pool(self, pool: str) -> PoolRecord | None:
        return self._read(lambda t: t.get_unlocked(PoolRecord, pool))

    def list_grants(
        self, pool: str, node: int, before_ms: int = LATEST_MS, limit: int = MAX_COUNT
    ) -> Sequence[GrantRecord]:
        return self._read(lambda t: t.past(GrantRecord, pool, node, highest=before_ms, limit=limit))

    def get_namespace(self, namespace: str) -> NamespaceRecord | None:
        return self._read(lambda t: t.get_unlocked(NamespaceRecord, namespace))

    def list_runs(self, namespace: str, before: int = rules.MAX_INTEGER, limit: int = MAX_COUNT) -> Sequence[RunRecord]:
        return self._read(lambda t: t.past(RunRecord, namespace, highest=before, limit=limit))

    def list_namespaces(self, after: str = "", limit: int = rules.MAX_COUNT) -> Sequence[NamespaceRecord]:
        return self._read(lambda t: t.page(NamespaceRecord, after, limit=limit))

    def count_namespaces(self) -> int:
        return self._read(lambda t: t.count_namespaces())

    def now_ms(self) -> int:
        return self._read(lambda t: t.server().now_ms)
