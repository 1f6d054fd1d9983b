"""From a generator's arguments to its lease: which store, which pool, which node numbers.

The extension calls this at a generator's first use; it is not part of the public interface.
"""

from __future__ import annotations

import hashlib
import os
import socket
import uuid
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mintage import clones, registry
from mintage import lease as rules
from mintage._core import generation as epoch
from mintage._core import system_ns
from mintage._core.formats import locality_node, read_pool_layout
from mintage.errors import ArgumentError, ConfigError
from mintage.forks import quiet
from mintage.signs import started_s
from mintage.store import Store, open_store
from mintage.supply import Supply
from mintage.tenancy import Tenancy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["choose_store", "has_past", "own", "supply", "tenancy"]

#: For the machine-local registry, which other processes hold for moments only, but for as long as the disk needs.
_PATIENCE_MS: Final = 30_000
#: Longer names are cut, so that services take them.
_LONGEST_HOST: Final = 128
_LOST: Final = {"raise": False, "move": True}


def holder() -> str:
    """Who holds a lease, for people: host, process, when that started, and its epoch, which tells a copy of it apart.

    As ``web-1:4711:1732240000:1``; the start is in seconds since the Unix epoch.
    """
    return f"{socket.gethostname()[:_LONGEST_HOST]}:{os.getpid()}:{started_s()}:{epoch()}"


@cache
def _open(url: str) -> Store:
    """One store a URL: a relative path of SQLite's means the directory of its first use, wherever the process goes."""
    return open_store(url)


def choose_store(store: object) -> Store | None:
    """Return the store that ``store=`` names, or else ``MINTAGE_STORE``; ``None`` for the machine-local registry.

    One URL is one store, with one connection, for all of a process.

    :raises ArgumentError: it is neither a URL nor a Store.
    :raises ConfigError: ``config.store``, ``config.driver``.
    """
    if isinstance(store, Store):
        return store
    if store is None:
        store = os.environ.get("MINTAGE_STORE") or None
    if store is None:
        return None
    if not isinstance(store, str):
        raise ArgumentError(f"store must be a URL or a Store, not {type(store).__name__}", code="argument.type")
    return _open(store)


def registry_store() -> Store:
    """Return the machine-local registry, with its directory made.

    :raises StoreError: ``store.refused``, ``store.unavailable``: it cannot be made.
    :raises ConfigError: ``config.home``.
    """
    registry.prepare()
    return _open(registry.url())


def tenancy(
    *,
    scheme: str,
    layout: str,
    size: int,
    store: object,
    node: int | None,
    choices: int,
    own_mac: int | None,
    nodes: object,
    never_used: object,
    pool: object,
    span_ms: object,
    on_lease_lost: object,
    clock: Callable[[], int] | None,
) -> Tenancy | registry.LockedNode:
    """Return what a generator holds its node number by.

    ``size`` is how many node numbers the layout has; ``node`` and the ``choices - 1`` after it are those asked for;
    ``own_mac`` is the MAC fragment that a locality generator was given.
    """
    with quiet():
        chosen = choose_store(store)
    if on_lease_lost is not None and not isinstance(on_lease_lost, str):
        raise ArgumentError(f"on_lease_lost must be str, not {type(on_lease_lost).__name__}", code="argument.type")
    lost = _LOST.get(on_lease_lost or "raise")
    if lost is None:
        raise ConfigError(f'on_lease_lost {on_lease_lost!r} is neither "raise" nor "move"', code="config.policy")
    if pool is None:
        pool = _pool(scheme, layout)
    if not isinstance(pool, str):
        raise ArgumentError(f"pool must be str, not {type(pool).__name__}", code="argument.type")
    rules.check_name(pool, "pool")
    if span_ms is None:
        span_ms = rules.SPAN_MS
    if not isinstance(span_ms, int):
        raise ArgumentError(f"span_ms must be an int, not {type(span_ms).__name__}", code="argument.type")
    rules.check_span(span_ms)
    size = min(size, rules.MAX_NODES)
    if node is not None and nodes is not None:
        raise ConfigError(f"both a node number and nodes {nodes!r} were given: give one of them", code="config.node")
    wanted = range(node, node + choices) if node is not None else _nodes(nodes, size)
    is_local = chosen is None or registry.is_it(chosen)

    def leasable(asked: range) -> Sequence[range]:
        if not is_local:
            return [asked]
        # A process that cannot write the registry holds the others by locks, which no lease excludes.
        found = registry.unlocked_fragments(asked) if scheme == "locality" else registry.unlocked(asked, size)
        if not found:
            raise ConfigError(
                f"node numbers {asked.start}..{asked.stop - 1} are for processes that cannot write this machine's "
                "registry, which leases none of them: choose others, or name a store that is not the registry",
                code="config.node",
            )
        return found

    def candidates() -> Sequence[range]:
        if node is not None or nodes is not None:
            return leasable(wanted)
        if scheme == "locality":
            # They tell where an ID was minted; where others have the same, another fragment tells them apart.
            own = _origin(own_mac)
            if own_mac is not None:
                return leasable(range(own, own + 1))
            return registry.fragments(own) if is_local else [range(own, own + 1), registry.all_fragments(own)]
        return registry.blocks(size) if is_local else [wanted]

    def lockable() -> range:
        return registry.locked_fragments(_origin(None)) if scheme == "locality" else registry.locked(size)

    if node is not None or nodes is not None or own_mac is not None:
        candidates()
    if chosen is None:
        with quiet():
            registry.warn_outsider()
            # Numbers that were asked for are leased or refused: a lock does not keep others with a lease from them.
            is_free = node is None and nodes is None and own_mac is None and not never_used
            if is_free and lockable() and not registry.is_writable():
                return registry.LockedNode(pool, lockable, span_ms=span_ms, clock=clock)
            chosen = registry_store()
    return Tenancy(
        chosen,
        pool=pool,
        nodes=candidates,
        layout=layout,
        never_used=bool(never_used),
        span_ms=span_ms,
        # Nobody asked a default generator for this very node number.
        moves=lost if on_lease_lost is not None else store is None and node is None,
        holder=holder,
        # Not time.time_ns: a test that travels must not take the lease along.
        clock=clock or system_ns,
        patience_ms=_PATIENCE_MS if is_local else 0,
    )


def has_past(tenancy: Tenancy | registry.LockedNode) -> bool:
    """Return whether others may have minted with its node number before, as a store knows."""
    return isinstance(tenancy, Tenancy) and not tenancy.never_used and not registry.is_it(tenancy.store)


def supply(namespace: str, store: object, pool: Any, *, min_step: int, max_step: int, target_ms: int) -> Supply:
    """Return what a sequence's pool is filled by."""
    rules.check_name(namespace, "namespace")
    with quiet():
        chosen = choose_store(store) or registry_store()
    return Supply(chosen, namespace, pool, min_step=min_step, max_step=max_step, target_ms=target_ms)


def _pool(scheme: str, layout: str) -> str:
    """Return the pool of a scheme's node numbers; other layouts of snowflake than the default have one each."""
    default = read_pool_layout(scheme)
    if scheme != "snowflake" or (default and layout == default[0]):
        return scheme
    name = layout.replace(":", "").replace(" ", ".")
    return name if len(name) <= 128 else f"snowflake.{hashlib.sha256(layout.encode()).hexdigest()[:16]}"


def _origin(mac: int | None) -> int:
    """locality's own node number: process id modulo 65536 above a MAC fragment."""
    return locality_node(os.getpid(), uuid.getnode() if mac is None else mac)


def _nodes(nodes: object, size: int) -> range:
    if nodes is None:
        return range(size)
    if not isinstance(nodes, range):
        raise ArgumentError(f"nodes must be a range, not {type(nodes).__name__}", code="argument.type")
    rules.check_nodes(nodes)
    if nodes.stop > size:
        raise ConfigError(f"nodes {nodes!r} is outside 0..{size - 1}", code="config.node")
    return nodes


def own(generator: Any, holds: Tenancy | registry.LockedNode) -> None:
    """Tell a generator's tenancy whom it leases for."""
    if isinstance(holds, Tenancy) and holds.generator is None:
        holds.generator = weakref.ref(generator)


clones.register()
