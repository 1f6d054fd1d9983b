"""Open the lease of a generator, or the segments of a sequence, from the user's arguments.

The extension calls :func:`lease_client` and :func:`segment_client` at the first use of a generator or a sequence. The
public interface does not include this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from typing import Any, Final, TypeAlias
from weakref import ref

from mintage import rules
from mintage._core import system_ns
from mintage._core.formats import MAC_FRAGMENTS, locality_node, read_pool_layout
from mintage.errors import ArgumentError, ConfigError
from mintage.lease import registry, snapshots
from mintage.lease.lease_client import LeaseClient
from mintage.lease.registry import numbers
from mintage.lease.registry.locks import LockedNode
from mintage.lease.segment_client import SegmentClient
from mintage.process.forks import fork_lock
from mintage.protocol.url import url_text
from mintage.store import Store, open_store

LeaseHandle: TypeAlias = LeaseClient | LockedNode
"""The lease of a generator, of which the extension calls ``window``, ``grow``, ``release`` and ``abandon``."""

#: For the machine-local registry: other processes lock it for as long as one write to the disk takes.
_PATIENCE_MS: Final = 30_000
_MOVES: Final = {"raise": False, "move": True}


def _mac() -> int:
    """Return the MAC address of this machine, as :func:`uuid.getnode` finds it."""
    from uuid import getnode  # whose import takes milliseconds, and only locality needs it

    return getnode()


@cache
def _open(url: str) -> Store:
    """Return the store of a URL, opened once. A relative path keeps the directory of its first use."""
    return open_store(url)


def choose_store(store: object) -> Store | None:
    """Return the store that ``store=`` names, or else ``MINTAGE_STORE``; ``None`` for the machine-local registry.

    One URL is one store, with one connection, for all of a process.

    :raises ArgumentError: it is neither a URL nor a Store.
    :raises ConfigError: ``config.store``, ``config.driver``.
    """
    if isinstance(store, Store):
        return store
    if store is None and not (store := os.environ.get("MINTAGE_STORE")):
        return None
    store = url_text(store)
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


def lease_client(**arguments: Any) -> LeaseHandle:
    """Open the lease of a generator, whose arguments are those of :func:`_open_lease`."""
    # Hold it for the whole call: the core, too, imports modules when it first needs them.
    with fork_lock():
        return _open_lease(**arguments)


def _open_lease(
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
) -> LeaseHandle:
    """Return the lease of a generator: from the store, or by a lock where the registry cannot be written.

    The arguments are those of the generator, as the extension passes them on; it has not checked those of type
    ``object``.

    :param size: the number of node numbers of the layout.
    :param node: the first of the ``choices`` numbers that the user chose.
    :param own_mac: the MAC fragment that a locality generator was given.
    :raises ArgumentError: an argument is of another type.
    :raises ConfigError: ``config.store``, ``config.driver``, ``config.policy``, ``config.node``, ``config.span``.
    :raises StoreError: the registry cannot be opened now.
    """
    used = choose_store(store)
    # Nobody asked a default generator for this very node number.
    moves = (store is None and node is None) if on_lease_lost is None else _moves(on_lease_lost)
    pool = pool_of(scheme, layout) if pool is None else pool
    if not isinstance(pool, str):
        raise ArgumentError(f"pool must be str, not {type(pool).__name__}", code="argument.type")
    rules.check_name(pool, "pool")
    if span_ms is None:
        span_ms = rules.SPAN_MS if used is None else used.span_ms
    if not isinstance(span_ms, int):
        raise ArgumentError(f"span_ms must be an int, not {type(span_ms).__name__}", code="argument.type")
    rules.check_span(span_ms)
    size = min(size, rules.MAX_NODES)
    if node is not None and nodes is not None:
        raise ConfigError(f"both a node number and nodes {nodes!r} were given: give one of them", code="config.node")
    chosen = _nodes(nodes, size) if node is None else [range(node, node + choices)]
    is_local = used is None or registry.is_registry(used)
    candidates: Callable[[], Sequence[range]] = partial(_candidates, size, chosen, is_local=is_local)
    lockable: Callable[[], range] = partial(numbers.locked, size)
    if scheme == "locality":
        candidates = partial(_candidates_of_locality, size, chosen, own_mac, is_local=is_local)
        lockable = _lockable_by_locality
    is_chosen = chosen is not None or own_mac is not None
    if is_chosen:
        candidates()
    if used is None:
        registry.warn_outsider()
        # Numbers that were chosen are leased or refused: a lock does not keep others with a lease from them.
        if not is_chosen and not never_used and lockable() and not registry.is_writable():
            return LockedNode(pool, lockable, span_ms=span_ms, clock=clock)
        used = registry_store()
    return LeaseClient(
        used,
        pool=pool,
        nodes=candidates,
        layout=layout,
        never_used=bool(never_used),
        span_ms=span_ms,
        moves=moves,
        # Do not use time.time_ns: a test that moves that clock must not move the lease.
        clock=clock or system_ns,
        patience_ms=_PATIENCE_MS if is_local else 0,
    )


def _moves(policy: object) -> bool:
    """Return True if a generator leases another number where its lease is lost."""
    if not isinstance(policy, str):
        raise ArgumentError(f"on_lease_lost must be str, not {type(policy).__name__}", code="argument.type")
    if policy not in _MOVES:
        raise ConfigError(f'on_lease_lost {policy!r} is neither "raise" nor "move"', code="config.policy")
    return _MOVES[policy]


def _candidates(size: int, chosen: Sequence[range] | None, *, is_local: bool) -> Sequence[range]:
    """Return the ranges of node numbers to lease from, of which the first have preference.

    :param chosen: the numbers that the user chose, in ascending ranges; ``None`` for any.
    :param is_local: True if they are leased from the machine's registry, which leaves some numbers to locks.
    :raises ConfigError: ``config.node``: the registry leases none of those that were chosen.
    """
    if chosen is None:
        return numbers.blocks(size) if is_local else [range(size)]
    return _leased_by_registry(chosen, size, len(numbers.locked(size))) if is_local else chosen


def _candidates_of_locality(
    size: int, chosen: Sequence[range] | None, mac: int | None, *, is_local: bool
) -> Sequence[range]:
    """Return the same for locality, whose numbers tell where an ID was minted: a process id above a MAC fragment.

    Where another process has the same number, another fragment tells them apart, unless the user chose ``mac``.
    """
    if chosen is None:
        own = locality_node(os.getpid(), _mac() if mac is None else mac)
        if mac is None and is_local:
            return numbers.fragments(own)
        chosen = [range(own, own + 1)]
        if mac is None:
            # The last is for a pool whose share has no number of this process's id.
            return [*chosen, numbers.all_fragments(own), range(size)]
    return _leased_by_registry(chosen, MAC_FRAGMENTS, numbers.LOCKED_FRAGMENTS) if is_local else chosen


def _lockable_by_locality() -> range:
    """Return the node numbers of locality that are reserved for locks, under the id of this process."""
    return numbers.locked_fragments(locality_node(os.getpid(), 0))


def _leased_by_registry(chosen: Sequence[range], size: int, locked: int) -> Sequence[range]:
    found = [part for each in chosen for part in numbers.unlocked(each, size, locked)]
    if not found:
        raise ConfigError(
            f"node numbers {rules.nodes_text(chosen)} are for processes that cannot write this machine's registry, "
            "which leases none of them: choose others, or name a store that is not the registry",
            code="config.node",
        )
    return found


def may_have_prior_holders(lease: LeaseHandle) -> bool:
    """Return True if others may have minted with its node number before, as a store knows."""
    return isinstance(lease, LeaseClient) and not lease.never_used and not registry.is_registry(lease.store)


def segment_client(
    namespace: str, store: object, buffer: Any, *, min_step: int, max_step: int, target_ms: int
) -> SegmentClient:
    """Return the client that fills the buffer of a sequence."""
    rules.check_name(namespace, "namespace")
    with fork_lock():
        chosen = choose_store(store) or registry_store()
    return SegmentClient(chosen, namespace, buffer, min_step=min_step, max_step=max_step, target_ms=target_ms)


def pool_of(scheme: str, layout: str) -> str:
    """Return the pool of a scheme's node numbers; other layouts of snowflake than the default have one each."""
    default = read_pool_layout(scheme)
    if scheme != "snowflake" or (default and layout == default[0]):
        return scheme
    name = layout.replace(":", "").replace(" ", ".")
    if len(name) <= 128:
        return name
    import hashlib  # which takes milliseconds, and few layouts have so many fields

    return f"snowflake.{hashlib.sha256(layout.encode()).hexdigest()[:16]}"


def _nodes(nodes: object, size: int) -> Sequence[range] | None:
    """Return the node numbers that the user chose: a range, or a set or list of numbers and ranges."""
    if nodes is None:
        return None
    parts: Sequence[Any] = [nodes] if isinstance(nodes, range) else _parts(nodes)
    found = rules.node_ranges(parts)
    for each in found:
        if each.stop > size:
            raise ConfigError(f"nodes {each!r} is outside 0..{size - 1}", code="config.node")
    return found


def _parts(nodes: object) -> list[Any]:
    named = type(nodes).__name__
    if isinstance(nodes, Collection) and not isinstance(nodes, str | bytes | bytearray | memoryview):
        parts = list(nodes)
        wrong = next((part for part in parts if type(part) not in (int, range)), None)
        if wrong is None:
            return parts
        named = f"a {named} with {type(wrong).__name__}"
    raise ArgumentError(
        f"nodes must be a range, or a set or list of ints and ranges, not {named}", code="argument.type"
    )


def attach(generator: Any, lease: LeaseHandle) -> None:
    """Tell a generator's lease which generator mints under it."""
    if isinstance(lease, LeaseClient) and lease.generator is None:
        lease.generator = ref(generator)


snapshots.register()
