"""Copy the counters and the pools of one store to another, which may be of another kind.

Neither function lowers anything, so a copy can be repeated: after an interruption, and once more before the switch.
Stop all processes that mint with the source before the first one mints with the target: the target knows nothing of
what the source grants after the copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from mintage import rules
from mintage.errors import ConfigError, LeaseError, StoreError
from mintage.store import LOST_HISTORY, Store

if TYPE_CHECKING:
    from mintage.rules import NamespaceRecord, NodeRecord, PoolRecord

__all__ = ["NamespaceCopy", "PoolCopy", "Wait", "check_apart", "copy_namespaces", "copy_pools"]

_SHARED_IDENTITY: Final = ("memory", "redis", "rediss", "valkey", "unix", "etcd", "etcds")
"""The kinds of which several stores, with other databases or prefixes, have the identity of their one server."""


@dataclass(frozen=True, slots=True)
class NamespaceCopy:
    """The copy of a namespace.

    >>> from mintage.store import open_store
    >>> source, target = open_store("memory:NamespaceCopy"), open_store("memory:target of NamespaceCopy")
    >>> record = source.create_namespace("invoices", start=1000)
    >>> list(copy_namespaces(source, target))
    [NamespaceCopy(name='invoices', action='create', next=1000)]
    """

    name: str
    action: str
    """The change that the target needed: ``"create"``, ``"raise"``, ``"retire"``, or ``"keep"`` for nothing."""
    next: int | None
    """The smallest integer that the target may hand out because of the source; ``None`` if none is left."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A window that the target cannot have yet.

    >>> from mintage.store import open_store
    >>> source, target = open_store("memory:Wait"), open_store("memory:target of Wait")
    >>> now_ms = source.now_ms()
    >>> lease = source.acquire("sno", nodes=range(9), layout="sno", holder="host 1", now_ms=now_ms, span_ms=30_000)
    >>> [copied] = copy_pools(source, target)
    >>> [(wait.node, wait.holder) for wait in copied.waits]
    [(0, 'host 1')]
    """

    pool: str
    node: int | None
    """``None`` for windows that the source may have forgotten."""
    holder: str | None
    left_ms: int
    """The time until the window ends, in milliseconds, if nobody extends it."""


@dataclass(frozen=True, slots=True)
class PoolCopy:
    """The copy of a pool.

    >>> from mintage.store import open_store
    >>> source, target = open_store("memory:PoolCopy"), open_store("memory:target of PoolCopy")
    >>> record = source.create_pool("sno", layout="sno")
    >>> list(copy_pools(source, target))
    [PoolCopy(name='sno', action='create', layout='sno', windows=0, waits=(), is_forgotten=False)]
    """

    name: str
    action: str
    """``"create"`` or ``"keep"``."""
    layout: str
    windows: int
    """The number of node numbers whose last window was copied."""
    waits: tuple[Wait, ...]
    """The windows that were not copied. Until there are none, processes must not mint with the target."""
    is_forgotten: bool
    """True if only the source knows that it may have forgotten who had which node number. Then the target takes numbers
    for never used that the source granted and forgot."""


def check_apart(source: Store, target: Store) -> None:
    """Check that the source exists and knows its past, and that it is not the target.

    :raises StoreError: ``store.refused``: the source has no tables or no file, or has lost records: the target would
        begin each missing namespace at 1.
    :raises ConfigError: ``config.store``: both are one store.

    >>> from mintage.store import open_store
    >>> check_apart(open_store("memory:check_apart"), open_store("memory:check_apart"))
    Traceback (most recent call last):
    mintage.errors.ConfigError: memory:check_apart and memory:check_apart are one store: name two
    """
    described, other = source.describe(), target.describe()
    if described.is_new:
        raise StoreError(
            f"{source.url} has no tables of mintage, so there is nothing to copy: correct the URL of the source",
            code="store.refused",
        )
    for warning in described.warnings:
        if warning.startswith(LOST_HISTORY):
            raise StoreError(f"{source.url} would be copied without what it lost: {warning}", code="store.refused")
    is_shared = source.url.scheme in _SHARED_IDENTITY and target.url.scheme in _SHARED_IDENTITY
    if described.identity == other.identity and not (is_shared and _place(source) != _place(target)):
        raise ConfigError(f"{source.url} and {target.url} are one store: name two", code="config.store")


def _place(store: Store) -> tuple[str, ...]:
    """Return the part of the URL that tells stores on one server apart."""
    options = store.url.options
    return (options.get("db") or store.url.path or "0", options.get("prefix") or "")


def copy_namespaces(source: Store, target: Store, *, dry_run: bool = False) -> Iterator[NamespaceCopy]:
    """Copy all namespaces, a page at a time, and yield what was done for each.

    The target begins after the last integer that the source reserved, so it hands out none that a process or a cache
    still has. A namespace that exists in the target is raised if it is lower. ``dry_run`` only reads.

    :raises ConfigError: ``config.namespace``: a namespace of the target has another maximum, stride or offset, or is
        retired. What was copied before stays.
    :raises StoreError: as the verbs of a store.

    >>> from mintage.store import open_store
    >>> source, target = open_store("memory:copy_namespaces"), open_store("memory:target of copy_namespaces")
    >>> segment = source.reserve("orders", 1000)
    >>> [(each.name, each.action, each.next) for each in copy_namespaces(source, target)]
    [('orders', 'create', 1001)]
    >>> target.reserve("orders", 1).first
    1001
    """
    # The source may have forgotten reservations since another server wrote a record: skip what it would skip.
    server_id = source.describe().identity
    for record in source.each_namespace():
        known = target.get_namespace(record.name)
        yield _copy_namespace(rules.note_server_of_namespace(record, server_id), known, target, dry_run)


def _copy_namespace(
    record: NamespaceRecord, known: NamespaceRecord | None, target: Store, dry_run: bool
) -> NamespaceCopy:
    name, following = record.name, _next(record)
    last = record.maximum - (record.maximum - record.high_water) % record.stride
    left = following if following <= last and not record.retired else None
    if known is not None and not record.retired:
        _check_alike(record, known, target)
    if known is None:
        action = "create"
    elif record.retired:
        action = "keep" if known.retired else "retire"
    else:
        action = "raise" if _next(known) < following else "keep"
    if not dry_run:
        if known is None:
            known = target.create_namespace(
                name,
                start=min(following, last),
                maximum=record.maximum,
                stride=record.stride,
                offset=record.high_water % record.stride,
            )
        if record.retired:
            if not known.retired:
                target.retire(name)
        elif action != "keep":
            known = target.raise_floor(name, min(following, last))
            # No floor lies above the last integer: the copy takes it, and nobody gets it.
            if following > last > known.high_water:
                target.reserve(name, 1)
    return NamespaceCopy(name, action, left)


def _next(record: NamespaceRecord) -> int:
    """Return the next integer of a namespace; one above its maximum if none is left."""
    return rules.raise_floor(replace(record, retired=False), record.floor).high_water + record.stride


def _check_alike(record: NamespaceRecord, known: NamespaceRecord, target: Store) -> None:
    wanted, found = (
        f"maximum {each.maximum}, stride {each.stride}, offset {each.high_water % each.stride}"
        for each in (record, known)
    )
    if known.retired:
        wanted, found = "in use in the source", "retired"
    if wanted != found:
        raise ConfigError(
            f"namespace {record.name!r} is {wanted}, but {found} in {target.url}, and that cannot change: copy to a "
            "store without it",
            code="config.namespace",
        )


def copy_pools(
    source: Store, target: Store, *, leases_ended: bool = False, dry_run: bool = False
) -> Iterator[PoolCopy]:
    """Copy all pools, with the end of the last window of each node number, and yield what was done for each.

    So the target grants each node number from the end of its last window in the source, and no number that the source
    granted counts as never used. Leases are not copied. A holder in the source may still extend a window that has not
    ended, so such a window is not copied but reported. ``leases_ended`` states that all holders have stopped: then it
    is copied. Past grants are not copied: the history begins anew, and a new pool keeps it for as long as that of the
    source does. ``dry_run`` only reads.

    A new pool gets the share of the source's; one that exists keeps its own. Windows of numbers outside of both shares
    are not copied: a holder of one cannot extend it, and the target grants no number outside its share.

    :raises ConfigError: ``config.pool``: a pool of the target has another layout, or a shorter span; ``config.node``:
        its share has no number of the source's.
    :raises StoreError: as the verbs of a store.

    >>> from mintage.store import open_store
    >>> source, target = open_store("memory:copy_pools"), open_store("memory:target of copy_pools")
    >>> record = source.create_pool("sno", layout="sno")
    >>> [(each.name, each.action, each.waits) for each in copy_pools(source, target)]
    [('sno', 'create', ())]
    """
    server_id = source.describe().identity
    found = {pool.name: pool for pool in target.each_pool()}
    for noted in source.each_pool():
        pool = rules.note_server(noted, server_id, source.now_ms(), source.clock_limit_ms)
        known = found.get(pool.name)
        if known is not None:
            _check_layout(pool, known, target)
        action = "create" if known is None else "keep"
        share = pool.share if known is None else rules.share_of(known, pool.share)
        if known is None and not dry_run:
            terms: dict[str, Any] = {"span_ms": pool.span_ms, "history_ms": pool.history_ms}
            if share != rules.ALL_NODES:  # a service of an older version refuses it
                terms["nodes"] = share
            known = target.create_pool(pool.name, layout=pool.layout, **terms)
        windows, waits = _copy_windows(pool, share, known, source, target, leases_ended, dry_run)
        is_forgotten = pool.history_lost and not (known is not None and known.history_lost)
        yield PoolCopy(pool.name, action, pool.layout, windows, waits, is_forgotten)


def _check_layout(pool: PoolRecord, known: PoolRecord, target: Store) -> None:
    if known.layout != pool.layout or known.span_ms < pool.span_ms:
        raise ConfigError(
            f"pool {pool.name!r} has layout {pool.layout!r} and spans of {pool.span_ms} ms, but layout "
            f"{known.layout!r} and spans of {known.span_ms} ms in {target.url}, and that cannot change: copy to a "
            "store without it",
            code="config.pool",
        )


def _copy_windows(
    pool: PoolRecord,
    share: range,
    known: PoolRecord | None,
    source: Store,
    target: Store,
    leases_ended: bool,
    dry_run: bool,
) -> tuple[int, tuple[Wait, ...]]:
    """Copy the ends of a pool's windows; return their number, and the windows that were not copied."""
    ends = {each.node: each.until_ms for each in target.each_lease(pool.name)} if known is not None else {}
    # No window begins before the floor, and a pool that may have forgotten grants takes no number for never used.
    least = known.floor_ms if known is not None and known.history_lost else -1
    windows, waits = 0, []
    now_ms = target.now_ms()
    if pool.floor_ms > max(now_ms, least) and not leases_ended:
        waits.append(Wait(pool.name, None, None, pool.floor_ms - now_ms))
    for record in source.each_lease(pool.name):
        if record.node not in share:
            continue
        now_ms = target.now_ms()
        left_ms = record.until_ms - now_ms
        if record.token is not None and left_ms > 0 and not leases_ended:
            waits.append(Wait(pool.name, record.node, record.holder, left_ms))
        elif max(ends.get(record.node, least), least) < record.until_ms:
            left_ms = 0 if dry_run else _copy_window(record, pool.layout, source, target, now_ms)
            if left_ms > 0:
                waits.append(Wait(pool.name, record.node, record.holder, left_ms))
            else:
                windows += 1
    return windows, tuple(waits)


def _copy_window(record: NodeRecord, layout: str, source: Store, target: Store, now_ms: int) -> int:
    """Record in the target that a node number was used until the end of a window, and that the source knows by whom.

    Return 0, or the time in milliseconds until that may be possible.
    """
    span_ms = min(max(record.until_ms - now_ms, rules.MIN_SPAN_MS), record.span_ms)
    try:
        lease = target.acquire(
            record.pool,
            nodes=range(record.node, record.node + 1),
            layout=layout,
            holder=f"a copy of {source.url}"[:200].encode(errors="replace").decode(),
            now_ms=now_ms,
            span_ms=span_ms,
        )
    except LeaseError as error:
        if error.code != "lease.none_free":
            raise
        return max(1, error.retry_after_ms or record.until_ms - now_ms)
    target.release(lease, used_until_ms=record.until_ms)
    return max(0, record.until_ms - lease.until_ms)
