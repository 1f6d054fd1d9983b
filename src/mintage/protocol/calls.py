"""The requests that a client sends to a service over HTTP, and how it reads the answers. Pure: no sockets, no httpx.

A :class:`Call` describes one request and reads its answer. :meth:`ServiceProtocol.steps` decides which host to ask,
which to ask next when one fails, and what a refusal means; its driver only sends. So one place decides which requests
are safe to repeat, for the store and for both clients.

Nothing in an answer is believed: every member is of its type and within its limits, or the answer is refused.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

from mintage.errors import CATALOGUE, ConfigError, GenerationError, MintError, PassingError, RequestError, StoreError
from mintage.protocol.members import AnswerError, Members
from mintage.protocol.url import TLS_OPTIONS
from mintage.rules import LATEST_MS, MAX_STRIDE, NamespaceRecord, Segment, check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from mintage.protocol.url import StoreUrl

__all__ = [
    "Answer",
    "Body",
    "Call",
    "Lost",
    "Outcome",
    "Request",
    "ServiceProtocol",
    "closed",
    "describe_namespace",
    "read_namespace",
    "reserve",
]

T = TypeVar("T")

LONGEST_WAIT_MS: Final = 86_400_000

_KEY: Final = re.compile(r"[!-~]{1,512}")
#: What proxies say of a service that is away.
_AWAY: Final = frozenset({408, 429, 502, 503, 504})


class Answer(NamedTuple):
    """What a host answered."""

    status: int
    headers: Mapping[str, str]
    """Whatever case they are asked for in."""
    body: bytes

    def members(self) -> Members:
        """Of its JSON object.

        :raises AnswerError: it is none.
        """
        try:
            return Members(json.loads(self.body))
        except AnswerError:
            raise
        except (ValueError, RecursionError):
            raise AnswerError("is not JSON") from None


# --- asking -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request to a service, and how to read its answer."""

    method: str
    path: str
    """Percent-encoded."""
    read: Callable[[Answer], T]
    """Raises :class:`AnswerError`."""
    query: Mapping[str, int | str] = field(default_factory=dict)
    body: Mapping[str, object] | None = None
    token: str = field(default="", repr=False)
    """Of a lease."""
    is_repeatable: bool = True
    """True if to ask twice does no harm: an answer that is lost then leaves a gap at most."""
    most_bytes: int = 65_536
    """No answer is longer."""


class Request(NamedTuple):
    """What to send."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None
    most_bytes: int


class Lost(NamedTuple):
    """There is no answer."""

    why: str
    was_sent: bool
    """True if the request may have arrived."""
    cause: Exception


Outcome = Answer | Lost


class Body:
    """The body of an answer while it comes in: not longer than it may be, and not for longer."""

    def __init__(self, service: ServiceProtocol, most_bytes: int) -> None:
        self._service = service
        self._most_bytes = most_bytes
        self._until_s = time.monotonic() + service.timeout_ms / 1000
        self._bytes = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take what came.

        :raises StoreError: ``store.refused``: it is too much.
        :raises TimeoutError: it takes too long.
        """
        self._bytes += chunk
        if len(self._bytes) > self._most_bytes:
            raise StoreError(
                f"{self._service.url}: the answer is longer than {self._most_bytes} bytes", code="store.refused"
            )
        if time.monotonic() > self._until_s:
            raise TimeoutError

    def whole(self) -> bytes:
        """Return all of it."""
        return bytes(self._bytes)


class _Failure(NamedTuple):
    error: MintError
    is_away: bool = False
    """True if another host may do better."""
    is_undone: bool = False
    """True if nothing was done, for certain."""


class ServiceProtocol:
    """The hosts of a service, as an ``http://`` or ``https://`` URL names them.

    :raises ConfigError: ``config.store``.
    """

    def __init__(self, url: StoreUrl) -> None:
        is_secure = url.scheme == "https"
        url.check_options("timeout_ms", *(TLS_OPTIONS if is_secure else ()))
        if url.path:
            raise ConfigError(f"a store of kind {url.scheme} has no path: {url}", code="config.store")
        if not url.hosts:
            raise ConfigError(
                f"a store of kind {url.scheme} needs a host: {url.scheme}://host:8080", code="config.store"
            )
        # Without repeating what may be a key in the wrong place.
        if url.user is not None and url.password is None:
            raise ConfigError(f"a key is the password of the URL: {url.scheme}://:KEY@host", code="config.store")
        if url.password is not None and not _KEY.fullmatch(url.password):
            raise ConfigError("the URL's key is not 1 to 512 printable characters of ASCII", code="config.store")
        self.url = url
        self.timeout_ms = url.parse_int("timeout_ms", 2000, 1, 60_000)
        self._key = url.password
        # The one that answered last is asked first.
        self._hosts = [
            f"{url.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"
            for host, port in url.hosts
        ]

    def steps(self, call: Call[T]) -> Generator[Request, Outcome, T]:
        """What to send, one request after the other, each answered by what came of it; returns what the answer says.

        The next host is asked where the last one is away, and either nothing was done or to do it again does no harm.

        :raises StoreError: ``store.unavailable``: no host answers; ``store.refused``: what answers is no service.
        :raises MintError: the service's refusal.
        """
        failure: _Failure | None = None
        for host in tuple(self._hosts):
            outcome = yield self._request(host, call)
            if isinstance(outcome, Answer) and 200 <= outcome.status < 300:
                return self._value(call, outcome)
            failure = self._lost(outcome) if isinstance(outcome, Lost) else self._refusal(outcome)
            if not failure.is_away:
                break
            self._hosts = [*(other for other in self._hosts if other != host), host]
            if not (failure.is_undone or call.is_repeatable):
                break
        assert failure is not None, "a service has a host"  # noqa: S101 - for the type checker
        raise failure.error

    def _request(self, host: str, call: Call[Any]) -> Request:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        if call.token:
            headers["Lease-Token"] = call.token
        content = None
        if call.body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(call.body, separators=(",", ":")).encode()
        query = f"?{urlencode(call.query)}" if call.query else ""
        return Request(call.method, f"{host}{call.path}{query}", headers, content, call.most_bytes)

    def _value(self, call: Call[T], answer: Answer) -> T:
        try:
            return call.read(answer)
        except AnswerError as error:
            raise StoreError(
                f"{self.url}: the answer to {call.method} {call.path} {error}: is that a mintage service?",
                code="store.refused",
            ) from None

    def _lost(self, lost: Lost) -> _Failure:
        # Where certificates are wanted, a client without one hears no more than that the connection is over.
        shown = ", whether it wants a certificate (cert)" * (
            self.url.scheme == "https" and "cert" not in self.url.options
        )
        error = StoreError(
            f"{self.url}: {lost.why.rstrip('.')}: check that the service runs there{shown}, or allow more than "
            f"timeout_ms {self.timeout_ms}",
            code="store.unavailable",
        )
        error.__cause__ = lost.cause
        return _Failure(error, is_away=True, is_undone=not lost.was_sent)

    def _refusal(self, answer: Answer) -> _Failure:
        try:
            members = answer.members()
            code, detail = members.text("code"), self._shown(members.text("detail"))
            wait_ms = members.number("retry_after_ms", 0, LONGEST_WAIT_MS) if "retry_after_ms" in members else None
        except AnswerError:
            code, detail, wait_ms = "", "", None
        entry = CATALOGUE.get(code)
        if entry is None or entry.http != answer.status:
            is_away = answer.status in _AWAY
            error: MintError = StoreError(
                f"{self.url}: HTTP {answer.status} is no answer of a mintage service",
                code="store.unavailable" if is_away else "store.refused",
            )
            return _Failure(error, is_away=is_away)
        if code == "request.key":
            # The service speaks of headers and commands, which a user of a URL does not send.
            scheme = self.url.scheme
            detail = (
                f"the service needs a key: put it into the URL, as {scheme}://:KEY@host"
                if self._key is None
                else f"{detail.rstrip('.')}: check the one in the URL, {scheme}://:KEY@host"
            )
        if issubclass(entry.error, (StoreError, RequestError)):
            detail = f"{self.url}: {detail}"
        error = entry.error(detail, code=code)
        if isinstance(error, PassingError):
            error.retry_after_ms = wait_ms
        # A service that is busy has not begun.
        is_busy = code == "request.busy"
        return _Failure(error, is_away=is_busy or code == "store.unavailable", is_undone=is_busy)

    def _shown(self, detail: str) -> str:
        """Return what a service said, fit for a message: in one line, not too long, and without the key."""
        if self._key is not None:
            detail = detail.replace(self._key, "***")
        text = "".join(each if each.isprintable() else "�" for each in detail)
        return text if len(text) <= 1000 else f"{text[:1000]}…"


def closed() -> GenerationError:
    """Return the error of a client that was closed."""
    return GenerationError("the client was closed: make a new one", code="generator.closed")


# --- calls that the store and the clients share -------------------------------------------------------------------


def reserve(namespace: str, count: int) -> Call[Segment]:
    """Reserve a segment. One that is lost is a gap."""
    check_name(namespace, "namespace")

    def read(answer: Answer) -> Segment:
        members = answer.members()
        length, stride = members.number("count", 1, count), members.number("stride", 1, MAX_STRIDE)
        segment = Segment(
            namespace,
            members.integer("first"),
            members.integer("last"),
            stride,
            members.integer("floor"),
            members.number("serial", 1, LATEST_MS),
        )
        if segment.last - segment.first != (length - 1) * stride:
            raise AnswerError(f"is no segment of {length} integers")
        return segment

    return Call("POST", f"/v1/sequences/{namespace}:reserve", read, query={"count": count})


def describe_namespace(namespace: str) -> Call[NamespaceRecord]:
    """Return what the service's store keeps of a namespace."""
    check_name(namespace, "namespace")
    return Call("GET", f"/v1/sequences/{namespace}", lambda answer: read_namespace(answer.members(), namespace))


def read_namespace(members: Members, namespace: str | None = None) -> NamespaceRecord:
    """Return a namespace; the one that was asked for, if any.

    :raises AnswerError: it is none, or another.
    """
    name = members.text("namespace")
    if namespace not in {None, name}:
        raise AnswerError("is of another namespace")
    return members.record(NamespaceRecord, name=name)
