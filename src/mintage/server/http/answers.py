"""A request of HTTP and its answer: what all interfaces share.

The service is an application of ASGI (https://asgi.readthedocs.io), which uvicorn calls. It has some twenty paths and
needs no framework: the import of one would take 2 MB and 26 ms of each process.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import structlog

from mintage.errors import CATALOGUE, MintError, RequestError, TransientError

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

log: Any = structlog.get_logger("mintage.server")
_WITHOUT_BODY: Final = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class Answer:
    """An answer of HTTP: its status, headers and body."""

    def __init__(
        self,
        body: str | bytes = b"",
        status: int = 200,
        *,
        media_type: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.body = body.encode() if isinstance(body, str) else body
        self.headers = dict(headers or {})
        if status not in _WITHOUT_BODY:
            self.headers["Content-Length"] = str(len(self.body))
        if media_type:
            self.headers["Content-Type"] = media_type

    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers as ASGI has them: bytes, with names in small letters."""
        return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in self.headers.items()]

    async def send(self, send: Send) -> None:
        """Send the answer."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.raw_headers()})
        await send({"type": "http.response.body", "body": self.body})


class Exchange:
    """The facts about a request, which the log, the metrics and the answer use."""

    __slots__ = ("caller", "code", "headers", "operation", "reason", "refuse", "trace_id")

    def __init__(self, trace_id: str) -> None:
        self.trace_id = trace_id
        self.operation = "other"
        """Its name in the metrics."""
        self.code = "ok"
        self.caller = ""
        """The name of the key."""
        self.reason = ""
        """The message of the error."""
        self.headers: dict[str, str] = {}
        """Headers to add to the answer."""
        self.refuse: Callable[[Exchange, MintError], Answer] = problem
        """The function that makes the interface's error answers, problems of RFC 9457 by default."""

    def refused(self, error: MintError) -> Answer:
        """Record an error, and return the answer for it."""
        self.code, self.reason = error.code, str(error)
        if isinstance(error, TransientError) and error.retry_after_ms is not None:
            self.headers["Retry-After"] = str(-(-error.retry_after_ms // 1000))
        if CATALOGUE[error.code].http == HTTPStatus.UNAUTHORIZED:
            self.headers["WWW-Authenticate"] = 'Bearer realm="mintage"'
        return self.refuse(self, error)


Endpoint: TypeAlias = Callable[[Exchange, Scope, Receive], Awaitable[Answer]]
"""A function that answers a request. It raises a :exc:`mintage.errors.MintError` to refuse it."""
Endpoints: TypeAlias = Mapping[str, Endpoint]
"""The endpoints of a path by method. The one of GET also answers HEAD."""


def write_json(value: object) -> str:
    """Return a value in compact JSON."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def answered(
    body: object,
    status: int = 200,
    *,
    media_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Return an answer in JSON."""
    return Answer(write_json(body), status, media_type=media_type, headers=headers)


def log_change(scope: Scope, key: str, **facts: object) -> None:
    """Log a change of a namespace, a pool or a lease that a request asked for.

    :param key: the name of the key; ``""`` for a service without keys.
    :param facts: the members of the request.
    """
    who = {"key": key, "client": (scope.get("client") or ("",))[0]}
    given = {name: value for name, value in who.items() if value}
    log.info("changed", **given, method=scope["method"], path=scope["path"][:200], **facts)


def wrong_method(exchange: Exchange, method: str, known: Collection[str]) -> RequestError:
    """Return the refusal of a method that the path does not have, and note the methods that it has."""
    exchange.headers["Allow"] = allow(known)
    return RequestError(f"the path does not allow {method:.20}: use {', '.join(sorted(known))}", code="request.method")


def allow(known: Collection[str]) -> str:
    """Return the header ``Allow`` of a path that has these methods."""
    return ", ".join(sorted({*known, "OPTIONS", *({"HEAD"} if "GET" in known else ())}))


def problem(exchange: Exchange, error: MintError) -> Answer:
    """Return an error as a problem of RFC 9457."""
    entry = CATALOGUE[error.code]
    body = {
        "type": f"urn:mintage:error:{error.code}",
        "title": entry.meaning,
        "status": entry.http,
        "detail": str(error),
        "code": error.code,
        "trace_id": exchange.trace_id,
    }
    if isinstance(error, TransientError) and error.retry_after_ms is not None:
        body["retry_after_ms"] = error.retry_after_ms
    return answered(body, entry.http, media_type="application/problem+json")


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Return the body, of at most ``limit`` bytes.

    :raises RequestError: ``request.size``; ``request.malformed``: the client went away.
    """
    too_long = RequestError(f"the body is longer than the {limit} bytes of max_request_bytes", code="request.size")
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value[:20]) > limit:
            raise too_long
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError("the client went away before the end of its request", code="request.malformed")
        chunk: bytes = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(chunk)
        if size > limit:
            raise too_long
        chunks.append(chunk)
    return b"".join(chunks)


def read_json(text: str, *, members: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    """Parse JSON as RFC 8259 defines it; ``members`` makes each object of its members.

    :raises RequestError: ``request.malformed``.
    """
    try:
        return json.loads(text, object_pairs_hook=members, parse_constant=_refuse_constant, parse_int=_whole_or_float)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise RequestError(f"the body is not JSON: {why}", code="request.malformed") from error


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _whole_or_float(digits: str) -> int | float:
    """Parse an integer of at most 20 digits exactly. Longer ones are out of range anyway, and slow to parse."""
    return int(digits) if len(digits) <= 20 else float(digits)
