"""The requests that a client sends to a service over HTTP, and how it reads the answers. Pure: no sockets, no httpx.

A :class:`Call` describes one request and reads its answer. :meth:`ServiceProtocol.steps` decides which host to ask,
which to ask next when one fails, and what a refusal means; its driver only sends. So one place decides which requests
are safe to repeat, for the store and for both clients.

Answers are checked: if a member has another type or is outside its limits, the client refuses the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from mintage import telemetry
from mintage._core import monotonic_s
from mintage.errors import CATALOGUE, ConfigError, GenerationError, MintError, RequestError, StoreError, TransientError
from mintage.process.holder import holder as this_process
from mintage.protocol.members import AnswerError, Members
from mintage.protocol.options import AUTHORITIES, CERTIFICATE, CERTIFICATE_KEY, option, read_options, timeout
from mintage.rules import LATEST_MS, MAX_STRIDE, NamespaceRecord, Segment, check_name

if TYPE_CHECKING:
    from mintage.protocol.url import StoreUrl

T = TypeVar("T")

LONGEST_WAIT_MS: Final = 86_400_000

_KEY: Final = re.compile(r"[!-~]{1,512}")
#: The HTTP statuses with which proxies answer for a service that is away.
_AWAY: Final = frozenset({408, 429, 502, 503, 504})


class Answer(NamedTuple):
    """An answer of a host."""

    status: int
    headers: Mapping[str, str]
    """Names are looked up without regard to case."""
    body: bytes

    def members(self) -> Members:
        """Return the members of its JSON object.

        :raises AnswerError: the body is not a JSON object.
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
    """The token of a lease."""
    holder: str = ""
    """The text that names who reserves. It is a header, as a service of an older version refuses other parameters."""
    is_repeatable: bool = True
    """True if the request may be sent twice: a lost answer leaves a gap at most."""
    most_bytes: int = 65_536
    """The longest answer that is accepted."""


class Request(NamedTuple):
    """A request to send to one host."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None
    most_bytes: int


class Lost(NamedTuple):
    """A request that got no answer."""

    why: str
    was_sent: bool
    """True if the request may have arrived."""
    cause: Exception


Outcome = Answer | Lost


class Body:
    """The body of an answer while it arrives, with limits on its length and on the time that it takes."""

    def __init__(self, service: ServiceProtocol, most_bytes: int) -> None:
        self._service = service
        self._most_bytes = most_bytes
        self._until_s = monotonic_s() + service.timeout_ms / 1000
        self._bytes = bytearray()

    def add(self, chunk: bytes) -> None:
        """Add a chunk that arrived.

        :raises StoreError: ``store.refused``: the body is too long.
        :raises TimeoutError: the body takes too long.
        """
        self._bytes += chunk
        if len(self._bytes) > self._most_bytes:
            raise StoreError(
                f"{self._service.url}: the answer is longer than {self._most_bytes} bytes: is that a mintage service?",
                code="store.refused",
            )
        if monotonic_s() > self._until_s:
            raise TimeoutError

    def content(self) -> bytes:
        """Return all bytes that arrived."""
        return bytes(self._bytes)


class _Failure(NamedTuple):
    error: MintError
    is_away: bool = False
    """True if another host may do better."""
    is_undone: bool = False
    """True if nothing was done, for certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """The options of a service as a store."""

    timeout_ms: int = timeout("The longest time of an HTTP request, in milliseconds")
    ca: str | None = option(None, AUTHORITIES, schemes=("https",))
    cert: str | None = option(None, CERTIFICATE, schemes=("https",))
    cert_key: str | None = option(None, CERTIFICATE_KEY, schemes=("https",))


class ServiceProtocol:
    """The hosts of a service, as an ``http://`` or ``https://`` URL names them.

    :raises ConfigError: ``config.store``.
    """

    def __init__(self, url: StoreUrl) -> None:
        options = read_options(url, ServiceOptions)
        if url.path:
            raise ConfigError(f"a store of kind {url.scheme} has no path: {url}", code="config.store")
        if not url.hosts:
            raise ConfigError(
                f"a store of kind {url.scheme} needs a host: {url.scheme}://host:8080", code="config.store"
            )
        # The message does not repeat the user, which may be a key in the wrong place.
        if url.user is not None and url.password is None:
            raise ConfigError(f"a key is the password of the URL: {url.scheme}://:KEY@host", code="config.store")
        if url.password is not None and not _KEY.fullmatch(url.password):
            raise ConfigError("the URL's key is not 1 to 512 printable characters of ASCII", code="config.store")
        self.url = url
        self.timeout_ms = options.timeout_ms
        self._key = url.password
        # The host that answered last comes first.
        self._hosts = [
            f"{url.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"
            for host, port in url.hosts
        ]

    def steps(self, call: Call[T]) -> Generator[Request, Outcome, T]:
        """Yield the requests to send, and return the value of the answer. Send the outcome of each request back in.

        If a host is away, the next request goes to another one, provided that the service did nothing yet or that a
        repetition is harmless.

        :raises StoreError: ``store.unavailable``: no host answers; ``store.refused``: the host is no mintage service.
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
        if call.holder:
            headers["Holder"] = quote(call.holder, safe=":")
        telemetry.inject(headers)
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
        # A service that requires certificates closes the connection of a client without one, and gives no reason.
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
                f"{self.url}: the answer, HTTP {answer.status}, is not that of a mintage service: check the URL",
                code="store.unavailable" if is_away else "store.refused",
            )
            return _Failure(error, is_away=is_away)
        if code == "request.key":
            # The message of the service names headers and commands, which the user of a URL does not send.
            scheme = self.url.scheme
            detail = (
                f"the service needs a key: put it into the URL, as {scheme}://:KEY@host"
                if self._key is None
                else f"{detail.rstrip('.')}: check the one in the URL, {scheme}://:KEY@host"
            )
        if issubclass(entry.error, (StoreError, RequestError)):
            detail = f"{self.url}: {detail}"
        error = entry.error(detail, code=code)
        if isinstance(error, TransientError):
            error.retry_after_ms = wait_ms
        # A busy service has not begun the request.
        is_busy = code == "request.busy"
        return _Failure(error, is_away=is_busy or code == "store.unavailable", is_undone=is_busy)

    def _shown(self, detail: str) -> str:
        """Return the text of a service as part of a message: on one line, shortened, and without the key."""
        if self._key is not None:
            detail = detail.replace(self._key, "***")
        text = "".join(each if each.isprintable() else "�" for each in detail)
        return text if len(text) <= 1000 else f"{text[:1000]}…"


def closed() -> GenerationError:
    """Return the error of a client that was closed."""
    return GenerationError("the client is closed; create a new one", code="generator.closed")


# --- calls that the store and the clients share -------------------------------------------------------------------


def reserve(namespace: str, count: int, holder: str | None = None) -> Call[Segment]:
    """Return the call that reserves a segment. If its answer is lost, the integers are a gap.

    :param holder: the text that names the holder; ``None``: this process.
    """
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

    named = this_process() if holder is None else holder
    return Call("POST", f"/v1/sequences/{namespace}:reserve", read, query={"count": count}, holder=named)


def describe_namespace(namespace: str) -> Call[NamespaceRecord]:
    """Return the call that reads the record of a namespace."""
    check_name(namespace, "namespace")
    return Call("GET", f"/v1/sequences/{namespace}", lambda answer: read_namespace(answer.members(), namespace))


def read_namespace(members: Members, namespace: str | None = None) -> NamespaceRecord:
    """Return the record of a namespace.

    :param namespace: the name that the record must have; ``None``: any.
    :raises AnswerError: the members are not a record, or are the record of another namespace.
    """
    name = members.text("namespace")
    if namespace not in {None, name}:
        raise AnswerError("is of another namespace")
    return members.record(NamespaceRecord, name=name)
