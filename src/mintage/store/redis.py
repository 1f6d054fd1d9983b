"""``redis:`` keeps its records in Redis or Valkey, alone, behind Sentinel or as a cluster. It uses redis-py.

Every verb is one Lua script (``lua/*.lua``). The script applies the rules of :mod:`mintage.rules` on the server, which
runs one script at a time, and reads the server's id in the same step. If a script refuses, the Python rule refuses the
records that the script saw, so that every message has one source.

The server's id is its run id and its replication id. One of them changes when the server restarts, takes over from
another server or has followed another one. Then its last writes may be lost, so pools are quarantined and namespaces
skip integers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from redis import exceptions
from redis.backoff import NoBackoff
from redis.client import Redis
from redis.driver_info import DriverInfo
from redis.retry import Retry

from mintage import rules
from mintage.errors import ConfigError, StoreError
from mintage.process.holder import holder as this_process
from mintage.protocol.options import AUTHORITIES, CERTIFICATE, CERTIFICATE_KEY, option, read_options, timeout
from mintage.protocol.records import R, columns, name_of, read
from mintage.rules import GrantRecord, Lease, NamespaceRecord, NodeRecord, PoolRecord, RunRecord, Segment
from mintage.store import LATEST_FLOOR_MS, PAGE, Description, Store, new_token
from mintage.store.per_process import PerProcess

if TYPE_CHECKING:
    from redis.cluster import RedisCluster

    from mintage.protocol.url import StoreUrl

MOST_RUNS: Final = 100_000
"""The most past runs of a namespace, as all of them are in memory."""
PARTS: Final = {
    "describe": ("server", "describe"),
    "leases": ("server", "leases"),
    "segments": ("server", "integers", "segments"),
    "blocks": ("server", "integers", "blocks"),
}
"""The files of ``lua/`` that a script consists of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions:
    """The options of a server of Redis, also as a cache."""

    prefix: str = option("mintage", "The beginning of all keys")
    timeout_ms: int = timeout()
    wait_replicas: int = option(0, "How many replicas must have a write before it counts; not in a cluster", most=100)
    tls: bool = option(False, "Whether to use TLS, as with `rediss:`")
    ssl_ca_certs: str | None = option(None, AUTHORITIES)
    ssl_certfile: str | None = option(None, CERTIFICATE)
    ssl_keyfile: str | None = option(None, CERTIFICATE_KEY)
    sentinel_password: str | None = option(None, "The password of the Sentinels")
    db: int = option(0, "The number of the database", most=999_999_999, schemes=("unix",))


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisOptions(CacheOptions):
    """The options of a store in Redis."""

    volatile: bool = option(False, "Whether to use a server that may lose its data: integers of sequences repeat then")


_REFUSED: Final = (exceptions.AuthenticationError, exceptions.AuthorizationError)
_AWAY: Final = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ClusterError,
    exceptions.TryAgainError,
    exceptions.ReadOnlyError,
    exceptions.RedisClusterException,
    OSError,
)
#: The errors of a script that reads an invalid record.
_LUA: Final = re.compile(r"(?:user_script:\d+: |^)((?:damaged|attempt|bad argument|Expected|WRONGTYPE)[^\n]*)")
#: The error of a script whose user may not run a command, and the line of the command in the script.
_DENIED: Final = re.compile(r"can't run this command|no permissions|ACL failure")
_LINE: Final = re.compile(r"user_script: ?(\d+)")
_COMMAND: Final = re.compile(r"redis\.call\(\s*'(\w+)'")
_CREATING: Final = frozenset({"acquire", "create_pool", "reserve", "create_namespace", "raise_floor", "retire"})
"""The verbs that create a missing pool or namespace."""
_AWAY_PREFIXES: Final = ("BUSY ", "LOADING ", "MASTERDOWN ", "NOREPLICAS ")


_ECHO: Final = """
local text = answer()
return type(text) == 'table' and text or { ARGV[2], text }
"""
"""The end of every script: its answer says which request it is for. A table is an error."""
_requests: Final = count(1)


@cache
def _script(name: str) -> tuple[str, str]:
    """Return the text of a script, and its SHA-1, by which the server caches it."""
    folder = Path(__file__).parent / "lua"
    text = "\n".join((folder / f"{part}.lua").read_text(encoding="utf-8") for part in PARTS[name])
    # Keep it on the same line, so that the server's errors name the lines of the parts.
    text = f"local function answer() {text}\nend\n{_ECHO}"
    return text, sha1(text.encode(), usedforsecurity=False).hexdigest()


class Scripts:
    """A client that runs the scripts of ``lua/`` on the server that a URL names."""

    def __init__(self, url: StoreUrl, options: CacheOptions | None = None) -> None:
        options = options or read_options(url, CacheOptions)
        self.url = url
        self.prefix = options.prefix
        rules.check_name(self.prefix, "prefix")
        self.wait_replicas = options.wait_replicas
        self._timeout_ms = options.timeout_ms
        self._options = options
        self._arguments = self._connection_arguments()
        self._service, self._database = self._path()
        self._idle: PerProcess[list[Any]] = PerProcess(list, _close_each)
        """Clients that no thread uses."""

    def _connection_arguments(self) -> dict[str, Any]:
        certificates = {name: text for name, text in self.url.options.items() if name.startswith("ssl_")}
        return {
            "socket_timeout": self._timeout_ms / 1000,
            "socket_connect_timeout": self._timeout_ms / 1000,
            # A verb that is sent twice could take effect twice.
            "retry": Retry(NoBackoff(), 0),
            "username": self.url.user,
            "password": self.url.password,
            "ssl": self.url.scheme == "rediss" or self._options.tls,
            "protocol": 2,
            "decode_responses": True,
            # CLIENT LIST shows it. redis-py would read its own version, which takes longer than a connection.
            "driver_info": DriverInfo("mintage", None),
            **certificates,
        }

    def _path(self) -> tuple[str, int]:
        """Return Sentinel's name of the master, and the number of the database."""
        kind, service, database = self.url.scheme, "", self.url.path
        if kind == "unix":
            if self.url.hosts or not database:
                raise ConfigError(
                    "unix: needs the absolute path of a socket: unix:///run/redis.sock", code="config.store"
                )
            return service, self._options.db
        if kind == "redis+sentinel":
            service, _, database = self.url.path.partition("/")
            if not service:
                raise ConfigError(f"{kind} needs a service: {kind}://host:26379/mymaster", code="config.store")
        elif kind == "redis+cluster":
            if database or self.wait_replicas:
                raise ConfigError(f"{kind} has neither a path nor wait_replicas", code="config.store")
        elif len(self.url.hosts) > 1:
            raise ConfigError(f"{kind} has one server; for more there is redis+sentinel", code="config.store")
        if not re.fullmatch(r"[0-9]{0,9}", database):
            raise ConfigError(
                f"the path of {kind} must end with the number of a database, such as /0", code="config.store"
            )
        return service, int(database or 0)

    def _connect(self) -> Redis | RedisCluster:
        # Import each for its own kind of store alone, as both take long.
        if self.url.scheme == "redis+cluster":
            from redis.cluster import ClusterNode, RedisCluster

            nodes = [ClusterNode(*address) for address in self._addresses(6379)]  # type: ignore[no-untyped-call]
            return RedisCluster(startup_nodes=nodes, require_full_coverage=False, **self._arguments)
        arguments = self._arguments | {"db": self._database}
        if self.url.scheme == "redis+sentinel":
            from redis.sentinel import Sentinel

            own = self._arguments | {"username": None, "password": self._options.sentinel_password}
            sentinel: Any = Sentinel(self._addresses(26379), sentinel_kwargs=own)  # type: ignore[no-untyped-call]
            client: Redis = sentinel.master_for(self._service, **arguments)
        elif self.url.socket is not None:
            client = Redis(unix_socket_path=self.url.socket, **arguments)
        else:
            client = Redis(self.url.host, self.url.port(6379), **arguments)
        # Any thread may collect a client, and would wait for the lock that an exception has left locked.
        client.auto_close_connection_pool = False
        return client

    def _addresses(self, port: int) -> list[tuple[str, int]]:
        return [(host, given or port) for host, given in self.url.hosts or ((self.url.host, None),)]

    def key(self, kind: str, name: str, part: str = "") -> str:
        """Return a key. All keys of a pool or namespace are on one server of a cluster."""
        return f"{self.prefix}:{{{kind}:{name}}}{part}"

    @contextmanager
    def _client(self, key: str = "", script: str = "") -> Iterator[Any]:
        """Lend a client that no other thread uses, for a ``with`` block.

        An exception at any instruction, as of a signal's handler, may leave a lock of the client locked for good, or an
        answer on its way. So no thread waits for a lock of another's client, and one whose block raises is closed.
        """
        try:
            idle = self._idle.get()
            try:
                client = idle.pop()
            except IndexError:
                client = self._connect()
            try:
                yield client
            except BaseException:
                _close(client)
                raise
            if idle is self._idle.get():
                idle.append(client)
            else:
                _close(client)
        except Exception as error:
            raise self._translate(error, key, script) from error

    def run(self, name: str, keys: Sequence[str], **arguments: Any) -> dict[str, Any]:
        """Run a script and return its answer.

        :raises StoreError: as the verbs of a store.
        :raises ConfigError: ``config.volatile``: the server may forget writes, and ``volatile`` is False.
        """
        text, sha = _script(name)
        number = str(next(_requests))
        script_arguments = (len(keys), *keys, json.dumps(arguments), number)
        with self._client(keys[0], text) as client:
            try:
                found = self._ask(client, "EVALSHA", sha, *script_arguments)
            except exceptions.NoScriptError:
                found = self._ask(client, "EVAL", text, *script_arguments)
        if not isinstance(found, list) or found[:1] != [number]:
            # No client that raised is lent again, so something between here and the server mixes up answers.
            self.close()
            raise StoreError(f"{self.url}: the answer is for another request", code="store.unavailable")
        answer = found[1]
        seen: dict[str, Any] = json.loads(answer)
        if "volatile" in seen:
            raise ConfigError(
                f"{self.url} can lose acknowledged writes: {seen['volatile']}; correct that, or add volatile=1 to "
                "the URL if repeated IDs are acceptable",
                code="config.volatile",
            )
        return seen

    def _ask(self, client: Any, *command: Any) -> Any:
        if not self.wait_replicas:
            return client.execute_command(*command)
        # One connection for both commands, as WAIT covers the writes of its own connection.
        with client.pipeline(transaction=False) as pipeline:
            pipeline.execute_command(*command)
            pipeline.execute_command("WAIT", self.wait_replicas, max(1, self._timeout_ms // 2))
            answer, replicas = pipeline.execute(raise_on_error=False)
        for outcome in (answer, replicas):
            if isinstance(outcome, Exception):
                raise outcome
        if replicas < self.wait_replicas:
            raise exceptions.ConnectionError(f"{replicas} of {self.wait_replicas} replicas have it")
        return answer

    def _translate(self, error: Exception, key: str = "", script: str = "") -> Exception:
        away = isinstance(error, _AWAY) and not isinstance(error, _REFUSED)
        if isinstance(error, exceptions.ReadOnlyError):
            # The server was demoted: find the new master.
            self.close()
        if isinstance(error, exceptions.RedisClusterException):
            # Do not show its message, which may repeat the command.
            if "cluster mode is not enabled" in str(error).lower():
                return StoreError(
                    f"{self.url}: the server is not one of a cluster: begin the URL with redis:", code="store.refused"
                )
            text = "the cluster cannot be reached, or has no server for this"
        else:
            text = str(error)
        if away and self._arguments.get("ssl"):
            text += "; a server does not answer TLS on a port without it: is this its TLS port?"
        if away or text.startswith(_AWAY_PREFIXES):
            return StoreError(f"{self.url}: {text}", code="store.unavailable")
        if found := _LUA.search(text):
            return _damaged(f"{self.url}: the key {key}"[:300], found[1][:200])
        if isinstance(error, (exceptions.RedisError, UnicodeError)):
            is_denied = isinstance(error, exceptions.NoPermissionError) or _DENIED.search(text) is not None
            if is_denied:
                text = _without_right(text, script, self.prefix)
            refused = StoreError(f"{self.url}: {text}", code="store.refused")
            refused.is_lasting = is_denied or isinstance(error, _REFUSED)
            return refused
        return error

    def names(self, kind: str) -> Iterator[str]:
        """Yield the names of all pools or namespaces, in no order, some of them twice. It scans all keys."""
        pattern = self.key(kind, "*")
        before, after = pattern.split("*")
        with self._client() as client:
            for key in client.scan_iter(pattern, count=1000):
                yield str(key).removeprefix(before).removesuffix(after)

    def ask(self, *commands: tuple[object, ...]) -> list[Any]:
        """Send commands at once, and return their answers. They are not atomic."""
        with self._client() as client, client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return list(pipeline.execute())

    def fsync(self) -> str | None:
        """Return the setting ``appendfsync``; ``None`` if the server does not show it."""
        with self._client() as client:
            try:
                settings: dict[str, str] = client.config_get("appendfsync")
            except exceptions.ResponseError:
                return None
            return settings.get("appendfsync")

    def close(self) -> None:
        """Close the connections of this process; the next verb opens them again."""
        self._idle.close()


def _close_each(clients: list[Any]) -> None:
    for client in clients:
        _close(client)


def _close(client: Any) -> None:
    getattr(client, "connection_pool", client).close()  # a cluster's client has a pool for each server


class Names:
    """The names of all pools or namespaces: a sorted set, in which the empty name says that the set has all of them.

    A client adds a name before it creates the record, so a name may lack a record, but a record has its name. The set
    of a store without the empty name, as of one that somebody deleted, is filled from all keys of the server.
    """

    def __init__(self, scripts: Scripts, kind: str) -> None:
        self._scripts = scripts
        self._kind = kind
        self._key = f"{scripts.prefix}:names:{kind}"

    def add(self, *names: str) -> None:
        """Add names, which may be there."""
        self._scripts.ask(("ZADD", self._key, *(word for name in names for word in ("0", name))))

    def count(self) -> int:
        """Return the number of names."""
        self._fill()
        return int(self._scripts.ask(("ZCARD", self._key))[0]) - 1

    def pages(self, after: str = "", size: int = PAGE) -> Iterator[list[str]]:
        """Yield the names that sort after ``after``, ``size`` at a time."""
        self._fill()
        while page := self._scripts.ask(("ZRANGEBYLEX", self._key, f"({after}", "+", "LIMIT", "0", str(size)))[0]:
            yield page
            after = page[-1]

    def _fill(self) -> None:
        if self._scripts.ask(("ZSCORE", self._key, ""))[0] is None:
            found = self._scripts.names(self._kind)
            while batch := list(islice(found, PAGE)):
                self.add(*batch)
            self.add("")


class RedisStore(Store):
    """A store in Redis or Valkey.

    URLs: ``redis://user:password@host:6379/0``, ``rediss://`` for TLS, ``valkey://``,
    ``redis+sentinel://host:26379,host:26379/service/0``, ``redis+cluster://host:6379,host:6379``.

    The server must have an append-only file and must not evict keys. Options: :class:`RedisOptions`. With failover,
    ``wait_replicas`` must be more than half of the replicas, so that a master without them cannot continue alone.
    """

    promise: ClassVar[str] = "shared"
    is_ascending = True

    def __init__(self, url: StoreUrl) -> None:
        self.url = url
        options = read_options(url, RedisOptions)
        self._scripts = Scripts(url, options)
        self._names = {kind: Names(self._scripts, kind) for kind in ("pool", "namespace")}
        self._volatile = options.volatile

    def _run(self, script: str, kind: str, name: str, keys: Sequence[str], verb: str, **arguments: Any) -> Any:
        arguments |= {"verb": verb, "volatile": self._volatile}
        seen = self._scripts.run(script, keys, is_listed=False if verb in _CREATING else None, **arguments)
        if "unlisted" in seen:
            self._names[kind].add(name)
            seen = self._scripts.run(script, keys, **arguments)
        return seen

    # --- leases ---------------------------------------------------------------------------------------------------

    def _leases(self, verb: str, pool: str, **arguments: Any) -> Seen:
        keys = [self._scripts.key("pool", pool, part) for part in ("", ":until", ":numbers", ":grants", ":ended")]
        arguments |= {
            "limit_ms": self.clock_limit_ms,
            "margin_ms": rules.CLOCK_MARGIN_MS,
            "cooldown_ms": rules.COOLDOWN_MS,
            "default_history_ms": rules.HISTORY_MS,
            "default_last_node": rules.ALL_NODES[-1],
            "oldest_ms": rules.MAX_SPAN_MS,
            "pruned": rules.PRUNED,
        }
        return Seen(pool, self._run("leases", "pool", pool, keys, verb, **arguments))

    def acquire(self, pool: str, *, nodes: range, layout: str, now_ms: int, span_ms: int, **terms: Any) -> Lease:
        seen = self._leases(
            "acquire",
            pool,
            first=nodes.start,
            stop=nodes.stop,
            layout=layout,
            token=new_token(),
            now_ms=now_ms,
            span_ms=span_ms,
            pool_span_ms=rules.create_pool(pool, layout, span_ms, "").span_ms,
            large_pool=rules.LARGE_POOL,
            **terms,
        )
        if seen.done and seen.record is not None:
            return seen.record.as_lease()
        rules.check_clock(now_ms, seen.now_ms, self.clock_limit_ms)
        if seen.pool is not None:
            never_used: bool = terms.get("never_used", False)
            rules.check_layout(seen.pool, layout)
            own = rules.share_of(seen.pool, nodes)
            rules.check_quarantine(seen.pool, seen.now_ms, never_used=never_used)
            if seen.node is None or seen.record is not None:
                rules.choose(seen.pool, own, seen.record, None, now_ms, never_used=never_used)
            rules.grant(seen.pool, None, nodes.start, token="", holder="", now_ms=now_ms, span_ms=span_ms)
        raise self._disagree("acquire")

    def extend(self, lease: Lease, *, now_ms: int, next_token: str) -> Lease:
        seen = self._leases(
            "extend",
            lease.pool,
            node=lease.node,
            token=lease.token,
            previous=lease.previous,
            next_token=next_token,
            floor_ms=lease.floor_ms,
            until_ms=lease.until_ms,
            now_ms=now_ms,
        )
        if seen.done and seen.record is not None:
            return seen.record.as_lease(lease.token)
        rules.check_clock(now_ms, seen.now_ms, self.clock_limit_ms)
        rules.extend(
            seen.record,
            lease,
            next_token=next_token,
            server_id=seen.server_id,
            changes=0 if seen.pool is None else seen.pool.changes,
            share=rules.ALL_NODES if seen.pool is None else seen.pool.share,
            now_ms=now_ms,
            store_now_ms=seen.now_ms,
            limit_ms=self.clock_limit_ms,
        )
        raise self._disagree("extend")

    def release(self, lease: Lease, *, used_until_ms: int) -> None:
        seen = self._leases("release", lease.pool, node=lease.node, token=lease.token, used_until_ms=used_until_ms)
        if not seen.done:
            rules.release(seen.record, lease, used_until_ms=used_until_ms)
            raise self._disagree("release")

    def revoke(self, pool: str, node: int) -> NodeRecord:
        return rules.revoke(self._leases("revoke", pool, node=node).record, pool, node)

    def create_pool(
        self, pool: str, *, layout: str, span_ms: int = rules.SPAN_MS, nodes: range | None = None, **terms: Any
    ) -> PoolRecord:
        longest_ms = rules.create_pool(pool, layout, span_ms, "").span_ms
        asked = {name: value for name, value in terms.items() if value is not None}
        if nodes is not None:
            asked |= {"first": nodes.start, "stop": nodes.stop}
        seen = self._leases("create_pool", pool, layout=layout, pool_span_ms=longest_ms, **asked)
        if seen.pool is not None:
            if seen.done:
                return seen.pool
            rules.check_layout(seen.pool, layout)
            if terms.get("never_used"):
                rules.declare_unused(seen.pool, has_granted=True)
            if nodes is not None:
                from_ms, limit_ms = terms.get("wider_from_ms"), self.clock_limit_ms
                rules.set_share(seen.pool, nodes, seen.now_ms, wider_from_ms=from_ms, limit_ms=limit_ms)
        raise self._disagree("create_pool")

    def list_pools(self, after: str = "", limit: int = rules.MAX_COUNT) -> Sequence[PoolRecord]:
        return self._page("pool", after, limit, lambda name, text: _record(PoolRecord, text, name=name), "HGET", "pool")

    def list_leases(
        self, pool: str | None = None, after: int = -1, limit: int = rules.MAX_COUNT
    ) -> Sequence[NodeRecord]:
        if pool is None:
            return list(islice(self.each_lease(), limit))
        key, found = self._scripts.key("pool", pool), list[NodeRecord]()
        while limit > len(found):
            size = min(limit - len(found), PAGE)
            asked = ("ZRANGEBYSCORE", f"{key}:numbers", f"({after}", "+inf", "LIMIT", "0", str(size))
            fields, has_pool, indexed, nodes = self._scripts.ask(
                ("HLEN", key), ("HEXISTS", key, "pool"), ("ZCARD", f"{key}:numbers"), asked
            )
            if indexed < fields - has_pool:  # the index was lost, and the next grant rebuilds it
                every = sorted(self._scripts.ask(("HKEYS", key))[0])
                nodes = [each for each in every if each != "pool" and int(each) > after][:size]
            if not nodes:
                break
            texts = self._scripts.ask(("HMGET", key, *nodes))[0]
            found += [
                _record(NodeRecord, text, pool=pool, node=node)
                for node, text in zip(nodes, texts, strict=True)
                if text is not None
            ]
            after = int(nodes[-1])
        return found

    def get_pool(self, pool: str) -> PoolRecord | None:
        text = self._scripts.ask(("HGET", self._scripts.key("pool", pool), "pool"))[0]
        return None if text is None else _record(PoolRecord, text, name=pool)

    def list_grants(
        self, pool: str, node: int, before_ms: int = rules.LATEST_MS, limit: int = rules.MAX_COUNT
    ) -> Sequence[GrantRecord]:
        # Behind the start of the window, a member has a space; the mark sorts behind it.
        last = f"[{node:014} {min(before_ms, LATEST_FLOOR_MS):014}!"
        pages = self._members(self._scripts.key("pool", pool, ":grants"), last, f"[{node:014} ", limit)
        return [_record(GrantRecord, text, pool=pool, node=str(node), floor_ms=floor) for _, floor, text in pages]

    def _members(self, key: str, last: str, first: str, limit: int) -> Iterator[list[str]]:
        """Yield the three parts of each member of a sorted set from ``last`` down to ``first``, at most ``limit``."""
        while (size := min(limit, PAGE)) > 0:
            page = self._scripts.ask(("ZREVRANGEBYLEX", key, last, first, "LIMIT", "0", str(size)))[0]
            yield from (member.split(" ", 2) for member in page)
            if len(page) < size:
                break
            limit, last = limit - size, f"({page[-1]}"

    def _page(
        self, kind: str, after: str, limit: int, read: Callable[[str, Any], R], command: str, *words: str
    ) -> list[R]:
        """Return the records of a page of pools or namespaces, each from the answer to a command with its key."""
        found: list[R] = []
        for names in self._names[kind].pages(after, min(limit, PAGE)):
            answers = self._scripts.ask(*((command, self._scripts.key(kind, name), *words) for name in names))
            found += [read(name, answer) for name, answer in zip(names, answers, strict=True) if answer]
            if len(found) >= limit:
                break
        return found[:limit]

    # --- segments -------------------------------------------------------------------------------------------------

    def _segments(self, verb: str, namespace: str, **arguments: Any) -> dict[str, Any]:
        # The script creates a missing namespace from this record.
        arguments.setdefault("record", _texts(rules.create_namespace(namespace, "")))
        keys = [self._scripts.key("namespace", namespace, part) for part in ("", ":runs")]
        return cast(
            "dict[str, Any]", self._run("segments", "namespace", namespace, keys, verb, gap=rules.GAP, **arguments)
        )

    def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
        seen = self._segments(
            "reserve",
            namespace,
            count=count,
            holder=this_process() if holder is None else holder,
            history_ms=rules.HISTORY_MS,
            most_runs=MOST_RUNS,
            pruned=rules.PRUNED,
        )
        record = _namespace(namespace, seen["record"])
        if "first" in seen:
            first, last = int(seen["first"]), int(seen["last"])
            return Segment(namespace, first, last, record.stride, record.floor, record.serial)
        rules.reserve(record, count)
        raise self._disagree("reserve")

    def give_back(self, segment: Segment, first_unused: int) -> bool:
        if first_unused not in segment.as_range():
            return False
        seen = self._segments(
            "give_back",
            segment.namespace,
            last=str(segment.last),
            first_unused=str(first_unused),
            serial=segment.serial,
            stride=segment.stride,
        )
        if "record" in seen:
            rules.check_not_retired(_namespace(segment.namespace, seen["record"]))
        return "done" in seen

    def create_namespace(self, namespace: str, **terms: Any) -> NamespaceRecord:
        record = rules.create_namespace(namespace, "", **terms)
        seen = self._segments("create_namespace", namespace, record=_texts(record))
        record = _namespace(namespace, seen["record"])
        if "done" not in seen:
            rules.check_not_retired(record)
            raise ConfigError(
                f"namespace {namespace!r} exists: only its floor can change; use another name", code="config.namespace"
            )
        return record

    def raise_floor(self, namespace: str, value: int) -> NamespaceRecord:
        seen = self._segments("raise_floor", namespace, value=str(value))
        record = _namespace(namespace, seen["record"])
        if "done" not in seen:
            rules.raise_floor(record, value)
            raise self._disagree("raise_floor")
        return record

    def retire(self, namespace: str) -> NamespaceRecord:
        return _namespace(namespace, self._segments("retire", namespace)["record"])

    def get_namespace(self, namespace: str) -> NamespaceRecord | None:
        fields = self._scripts.ask(("HGETALL", self._scripts.key("namespace", namespace)))[0]
        return _namespace(namespace, fields) if fields else None

    def list_runs(
        self, namespace: str, before: int = rules.MAX_INTEGER, limit: int = rules.MAX_COUNT
    ) -> Sequence[RunRecord]:
        pages = self._members(self._scripts.key("namespace", namespace, ":runs"), f"[{before:019}!", "-", limit)
        return [
            _record(RunRecord, text, namespace=namespace, first=str(int(first)), until_ms=str(int(until)))
            for first, until, text in pages
        ]

    def list_namespaces(self, after: str = "", limit: int = rules.MAX_COUNT) -> Sequence[NamespaceRecord]:
        return self._page("namespace", after, limit, _namespace, "HGETALL")

    def count_namespaces(self) -> int:
        return self._names["namespace"].count()

    # --- the server -----------------------------------------------------------------------------------------------

    def _server(self, kind: str = "server", name: str = "") -> dict[str, Any]:
        return self._scripts.run("describe", [self._scripts.key(kind, name)], volatile=self._volatile)

    def identify(self, kind: str, name: str) -> str:
        return str(self._server(kind, name)["identity"])

    def describe(self) -> Description:
        seen = self._server()
        warnings = []
        if self._volatile:
            warnings.append(
                "volatile=1: integers repeat once this server has lost its data; use a server with an append-only file"
            )
        elif (fsync := self._scripts.fsync()) not in {None, "always"}:
            warnings.append(
                f"appendfsync is {fsync}: if the server's host crashes, its last second may be lost; pools are then in "
                f"quarantine and namespaces skip {rules.GAP} times their largest step, but integers repeat if more "
                "than that was reserved in that second. Set appendfsync always"
            )
        if seen["replicas"] and not self._scripts.wait_replicas and self.url.scheme != "redis+cluster":
            warnings.append(
                f"replicas follow this server ({seen['replicas']}): one that takes over may lack the last writes, "
                "and a master that is cut off from the others may continue beside it; set wait_replicas to more "
                "than half"
            )
        return Description(
            str(self.url), self.promise, seen["server"], seen["identity"], int(seen["now_ms"]), tuple(warnings)
        )

    def now_ms(self) -> int:
        return int(self._server()["now_ms"])

    def close(self) -> None:
        self._scripts.close()

    def _disagree(self, verb: str) -> StoreError:
        return StoreError(
            f"{self.url}: the server refused {verb}, which the rules allow: use one version of mintage in all clients",
            code="store.refused",
        )


class Seen:
    """The records that a script for leases read or wrote."""

    def __init__(self, pool: str, seen: dict[str, Any]) -> None:
        self.done: bool = seen["done"]
        self.now_ms = int(seen["now_ms"])
        self.server_id: str = seen["identity"]
        self.pool = _record(PoolRecord, seen["pool"], name=pool) if "pool" in seen else None
        self.node: str | None = seen.get("node")
        self.record = _record(NodeRecord, seen["record"], pool=pool, node=seen["node"]) if "record" in seen else None


def _record(kind: type[R], text: str, **key: str) -> R:
    try:
        return read(kind, json.loads(text) | key)
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(f"{name_of(kind)} {' '.join(key.values())}", error) from None


def _namespace(name: str, fields: dict[str, str]) -> NamespaceRecord:
    try:
        retired = {"0": False, "1": True}.get(fields.get("retired", ""))
        return read(NamespaceRecord, {**fields, "name": name, "retired": retired})
    except ValueError as error:
        raise _damaged(f"namespace {name}", error) from None


def _without_right(text: str, script: str, prefix: str) -> str:
    """Return the message for a user without the right to a command or a key, with the commands that may be meant."""
    at = _LINE.search(text)
    lines = script.splitlines()
    named = _COMMAND.findall(lines[int(at[1]) - 1]) if at and 0 < int(at[1]) <= len(lines) else []
    if at:
        commands = ", ".join(sorted(set(named or _COMMAND.findall(script))))
        text = f"the user may not run a command that the script needs: {commands}"
    return (
        f"{text}: give it the rights that mintage needs, by: ACL SETUSER NAME ~{prefix}:* +@read +@write +eval "
        "+evalsha +info +time +wait"
    )


def _damaged(key: str, why: object) -> StoreError:
    return StoreError(
        f"the record of {key} is damaged: {why}: restore it from a backup, or delete it if nothing uses it",
        code="store.refused",
    )


def _texts(record: NamespaceRecord) -> dict[str, str]:
    """Return the fields as text, as JSON's numbers cannot hold 64-bit integers. True is 1."""
    values = {name: getattr(record, name) for name in columns(NamespaceRecord) if name != "name"}
    return {name: value if isinstance(value, str) else f"{value:d}" for name, value in values.items()}
