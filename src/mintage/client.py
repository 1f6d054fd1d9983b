"""Clients of a service (``mintage serve``): :class:`Client`, and :class:`AsyncClient` for asyncio.

Each integer and each ID comes from the service. A program that needs many uses ``Sequence`` or a generator with the
service as store (``store="http://…"``): they mint by themselves, and send a request for thousands of IDs at once.

A :class:`~mintage.protocol.calls.Call` describes each request and reads its answer; both clients share them.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, overload
from urllib.parse import quote

from mintage._core import generation
from mintage.errors import (
    ArgumentError,
    ConfigError,
    FieldError,
    MintError,
    ParseError,
    RequestError,
    UniquenessWarning,
)
from mintage.formats.kinds import KINDS, NAMES
from mintage.protocol.calls import Answer, Call, ServiceProtocol, closed, describe_namespace, reserve
from mintage.protocol.members import AnswerError
from mintage.protocol.url import StoreUrl
from mintage.rules import MAX_COUNT, NamespaceRecord, Segment, check_int, check_name
from mintage.store import load_driver

if TYPE_CHECKING:
    from mintage import locality, sno
    from mintage.store.http import AsyncSender, Sender

__all__ = ["AsyncClient", "Client"]

T = TypeVar("T")

#: Most integers of a request that callers share. If the service's ``max_count`` is lower, its refusal says so, and the
#: next requests ask for fewer.
_MOST_TOGETHER: Final = 1000
#: For fewer integers, the answer may differ.
_TOO_MANY: Final = frozenset({"field.range", "namespace.exhausted"})


class Client:
    """A client of a service's integers and IDs. Threads may share it; a forked child gets connections of its own.

    It needs the extra ``client``. The example starts a service, which needs the extra ``server``, on a free port:

    >>> import json, subprocess, sys
    >>> from mintage import Client
    >>> options = "--http 127.0.0.1:0 --redis off --store memory:".split()
    >>> with subprocess.Popen([sys.executable, "-m", "mintage", "serve", *options], stderr=subprocess.PIPE) as service:
    ...     try:
    ...         url = "http://" + json.loads(service.stderr.readline())["http"]
    ...         with Client(url) as ids:
    ...             ids.next("orders"), ids.batch("orders", 3), ids.mint("sno", meta=7)[0].meta
    ...     finally:
    ...         service.terminate()
    (1, [2, 3, 4], 7)

    :param url: ``http://host:8080``, or ``https://``; with a key as password, ``http://:KEY@host:8080``; with several
        hosts, ``http://host1:8080,host2:8080``. Options: ``timeout_ms`` for each request (2000), and with ``https``
        ``ca``, the file of the authority that signed the service's certificate, and ``cert`` and ``cert_key``, the
        files of the client's own certificate and key.
    :raises ArgumentError: ``argument.type``: ``url`` is not str.
    :raises ConfigError: ``config.store``: the URL is malformed; ``config.driver``: httpx is not installed.

    Every method raises StoreError: ``store.unavailable`` if no host answers in time, ``store.refused`` if the host is
    not a mintage service; RequestError: ``request.key``, ``request.rights``, ``request.rate``, ``request.busy``. If the
    service refuses a request, the method raises the error that the library itself would raise. If a host is away, the
    client tries the next one. A lost answer leaves a gap, never a repeated integer.
    """

    def __init__(self, url: str) -> None:
        self._service = _service(url)
        self._sender: Sender = load_driver("mintage.store.http", "client").Sender(self._service)
        self._is_closed = False

    def next(self, namespace: str) -> int:
        """Return the next integer of a namespace.

        :raises ConfigError: ``config.name``.
        :raises RequestError: ``request.namespace``, ``request.namespaces``.
        :raises GenerationError: ``namespace.exhausted``.
        """
        return self.batch(namespace, 1)[0]

    def batch(self, namespace: str, count: int) -> list[int]:
        """Return the next ``count`` integers of a namespace, 1 to the service's ``max_count``; in a row as a rule.

        :raises FieldError: ``field.range``.
        :raises MintError: as :meth:`next`.
        """
        return self._ask(_next(namespace, count))

    def reserve(self, namespace: str, count: int) -> range:
        """Reserve ``count`` integers in a row, 1 to the service's ``max_reserve``, or as many as are left.

        Each call is a durable write in the service's store. It needs the right ``reserve``.

        :raises FieldError: ``field.range``.
        :raises MintError: as :meth:`next`.
        """
        return self._ask(_reserve(namespace, count)).as_range()

    @overload
    def mint(self, scheme: Literal["sno"], count: int = 1, meta: int = 0) -> list[sno.ID]: ...
    @overload
    def mint(self, scheme: Literal["snowflake"], count: int = 1) -> list[int]: ...
    @overload
    def mint(self, scheme: Literal["locality"], count: int = 1) -> list[locality.ID]: ...
    @overload
    def mint(self, scheme: str, count: int = 1, meta: int = 0) -> list[Any]: ...
    def mint(self, scheme: str, count: int = 1, meta: int = 0) -> list[Any]:
        """Mint ``count`` IDs of a scheme, 1 to the service's ``max_count``; ``meta`` is sno's metabyte, 0 to 255.

        :raises FieldError: ``field.range``.
        :raises RequestError: ``request.malformed``: there is no such scheme.
        :raises MintError: as a generator's ``new``.
        """
        return self._ask(_mint(scheme, count, meta))

    def describe(self, namespace: str) -> NamespaceRecord:
        """Return the record of a namespace in the service's store.

        :raises ConfigError: ``config.name``.
        :raises RequestError: ``request.namespace``.
        """
        return self._ask(describe_namespace(namespace))

    def inspect(self, id: str) -> list[dict[str, Any]]:
        """Return every scheme that ``id`` can be of, likeliest first, in the form of ``mintage inspect --json``.

        :raises ParseError: ``parse.unknown``.
        """
        return self._ask(_inspect(id))

    def close(self) -> None:
        """Close the connections; closing twice does nothing. Afterwards every call raises ``generator.closed``."""
        self._is_closed = True
        self._sender.close()

    def _ask(self, call: Call[T]) -> T:
        if self._is_closed:
            raise closed()
        return self._sender.ask(call)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client {self._service.url}>"


class AsyncClient:
    """:class:`Client` for asyncio: the same methods, to be awaited. Each event loop has connections of its own.

    Tasks that call :meth:`next` for the same namespace share requests, so you may gather thousands of them.

    It needs the extra ``client``. The example starts a service, which needs the extra ``server``, on a free port:

    >>> import asyncio, json, subprocess, sys
    >>> from mintage import AsyncClient
    >>> async def take(url: str, count: int) -> list[int]:
    ...     async with AsyncClient(url) as ids:
    ...         return await asyncio.gather(*(ids.next("orders") for _ in range(count)))
    >>> options = "--http 127.0.0.1:0 --redis off --store memory:".split()
    >>> with subprocess.Popen([sys.executable, "-m", "mintage", "serve", *options], stderr=subprocess.PIPE) as service:
    ...     try:
    ...         url = "http://" + json.loads(service.stderr.readline())["http"]
    ...         asyncio.run(take(url, 5))
    ...     finally:
    ...         service.terminate()
    [1, 2, 3, 4, 5]

    :raises MintError: as :class:`Client`.
    """

    def __init__(self, url: str) -> None:
        self._service = _service(url)
        self._make: type[AsyncSender] = load_driver("mintage.store.http", "client").AsyncSender
        self._loops: dict[tuple[asyncio.AbstractEventLoop, int], tuple[AsyncSender, _Sharing]] = {}
        """By event loop and process, its connections and its callers that share requests."""
        self._is_closed = False

    async def next(self, namespace: str) -> int:
        """Return the next integer of a namespace, as :meth:`Client.next` does.

        While a request for the namespace is under way, all further callers wait, and the next request asks for as many
        integers as there are callers, 1,000 at most. Callers get their integers in the order in which they called. If a
        request fails, each of its callers gets an error of its own. Cancelling a caller while its request is under way
        leaves a gap.
        """
        check_name(namespace, "namespace")
        _, sharing = self._of_loop()
        return await sharing.next(namespace)

    async def batch(self, namespace: str, count: int) -> list[int]:
        """Return the next ``count`` integers, as :meth:`Client.batch` does."""
        return await self._ask(_next(namespace, count))

    async def reserve(self, namespace: str, count: int) -> range:
        """Reserve ``count`` integers in a row, as :meth:`Client.reserve` does."""
        return (await self._ask(_reserve(namespace, count))).as_range()

    @overload
    async def mint(self, scheme: Literal["sno"], count: int = 1, meta: int = 0) -> list[sno.ID]: ...
    @overload
    async def mint(self, scheme: Literal["snowflake"], count: int = 1) -> list[int]: ...
    @overload
    async def mint(self, scheme: Literal["locality"], count: int = 1) -> list[locality.ID]: ...
    @overload
    async def mint(self, scheme: str, count: int = 1, meta: int = 0) -> list[Any]: ...
    async def mint(self, scheme: str, count: int = 1, meta: int = 0) -> list[Any]:
        """Mint ``count`` IDs, as :meth:`Client.mint` does."""
        return await self._ask(_mint(scheme, count, meta))

    async def describe(self, namespace: str) -> NamespaceRecord:
        """Return the record of a namespace, as :meth:`Client.describe` does."""
        return await self._ask(describe_namespace(namespace))

    async def inspect(self, id: str) -> list[dict[str, Any]]:
        """Return every scheme that ``id`` can be of, as :meth:`Client.inspect` does."""
        return await self._ask(_inspect(id))

    async def aclose(self) -> None:
        """Close the connections of this event loop; closing twice does nothing.

        From then on every call raises ``generator.closed``, as do the calls of this loop that wait for an answer.
        """
        self._is_closed = True
        if (found := self._loops.pop((asyncio.get_running_loop(), generation()), None)) is not None:
            sender, sharing = found
            sharing.close()
            await sender.aclose()

    async def _ask(self, call: Call[T]) -> T:
        sender, _ = self._of_loop()
        return await sender.ask(call)

    def _of_loop(self) -> tuple[AsyncSender, _Sharing]:
        """Return the connections and the shared requests of the running event loop."""
        if self._is_closed:
            raise closed()
        key = asyncio.get_running_loop(), generation()
        found = self._loops.get(key)
        if found is None:
            for other in tuple(self._loops):
                if other[0].is_closed():
                    self._loops.pop(other, None)
            sender = self._make(self._service)
            found = self._loops.setdefault(key, (sender, _Sharing(sender.ask)))
        return found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<AsyncClient {self._service.url}>"


def _service(url: str) -> ServiceProtocol:
    parsed = StoreUrl.parse(url)
    if parsed.scheme not in {"http", "https"}:
        raise ConfigError("a client's URL begins with http:// or https://", code="config.store")
    return ServiceProtocol(parsed)


# --- callers that share a request ---------------------------------------------------------------------------------


_Callers = list[asyncio.Future[int]]


class _Sharing:
    """The callers of one event loop: those that wait for integers of one namespace share requests.

    Each namespace has at most one request under way, for its first callers. The request belongs to a task of its own,
    so it goes on if a caller is cancelled.
    """

    def __init__(self, ask: Callable[[Call[list[int]]], Coroutine[Any, Any, list[int]]]) -> None:
        self._ask = ask
        self._most = _MOST_TOGETHER
        self._namespaces: dict[str, tuple[_Callers, asyncio.Task[None]]] = {}
        """By namespace with waiting callers, these, and the task that serves them."""

    async def next(self, namespace: str) -> int:
        """Wait for the next integer of a namespace."""
        loop = asyncio.get_running_loop()
        found = self._namespaces.get(namespace)
        if found is None:
            callers: _Callers = []
            task = loop.create_task(self._run(namespace, callers))
            # Do this even if it is cancelled before it begins.
            task.add_done_callback(lambda _: self._end(namespace, callers))
            found = self._namespaces[namespace] = callers, task
        caller: asyncio.Future[int] = loop.create_future()
        found[0].append(caller)
        return await caller

    async def _run(self, namespace: str, callers: _Callers) -> None:
        """Serve the callers of a namespace until none waits."""
        most = self._most
        while _drop_done(callers):
            count = min(len(callers), most)
            try:
                integers = await self._ask(_next(namespace, count))
            except Exception as error:  # noqa: BLE001 - a warning may be one that raises
                code = error.code if isinstance(error, MintError) else ""
                if code in _TOO_MANY and count > 1:
                    most = count // 2
                    if code == "field.range":
                        self._most = most
                    continue
                # If none is left, none is for callers that came in the meantime, either.
                _fail(callers if code == "namespace.exhausted" else callers[:count], error)
            else:
                for caller, integer in zip(callers, integers, strict=False):
                    if not caller.done():
                        caller.set_result(integer)
        # Do this before another caller comes, which needs another task.
        del self._namespaces[namespace]

    def _end(self, namespace: str, callers: _Callers) -> None:
        """Cancel the callers that still wait, as those of a task that was cancelled do."""
        if (found := self._namespaces.get(namespace)) is not None and found[0] is callers:
            del self._namespaces[namespace]
        for caller in callers:
            caller.cancel()

    def close(self) -> None:
        """Fail all callers that wait, and end the tasks."""
        for callers, task in self._namespaces.values():
            _fail(callers, closed())
            task.cancel()


def _drop_done(callers: _Callers) -> bool:
    """Drop the callers that have an answer or were cancelled, and return True if others wait."""
    callers[:] = [each for each in callers if not each.done()]
    return bool(callers)


def _fail(callers: _Callers, error: Exception) -> None:
    """Raise a copy of an error in each caller: one object would collect the tracebacks of all tasks."""
    for caller in callers:
        if not caller.done():
            own = copy(error)
            own.__cause__ = error.__cause__
            caller.set_exception(own)


# --- calls --------------------------------------------------------------------------------------------------------


def _most_bytes(count: int) -> int:
    return 65_536 + 64 * count


def _next(namespace: str, count: int) -> Call[list[int]]:
    check_name(namespace, "namespace")
    check_int(count, "count", 1, MAX_COUNT)

    def read(answer: Answer) -> list[int]:
        ids = answer.members().integers("ids", count)
        if len(set(ids)) < count:
            raise AnswerError("has an integer twice")
        if "X-Mintage-Fallback" in answer.headers:
            warnings.warn(
                f"namespace {namespace!r}: the service's store is away, and integers of its last resort may repeat",
                UniquenessWarning,
                stacklevel=2,
            )
        return ids

    path = f"/v1/sequences/{namespace}:next"
    return Call("POST", path, read, query={"count": count}, most_bytes=_most_bytes(count))


def _reserve(namespace: str, count: int) -> Call[Segment]:
    check_int(count, "count", 1, MAX_COUNT)
    return reserve(namespace, count)


def _mint(scheme: str, count: int, meta: int) -> Call[list[Any]]:
    minted = KINDS.get(scheme)
    if minted is None:
        raise RequestError(
            f"scheme {scheme!r:.60} does not exist: use one of {', '.join(NAMES)}", code="request.malformed"
        )
    check_int(count, "count", 1, MAX_COUNT)

    def read(answer: Answer) -> list[Any]:
        try:
            ids = [minted.read(text) for text in answer.members().texts("ids", count)]
        except (FieldError, ParseError) as error:
            raise AnswerError(f"has no good ID: {error}") from None
        if len(set(ids)) < count:
            raise AnswerError("has an ID twice")
        return ids

    query = {"count": count, "meta": meta}
    return Call("POST", f"/v1/ids/{scheme}", read, query=query, most_bytes=_most_bytes(count))


def _inspect(id: str) -> Call[list[dict[str, Any]]]:
    if not isinstance(id, str):
        raise ArgumentError(f"id must be str, not {type(id).__name__}", code="argument.type")

    def read(answer: Answer) -> list[dict[str, Any]]:
        found = [each for each in answer.members().all("anatomies") if isinstance(each, dict)]
        if not found:
            raise AnswerError("has no anatomy")
        return found

    return Call("GET", f"/v1/inspect/{quote(id, safe='', errors='replace')}", read, most_bytes=2**20)
