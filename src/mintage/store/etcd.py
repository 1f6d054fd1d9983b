"""``etcd://`` keeps its records in etcd 3.4 or newer, through its JSON gateway. It uses httpx.

A verb reads keys, and writes in one transaction that etcd executes only if none of these keys changed meanwhile.
https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/ describes the gateway, and
https://etcd.io/docs/v3.4/dev-guide/api_reference_v3/ the messages.
"""

from __future__ import annotations

import bisect
import json
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import httpx

from mintage._core import sha1
from mintage.errors import ConfigError, StoreError
from mintage.protocol.options import AUTHORITIES, CERTIFICATE, CERTIFICATE_KEY, option, read_options, timeout
from mintage.protocol.records import Past, R, Record, key_of, name_of
from mintage.rules import MAX_COUNT, GrantRecord, NamespaceRecord, NodeRecord, RunRecord
from mintage.store import LATEST_FLOOR_MS, LOST_HISTORY, PAGE, Description
from mintage.store.documents import date_ms, read_document
from mintage.store.ledger import ConflictError, Ledger, ServerIdentity, Transaction
from mintage.store.per_process import PerProcess

if TYPE_CHECKING:
    from mintage.protocol.url import StoreUrl

PORT: Final = 2379
_NOT_ALLOWED: Final = (
    "authentication",
    "permission denied",
    "user name is empty",
    "user name not found",
    "invalid auth",
)
SHARED_S: Final = 3_600
"""The longest time in seconds for which past grants share one lease of etcd's."""
MOST_LEASES: Final = 100
"""The most such leases that a process remembers."""
RUNS_MS: Final = 86_400_000
"""The time for which past runs are kept, as etcd's data must stay small."""
INCARNATION: Final = "incarnation"
"""The key, after the prefix, of a text that is part of the server's id. It changes when the cluster went back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdOptions:
    """The options of a store in etcd."""

    prefix: str = option("mintage/", "The beginning of all keys")
    timeout_ms: int = timeout("The longest time of an HTTP request, in milliseconds")
    ca: str | None = option(None, AUTHORITIES, schemes=("etcds",))
    cert: str | None = option(None, CERTIFICATE, schemes=("etcds",))
    cert_key: str | None = option(None, CERTIFICATE_KEY, schemes=("etcds",))


class EtcdStore(Ledger):
    """A store in etcd: ``etcd://host``, ``etcds://host`` with TLS, ``etcd://user:password@host1:2379,host2:2379``.

    If the URL has several hosts, the store uses the first reachable one. Options: :class:`EtcdOptions`.

    etcd has no request for its time, so the store's clock is the ``Date`` of the member that answers, which has a
    resolution of one second: the check of a caller's clock is half a second less exact.

    The server's id is the id of the cluster and the value of the key ``mintage/incarnation``. A process remembers the
    highest revision and raft term of each cluster. An answer with a lower one proves that the cluster went back to
    older data, so the process writes the raft term to that key.
    """

    promise: ClassVar[str] = "shared"

    def __init__(self, url: StoreUrl) -> None:
        options = read_options(url, EtcdOptions)
        if url.path:
            raise ConfigError(f"a store of kind {url.scheme} has no path: {url}", code="config.store")
        self.url = url
        self._prefix = options.prefix
        self._connection = PerProcess(
            lambda: Connection(url, options.timeout_ms), lambda connection: connection.client.close()
        )

    @contextmanager
    def _begin(self) -> Iterator[Keys]:
        keys = Keys(self._connection.get(), self._prefix)
        yield keys
        keys.commit()

    def describe(self) -> Description:
        version = self._connection.get().ask("maintenance/status", {})[0].get("version")
        server = self._run(lambda t: t.server())
        warnings = []
        if server.has_lost:
            warnings.append(
                f"{LOST_HISTORY}: the cluster went back to older data. A pool that is not listed begins in "
                "quarantine, a namespace that is not listed is refused. Create each namespace that was in use above "
                "all its integers (mintage namespaces create NAME --start N), then run: etcdctl del "
                f"{self._prefix}{INCARNATION}"
            )
        return self._describe(server, f"etcd {version}", warnings)

    def close(self) -> None:
        self._connection.close()


class Progress:
    """The highest revision and raft term of each cluster that this process has seen in an answer.

    Every answer that counts is linearizable, so it has at least the revision and term of all earlier answers.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._highest: dict[str, tuple[int, int]] = {}

    def highest(self) -> dict[str, tuple[int, int]]:
        """Return what was seen until now, to compare it with the answer to a request that is sent afterwards."""
        with self._lock:
            return dict(self._highest)

    def went_back(self, cluster: str, revision: int, term: int, before: dict[str, tuple[int, int]]) -> bool:
        """Record an answer; return True if a cluster went back since ``before``."""
        highest, highest_term = before.get(cluster, (0, 0))
        if revision < highest or term < highest_term:
            return True
        with self._lock:
            highest, highest_term = self._highest.get(cluster, (0, 0))
            self._highest[cluster] = max(highest, revision), max(highest_term, term)
        return False

    def forget(self, cluster: str) -> None:
        """Begin again, as the cluster that went back has another incarnation."""
        with self._lock:
            self._highest.pop(cluster, None)


_progress: Final = Progress()


class Connection:
    """One process's connections to the members of a cluster."""

    def __init__(self, url: StoreUrl, timeout_ms: int) -> None:
        self._url = url
        self._timeout_ms = timeout_ms
        scheme = "https" if url.scheme == "etcds" else "http"
        hosts = [(f"[{host}]" if ":" in host else host, port) for host, port in url.hosts or (("127.0.0.1", None),)]
        self._members = [f"{scheme}://{host}:{port or PORT}/v3/" for host, port in hosts]
        self._token: dict[str, str] = {}
        self._leases: set[str] = set()
        """Leases that exist, as this process knows."""
        # Ignore proxies and passwords of the environment: the URL alone names the store.
        self.client = httpx.Client(timeout=timeout_ms / 1000, verify=url.tls(), trust_env=False)

    def ask(self, path: str, body: dict[str, Any]) -> tuple[dict[str, Any], httpx.Headers]:
        """Send a request to a member and return its answer and headers.

        :raises StoreError: as the verbs of a store.
        """
        if self._url.user is not None and not self._token:
            self._log_in()
        answer = self._post(path, body, self._token)
        if self._token and (
            answer.status_code == httpx.codes.UNAUTHORIZED or "revision in header is old" in answer.text
        ):
            # The token expired. etcd did not execute the request, so a retry is safe.
            self._log_in()
            answer = self._post(path, body, self._token)
        return self._checked(answer), answer.headers

    def lease(self, prefix: str, seconds: int, now_s: int) -> str:
        """Return the id of a lease of etcd's that lasts that long or up to a tenth longer. Its keys end with it.

        All processes share one for a while: its id follows from the time ``now_s``.
        """
        shared_s = max(1, min(SHARED_S, seconds // 10))
        words = f"{prefix} {seconds} {now_s // shared_s}"
        known = str(int(sha1(words.encode()).hex()[:15], 16))
        if known not in self._leases:
            try:
                self.ask("lease/grant", {"TTL": seconds + shared_s, "ID": known})
            except StoreError as error:
                if "lease already exists" not in str(error):
                    raise
            if len(self._leases) == MOST_LEASES:
                self._leases.clear()
            self._leases.add(known)
        return known

    def _log_in(self) -> None:
        answer = self._post("auth/authenticate", {"name": self._url.user, "password": self._url.password or ""}, {})
        self._token = {"Authorization": self._checked(answer).get("token", "")}

    def _post(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> httpx.Response:
        for member in tuple(self._members):
            try:
                return self.client.post(member + path, json=body, headers=headers)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                # Nothing was sent, so the next member may get the same request.
                self._pass_over(member)
                failed: httpx.HTTPError = error
            except httpx.HTTPError as error:
                self._pass_over(member)
                failed = error
                break
        why = "it did not answer in time" if isinstance(failed, httpx.TimeoutException) else str(failed)
        raise StoreError(
            f"{self._url}: {why}: check that etcd runs there, or allow more than timeout_ms {self._timeout_ms}",
            code="store.unavailable",
        ) from failed

    def _pass_over(self, member: str) -> None:
        """Move a member to the end of the list, so that the next request goes to another."""
        self._members = [*(other for other in self._members if other != member), member]

    def _checked(self, answer: httpx.Response) -> dict[str, Any]:
        try:
            body = answer.json()
        except ValueError:
            body = None
        if answer.is_success and isinstance(body, dict) and "header" in body:
            return body
        if not isinstance(body, dict) or not answer.is_error:
            why = f"HTTP {answer.status_code} is no answer of etcd's gateway: it needs etcd 3.4 or newer"
            raise StoreError(f"{self._url}: {why}", code="store.refused")
        why = str(body.get("message") or body.get("error") or f"HTTP {answer.status_code}")
        if "compacted" in why or "future revision" in why:
            # etcd has dropped the revision that this transaction reads, or went back to one before it.
            raise ConflictError
        if "lease not found" in why:
            # etcd lost the lease or an administrator revoked it. Its keys went with it, and nothing was written.
            self._leases.clear()
            raise ConflictError
        full = "space exceeded" in why
        passing = not full and (answer.is_server_error or answer.status_code == httpx.codes.TOO_MANY_REQUESTS)
        refused = StoreError(
            f"{self._url}: {why}" + (": compact, defragment and disarm its alarm, or raise its quota" if full else ""),
            code="store.unavailable" if passing else "store.refused",
        )
        refused.is_lasting = not passing and any(words in why for words in _NOT_ALLOWED)
        raise refused


class Keys(Transaction):
    """The keys of a transaction: the keys that it read, with their revisions, and the keys that it writes."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._connection = connection
        self._prefix = prefix
        self._server: ServerIdentity | None = None
        self._cluster = ""
        self._now_ms = 0
        self._revision = "0"
        """The revision that all reads of the transaction use; 0 means the current one."""
        self._read: dict[str, str] = {}
        """The revision of each key that exists."""
        self._written: dict[str, str] = {}
        self._leased: dict[str, str] = {}
        """The lease of etcd's of each written key that has one."""
        self._removed: list[str] = []
        """The beginnings of keys to remove."""

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        before = _progress.highest()
        answer, headers = self._connection.ask(path, body)
        header = answer["header"]
        cluster, term = header["cluster_id"], header.get("raft_term", "0")
        if self._cluster and self._cluster != cluster:
            raise StoreError("etcd was replaced by another cluster meanwhile: try again", code="store.unavailable")
        if _progress.went_back(cluster, int(header["revision"]), int(term), before):
            # All processes that notice it write the same term. After it, no election has this term again.
            self._connection.ask("kv/put", {"key": _encoded(self._prefix + INCARNATION), "value": _encoded(term)})
            _progress.forget(cluster)
            raise ConflictError
        if self._cluster:
            return answer
        self._now_ms = date_ms(headers.get("Date"), "etcd")
        self._cluster, self._revision = cluster, header["revision"]
        return answer

    def _range(self, first: str, stop: str | None = None, **options: Any) -> dict[str, Any]:
        body = {"key": _encoded(first), "revision": self._revision, **options}
        return self._ask("kv/range", body if stop is None else {**body, "range_end": _encoded(stop)})

    def server(self) -> ServerIdentity:
        if self._server is None:
            key, identity = self._prefix + INCARNATION, ""
            self._read[key] = "0"
            for pair in self._range(key).get("kvs", []):
                self._read[key] = pair["mod_revision"]
                identity = ":" + b64decode(pair.get("value", "")).decode(errors="replace")
            self._server = ServerIdentity(self._cluster + identity, self._now_ms, has_lost=bool(identity))
        return self._server

    def _key(self, kind: type[Record], *key: str | int) -> str:
        # Numbers have one width, so that keys sort by number.
        width = 19 if kind is RunRecord else 14
        parts = (f"{part:0{width}}" if isinstance(part, int) else part for part in key)
        return self._prefix + "/".join((name_of(kind), *parts))

    def _one(self, kind: type[R], answer: dict[str, Any]) -> R | None:
        """Return the one record of an answer, which must not change until the commit."""
        for pair in answer.get("kvs", []):
            self._read[_decoded(pair["key"])] = pair["mod_revision"]
            return _record(kind, pair)
        return None

    def get(self, kind: type[R], *key: str | int) -> R | None:
        return self._one(kind, self._range(self._key(kind, *key)))

    def put(self, record: Record) -> None:
        values = asdict(record)
        if isinstance(record, NodeRecord):
            values = {"order": f"{record.until_ms:019} {record.node:014}", **values}
        self._written[self._key(type(record), *key_of(record))] = json.dumps(values)

    def page(self, kind: type[R], *after: str | int, limit: int = MAX_COUNT) -> Sequence[R]:
        # A name that begins with another one sorts after it; a minus sorts before all numbers.
        return self._records(kind, self._key(kind, *after) + "\0", _end(self._key(kind, *after[:-1], "")), limit)

    def _records(self, kind: type[R], first: str, stop: str, limit: int, order: str = "NONE") -> list[R]:
        """Return at most ``limit`` records of a range by key, the lowest first; to sort, etcd reads the whole range."""
        found: list[R] = []
        while (size := min(PAGE, limit - len(found))) > 0:
            pairs = self._range(first, stop, limit=size, sort_target="KEY", sort_order=order).get("kvs", [])
            found += [_record(kind, pair) for pair in pairs]
            if len(pairs) < size:
                break
            last = _decoded(pairs[-1]["key"])
            first, stop = (last + "\0", stop) if order == "NONE" else (first, last)
        return found

    def keep(self, record: Past, ended_ms: int) -> None:
        """Write a past grant or run, under a lease of etcd's that ends as long from now as ``ended_ms`` is ago.

        Without a lease, a run is not kept.
        """
        now_ms, is_run = self.server().now_ms, isinstance(record, RunRecord)
        history_ms = min(now_ms - ended_ms, RUNS_MS) if is_run else now_ms - ended_ms
        with suppress(StoreError) if is_run else nullcontext():
            lease = self._connection.lease(self._prefix, -(-history_ms // 1000), now_ms // 1000)
            self.put(record)
            self._leased[self._key(type(record), *key_of(record))] = lease

    def forget_grants(self, pool: str) -> bool:
        self._removed.append(self._key(GrantRecord, pool, ""))
        return False

    def past(self, kind: type[R], *place: str | int, highest: int, limit: int) -> Sequence[R]:
        if kind is GrantRecord:
            highest = min(highest, LATEST_FLOOR_MS)
        first, stop = self._key(kind, *place, ""), self._key(kind, *place, highest + 1)
        return self._records(kind, first, stop, limit, "DESCEND")

    def count_namespaces(self) -> int:
        first = self._key(NamespaceRecord, "")
        return int(self._range(first, _end(first), count_only=True).get("count", 0))

    def oldest(self, pool: str, nodes: range) -> NodeRecord | None:
        # A record's value begins with its `until_ms` and its number, so that etcd can sort by value.
        first, stop = self._key(NodeRecord, pool, nodes.start), self._key(NodeRecord, pool, nodes.stop)
        return self._one(NodeRecord, self._range(first, stop, sort_target="VALUE", sort_order="ASCEND", limit=1))

    def unused(self, pool: str, nodes: range) -> int | None:
        def used(count: int) -> int:
            first, stop = self._key(NodeRecord, pool, nodes.start), self._key(NodeRecord, pool, nodes.start + count)
            return int(self._range(first, stop, count_only=True).get("count", 0)) if count else 0

        # All numbers before a gap are used, so a binary search finds the first gap.
        most = used(nodes.stop - nodes.start)
        at = bisect.bisect_left(range(most), 1, key=lambda at: at + 1 - used(at + 1))
        return nodes[at] if at < nodes.stop - nodes.start else None

    def commit(self) -> None:
        """Write the records of the transaction, if no key that it read has changed.

        :raises ConflictError: a key has changed.
        """
        if not (self._written or self._removed):
            return
        compare = [
            # A key that is new to this transaction must still be missing. A past grant with the same key is one that
            # outlived its pool, so it may be replaced.
            {"key": _encoded(key), "target": "MOD", "result": "EQUAL", "mod_revision": self._read.get(key, "0")}
            for key in {**self._read, **self._written}
            if key not in self._leased
        ]
        success: list[dict[str, Any]] = [
            {"request_put": {"key": _encoded(key), "value": _encoded(value), "lease": self._leased.get(key, "0")}}
            for key, value in self._written.items()
        ]
        success += [
            {"request_delete_range": {"key": _encoded(first), "range_end": _encoded(_end(first))}}
            for first in self._removed
        ]
        if not self._ask("kv/txn", {"compare": compare, "success": success}).get("succeeded"):
            raise ConflictError


def _record(kind: type[R], pair: dict[str, str]) -> R:
    try:
        text = b64decode(pair.get("value", ""))
    except ValueError:  # of a gateway that is broken
        text = b""
    return read_document(kind, text, f"etcd's key {_decoded(pair['key'])}", "use another prefix for other data")


def _end(prefix: str) -> str:
    """Return the first key above all keys that begin with a prefix, which ends with ``/``."""
    return prefix[:-1] + chr(ord("/") + 1)


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _decoded(text: str) -> str:
    return b64decode(text).decode()
