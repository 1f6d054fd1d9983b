"""Stores: where leases and segments are recorded before anybody mints from them.

:func:`open_store` makes a store of a URL. All stores have the verbs of :class:`Store`, and all pass one contract suite.
Verbs are synchronous: one is needed once in thousands of IDs, so async callers hop to a thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar

from mintage._core import kernel_random
from mintage.errors import ConfigError, GenerationError
from mintage.installation import install_line
from mintage.process.generation import generation
from mintage.protocol.url import StoreUrl
from mintage.rules import CLOCK_LIMIT_MS, SPAN_MS
from mintage.store.checks import guard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mintage.rules import Lease, NamespaceRecord, NodeRecord, PoolRecord, Segment

__all__ = ["Description", "Forwarding", "PerProcess", "Store", "all_or_nothing", "new_token", "open_store"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Description:
    """What a store says of itself."""

    url: str
    """Without the password."""
    promise: str
    """How far uniqueness reaches: ``"process"``, ``"host"`` or ``"shared"``."""
    server: str
    """Product and version."""
    identity: str
    """What tells this server from one that took over from it."""
    now_ms: int
    """The store's clock, in milliseconds since the Unix epoch."""
    warnings: tuple[str, ...] = ()
    """What weakens the promise, each with what to do about it."""


class Store(ABC):
    """Where leases and segments are recorded. Threads may share one; a forked child gets connections of its own.

    Every verb is atomic and durable: once it has returned, neither a crash nor a restart of the store undoes it. Every
    verb raises StoreError: ``store.unavailable`` where the store cannot be reached (whether it took effect is then not
    known, and does no harm: what may have been reserved is skipped), ``store.refused`` where it answered with an
    error, ``store.schema`` where its tables were made by a newer mintage. Before that, every verb raises ArgumentError,
    ``argument.type``, for an argument of another type, and FieldError, ``field.range``, for one outside its limits.
    """

    url: StoreUrl
    promise: ClassVar[str]
    clock_limit_ms: int = CLOCK_LIMIT_MS
    """How far a caller's clock may be from the store's."""
    is_ascending: bool = False
    """True if each segment of a namespace is above all that were reserved before and not given back."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        guard(cls)

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
        """Grant a node number of ``nodes`` that nobody can still be using, until ``span_ms`` after ``now_ms``.

        ``layout`` says what the pool's node numbers mean; the first acquire makes the pool. ``holder`` is for people to
        read. ``never_used`` asks for a number that has never been granted.

        :raises LeaseError: ``lease.none_free`` with ``retry_after_ms``, ``lease.clock``.
        :raises ConfigError: ``config.pool``, ``config.name``, ``config.node``, ``config.span``.
        """

    @abstractmethod
    def extend(self, lease: Lease, *, now_ms: int, next_token: str) -> Lease:
        """The same lease with its window until one span from now, and another token; a window never gets shorter.

        ``next_token`` takes the token's place: 1 to 64 letters, digits and ``. _ -``. Draw it from the kernel for each
        extension, never from a state in memory, which a clone of this process shares: then one of them goes on at most.
        While it is not known what came of it (``store.unavailable``), ask again with the same one; the answer is then
        the same.

        :raises LeaseError: ``lease.lost``, ``lease.clock``.
        :raises FieldError: ``field.range``: ``next_token`` is not of its form.
        """

    @abstractmethod
    def release(self, lease: Lease, *, used_until_ms: int) -> None:
        """End a lease; the next holder may start at ``used_until_ms``.

        :raises LeaseError: ``lease.lost``.
        """

    @abstractmethod
    def revoke(self, pool: str, node: int) -> NodeRecord:
        """Take a lease from its holder, which mints to the end of its window and then raises ``lease.lost``.

        :raises LeaseError: ``lease.unknown``: the node number was never granted.
        """

    @abstractmethod
    def create_pool(self, pool: str, *, layout: str, span_ms: int = SPAN_MS) -> PoolRecord:
        """Make a pool, or frees an existing one from its quarantine: nothing that minted from it may still run.

        ``span_ms`` is the longest span that a new pool grants; that of an existing one stays as it is.

        :raises ConfigError: ``config.pool``: it exists with another layout; ``config.name``, ``config.span``.
        """

    @abstractmethod
    def reserve(self, namespace: str, count: int) -> Segment:
        """Reserve the next ``count`` integers, or as many as are left; makes a namespace that does not exist.

        :raises GenerationError: ``sequence.exhausted``, ``namespace.retired``.
        :raises FieldError: ``field.range``: ``count`` is outside 1 to 2^31 - 1.
        :raises ConfigError: ``config.name``.
        """

    @abstractmethod
    def give_back(self, segment: Segment, first_unused: int) -> bool:
        """Take back the unused tail of a segment if it is still the last that was reserved; returns whether it was.

        The segment bears the serial of its reservation, and of each a tail is taken back once: afterwards its integers
        may be reserved again by others. So to ask again, as the answer was lost, does no harm; and the caller uses
        none of the tail any more, whatever the answer.

        :raises GenerationError: ``namespace.retired``.
        """

    @abstractmethod
    def create_namespace(
        self, namespace: str, *, start: int = 1, maximum: int = 2**63 - 1, stride: int = 1, offset: int = 0
    ) -> NamespaceRecord:
        """Make a namespace of the integers from ``start`` to ``maximum`` that are ``offset`` modulo ``stride``.

        :raises ConfigError: ``config.namespace``: it exists; ``config.name``.
        :raises FieldError: ``field.range``.
        :raises GenerationError: ``namespace.retired``.
        """

    @abstractmethod
    def raise_floor(self, namespace: str, value: int) -> NamespaceRecord:
        """Let no integer below ``value`` be reserved any more; never moves back. Makes a missing namespace.

        Nor is one taken back that a segment from before still has. A holder of such a segment learns of the floor
        with its next one, and then hands out nothing below it.

        :raises FieldError: ``field.range``.
        :raises ConfigError: ``config.name``.
        :raises GenerationError: ``namespace.retired``.
        """

    @abstractmethod
    def retire(self, namespace: str) -> NamespaceRecord:
        """End a namespace for good: from then on every verb on it raises ``namespace.retired``. Nothing undoes this.

        A holder of a segment hands out the rest of it, which nobody else has or will have. The record stays, so that
        the name never starts again. That goes for a namespace that does not exist, too; one that was retired before
        stays as it is. A pool of the same name is another matter.

        :raises ConfigError: ``config.name``.
        """

    @abstractmethod
    def list_pools(self) -> Sequence[PoolRecord]:
        """Return all pools, by name."""

    @abstractmethod
    def list_leases(self, pool: str | None = None) -> Sequence[NodeRecord]:
        """Return all node numbers that were granted at least once, by pool and number."""

    @abstractmethod
    def list_namespaces(self) -> Sequence[NamespaceRecord]:
        """Return all namespaces, by name, retired ones too."""

    @abstractmethod
    def describe(self) -> Description:
        """Return what the store is, and what weakens its promise."""

    @abstractmethod
    def now_ms(self) -> int:
        """Return the store's clock, in milliseconds since the Unix epoch."""

    @abstractmethod
    def close(self) -> None:
        """Close this process's connections; closing twice does nothing.

        It is no end: the next verb opens what it needs again, and finds all as it was. A process that was restored from
        a snapshot goes on with the stores that were closed before it, and so does other code that uses the same store.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"


def new_token() -> str:
    """Return a token of a lease: 128 bits of the kernel's, which no copy of this process draws as well."""
    return kernel_random(16).hex()


def _forwarded(name: str) -> Any:
    def verb(self: Forwarding, *args: Any, **kwargs: Any) -> Any:
        return self.forward(name, *args, **kwargs)

    verb.__name__ = name
    return verb


class Forwarding(Store):
    """Another store, with something added: what a subclass does not say otherwise, the store inside does."""

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
    list_namespaces = _forwarded("list_namespaces")
    describe = _forwarded("describe")
    now_ms = _forwarded("now_ms")

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.url = inner.url
        self.promise = inner.promise  # type: ignore[misc]
        self.clock_limit_ms = inner.clock_limit_ms
        self.is_ascending = inner.is_ascending

    def forward(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        """Ask the store inside."""
        return getattr(self.inner, verb)(*args, **kwargs)

    def close(self) -> None:
        self.inner.close()


class PerProcess(Generic[T]):
    """What a forked child must not share with its parent, such as a connection: made at first use in each process."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        # The parent's is kept, never closed: closing it here would say goodbye in the parent's name.
        self._made: dict[int, T] = {}

    def get(self) -> T:
        """Return this process's own."""
        try:
            return self._made[generation()]
        except KeyError:
            return self._made.setdefault(generation(), self._make())

    def pop(self) -> T | None:
        """Forget this process's own and return it, if it was made."""
        return self._made.pop(generation(), None)


STORE_KINDS: Final[dict[str, tuple[str, str, str | None]]] = {
    "memory": ("mintage.store.memory", "MemoryStore", None),
    "sqlite": ("mintage.store.sqlite", "SqliteStore", None),
    "mysql": ("mintage.store.mysql", "MySqlStore", "mysql"),
    "mariadb": ("mintage.store.mysql", "MySqlStore", "mysql"),
    "postgresql": ("mintage.store.postgresql", "PostgreSqlStore", "postgresql"),
    "redis": ("mintage.store.redis", "RedisStore", "redis"),
    "rediss": ("mintage.store.redis", "RedisStore", "redis"),
    "redis+sentinel": ("mintage.store.redis", "RedisStore", "redis"),
    "redis+cluster": ("mintage.store.redis", "RedisStore", "redis"),
    "valkey": ("mintage.store.redis", "RedisStore", "redis"),
    "etcd": ("mintage.store.etcd", "EtcdStore", "etcd"),
    "etcds": ("mintage.store.etcd", "EtcdStore", "etcd"),
    "http": ("mintage.store.http", "HttpStore", "client"),
    "https": ("mintage.store.http", "HttpStore", "client"),
}
"""What a URL's scheme is made with: module, class, and the extra that brings its driver."""


def kinds_like(scheme: str) -> str:
    """Return which kind may be meant by a scheme that is none, and all that there are."""
    from difflib import get_close_matches

    meant = get_close_matches(scheme.partition("+")[0], STORE_KINDS, 1)
    return f"{f'did you mean {meant[0]}? There are' if meant else 'use one of'} {', '.join(STORE_KINDS)}"


def open_store(url: str) -> Store:
    """Return the store that a URL names. Connects at first use.

    ``memory:`` · ``sqlite:///ids.db`` · ``mysql://user:password@host/database`` · ``mariadb://…`` · ``postgresql://…``
    · ``redis://…`` · ``etcd://…`` · ``mysql://…?cache=redis://…`` · ``http://:key@host:8080``, the service. Options are
    a query, such as ``?timeout_ms=500``.

    :raises ArgumentError: ``url`` is not str.
    :raises ConfigError: ``config.store``: the URL is malformed; ``config.driver``: its driver is not installed.
    """
    parsed = StoreUrl.parse(url)
    if parsed.scheme not in STORE_KINDS:
        raise ConfigError(
            f"no store is called {parsed.scheme[:40]!r}: {kinds_like(parsed.scheme)}", code="config.store"
        )
    if STORE_KINDS[parsed.scheme][2] is not None and not parsed.hosts:
        raise ConfigError(
            f"the store's URL names no host: for a server on this machine, begin with {parsed.scheme}://127.0.0.1/",
            code="config.store",
        )
    if "cache" in parsed.options:
        from mintage.store.cached import CachedStore

        return CachedStore(parsed)
    module, name, extra = STORE_KINDS[parsed.scheme]
    make: Callable[[StoreUrl], Store] = getattr(load_driver(module, extra), name)
    return make(parsed)


def all_or_nothing(store: Store, segment: Segment, count: int) -> Segment:
    """Return the segment, if it has as many integers as were asked for. Otherwise it is given back.

    :raises GenerationError: ``sequence.exhausted``: it has fewer.
    """
    if len(segment) == count:
        return segment
    kept = store.give_back(segment, segment.first)
    raise GenerationError(
        f"namespace {segment.namespace!r} has {len(segment)} integers left, not {count}"
        + ("" if kept else ", and these are skipped: the server changed before they were given back"),
        code="sequence.exhausted",
    )


def load_driver(module: str, extra: str | None) -> Any:
    """Import a module that needs the packages of an extra.

    :raises ConfigError: ``config.driver``, with the line that installs them.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if extra is None or (error.name or "").startswith("mintage"):
            raise
        raise ConfigError(
            f"this needs the package {error.name}: {install_line(extra)}", code="config.driver"
        ) from error
