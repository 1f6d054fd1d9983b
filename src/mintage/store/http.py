"""``http://`` uses the store of a service (``mintage serve``). It uses httpx.

:mod:`mintage.protocol.calls` has the requests and reads the answers. This module has the store and two senders, one for
threads and one for asyncio.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

import httpx

from mintage import rules
from mintage.errors import RequestError, StoreError
from mintage.protocol.calls import (
    Answer,
    Body,
    Call,
    Lost,
    ServiceProtocol,
    closed,
    describe_namespace,
    read_namespace,
    reserve,
)
from mintage.protocol.members import AnswerError, Members
from mintage.rules import LATEST_MS, MAX_INTEGER, GrantRecord, Lease, NodeRecord, PoolRecord, RunRecord
from mintage.store import PAGE, Description, Store
from mintage.store.per_process import PerProcess

if TYPE_CHECKING:
    from mintage.protocol.calls import Outcome, Request
    from mintage.protocol.records import R
    from mintage.protocol.url import StoreUrl
    from mintage.rules import NamespaceRecord, Segment

__all__ = ["HttpStore"]

T = TypeVar("T")

LONGEST_LIST: Final = 2**26
"""The largest accepted list, in bytes."""
_TOKEN: Final = r"[A-Za-z0-9._-]{1,64}"  # noqa: S105 - the form of one
#: In seconds: longer than a segment usually lasts, and shorter than the service keeps an idle connection.
_KEEP_S: Final = 60
#: Pending requests at a time. Others wait before they are sent, so that no sent request waits for a connection.
_MOST_AT_ONCE: Final = 64
#: UnicodeError: the name of the host is invalid.
_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.InvalidURL, UnicodeError)
_FAILURES: Final = (httpx.HTTPError, TimeoutError, *_UNSENT)


# --- senders ------------------------------------------------------------------------------------------------------


class _Connections(NamedTuple):
    """The connections of a process, and the semaphore that limits the threads that use them."""

    client: httpx.Client
    room: BoundedSemaphore


class Sender:
    """A sender of requests for threads. Threads may share it; a forked child gets connections of its own."""

    def __init__(self, service: ServiceProtocol) -> None:
        self._service = service
        self._connections = PerProcess(
            lambda: _Connections(httpx.Client(**_arguments(service)), BoundedSemaphore(_MOST_AT_ONCE)),
            lambda connections: connections.client.close(),
        )
        # Most programs never close a store: a process has one store for each URL.
        weakref.finalize(self, self._connections.close)

    def ask(self, call: Call[T]) -> T:
        """Send a call to the service and return its result.

        :raises MintError: as :meth:`ServiceProtocol.steps`.
        """
        steps = self._service.steps(call)
        try:
            request = next(steps)
            while True:
                request = steps.send(self._send(request))
        except StopIteration as done:
            value: T = done.value
            return value

    def _send(self, request: Request) -> Outcome:
        method, url, headers, content, _ = request
        with self._connections.get().room:
            # Start the timeout here: a request that waited for its turn has all of its time left.
            body = Body(self._service, request.most_bytes)
            try:
                with self._connections.get().client.stream(method, url, headers=headers, content=content) as response:
                    for chunk in response.iter_raw():
                        body.add(chunk)
                return Answer(response.status_code, response.headers, body.content())
            except _FAILURES as error:
                return _lost(error)

    def close(self) -> None:
        """Close this process's connections; the next call opens them again."""
        self._connections.close()


class AsyncSender:
    """A sender of requests for asyncio, within one event loop and one process."""

    def __init__(self, service: ServiceProtocol) -> None:
        self._service = service
        self._client = httpx.AsyncClient(**_arguments(service))
        self._room = asyncio.Semaphore(_MOST_AT_ONCE)
        self._is_closed = False

    async def ask(self, call: Call[T]) -> T:
        """Send a call to the service and return its result.

        :raises GenerationError: ``generator.closed``: the sender was closed, perhaps while this call waited.
        :raises MintError: as :meth:`ServiceProtocol.steps`.
        """
        steps = self._service.steps(call)
        try:
            request = next(steps)
            while True:
                request = steps.send(await self._send(request))
        except StopIteration as done:
            value: T = done.value
            return value

    async def _send(self, request: Request) -> Outcome:
        method, url, headers, content, _ = request
        async with self._room:
            self._check_open()
            # Start the timeout here: a request that waited for its turn has all of its time left.
            body = Body(self._service, request.most_bytes)
            try:
                async with self._client.stream(method, url, headers=headers, content=content) as response:
                    async for chunk in response.aiter_raw():
                        body.add(chunk)
                return Answer(response.status_code, response.headers, body.content())
            except _FAILURES as error:
                # close() ends pending requests.
                self._check_open()
                return _lost(error)

    def _check_open(self) -> None:
        if self._is_closed:
            raise closed()

    async def aclose(self) -> None:
        """Close the connections for good; calls that wait raise ``generator.closed``."""
        self._is_closed = True
        await self._client.aclose()


def _arguments(service: ServiceProtocol) -> dict[str, Any]:
    is_secure = service.url.scheme == "https"
    return {
        "timeout": httpx.Timeout(service.timeout_ms / 1000, pool=None),
        # Without TLS no authority is needed, and to read the system's takes a while.
        "verify": service.url.tls() if is_secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        # Ignore proxies and passwords of the environment: the URL alone names the store.
        "trust_env": False,
        "limits": httpx.Limits(max_connections=None, keepalive_expiry=_KEEP_S),
    }


def _lost(error: Exception) -> Lost:
    is_late = isinstance(error, (httpx.TimeoutException, TimeoutError))
    why = "it did not answer in time" if is_late else str(error) or type(error).__name__
    return Lost(why, not isinstance(error, _UNSENT), error)


# --- the store ----------------------------------------------------------------------------------------------------


class HttpStore(Store):
    """The service as a store: ``http://:KEY@host:8080``, ``https://…``, ``http://:KEY@host1:8080,host2:8080``.

    If the URL has several hosts, they must serve the same store; the client uses the first one that answers. Options:
    ``timeout_ms`` for each request (2000), and with ``https`` ``ca``, the file of the authority that signed the
    service's certificate (the system's authorities), and ``cert`` and ``cert_key``, the files of a client certificate.
    The key needs the right ``reserve`` to reserve integers and ``lease`` to lease node numbers; the other verbs need
    ``describe``, ``create`` and ``admin``.

    A list of leases has no tokens: the token of a held lease is empty.

    :func:`~mintage.store.open_store` returns this store, which needs the extra ``client``. The example starts a
    service, which needs the extra ``server``, on a free port:

    >>> import json, subprocess, sys
    >>> from mintage import Sequence, open_store
    >>> options = "--http 127.0.0.1:0 --redis off --store memory:".split()
    >>> with subprocess.Popen([sys.executable, "-m", "mintage", "serve", *options], stderr=subprocess.PIPE) as service:
    ...     try:
    ...         url = "http://" + json.loads(service.stderr.readline())["http"]
    ...         with open_store(url) as store, Sequence("orders", store) as orders:
    ...             isinstance(store, HttpStore), store.reserve("rows", 1000).as_range(), orders.next()
    ...     finally:
    ...         service.terminate()
    (True, range(1, 1001), 1)
    """

    promise: ClassVar[str] = "shared"

    def __init__(self, url: StoreUrl) -> None:
        self.url = url
        self._sender = Sender(ServiceProtocol(url))

    def _ask(self, call: Call[T]) -> T:
        try:
            return self._sender.ask(call)
        except RequestError as error:
            raise _refused(error) from error

    # --- leases ---------------------------------------------------------------------------------------------------

    def acquire(self, pool: str, *, nodes: range, now_ms: int, span_ms: int, **terms: Any) -> Lease:
        def read(answer: Answer) -> Lease:
            lease = _lease(answer.members(), pool)
            latest_ms = max(lease.floor_ms, now_ms) + rules.longest_span(lease.node, span_ms)
            if lease.node not in nodes or lease.until_ms > latest_ms:
                raise AnswerError("is another lease than was requested")
            return lease

        body = {"nodes": _ends(nodes), "now_ms": now_ms, "span_ms": span_ms, **terms}
        # A lease whose answer is lost expires.
        return self._ask(Call("POST", f"/v1/leases/{pool}", read, body=body))

    def extend(self, lease: Lease, *, now_ms: int, next_token: str) -> Lease:
        def read(answer: Answer) -> Lease:
            longer = replace(_lease(answer.members(), lease.pool), previous=lease.token)
            is_same = (longer.node, longer.token) == (lease.node, next_token) and longer.floor_ms >= lease.floor_ms
            latest_ms = max(lease.until_ms, now_ms) + rules.MAX_SPAN_MS
            if not is_same or not lease.until_ms <= longer.until_ms <= latest_ms:
                raise AnswerError("is another lease than was held")
            return longer

        body = {
            "floor_ms": lease.floor_ms,
            "until_ms": lease.until_ms,
            "now_ms": now_ms,
            "next_token": next_token,
            "previous_token": lease.previous,
        }
        # A retry with the same next token gets the same answer.
        return self._ask(Call("PATCH", _path(lease), read, body=body, token=lease.token))

    def release(self, lease: Lease, *, used_until_ms: int) -> None:
        # Every time of a window is within these limits, and the service refuses other values.
        used_until_ms = min(max(used_until_ms, 0), rules.LATEST_MS)
        call = Call(
            "DELETE",
            _path(lease),
            lambda _: None,
            query={"used_until_ms": used_until_ms},
            token=lease.token,
            # A retry would raise lease.lost.
            is_repeatable=False,
        )
        self._ask(call)

    def revoke(self, pool: str, node: int) -> NodeRecord:
        def read(answer: Answer) -> NodeRecord:
            return _checked(_node(answer.members()), "node number", pool=pool, node=node)

        return self._ask(Call("POST", f"/v1/leases/{pool}/{node}:revoke", read))

    def create_pool(self, pool: str, *, layout: str, nodes: range | None = None, **terms: Any) -> PoolRecord:
        def read(answer: Answer) -> PoolRecord:
            record = _checked(answer.members().record(PoolRecord), "pool", name=pool, layout=layout)
            if nodes not in {None, record.share}:
                raise AnswerError("has another share than was requested")
            return record

        # A service of an older version refuses terms that it does not know.
        terms = {name: value for name, value in terms.items() if value is not None and value is not False}
        body = {"layout": layout, **terms} | ({} if nodes is None else {"nodes": _ends(nodes)})
        # A retry of a statement could end a later quarantine, or widen a share that was narrowed since.
        is_repeatable = terms.keys().isdisjoint({"never_used", "wider_from_ms"})
        return self._ask(Call("PUT", f"/v1/pools/{pool}", read, body=body, is_repeatable=is_repeatable))

    def list_pools(self, after: str = "", limit: int = rules.MAX_COUNT) -> Sequence[PoolRecord]:
        return self._list("/v1/pools", lambda members: members.record(PoolRecord), "name", after, limit)

    def list_leases(
        self, pool: str | None = None, after: int = -1, limit: int = rules.MAX_COUNT
    ) -> Sequence[NodeRecord]:
        if pool is None:
            return list(islice(self.each_lease(), limit))
        return self._list("/v1/leases", _node, "node", after, limit, pool=pool)

    def get_pool(self, pool: str) -> PoolRecord | None:
        return next((each for each in self.each_pool() if each.name == pool), None)

    def list_grants(
        self, pool: str, node: int, before_ms: int = LATEST_MS, limit: int = rules.MAX_COUNT
    ) -> Sequence[GrantRecord]:
        def read(members: Members) -> GrantRecord:
            return _checked(members.record(GrantRecord), "node number", pool=pool, node=node)

        path = f"/v1/pools/{pool}/leases/{node}/grants"
        return self._list(path, read, "floor_ms", before_ms + 1, limit, top="before_ms")

    # --- segments -------------------------------------------------------------------------------------------------

    def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
        return self._ask(reserve(namespace, count, holder))

    def give_back(self, segment: Segment, first_unused: int) -> bool:
        if first_unused not in segment.as_range():
            return False
        body = {
            "first": str(segment.first),
            "last": str(segment.last),
            "stride": segment.stride,
            "first_unused": str(first_unused),
            "serial": segment.serial,
        }
        call = Call(
            "POST",
            f"/v1/sequences/{segment.namespace}:give-back",
            lambda answer: answer.members().flag("taken_back"),
            body=body,
            # The store refuses a retry, whatever the result of the first request was.
            is_repeatable=False,
        )
        return self._ask(call)

    def create_namespace(self, namespace: str, **terms: Any) -> NamespaceRecord:
        given = {name: value for name, value in terms.items() if value is not None}
        body = {name: str(value) if name in {"start", "maximum"} else value for name, value in given.items()}
        # A retry would find the namespace.
        return self._ask(replace(describe_namespace(namespace), method="PUT", body=body, is_repeatable=False))

    def raise_floor(self, namespace: str, value: int) -> NamespaceRecord:
        return self._ask(replace(describe_namespace(namespace), method="PUT", body={"floor": str(value)}))

    def retire(self, namespace: str) -> NamespaceRecord:
        def read(answer: Answer) -> NamespaceRecord:
            record = read_namespace(answer.members(), namespace)
            if not record.retired:
                raise AnswerError("is of a namespace that is not retired")
            return record

        return self._ask(Call("DELETE", f"/v1/sequences/{namespace}", read))

    def get_namespace(self, namespace: str) -> NamespaceRecord | None:
        try:
            return self._sender.ask(describe_namespace(namespace))
        except RequestError as error:
            if error.code == "request.namespace":
                return None
            raise _refused(error) from error

    def list_runs(self, namespace: str, before: int = MAX_INTEGER, limit: int = rules.MAX_COUNT) -> Sequence[RunRecord]:
        def read(members: Members) -> RunRecord:
            return _checked(members.record(RunRecord), "namespace", namespace=namespace)

        return self._list(f"/v1/sequences/{namespace}/runs", read, "first", before + 1, limit, top="before")

    def list_namespaces(self, after: str = "", limit: int = rules.MAX_COUNT) -> Sequence[NamespaceRecord]:
        return self._list("/v1/sequences", read_namespace, "name", after, limit)

    def count_namespaces(self) -> int:
        return self._ask(
            Call("GET", "/v1/sequences:count", lambda answer: answer.members().number("count", 0, rules.MAX_COUNT))
        )

    def _list(
        self, path: str, read: Callable[[Members], T], key: str, bound: Any, limit: int, *, top: str = "", **query: str
    ) -> list[T]:
        """Return at most ``limit`` records whose ``key`` is above a bound, the lowest first.

        With ``top``, the parameter for the highest key, they are those below the bound, the highest first.
        """

        def read_all(answer: Answer) -> list[T]:
            return [read(Members(each)) for each in answer.members().all(path.rpartition("/")[2])]

        found: list[T] = []
        while True:
            asked = min(limit - len(found), PAGE)
            shown = {top: bound - 1} if top else {"after": bound} if bound not in {"", -1} else {}
            page = self._ask(
                Call("GET", path, read_all, query=query | shown | {"limit": asked}, most_bytes=LONGEST_LIST)
            )
            keys = [bound, *(getattr(each, key) for each in page)]
            if len(page) > asked or keys != sorted(set(keys), reverse=bool(top)):
                raise StoreError(f"{self.url}: the answer is another page than was requested", code="store.refused")
            found += page
            bound = keys[-1]
            if len(page) < asked or len(found) == limit or (top and bound == 0):
                return found

    # --- the store itself -----------------------------------------------------------------------------------------

    def describe(self) -> Description:
        found = self._ask(Call("GET", "/v1/store", self._description))
        self.promise = found.promise  # type: ignore[misc]
        return found

    def _description(self, answer: Answer) -> Description:
        members = answer.members()
        promise, warnings = members.text("promise", "process|host|shared"), members.texts("warnings")
        if promise != "shared" and len(self.url.hosts) > 1:
            warnings.append(
                f"{self.url} names several services, but the one that answers has a store of its own ({promise}): what "
                "another hands out repeats; give all of them one store that they share"
            )
        return Description(
            str(self.url),
            promise,
            f"mintage with {members.text('server')}",
            members.text("identity"),
            members.number("now_ms", 0, rules.LATEST_MS),
            tuple(warnings),
        )

    def now_ms(self) -> int:
        return self._ask(Call("GET", "/v1/store", lambda answer: answer.members().number("now_ms", 0, rules.LATEST_MS)))

    def close(self) -> None:
        self._sender.close()


def _refused(error: RequestError) -> StoreError:
    passes = error.code in {"request.busy", "request.rate"}
    refused = StoreError(
        f"{error} ({error.code})",
        code="store.unavailable" if passes else "store.refused",
        retry_after_ms=error.retry_after_ms,
    )
    refused.is_lasting = error.code == "request.key"
    return refused


def _path(lease: Lease) -> str:
    """Return the path of a lease.

    :raises LeaseError: ``lease.lost``: no client can hold this lease.
    """
    if not re.fullmatch(_TOKEN, lease.token):
        rules.release(None, lease, used_until_ms=0)
    return f"/v1/leases/{lease.pool}/{lease.node}"


def _lease(members: Members, pool: str) -> Lease:
    lease = Lease(
        members.text("pool"),
        members.number("node", 0, rules.MAX_NODES - 1),
        members.number("floor_ms", 0, rules.LATEST_MS),
        members.number("until_ms", 0, rules.LATEST_MS),
        members.text("token", _TOKEN),
    )
    if lease.pool != pool:
        raise AnswerError("is of another pool")
    return lease


def _node(members: Members) -> NodeRecord:
    return members.record(NodeRecord, token="" if members.flag("held") else None)


def _checked(record: R, what: str, **known: str | int) -> R:
    """Return the record if its fields have the known values."""
    if any(getattr(record, name) != value for name, value in known.items()):
        raise AnswerError(f"is of another {what}")
    return record


def _ends(nodes: range) -> dict[str, int]:
    return {"first": nodes.start, "last": nodes.stop - 1}
