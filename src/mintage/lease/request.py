"""Open the lease of a generator, or the segments of a sequence, from the user's arguments.

The extension calls :func:`lease_client` and :func:`segment_client` at the first use of a generator or a sequence. The
public interface does not include this module.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import ref

from mintage import rules
from mintage._core import system_ns
from mintage._core.formats import locality_node, read_pool_layout
from mintage.errors import ArgumentError, ConfigError
from mintage.lease import registry, snapshots
from mintage.lease.lease_client import LeaseClient
from mintage.lease.registry.locks import LockedNode
from mintage.lease.segment_client import SegmentClient
from mintage.process.forks import fork_lock
from mintage.process.holder import holder
from mintage.protocol.url import url_text
from mintage.store import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mintage.lease.lease_client import Window

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
    if store is None:
        store = os.environ.get("MINTAGE_STORE") or None
    if store is None:
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


class LeaseHandle(Protocol):
    """The lease of a generator as the extension uses it: a :class:`LeaseClient` or a :class:`registry.LockedNode`."""

    def window(self, max_wait_ms: int, /) -> Window:
        """Return a window that the generator's clock is not at the end of."""

    def grow(self, until_ms: int, max_wait_ms: int, /) -> None:
        """Wait for a window that ends later than ``until_ms``."""

    def release(self, used_until_ms: int, /) -> None:
        """End the lease of a generator that was closed; the next holder may start at ``used_until_ms``."""

    def abandon(self, used_until_ms: int, /) -> None:
        """End the lease of a generator that was collected without being closed."""


@dataclass(frozen=True)
class NodePlan(ABC):
    """The node numbers that a generator may have, in the order to try them."""

    size: int
    """The number of node numbers of the layout."""
    chosen: Sequence[range] | None
    """The numbers that the user chose, in ascending ranges; ``None`` for any."""
    is_local: bool
    """True if they are leased from the machine's registry, which leaves some numbers to locks."""

    def candidates(self) -> Sequence[range]:
        """Return the numbers to lease.

        :raises ConfigError: ``config.node``: the registry leases none of those that were chosen.
        """
        return self._any() if self.chosen is None else self._leasable(self.chosen)

    @abstractmethod
    def lockable(self) -> range:
        """Return the numbers to hold by a lock, where this process cannot write the registry."""

    @abstractmethod
    def _any(self) -> Sequence[range]:
        """Return the numbers to lease where the user chose none."""

    @abstractmethod
    def _leased_by_registry(self, numbers: range) -> Sequence[range]:
        """Return the parts of a range that the registry leases."""

    def _leasable(self, numbers: Sequence[range]) -> Sequence[range]:
        if not self.is_local:
            return numbers
        found = [part for each in numbers for part in self._leased_by_registry(each)]
        if not found:
            raise ConfigError(
                f"node numbers {rules.nodes_text(numbers)} are for processes that cannot write this machine's "
                "registry, which leases none of them: choose others, or name a store that is not the registry",
                code="config.node",
            )
        return found


class LayoutNodes(NodePlan):
    """The node numbers of a layout, which all mean the same."""

    def lockable(self) -> range:
        """Return the node numbers that are reserved for locks."""
        return registry.locked(self.size)

    def _any(self) -> Sequence[range]:
        return registry.blocks(self.size) if self.is_local else [range(self.size)]

    def _leased_by_registry(self, numbers: range) -> Sequence[range]:
        return registry.unlocked(numbers, self.size)


@dataclass(frozen=True)
class LocalityNodes(NodePlan):
    """The node numbers of locality, which tell where an ID was minted: a process id above a MAC fragment.

    Where another process has the same number, another fragment tells them apart.
    """

    mac: int | None = None
    """The MAC fragment that the user chose."""

    def candidates(self) -> Sequence[range]:
        """Return the ranges of numbers to lease from, of which the first have preference."""
        if self.chosen is None and self.mac is not None:
            own = self._own()
            return self._leasable([range(own, own + 1)])
        return super().candidates()

    def lockable(self) -> range:
        """Return the node numbers that are reserved for locks, under the id of this process."""
        return registry.locked_fragments(locality_node(os.getpid(), _mac()))

    def _any(self) -> Sequence[range]:
        own = self._own()
        if self.is_local:
            return registry.fragments(own)
        # The last is for a pool whose share has no number of this process's id.
        return [range(own, own + 1), registry.all_fragments(own), range(self.size)]

    def _leased_by_registry(self, numbers: range) -> Sequence[range]:
        return registry.unlocked_fragments(numbers)

    def _own(self) -> int:
        """Return this process's own number: its id modulo 65536 above the MAC fragment."""
        return locality_node(os.getpid(), _mac() if self.mac is None else self.mac)


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseRequest:
    """The arguments of a generator that leases its node number, as the extension passes them on.

    Those of type ``object`` are the user's own, which :meth:`open` checks.
    """

    scheme: str
    layout: str
    size: int
    """The number of node numbers of the layout."""
    store: object
    node: int | None
    """The first of the ``choices`` numbers that the user chose."""
    choices: int
    own_mac: int | None
    """The MAC fragment that a locality generator was given."""
    nodes: object
    never_used: object
    pool: object
    span_ms: object
    on_lease_lost: object
    clock: Callable[[], int] | None

    def open(self) -> LeaseHandle:
        """Return the lease of the generator: from the store, or by a lock where the registry cannot be written.

        :raises ArgumentError: an argument is of another type.
        :raises ConfigError: ``config.store``, ``config.driver``, ``config.policy``, ``config.node``, ``config.span``.
        :raises StoreError: the registry cannot be opened now.
        """
        store = choose_store(self.store)
        moves = self._moves_when_lost()
        pool, span_ms = self._pool(), self._span_ms(store)
        is_local = store is None or registry.is_registry(store)
        plan = self._plan(is_local=is_local)
        is_chosen = plan.chosen is not None or self.own_mac is not None
        if is_chosen:
            plan.candidates()
        if store is None:
            registry.warn_outsider()
            # Numbers that were chosen are leased or refused: a lock does not keep others with a lease from them.
            is_free = not is_chosen and not self.never_used
            if is_free and plan.lockable() and not registry.is_writable():
                return LockedNode(pool, plan.lockable, span_ms=span_ms, clock=self.clock)
            store = registry_store()
        return LeaseClient(
            store,
            pool=pool,
            nodes=plan.candidates,
            layout=self.layout,
            never_used=bool(self.never_used),
            span_ms=span_ms,
            moves=moves,
            holder=holder,
            # Do not use time.time_ns: a test that moves that clock must not move the lease.
            clock=self.clock or system_ns,
            patience_ms=_PATIENCE_MS if is_local else 0,
        )

    def _moves_when_lost(self) -> bool:
        """Return True if the generator leases another number where its lease is lost."""
        policy = self.on_lease_lost
        if policy is None:
            # Nobody asked a default generator for this very node number.
            return self.store is None and self.node is None
        if not isinstance(policy, str):
            raise ArgumentError(f"on_lease_lost must be str, not {type(policy).__name__}", code="argument.type")
        if policy not in _MOVES:
            raise ConfigError(f'on_lease_lost {policy!r} is neither "raise" nor "move"', code="config.policy")
        return _MOVES[policy]

    def _pool(self) -> str:
        pool = pool_of(self.scheme, self.layout) if self.pool is None else self.pool
        if not isinstance(pool, str):
            raise ArgumentError(f"pool must be str, not {type(pool).__name__}", code="argument.type")
        rules.check_name(pool, "pool")
        return pool

    def _span_ms(self, store: Store | None) -> int:
        default_ms = rules.SPAN_MS if store is None else store.span_ms
        span_ms = default_ms if self.span_ms is None else self.span_ms
        if not isinstance(span_ms, int):
            raise ArgumentError(f"span_ms must be an int, not {type(span_ms).__name__}", code="argument.type")
        rules.check_span(span_ms)
        return span_ms

    def _plan(self, *, is_local: bool) -> NodePlan:
        size = min(self.size, rules.MAX_NODES)
        if self.node is not None and self.nodes is not None:
            raise ConfigError(
                f"both a node number and nodes {self.nodes!r} were given: give one of them", code="config.node"
            )
        chosen = _nodes(self.nodes, size) if self.node is None else [range(self.node, self.node + self.choices)]
        if self.scheme == "locality":
            return LocalityNodes(size, chosen, is_local, self.own_mac)
        return LayoutNodes(size, chosen, is_local)


def lease_client(**arguments: Any) -> LeaseHandle:
    """Open the lease of a generator: the extension's way to a :class:`LeaseRequest`, whose fields these are."""
    # Hold it for the whole call: the core, too, imports modules when it first needs them.
    with fork_lock():
        return LeaseRequest(**arguments).open()


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
    """Return the node numbers that the user chose: a range, or a set or list of numbers and ranges.

    :raises ArgumentError: it is something else.
    :raises ConfigError: ``config.node``.
    """
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
