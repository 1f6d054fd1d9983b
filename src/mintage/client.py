"""Asks a service (``mintage serve``) for integers and IDs: :class:`Client`, and :class:`AsyncClient` for asyncio.

Each integer and each ID comes from the service. Whoever needs many uses ``Sequence`` or a generator with the service as
store (``store="http://…"``): they hand out by themselves, and ask once in thousands.

What is asked and how answers are read is a :class:`~mintage.store.calls.Call`, which both clients share.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload
from urllib.parse import quote

from mintage.errors import ArgumentError, ConfigError, GenerationError, ParseError, RequestError, UniquenessWarning
from mintage.lease import NamespaceRecord, Segment, check_count, check_name
from mintage.schemes import NAMES, SCHEMES
from mintage.store import load_driver
from mintage.store.calls import Answer, AnswerError, Call, Service, describe_namespace, reserve
from mintage.store.url import StoreUrl

if TYPE_CHECKING:
    from mintage import locality, sno
    from mintage.store.http import AsyncSender, Sender

__all__ = ["AsyncClient", "Client"]

T = TypeVar("T")


class Client:
    """A service's integers and IDs. Threads may share one; a forked child gets connections of its own.

    :param url: ``http://host:8080``, or ``https://``; with a key as password, ``http://:KEY@host:8080``; with several
        hosts, ``http://host1:8080,host2:8080``. Options: ``timeout_ms`` for each request (2000), and with ``https``
        ``ca``, the file of the authority that signed the service's certificate, and ``cert`` and ``cert_key``, the
        files of a certificate to show it.
    :raises ArgumentError: ``argument.type``: ``url`` is not str.
    :raises ConfigError: ``config.store``: the URL is malformed; ``config.driver``: httpx is not installed.

    Every method raises StoreError: ``store.unavailable`` where no host answers in time, ``store.refused`` where what
    answers is no service; RequestError: ``request.key``, ``request.rights``, ``request.rate``, ``request.busy``; and
    what the service refuses, as the error that the library itself raises. Where a host is away the next one is asked;
    an answer that was lost on the way leaves a gap, never a repeated integer.
    """

    def __init__(self, url: str) -> None:
        self._service = _service(url)
        self._sender: Sender = load_driver("mintage.store.http", "client").Sender(self._service)
        self._is_closed = False

    def next(self, namespace: str) -> int:
        """The next integer of a namespace.

        :raises ConfigError: ``config.name``.
        :raises RequestError: ``request.namespace``, ``request.namespaces``.
        :raises GenerationError: ``sequence.exhausted``.
        """
        return self.batch(namespace, 1)[0]

    def batch(self, namespace: str, count: int) -> list[int]:
        """The next ``count`` integers of a namespace, 1 to the service's ``max_count``; in a row as a rule.

        :raises FieldError: ``field.range``.
        :raises MintError: as :meth:`next`.
        """
        return self._ask(_next(namespace, count))

    def reserve(self, namespace: str, count: int) -> range:
        """``count`` integers in a row, 1 to the service's ``max_reserve``, or as many as are left.

        Each call is a durable write of the service's store. It needs the right ``reserve``.

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
        """``count`` IDs of a scheme, 1 to the service's ``max_count``; ``meta`` is sno's metabyte, 0 to 255.

        :raises FieldError: ``field.range``.
        :raises RequestError: ``request.malformed``: there is no such scheme.
        :raises MintError: as a generator's ``new``.
        """
        return self._ask(_mint(scheme, count, meta))

    def describe(self, namespace: str) -> NamespaceRecord:
        """What the service's store keeps of a namespace.

        :raises ConfigError: ``config.name``.
        :raises RequestError: ``request.namespace``.
        """
        return self._ask(describe_namespace(namespace))

    def inspect(self, id: str) -> list[dict[str, Any]]:
        """Every scheme that ``id`` can be of, likeliest first, as ``mintage inspect --json`` has it.

        :raises ParseError: ``parse.unknown``.
        """
        return self._ask(_inspect(id))

    def close(self) -> None:
        """Closes the connections; closing twice does nothing. Afterwards every call raises ``generator.closed``."""
        self._is_closed = True
        self._sender.close()

    def _ask(self, call: Call[T]) -> T:
        _refuse_if(self._is_closed)
        return self._sender.ask(call)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client {self._service.url}>"


class AsyncClient:
    """:class:`Client` for asyncio, within one event loop: the same methods, to be awaited.

    :raises MintError: as :class:`Client`.
    """

    def __init__(self, url: str) -> None:
        self._service = _service(url)
        self._sender: AsyncSender = load_driver("mintage.store.http", "client").AsyncSender(self._service)
        self._is_closed = False

    async def next(self, namespace: str) -> int:
        """As :meth:`Client.next`."""
        return (await self.batch(namespace, 1))[0]

    async def batch(self, namespace: str, count: int) -> list[int]:
        """As :meth:`Client.batch`."""
        return await self._ask(_next(namespace, count))

    async def reserve(self, namespace: str, count: int) -> range:
        """As :meth:`Client.reserve`."""
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
        """As :meth:`Client.mint`."""
        return await self._ask(_mint(scheme, count, meta))

    async def describe(self, namespace: str) -> NamespaceRecord:
        """As :meth:`Client.describe`."""
        return await self._ask(describe_namespace(namespace))

    async def inspect(self, id: str) -> list[dict[str, Any]]:
        """As :meth:`Client.inspect`."""
        return await self._ask(_inspect(id))

    async def aclose(self) -> None:
        """As :meth:`Client.close`."""
        self._is_closed = True
        await self._sender.aclose()

    async def _ask(self, call: Call[T]) -> T:
        _refuse_if(self._is_closed)
        return await self._sender.ask(call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<AsyncClient {self._service.url}>"


def _service(url: str) -> Service:
    parsed = StoreUrl.parse(url)
    if parsed.scheme not in {"http", "https"}:
        raise ConfigError("a client's URL begins with http:// or https://", code="config.store")
    return Service(parsed)


def _refuse_if(is_closed: bool) -> None:
    if is_closed:
        raise GenerationError("the client was closed: make a new one", code="generator.closed")


# --- calls --------------------------------------------------------------------------------------------------------


def _most_bytes(count: int) -> int:
    return 65_536 + 64 * count


def _check(count: int) -> None:
    if type(count) is not int:
        raise ArgumentError(f"count must be int, not {type(count).__name__}", code="argument.type")
    check_count(count)


def _next(namespace: str, count: int) -> Call[list[int]]:
    check_name(namespace, "namespace")
    _check(count)

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
    _check(count)
    return reserve(namespace, count)


def _mint(scheme: str, count: int, meta: int) -> Call[list[Any]]:
    minted = SCHEMES.get(scheme)
    if minted is None:
        raise RequestError(f"scheme {scheme!r:.60} is none of {', '.join(NAMES)}", code="request.malformed")
    _check(count)

    def read(answer: Answer) -> list[Any]:
        try:
            ids = [minted.parse(text) for text in answer.members().texts("ids", count)]
        except ParseError as error:
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
