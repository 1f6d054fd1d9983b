"""Stores record leases and segments before a process mints from them.

:func:`open_store` opens the store that a URL names. All stores have the verbs of :class:`Store` and pass one contract
suite. Verbs are synchronous: a process needs one in thousands of IDs, so async callers use a thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from mintage import rules
from mintage._core import kernel_random
from mintage.errors import ConfigError, GenerationError
from mintage.installation import missing_module
from mintage.protocol.url import StoreUrl
from mintage.rules import CLOCK_LIMIT_MS, LATEST_MS, MAX_COUNT, MAX_INTEGER, SPAN_MS
from mintage.store.checks import guard
from mintage.telemetry import trace_verbs

if TYPE_CHECKING:
    from mintage.protocol.records import R
    from mintage.rules import GrantRecord, Lease, NamespaceRecord, NodeRecord, PoolRecord, RunRecord, Segment

__all__ = ["Description", "Forwarding", "Store", "all_or_nothing", "new_token", "open_store"]


PAGE: Final = 1_000
"""The number of records that :meth:`Store.each_namespace` and its counterparts ask for at a time."""
LATEST_FLOOR_MS: Final = 10**14 - 1
"""The latest start of a window in the key of a past grant, whose numbers have 14 digits."""
LOST_HISTORY: Final = "history was lost"
"""The first words of the warning of a store that knows that it has lost records."""


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a store and of its server.

    >>> description = open_store("memory:Description").describe()
    >>> description.url, description.promise, description.warnings
    ('memory:Description', 'process', ())
    """

    url: str
    """The store's URL without the password."""
    promise: str
    """The scope of uniqueness: ``"process"``, ``"host"`` or ``"shared"``."""
    server: str
    """The server's product and version."""
    identity: str
    """The id of this server. A server that takes over from it has another id."""
    now_ms: int
    """The store's clock, in milliseconds since the Unix epoch."""
    warnings: tuple[str, ...] = ()
    """Settings that weaken the promise, each with its remedy."""
    is_new: bool = False
    """True if the store has no tables or no file yet. The first verb that writes creates them; others do not."""


class Store(ABC):
    """The base of all stores. Threads may share a store; a forked child gets connections of its own.

    Every verb is atomic and durable: after it has returned, neither a crash nor a restart of the store undoes it. Every
    verb raises StoreError: ``store.unavailable`` if the store is unreachable, ``store.refused`` if it answers with an
    error, ``store.schema`` if a newer mintage made its tables. After ``store.unavailable`` the caller does not know
    whether the verb took effect; that is harmless, as integers that may be reserved are skipped. Before a verb asks the
    store, it raises ArgumentError, ``argument.type``, for an argument of another type, FieldError, ``field.range``, for
    an argument outside its limits, and ConfigError, ``config.name``, for a name that no pool or namespace can have.

    >>> with open_store("memory:Store") as store:
    ...     segment = store.reserve("orders", 1000)
    >>> segment.first, segment.last
    (1, 1000)
    """

    url: StoreUrl
    promise: ClassVar[str]
    clock_limit_ms: int = CLOCK_LIMIT_MS
    """The largest difference between a caller's clock and the store's, in milliseconds."""
    span_ms: int = SPAN_MS
    """The span of a lease whose caller names none, in milliseconds. A new pool grants at least this span."""
    is_ascending: bool = False
    """True if each segment of a namespace lies above all segments that were reserved before and not given back."""
    is_traced: ClassVar[bool] = True
    """True if the verbs that a class defines are spans in programs that use OpenTelemetry."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.is_traced:
            trace_verbs(cls, Store.__abstractmethods__ - {"close"})
        guard(cls, Store)

    @abstractmethod
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
        """Grant a node number of ``nodes`` that no other holder can still use, until ``span_ms`` after ``now_ms``.

        The window of a number from 101 on is longer in proportion, up to the longest span of the pool.
        ``now_ms`` is the caller's clock, in milliseconds since the Unix epoch; ``span_ms`` is 1,000 to 86,400,000.
        ``layout`` is the meaning of the pool's node numbers; the first acquire creates the pool. ``holder`` is text for
        people. ``never_used`` asks for a number that was never granted.

        :raises LeaseError: ``lease.none_free`` with ``retry_after_ms``, ``lease.clock``.
        :raises ConfigError: ``config.pool``, ``config.node``, ``config.span``.
        """

    @abstractmethod
    def extend(self, lease: Lease, *, now_ms: int, next_token: str) -> Lease:
        """Return the lease with a window that ends one span from now, and with ``next_token``. A window never shrinks.

        ``next_token`` is 1 to 64 letters, digits and ``. _ -``. Draw it from the kernel for each extension (see
        ``new_token()``). A token from a state in memory would be the same in a clone of this process, and both would
        continue. After ``store.unavailable``, retry with the same token; the answer is then the same.

        :raises LeaseError: ``lease.lost``, ``lease.clock``.
        :raises FieldError: ``field.range``: ``next_token`` is malformed.
        """

    @abstractmethod
    def release(self, lease: Lease, *, used_until_ms: int) -> None:
        """End a lease. The next holder may start at ``used_until_ms``, the first unused time.

        :raises LeaseError: ``lease.lost``.
        """

    @abstractmethod
    def revoke(self, pool: str, node: int) -> NodeRecord:
        """Take a lease from its holder. The holder mints to the end of its window, and then raises ``lease.lost``.

        :raises LeaseError: ``lease.unknown``: the node number was never granted.
        """

    @abstractmethod
    def create_pool(
        self,
        pool: str,
        *,
        layout: str,
        span_ms: int = SPAN_MS,
        never_used: bool = False,
        history_ms: int | None = None,
        nodes: range | None = None,
        wider_from_ms: int | None = None,
    ) -> PoolRecord:
        """Create a pool if it does not exist; return its record.

        ``span_ms`` is the longest span that a new pool grants. An existing pool keeps its own.

        ``history_ms`` is the time for which the pool keeps past grants, in milliseconds, for :meth:`list_grants`. It
        changes an existing pool as well. 0 removes all past grants and keeps none. Without it, a new pool keeps them
        for 7 days.

        If the store cannot tell a new pool from a lost one, the pool begins in quarantine, as with a first acquire.
        ``never_used`` states that no ID was ever minted with its node numbers, neither on this store nor on one that
        lost its data. The statement ends the quarantine; if it is false, IDs repeat. The store refuses it if it knows
        better.

        ``nodes`` is the pool's share, the only numbers that it grants; without it, a new pool has all numbers. Stores
        that know nothing of each other need disjoint shares. The share of an existing pool may be narrowed at any time:
        a holder of a number outside of it mints to the end of its window, which no later extension moves. It may be
        widened only with ``wider_from_ms``, in milliseconds since the Unix epoch, which states that no other store's
        holders mint under ``nodes`` from that time on. If the statement is false, IDs repeat. No window of the pool
        begins before that time, which must have come in the last 24 hours, and every number counts as used.

        :raises ConfigError: ``config.pool``: the pool exists with another layout, or ``never_used`` is false, as the
            store may have lost grants and has the record of another; ``config.node``: ``nodes`` is no valid range, or
            not within the share and ``wider_from_ms`` is missing or outside its limits; ``config.span``.
        """

    @abstractmethod
    def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
        """Reserve the next ``count`` integers, or all that are left. Create the namespace if it does not exist.

        ``count`` is 1 to 2^31 - 1. ``holder`` is text for people, at most 200 characters, for :meth:`list_runs`;
        ``None`` names this process.

        :raises GenerationError: ``namespace.exhausted``, ``namespace.retired``.
        """

    @abstractmethod
    def give_back(self, segment: Segment, first_unused: int) -> bool:
        """Take back the unused tail of a segment if no later segment was reserved; return True if it was taken back.

        The segment carries the serial of its reservation, and the store takes back the tail of each reservation once.
        Then another client may reserve the integers. So a retry after a lost answer is harmless. The caller must not
        use the tail after the call, whatever the answer is.

        :raises GenerationError: ``namespace.retired``.
        """

    @abstractmethod
    def create_namespace(
        self, namespace: str, *, start: int | None = None, maximum: int = 2**63 - 1, stride: int = 1, offset: int = 0
    ) -> NamespaceRecord:
        """Create a namespace of the integers from ``start`` to ``maximum`` that are ``offset`` modulo ``stride``.

        Without ``start`` it begins at 1. A store that knows that it has lost namespaces refuses that, as with a first
        :meth:`reserve`, because the name may have been in use: give a ``start`` above all its integers.

        :raises ConfigError: ``config.namespace``: the namespace exists.
        :raises GenerationError: ``namespace.retired``.
        :raises StoreError: ``store.refused``: the store has lost namespaces, and ``start`` is missing.
        """

    @abstractmethod
    def raise_floor(self, namespace: str, value: int) -> NamespaceRecord:
        """Raise the floor of a namespace: the store reserves no integer below ``value`` from now on.

        A floor never moves back. A missing namespace is created. The store takes back no integer below the floor
        either. A client with an older segment learns the floor with its next segment, and then hands out no integer
        below it.

        :raises GenerationError: ``namespace.retired``.
        """

    @abstractmethod
    def retire(self, namespace: str) -> NamespaceRecord:
        """End a namespace for good: every later verb on it raises ``namespace.retired``. This cannot be undone.

        A client with a segment hands out its remaining integers, which are the client's alone. The record stays, so
        that the name never starts again. A namespace that does not exist is created as retired; one that is retired
        stays as it is. A pool of the same name is not affected.
        """

    @abstractmethod
    def list_pools(self, after: str = "", limit: int = MAX_COUNT) -> Sequence[PoolRecord]:
        """Return the records of the first ``limit`` pools whose names sort after ``after``, by name.

        Lists of namespaces and leases work in the same way. ``limit`` is 1 to 2^31 - 1. Ask for pages: all records of a
        large store may take longer than the store's timeout.
        """

    @abstractmethod
    def list_leases(self, pool: str | None = None, after: int = -1, limit: int = MAX_COUNT) -> Sequence[NodeRecord]:
        """Return the records of the first ``limit`` node numbers of a pool above ``after``, by number.

        Only numbers that were granted at least once have a record. Without ``pool``, they are those of all pools, by
        pool and number, and ``after`` must be left out.
        """

    @abstractmethod
    def list_grants(
        self, pool: str, node: int, before_ms: int = LATEST_MS, limit: int = MAX_COUNT
    ) -> Sequence[GrantRecord]:
        """Return the past grants of a node number whose windows began at or before ``before_ms``, the latest first.

        The current or last grant is not among them: :meth:`list_leases` has it. To find the holder at a time, read that
        one first, so that no grant is missed that the next one replaces meanwhile. A pool keeps past grants for its
        ``history_ms``, and knows every holder from the latest of three times on: ``history_from_ms``,
        ``quarantine_until_ms``, and ``history_ms`` ago.
        """

    @abstractmethod
    def get_pool(self, pool: str) -> PoolRecord | None:
        """Return the record of one pool; ``None`` if it does not exist."""

    @abstractmethod
    def get_namespace(self, namespace: str) -> NamespaceRecord | None:
        """Return the record of one namespace, retired or not; ``None`` if it does not exist."""

    @abstractmethod
    def list_runs(self, namespace: str, before: int = MAX_INTEGER, limit: int = MAX_COUNT) -> Sequence[RunRecord]:
        """Return the past runs of a namespace that begin at or before the integer ``before``, the highest first.

        A run is a series of reservations by one holder. The current run is not among them: :meth:`get_namespace` has
        it. To find who reserved an integer, read that one first, so that no run is missed that the next one replaces
        meanwhile. A namespace keeps past runs for 7 days after their last reservation, some stores fewer.
        """

    @abstractmethod
    def list_namespaces(self, after: str = "", limit: int = MAX_COUNT) -> Sequence[NamespaceRecord]:
        """Return the records of the first ``limit`` namespaces whose names sort after ``after``, by name.

        Retired namespaces are included.
        """

    @abstractmethod
    def count_namespaces(self) -> int:
        """Return the number of namespaces, retired ones included.

        A store that has lost records counts those too.
        """

    def get_lease(self, pool: str, node: int) -> NodeRecord | None:
        """Return the record of one node number; ``None`` if it was never granted.

        ``node`` is 0 to 2^44 - 1.
        """
        return next((each for each in self.list_leases(pool, node - 1, 1) if each.node == node), None)

    def each_namespace(self) -> Iterator[NamespaceRecord]:
        """Yield the records of all namespaces, by name. Each page of 1,000 is a verb of its own."""
        return _each(self.list_namespaces, "", "name")

    def each_pool(self) -> Iterator[PoolRecord]:
        """Yield the records of all pools, in the same way."""
        return _each(self.list_pools, "", "name")

    def each_lease(self, pool: str | None = None) -> Iterator[NodeRecord]:
        """Yield the records of all node numbers of a pool, or of all pools, in the same way."""
        for name in [each.name for each in self.each_pool()] if pool is None else [pool]:
            yield from _each(partial(self.list_leases, name), -1, "node")

    def identify(self, kind: str, name: str) -> str:  # noqa: ARG002
        """Return the id of the server that has a ``pool`` or ``namespace``; empty if this client does not know it."""
        return ""

    @abstractmethod
    def describe(self) -> Description:
        """Return the description of the store, with the settings that weaken its promise."""

    @abstractmethod
    def now_ms(self) -> int:
        """Return the store's clock, in milliseconds since the Unix epoch."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections of this process. A second call does nothing.

        The next verb opens them again, and finds all records. So a process that was restored from a snapshot, or other
        code that uses the same store, continues after ``close()``.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"


def _each(read: Callable[[Any, int], Sequence[R]], after: object, key: str) -> Iterator[R]:
    page: Sequence[R] | None = None
    while page is None or len(page) == PAGE:
        page = read(getattr(page[-1], key) if page else after, PAGE)
        yield from page


def new_token() -> str:
    """Return a token for a lease: 128 random bits from the kernel, which differ in every copy of this process.

    >>> len(new_token())
    32
    """
    return kernel_random(16).hex()


def _forwarded(name: str) -> Any:
    def verb(self: Forwarding, *args: Any, **kwargs: Any) -> Any:
        return self.forward(name, *args, **kwargs)

    verb.__name__ = name
    return verb


class Forwarding(Store):
    """A store that wraps another one. A subclass overrides some verbs; the inner store handles the others.

    >>> from mintage.lease import Segment
    >>> class Printing(Forwarding):
    ...     def reserve(self, namespace: str, count: int, **options: str | None) -> Segment:
    ...         segment = super().reserve(namespace, count, **options)
    ...         print(f"{namespace}: reserved {segment.first} to {segment.last}")
    ...         return segment
    >>> with Printing(open_store("memory:Forwarding")) as store:
    ...     segment = store.reserve("orders", 1000)
    ...     store.give_back(segment, 11)
    orders: reserved 1 to 1000
    True
    """

    is_traced: ClassVar[bool] = False  # the verbs of the inner store are spans

    acquire = _forwarded("acquire")
    extend = _forwarded("extend")
    release = _forwarded("release")
    revoke = _forwarded("revoke")
    create_pool = _forwarded("create_pool")
    reserve = _forwarded("reserve")
    give_back = _forwarded("give_back")
    create_namespace = _forwarded("create_namespace")
    raise_floor = _forwarded("raise_floor")
    retire = _forwarded("retire")
    list_pools = _forwarded("list_pools")
    list_leases = _forwarded("list_leases")
    list_grants = _forwarded("list_grants")
    get_lease = _forwarded("get_lease")
    get_pool = _forwarded("get_pool")
    get_namespace = _forwarded("get_namespace")
    list_runs = _forwarded("list_runs")
    list_namespaces = _forwarded("list_namespaces")
    count_namespaces = _forwarded("count_namespaces")
    identify = _forwarded("identify")
    describe = _forwarded("describe")
    now_ms = _forwarded("now_ms")

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.url = inner.url
        self.promise = inner.promise  # type: ignore[misc]
        self.clock_limit_ms = inner.clock_limit_ms
        self.span_ms = inner.span_ms
        self.is_ascending = inner.is_ascending

    def forward(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        """Call a verb of the inner store."""
        return getattr(self.inner, verb)(*args, **kwargs)

    def close(self) -> None:
        """Close the connections of this process."""
        self.inner.close()


REDIS_KINDS: Final = ("redis", "rediss", "redis+sentinel", "redis+cluster", "valkey", "unix")
"""The kinds of stores in Redis, which may also be a cache."""
STORE_KINDS: Final[dict[str, tuple[str, str, str | None]]] = {
    "memory": ("mintage.store.memory", "MemoryStore", None),
    "sqlite": ("mintage.store.sqlite.store", "SqliteStore", None),
    **dict.fromkeys(("mysql", "mariadb"), ("mintage.store.sql.mysql", "MySqlStore", "mysql")),
    "postgresql": ("mintage.store.sql.postgresql", "PostgreSqlStore", "postgresql"),
    **dict.fromkeys(REDIS_KINDS, ("mintage.store.redis", "RedisStore", "redis")),
    **dict.fromkeys(("etcd", "etcds"), ("mintage.store.etcd", "EtcdStore", "etcd")),
    "kubernetes": ("mintage.store.kubernetes", "KubernetesStore", "kubernetes"),
    **dict.fromkeys(("http", "https"), ("mintage.store.http", "HttpStore", "client")),
}
"""The module, the class and the extra with the driver, for each scheme of a URL."""
DATABASES: Final = ("mysql", "mariadb", "postgresql", "sqlite")
"""The kinds of stores that may have a cache in front of them."""
HOSTLESS: Final = ("kubernetes",)
"""The kinds of stores on a server that their environment names."""


def kinds_like(scheme: str) -> str:
    """Return the remedy for an unknown scheme: the most similar kind, and all kinds."""
    from difflib import get_close_matches

    meant = get_close_matches(scheme.partition("+")[0], STORE_KINDS, 1)
    return f"{f'did you mean {meant[0]}? There are' if meant else 'use one of'} {', '.join(STORE_KINDS)}"


def open_store(url: str) -> Store:
    """Return the store that a URL names. The store connects at first use.

    ``memory:`` · ``sqlite:///ids.db`` · ``mysql://user:password@host/database`` · ``mariadb://…`` · ``postgresql://…``
    · ``redis://…`` · ``etcd://…`` · ``kubernetes:`` · ``mysql://…?cache=redis://…`` · ``http://:key@host:8080``, the
    service. Options are a query, such as ``?timeout_ms=500``. A URL object of SQLAlchemy is taken as well.

    :raises ArgumentError: ``url`` is not a URL.
    :raises ConfigError: ``config.store``: the URL is malformed; ``config.driver``: the driver is not installed.

    >>> store = open_store("memory:open_store")
    >>> store.reserve("orders", 3).as_range()
    range(1, 4)
    """
    parsed = StoreUrl.parse(url)
    if parsed.scheme not in STORE_KINDS:
        raise ConfigError(
            f"no store is called {parsed.scheme[:40]!r}: {kinds_like(parsed.scheme)}", code="config.store"
        )
    is_reached = parsed.hosts or parsed.socket or parsed.scheme in HOSTLESS
    if STORE_KINDS[parsed.scheme][2] is not None and not is_reached:
        raise ConfigError(
            f"the store's URL names no host: for a server on this machine, begin with {parsed.scheme}://127.0.0.1/",
            code="config.store",
        )
    return _open(parsed) if parsed.cache is None else _open_pair(parsed, parsed.cache)


def _open(url: StoreUrl) -> Store:
    module, name, extra = STORE_KINDS[url.scheme]
    make: Callable[[StoreUrl], Store] = getattr(load_driver(module, extra), name)
    return make(url)


def _open_pair(url: StoreUrl, cache: StoreUrl) -> Store:
    if url.scheme not in DATABASES:
        raise ConfigError(
            f"a store of kind {url.scheme} has no cache; use one of {', '.join(DATABASES)}", code="config.store"
        )
    if cache.scheme not in REDIS_KINDS:
        raise ConfigError(f"a store of kind {cache.scheme} cannot be a cache; use redis", code="config.store")
    _, _, extra = STORE_KINDS[cache.scheme]
    cached: Any = load_driver("mintage.store.cached", extra)
    options, database = cached.split_options(url)
    pair: Store = cached.CachedStore(url, _open(database), cache, options)
    return pair


def all_or_nothing(store: Store, segment: Segment, count: int) -> Segment:
    """Return the segment if it has ``count`` integers; give it back if it has fewer.

    :raises GenerationError: ``namespace.exhausted``: it has fewer.

    >>> store = open_store("memory:all_or_nothing")
    >>> record = store.create_namespace("codes", maximum=99)
    >>> all_or_nothing(store, store.reserve("codes", 60), 60).as_range()
    range(1, 61)
    >>> all_or_nothing(store, store.reserve("codes", 60), 60)
    Traceback (most recent call last):
    mintage.errors.GenerationError: namespace 'codes' has 39 integers left, not 60
    >>> store.reserve("codes", 39).as_range()
    range(61, 100)
    """
    if len(segment) == count:
        return segment
    kept = store.give_back(segment, segment.first)
    raise GenerationError(
        f"namespace {segment.namespace!r} has {len(segment)} integers left, not {count}"
        + ("" if kept else "; they are skipped, as the server changed before they were given back"),
        code="namespace.exhausted",
    )


def note_server(store: Store, pools: Sequence[PoolRecord], now_ms: int) -> list[PoolRecord]:
    """Return pools after they have noted their server; a record does not say who took over until a verb writes it."""
    identity, noted = "", []
    for each in pools:
        if not identity or store.url.scheme == "redis+cluster":  # the only store with pools on several servers
            identity = store.identify("pool", each.name)
        noted.append(rules.note_server(each, identity or each.identity, now_ms, store.clock_limit_ms))
    return noted


def load_driver(module: str, extra: str | None) -> Any:
    """Import and return a module that needs the packages of an extra.

    :raises ConfigError: ``config.driver``: a package is missing; the message has the line that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if extra is None or (error.name or "").startswith("mintage"):
            raise
        raise ConfigError(f"this needs {missing_module(error.name, extra)}", code="config.driver") from error
