"""``mysql://…?cache=redis://…`` puts Redis in front of a database for segments.

The database reserves *blocks* of integers, as large as many segments; a script cuts segments out of a block in Redis.
So clients ask the database once in hundreds of segments, and either server may be unreachable for a while. Only the
database handles node numbers and everything else.

No integer is reserved twice, by construction:

- Blocks never overlap: the database reserves a block before the cache receives it.
- The process that reserved a block sends it to Redis once. If the process does not know whether the block arrived, it
  never uses it.
- A block in Redis has the id of the server that received it: its run id, which a restart changes, and its replication
  id, which every promotion changes. The script compares both with those of the server that it runs on. So the script
  ignores a block from a dump, from an append-only file, from a replica that took over, or from a master that followed
  one and came back. Within one run and one replication history, the memory of a server does not go back: it has the
  block as the last script left it, or not at all.

The script drops a block that it ignores: the next block comes from the database, and the remaining integers of the old
one are skipped. So Redis needs no persistence, and the database needs no record of the actions of Redis. One condition
remains: nobody may give an old copy of a block to the same running server, by RESTORE or by a snapshot of its machine's
memory.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias

from mintage import rules
from mintage._core import kernel_random, monotonic_s
from mintage.errors import GenerationError, StoreError
from mintage.platform.machine import host_name
from mintage.protocol.options import declared, option, read_options
from mintage.rules import NamespaceRecord, Segment
from mintage.store import Description, Forwarding, new_token
from mintage.store.redis import Scripts

if TYPE_CHECKING:
    from mintage.protocol.url import StoreUrl
    from mintage.store.ledger import Ledger

PAUSE_S: Final = 5.0
"""The time in seconds for which a client does not ask a cache that did not answer."""

log = logging.getLogger("mintage")


class NeedBlock(NamedTuple):
    """The block of the cache is too short. The client with this token may add another block."""

    token: str


class Reply(Enum):
    """An answer of the cache without data."""

    AWAY = "away"
    """The cache did not answer."""
    DONE = "done"
    REFUSED = "refused"
    """Another process was faster, or the cache does not know the segment that was given back."""


Answer: TypeAlias = Segment | NeedBlock | Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOptions:
    """The options of a pair, beside those of its database."""

    block: int = option(100, "The number of segments in a block", least=1, most=1_000_000)


def split_options(url: StoreUrl) -> tuple[PairOptions, StoreUrl]:
    """Return the options of a pair, and the URL of its database alone."""
    options = dict(url.options)
    own = {name: options.pop(name) for name in declared(PairOptions, url.scheme) if name in options}
    alone = replace(url, options=options, cache=None)
    return read_options(replace(alone, options=own), PairOptions), alone


class CachedStore(Forwarding):
    """A database with Redis in front of it.

    The URL is ``mysql://user:password@host/database?cache=redis://user:password@host:6379``.
    The options of the cache follow its URL, and those of the pair are :class:`PairOptions`. To raise a floor, both
    servers must be reachable. While the database is unreachable, only a process that has reached it before continues:
    only such a process knows the id of the database that owns the blocks.
    """

    is_traced: ClassVar[bool] = True

    def __init__(self, url: StoreUrl, database: Ledger, cache: StoreUrl, options: PairOptions) -> None:
        super().__init__(database)
        self._segments = options.block
        self.inner: Ledger = database
        # While the cache is unreachable, the database reserves above the block, which is used again afterwards.
        self.is_ascending = False
        self.url = url
        self._cache = Scripts(cache)
        self._holder_of_blocks = f"a client of the cache {cache}"[:200].encode(errors="replace").decode()
        self._database_id: str | None = None
        self._away_until_s = 0.0

    # --- segments -------------------------------------------------------------------------------------------------

    def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
        """Reserve the next integers of a namespace. The database knows who reserves there, but not who cuts a block."""
        database_id = self._database_id or self._identify_database()
        match self._ask("cut", namespace, database_id, count=count):
            case Segment() as segment:
                return segment
            case NeedBlock(token):
                return self._reserve_block(namespace, count, token, database_id, holder)
            case _:
                return self.inner.reserve(namespace, count, holder=holder)

    def _reserve_block(self, namespace: str, count: int, token: str, database_id: str, holder: str | None) -> Segment:
        """Reserve a block in the database, send it to the cache, and return its first segment."""
        try:
            size = min(count * self._segments, rules.MAX_COUNT)
            block = self.inner.reserve(namespace, size, holder=self._holder_of_blocks)
        except GenerationError:
            remainder = self._ask("cut_remainder", namespace, database_id, count=count)
            if not isinstance(remainder, Segment):
                raise
            return remainder
        # If another server of the database has answered meanwhile, the cache does not accept the block.
        database_id = self._identify_database()
        answer = self._ask(
            "put",
            namespace,
            database_id,
            token=token,
            first=str(block.first),
            last=str(block.last),
            stride=str(block.stride),
            floor=str(block.floor),
            count=count,
        )
        match answer:
            case Segment() as segment:
                return segment
            case Reply.AWAY:
                # The block may have arrived, so never use it.
                return self.inner.reserve(namespace, count, holder=holder)
            case _:
                return self._keep(block, count)

    def _keep(self, block: Segment, count: int) -> Segment:
        """Return the start of a block that the cache refused, as another process was faster or raised the floor."""
        if len(block) <= count:
            return block
        first_unused = block.first + count * block.stride
        self.inner.give_back(block, first_unused)
        return replace(block, last=first_unused - block.stride)

    def give_back(self, segment: Segment, first_unused: int) -> bool:
        if first_unused not in segment.as_range():
            return False
        answer = self._ask(
            "give_back",
            segment.namespace,
            self._database_id or self._identify_database(),
            last=str(segment.last),
            stride=str(segment.stride),
            first_unused=str(first_unused),
            serial=str(segment.serial),
        )
        return answer is Reply.DONE

    def raise_floor(self, namespace: str, value: int) -> NamespaceRecord:
        record = self.inner.raise_floor(namespace, value)
        missed = (
            f"the floor of namespace {namespace!r} is raised in the database, but its cache did not answer and may "
            "still hold lower integers: raise it again once it does"
        )
        self._repeat(missed, "raise_floor", namespace, value=str(value))
        return record

    def retire(self, namespace: str) -> NamespaceRecord:
        record = self.inner.retire(namespace)
        missed = (
            f"namespace {namespace!r} is retired in the database, but its cache did not answer and may still hand "
            "out the rest of its block: retire it again once it does"
        )
        self._repeat(missed, "retire", namespace)
        return record

    def _repeat(self, missed: str, verb: str, namespace: str, **arguments: object) -> None:
        """Run a verb of the database in the cache as well; ``missed`` says what is so if the cache does not answer."""
        database_id = self._identify_database()
        try:
            self._run(verb, namespace, database_id, **arguments)
        except StoreError as error:
            raise StoreError(f"{missed}; {error}", code=error.code) from error

    def _identify_database(self) -> str:
        """Return the id of this database. Databases that share a cache must not share blocks."""
        identity = self.inner.identify()
        if not identity:
            self.inner.prepare()  # only tables give it its own id
            identity = self.inner.identify()
        host = host_name() if self.inner.promise == "host" else ""
        self._database_id = " ".join([identity, host, self.url.path])
        return self._database_id

    def _ask(self, verb: str, namespace: str, database_id: str, **arguments: object) -> Answer:
        """Return the answer of the cache; :attr:`Reply.AWAY` if there is none, even if the cache ran the script."""
        if monotonic_s() < self._away_until_s:
            return Reply.AWAY
        try:
            return self._run(verb, namespace, database_id, **arguments)
        except StoreError as error:
            log.warning("mintage: %s (%s); reserving from the database", error, error.code)
            self._away_until_s = monotonic_s() + PAUSE_S
            return Reply.AWAY

    def _run(self, verb: str, namespace: str, database_id: str, **arguments: object) -> Answer:
        answer = self._cache.run(
            "blocks",
            [self._cache.key("block", namespace)],
            verb=verb,
            database=database_id,
            fresh=new_token(),
            fresh_serial=str(int.from_bytes(kernel_random(6))),
            **arguments,
        )
        return _read(namespace, answer)

    # --- verbs of the database alone --------------------------------------------------------------------------------

    def describe(self) -> Description:
        database = self.inner.describe()
        server, warnings = database.server, database.warnings
        try:
            server += f" with {self._cache.run('describe', [self._cache.key('server', '')])['server']}"
        except StoreError as error:
            warnings += (f"the cache does not answer, so the database does all the work: {error}",)
        return replace(database, url=str(self.url), server=server, warnings=warnings)

    def close(self) -> None:
        self.inner.close()
        self._cache.close()


def _read(namespace: str, answer: dict[str, Any]) -> Answer:
    """Return the answer of blocks.lua as a value of its own type.

    :raises GenerationError: ``namespace.retired``.
    """
    match answer:
        case {"first": first, "last": last, "stride": stride, "floor": floor, "serial": serial}:
            return Segment(namespace, *map(int, (first, last, stride, floor, serial)))
        case {"token": token}:
            return NeedBlock(token)
        case {"retired": True}:
            raise rules.retired_error(namespace)
        case {"done": True}:
            return Reply.DONE
        case _:
            return Reply.REFUSED
