"""``kubernetes:`` keeps its records in Lease objects of a Kubernetes cluster, through its API. It uses httpx.

Each node number, pool and namespace has an object of its own, with its record in an annotation. The API has no
transaction over several objects: it replaces one object, if that still has the ``resourceVersion`` that was read.

No two windows of a node number overlap, as its one object decides about them:

- A grant and an extension replace the object at the version that they read, or create it. Of two at a time, one comes
  first, and the other one starts again from its window.
- The end of the last window goes back in two cases: a holder that has stopped releases it, or a grant is undone whose
  token nobody has got. Both replace the object in the same way.
- A request whose answer was lost may take effect late, but only while nobody has written the object since.

Grants and extensions also depend on the pool, and read it again after their write. If it has changed, the verb starts
again, before anybody has the window: the grant is undone, or the extension's token, but not its end, which only keeps
others away for longer. Past grants are in the object of their number, so they change with the grant. A namespace of
integers is one object as well.

https://kubernetes.io/docs/reference/using-api/api-concepts/ describes the API.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from heapq import nlargest, nsmallest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

import httpx

from mintage import rules
from mintage._core import sha1
from mintage.errors import ConfigError, StoreError
from mintage.process import jitter
from mintage.protocol.options import option, read_options, timeout
from mintage.protocol.records import Past, R, Record, columns, key_of, name_of, read
from mintage.rules import GrantRecord, NamespaceRecord, NodeRecord, PoolRecord, RunRecord
from mintage.store import LOST_HISTORY, Description, new_token
from mintage.store.documents import date_ms, read_document
from mintage.store.kubeconfig import access_of
from mintage.store.ledger import ConflictError, Ledger, ServerIdentity, Transaction
from mintage.store.per_process import PerProcess

if TYPE_CHECKING:
    from mintage.protocol.url import StoreUrl

T = TypeVar("T")

_MOUNTED: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
ANCHOR: Final = "mintage"
"""The object whose UID is the server's id."""
RECORD: Final = "mintage/record"
GRANTS: Final = "mintage/grants"
RUNS: Final = "mintage/runs"
INCARNATION: Final = "mintage/incarnation"
"""The annotation of the anchor with a text that is part of the server's id. It changes when the cluster went back."""
FINALIZER: Final = "mintage/in-use"
"""The finalizer of each object: it keeps its record after somebody deletes it."""
MOST_PAST: Final = 100
"""The most past grants of a node number, and the most past runs of a namespace."""
PAGE: Final = 500
"""The number of objects that a list requests at a time."""
LIST_S: Final = 60
"""The time for which a process does not list the same pool again to find a free number, in seconds."""
PROBED: Final = 8
"""The most records that a search for a free number reads, besides a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesOptions:
    """The options of a store in Kubernetes."""

    timeout_ms: int = timeout("The longest time of an HTTP request, in milliseconds")
    kubeconfig: str | None = option(None, "The kubeconfig that has the context; `$KUBECONFIG` or `~/.kube/config`")
    account: str = option(_MOUNTED, "The folder with a pod's token, authority and namespace")


class KubernetesStore(Ledger):
    """A store in a Kubernetes cluster: ``kubernetes:`` in a pod, ``kubernetes://CONTEXT/NAMESPACE`` by a kubeconfig.

    Options: :class:`KubernetesOptions`.

    The store's clock is the ``Date`` of the API server that answers, to the second.

    The server's id is the UID of the Lease object ``mintage``, with its annotation ``mintage/incarnation``. A process
    that finds an object at a lower version than before, or without it, writes another value there.
    """

    promise: ClassVar[str] = "shared"
    span_ms = 120_000

    def __init__(self, url: StoreUrl) -> None:
        options = read_options(url, KubernetesOptions)
        if len(url.hosts) > 1 or url.password is not None or (url.hosts and url.hosts[0][1] is not None):
            raise ConfigError(
                f"{url}: write kubernetes: in a pod, else kubernetes://CONTEXT/NAMESPACE, with : of the context as %3A "
                "and / as %2F",
                code="config.store",
            )
        self.url = url
        seen: dict[str, int] = {}
        self._connection = PerProcess(
            lambda: Connection(url, options, seen), lambda connection: connection.client.close()
        )

    @contextmanager
    def _begin(self) -> Iterator[Objects]:
        objects = Objects(self._connection.get())
        yield objects
        objects.commit()

    @contextmanager
    def _look(self) -> Iterator[Objects]:
        yield Objects(self._connection.get(), only_reads=True)

    def get_lease(self, pool: str, node: int) -> NodeRecord | None:
        # A list would have all objects of the pool if this one is missing.
        rules.check_name(pool, "pool")
        rules.check_int(node, "node", 0, rules.MAX_NODES - 1)
        return self._read(lambda t: t.get_unlocked(NodeRecord, pool, node))

    def describe(self) -> Description:
        version = self._connection.get().version()
        server, is_new, is_to_be_deleted = self._read(
            lambda t: (t.server(), t.is_new, cast("Objects", t).is_to_be_deleted)
        )
        warnings = []
        if server.has_lost:
            warnings.append(
                f"{LOST_HISTORY}: the cluster went back to older data, or objects were removed. A pool that is not "
                "listed begins in quarantine, a namespace that is not listed is refused. Create each namespace "
                "that was in use above all its integers (mintage namespaces create NAME --start N), then run: "
                f"kubectl annotate lease {ANCHOR} {INCARNATION}-"
            )
        if is_to_be_deleted:
            warnings.append(
                f"somebody deleted the Lease object {ANCHOR}, and perhaps others: they stay and work on, until "
                f"their finalizer {FINALIZER} is removed; remove it only if nobody mints with this store again"
            )
        return self._describe(server, version, warnings, is_new=is_new)

    def close(self) -> None:
        self._connection.close()


_KEEPERS: Final[dict[type[Any], type[Any]]] = {GrantRecord: NodeRecord, RunRecord: NamespaceRecord}
"""The kind of the record whose object has the past records of a kind."""


@dataclass(slots=True)
class Numbers:
    """The node numbers of a pool, as far as a process knows. A write of a record finds out what has changed since."""

    listed_s: float = float("-inf")
    until_ms: dict[int, int] = field(default_factory=dict)
    """The end of the last window of each number that has a record."""
    collisions: int = 0
    """The number of grants in a row that came too late for their number."""

    def _one_of(self, candidates: Iterator[T]) -> T | None:
        """Return the first candidate; after collisions, any of the first, so that those that start together part."""
        first = list(islice(candidates, 1 << 2 * min(self.collisions, 6)))
        return first[int(jitter.uniform(0, len(first)))] if first else None

    def oldest(self, nodes: range, now_ms: int) -> int | None:
        """Return the number whose window ended first; after collisions, any of those past their cool-down."""
        ends = sorted((end, node) for node, end in list(self.until_ms.items()) if node in nodes)
        past = (node for end, node in ends if end <= now_ms - rules.COOLDOWN_MS or node == ends[0][1])
        return self._one_of(past)

    def unused(self, nodes: range) -> int | None:
        """Return the lowest number without a record; after collisions, any of the first ones."""
        return self._one_of(node for node in nodes if node not in self.until_ms)


class Connection:
    """One process's connections to the API, and what it remembers."""

    def __init__(self, url: StoreUrl, options: KubernetesOptions, seen: dict[str, int]) -> None:
        self._url = url
        self._timeout_ms = options.timeout_ms
        self._access = access_of(url, Path(options.account), options.kubeconfig)
        self._leases = f"{self._access.server}/apis/coordination.k8s.io/v1/namespaces/{self._access.namespace}/leases"
        self._seen = seen
        """The highest version of each object that a verb has read or written."""
        self.numbers: defaultdict[str, Numbers] = defaultdict(Numbers)
        self.date: str | None = None
        """The ``Date`` of the last answer."""
        # Ignore proxies and passwords of the environment: the URL alone names the store.
        self.client = httpx.Client(timeout=options.timeout_ms / 1000, verify=self._access.tls, trust_env=False)

    def version(self) -> str:
        """Return the product and the version of the API's server."""
        found = _json(self._send("GET", f"{self._access.server}/version")).get("gitVersion")
        return f"Kubernetes {found}" if isinstance(found, str) else "Kubernetes"

    def get(self, name: str) -> dict[str, Any] | None:
        """Return an object; ``None`` if it is missing.

        :raises ConflictError: the cluster went back to older data, and has another incarnation now.
        """
        before = self._seen.get(name, 0)
        found = self._ask("GET", name)
        if (0 if found is None else _order(found)) < before:
            self._renounce()
        if found is not None:
            self._note(name, found)
        return found

    def put(self, name: str, body: dict[str, Any], version: str) -> str:
        """Create an object, or replace it if it has this version; return its new version.

        :raises ConflictError: it has another one.
        """
        body["metadata"] |= {"name": name, "finalizers": [FINALIZER], "resourceVersion": version}
        body |= {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        written = self._ask("PUT", name, body) if version else self._ask("POST", "", body)
        if written is None:
            raise ConflictError
        self._note(name, written)
        return _version(written)

    def each(self, selector: str) -> Iterator[dict[str, Any]]:
        """Yield all objects with these labels.

        :raises ConflictError: the list took so long that the API has dropped the version that it shows.
        """
        query = {"labelSelector": f"app.kubernetes.io/managed-by=mintage,{selector}", "limit": str(PAGE)}
        while True:
            page = self._ask("GET", "", None, query) or {}
            yield from page.get("items") or ()
            if not (more := page["metadata"].get("continue")):
                return
            query["continue"] = more

    def _note(self, name: str, found: dict[str, Any]) -> None:
        if len(self._seen) >= 10_000:
            self._seen.clear()
        self._seen[name] = max(self._seen.get(name, 0), _order(found))

    def _renounce(self) -> None:
        """Give the anchor another incarnation, unless a process has done so since the cluster went back.

        :raises ConflictError: always.
        """
        found, before = self._ask("GET", ANCHOR), self._seen.get(ANCHOR, 0)
        self._seen.clear()
        if found is None or _order(found) <= before:
            self.put(ANCHOR, anchor(new_token()[:8]), "" if found is None else _version(found))
        raise ConflictError

    def _ask(
        self, method: str, name: str, body: dict[str, Any] | None = None, query: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Send a request for Lease objects and return the answer; ``None`` if the object is missing.

        :raises ConflictError: another client wrote meanwhile.
        :raises StoreError: as the verbs of a store.
        """
        answer = self._send(method, f"{self._leases}/{name}".rstrip("/"), body, query)
        found, status, codes = _json(answer), answer.status_code, httpx.codes
        kind, said = found.get("kind"), str(found.get("message") or "")
        is_missing = kind == "Status" and status == codes.NOT_FOUND and found.get("reason") == "NotFound"
        if kind == "Status" and status in {codes.CONFLICT, codes.GONE}:
            raise ConflictError
        if (is_missing and method != "POST") or (
            answer.is_success and kind in ("Lease", "LeaseList") and isinstance(found.get("metadata"), dict)
        ):
            self.date = answer.headers.get("Date")
            return None if is_missing else found
        why = f"{self._url}: HTTP {status}{f': {said:.300}' if said else ''}"
        if status == codes.TOO_MANY_REQUESTS or answer.is_server_error:
            wait_ms = round(_retry_after_s(answer) * 1000) or None
            raise StoreError(why, code="store.unavailable", retry_after_ms=wait_ms)
        is_denied = status in {codes.UNAUTHORIZED, codes.FORBIDDEN}
        if is_denied:
            why += ": give its account the Role of deploy/kubernetes/store, in this namespace"
        elif not said:
            why += " is no answer of Kubernetes: check the address"
        # An API that starts refuses everybody until it has read the roles, and a token may be replaced late.
        was_allowed = is_denied and self.date is not None
        refused = StoreError(why, code="store.unavailable" if was_allowed else "store.refused")
        refused.is_lasting = is_denied and not was_allowed
        raise refused

    def _send(
        self, method: str, url: str, body: dict[str, Any] | None = None, query: dict[str, str] | None = None
    ) -> httpx.Response:
        """Send a request; once more if the API was too busy to execute it and says when to come back."""
        for is_again in (False, True):
            # The token is read each time, as the kubelet replaces it.
            token = self._access.read_token()
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            try:
                answer = self.client.request(method, url, json=body, params=query, headers=headers)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                why = "it did not answer in time" if isinstance(error, httpx.TimeoutException) else str(error)
                raise StoreError(
                    f"{self._url}: {why}: check that the API of Kubernetes runs, or allow more than timeout_ms "
                    f"{self._timeout_ms}",
                    code="store.unavailable",
                ) from error
            wait_s = _retry_after_s(answer)
            if is_again or answer.status_code != httpx.codes.TOO_MANY_REQUESTS or wait_s * 1000 > self._timeout_ms:
                break
            # Those that were sent away together should not come back together.
            time.sleep(wait_s * jitter.uniform(0.5, 1.5))
        return answer


class Objects(Transaction):
    """The records of a transaction: those that it read, with their objects' versions, and those that it writes."""

    def __init__(self, connection: Connection, *, only_reads: bool = False) -> None:
        self._connection = connection
        self._only_reads = only_reads
        self._server: ServerIdentity | None = None
        self._versions: dict[str, str] = {}
        """The version of each object that was read; empty if it is missing."""
        self._found: dict[str, Record] = {}
        self._past: dict[str, list[Any]] = {}
        """The past grants or runs in each object that was read, the last one first."""
        self._written: dict[str, Record] = {}
        self.is_to_be_deleted = False

    def server(self) -> ServerIdentity:
        if self._server is None:
            found = self._connection.get(ANCHOR)
            if found is None and not self._only_reads:
                self._connection.put(ANCHOR, anchor(), "")
                found = self._connection.get(ANCHOR)
            self.is_new = found is None
            metadata = (found or {}).get("metadata", {})
            self.is_to_be_deleted = "deletionTimestamp" in metadata
            incarnation = (metadata.get("annotations") or {}).get(INCARNATION)
            identity = metadata.get("uid", "new") + (f":{incarnation}" if incarnation else "")
            now_ms = date_ms(self._connection.date, "the API")
            self._server = ServerIdentity(identity, now_ms, has_lost=bool(incarnation))
        return self._server

    def get(self, kind: type[R], *key: str | int) -> R | None:
        """Return the record with this key, which must not change until the commit; ``None`` if there is none."""
        name = object_name(kind, *key)
        found = self._connection.get(name)
        self._versions[name] = ""
        if found is not None:
            return self._read(kind, name, found)
        if kind is NodeRecord:
            self._numbers(key[0]).until_ms.pop(int(key[1]), None)
        return None

    def _read(self, kind: type[R], name: str, found: dict[str, Any]) -> R:
        """Return the record of an object, and remember its version and past records."""
        record, self._past[name] = _record(kind, name, found)
        if name != object_name(kind, *key_of(record)):
            raise StoreError(f"the Lease object {name} has the record of another: remove it", code="store.refused")
        if isinstance(record, NodeRecord):
            self._numbers(record.pool).until_ms[record.node] = record.until_ms
        self._versions[name], self._found[name] = _version(found), record
        return record

    def put(self, record: Record) -> None:
        self._written[object_name(type(record), *key_of(record))] = record

    def page(self, kind: type[R], *after: str | int, limit: int = rules.MAX_COUNT) -> Sequence[R]:
        selector = f"mintage/kind={name_of(kind)}"
        if kind is NodeRecord:
            # A list has all objects of the pool, and many callers ask for the record of one number.
            if limit == 1 and (following := self.get(kind, after[0], int(after[1]) + 1)) is not None:
                return [following]
            selector += f",mintage/pool={_shown(str(after[0]))}"
        found = (self._read(kind, str(each["metadata"]["name"]), each) for each in self._connection.each(selector))
        return nsmallest(limit, (each for each in found if key_of(each) > after), key=key_of)

    def _numbers(self, pool: Any) -> Numbers:
        return self._connection.numbers[str(pool)]

    def oldest(self, pool: str, nodes: range) -> NodeRecord | None:
        """Return the record in ``nodes`` whose window ended first, as far as this process knows.

        A large pool is listed once in a while. The record that is returned was read in this transaction.
        """
        numbers = self._numbers(pool)
        if nodes.stop - nodes.start <= PROBED:
            for node in nodes:
                self.get(NodeRecord, pool, node)
        elif not numbers.until_ms or numbers.listed_s + LIST_S <= time.monotonic():
            numbers.until_ms = {}
            self.page(NodeRecord, pool, -1)
            numbers.listed_s = time.monotonic()
        checked: list[NodeRecord] = []
        while len(checked) < PROBED and (found := numbers.oldest(nodes, self.server().now_ms)) is not None:
            known, name = numbers.until_ms.get(found), object_name(NodeRecord, pool, found)
            record = self._found.get(name) or self.get(NodeRecord, pool, found)
            if isinstance(record, NodeRecord):
                if record.until_ms == known:
                    return record
                checked.append(record)
        return min(checked, key=lambda each: each.until_ms, default=None)

    def unused(self, pool: str, nodes: range) -> int | None:
        """Return a number of ``nodes`` without a record, the lowest as far as this process knows."""
        return self._numbers(pool).unused(nodes)

    def keep(self, record: Past, ended_ms: int) -> None:
        """Add a past record to the object of its number or namespace; remove those that are too old or too many."""
        name = object_name(_KEEPERS[type(record)], *key_of(record)[:-1])
        kept = [each for each in self._past.get(name, []) if key_of(each) != key_of(record)]
        old = [each for each in kept if each.until_ms < ended_ms][-rules.PRUNED :]
        self._past[name] = [record, *(each for each in kept if each not in old)][:MOST_PAST]

    def past(self, kind: type[R], *place: str | int, highest: int, limit: int) -> Sequence[R]:
        self.get(_KEEPERS[kind], *place)
        found = self._past.get(object_name(_KEEPERS[kind], *place), [])
        return nlargest(limit, (each for each in found if key_of(each)[-1] <= highest), key=key_of)

    def forget_grants(self, pool: str) -> bool:
        for record in self.page(NodeRecord, pool, -1):
            name = object_name(NodeRecord, pool, record.node)
            if self._past[name]:
                self._past[name] = []
                self.put(record)
        return False

    def count_namespaces(self) -> int:
        return sum(1 for _ in self._connection.each("mintage/kind=namespace"))

    def commit(self) -> None:
        """Write the records of the transaction, a pool first, each if its object has not changed.

        :raises ConflictError: an object has changed.
        """
        for name, record in self._written.items():
            if isinstance(record, NodeRecord):
                self._commit_node(name, record)
            else:
                self._replace(name, record)

    def _commit_node(self, name: str, record: NodeRecord) -> None:
        numbers, before = self._numbers(record.pool), self._found.get(name)
        is_grant = record.token is not None and not (
            isinstance(before, NodeRecord) and before.token is not None and before.floor_ms == record.floor_ms
        )
        try:
            self._replace(name, record)
        except ConflictError:
            numbers.collisions += is_grant
            if name not in self._versions:
                # It was taken for unused.
                self.get(NodeRecord, record.pool, record.node)
            raise
        numbers.collisions = 0
        pool = object_name(PoolRecord, record.pool)
        if pool in self._versions:
            known = self._versions[pool]
            self.get(PoolRecord, record.pool)
            if self._versions[pool] != known:
                # Nobody has the token of a grant, so nobody minted in its window. A longer window only rests longer,
                # and with the token before, the extension is decided again.
                undone = replace(record, token=None, until_ms=record.floor_ms)
                if isinstance(before, NodeRecord) and not is_grant:
                    undone = replace(record, token=before.token)
                self._replace(name, undone)
                raise ConflictError

    def _replace(self, name: str, record: Record) -> None:
        body = _body(record, self._past.get(name))
        self._versions[name] = self._connection.put(name, body, self._versions.get(name, ""))
        if isinstance(record, NodeRecord):
            self._numbers(record.pool).until_ms[record.node] = record.until_ms


# --- objects ------------------------------------------------------------------------------------------------------


def object_name(kind: type[Any], *key: str | int) -> str:
    """Return the name of the object of a record.

    >>> object_name(NodeRecord, "sno", 7), object_name(PoolRecord, "uuid.v7")
    ('mintage.node.sno.7', 'mintage.pool.uuid-v7.adad6b361317479bb4b2')
    """
    return ".".join((ANCHOR, name_of(kind), _shown(str(key[0])), *map(str, key[1:])))


def _shown(name: str) -> str:
    """Return a name as a part of an object's: a plain one as it is, any other in small letters and with a hash.

    The dot before the hash keeps both kinds apart. The result fits in a label.
    """
    plain = "".join(each if each in _PLAIN else "-" for each in name[:40].lower()).strip("-")
    return name if plain == name else f"{plain}{'x' * (not plain)}.{sha1(name.encode()).hex()[:20]}"


_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


def anchor(incarnation: str | None = None) -> dict[str, Any]:
    """Return the object whose UID identifies the store, without what all objects have."""
    annotations = {} if incarnation is None else {INCARNATION: incarnation}
    return {"metadata": {"labels": {"app.kubernetes.io/managed-by": "mintage"}, "annotations": annotations}}


def _body(record: Record, past: list[Any] | None) -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": "mintage", "mintage/kind": name_of(type(record))}
    annotations = {RECORD: json.dumps(asdict(record), ensure_ascii=False)}
    spec: dict[str, Any] = {}
    if past:
        values = [astuple(each)[len(key_of(record)) :] for each in past]
        annotations[GRANTS if isinstance(record, NodeRecord) else RUNS] = json.dumps(values, ensure_ascii=False)
    if isinstance(record, NodeRecord):
        labels["mintage/pool"] = _shown(record.pool)
        # For people: mintage reads the record alone.
        spec = {
            "leaseDurationSeconds": max(1, record.span_ms // 1000),
            "renewTime": _time(record.until_ms - record.span_ms),
            "acquireTime": _time(record.since_ms),
        }
        if record.token is not None and record.holder:
            spec["holderIdentity"] = record.holder
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}


def _time(ms: int) -> str:
    # A Lease object shows times up to the year 9999.
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=min(max(ms, 0), 250_000_000_000_000))
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _record(kind: type[R], name: str, found: dict[str, Any]) -> tuple[R, list[Any]]:
    """Return the record of an object, and the past grants of a node number, or the past runs of a namespace."""
    annotations = found["metadata"].get("annotations") or {}
    where, remedy = f"the Lease object {name}", "repair its annotations"
    record: R = read_document(kind, annotations.get(RECORD, ""), where, remedy)
    try:
        return record, _past(record, annotations)
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(record, NodeRecord):
            raise StoreError(f"{where} holds no past grants: {error}: {remedy}", code="store.refused") from None
        return record, []  # no reservation needs them


def _past(record: Record, annotations: dict[str, str]) -> list[Any]:
    kind: Any = GrantRecord if isinstance(record, NodeRecord) else RunRecord
    rows = json.loads(annotations.get(GRANTS if kind is GrantRecord else RUNS, "[]"))
    return [read(kind, dict(zip(columns(kind), (*key_of(record), *row), strict=True))) for row in rows]


def _json(answer: httpx.Response) -> dict[str, Any]:
    """Return the object of JSON in an answer; an empty one if it has none."""
    try:
        found = answer.json()
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _version(found: dict[str, Any]) -> str:
    return str(found["metadata"].get("resourceVersion", ""))


def _order(found: dict[str, Any]) -> int:
    """Return the version of an object as a number; 0 if this cluster's versions are none."""
    version = _version(found)
    return int(version) if rules.is_number(version, 19) else 0


def _retry_after_s(answer: httpx.Response) -> float:
    text = answer.headers.get("Retry-After", "")
    return float(text) if rules.is_number(text, 4) else 0.0
