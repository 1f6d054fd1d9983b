"""Replies of the Redis protocol, and their encoding in RESP2 and RESP3.

https://redis.io/docs/latest/develop/reference/protocol-spec/
"""

from __future__ import annotations

from dataclasses import dataclass

from mintage.errors import CATALOGUE, MintError, RequestError, TransientError


@dataclass(frozen=True, slots=True)
class Encoded:
    """A reply that is encoded already: a long one, or the beginning of one."""

    data: bytes


Reply = bytes | int | None | str | Encoded | list["Reply"] | dict[str, "Reply"]
"""The reply to a command: str is a status, None is RESP's null."""


class ProtocolError(RequestError):
    """A refusal with a prefix that the Redis protocol defines."""

    def __init__(self, message: str, *, code: str, prefix: str) -> None:
        super().__init__(message, code=code)
        self.prefix = prefix


def encode(reply: Reply, version: int) -> bytes:
    """Return a reply in the encoding of RESP2 or RESP3."""
    match reply:
        case None:
            return b"_\r\n" if version == 3 else b"$-1\r\n"
        case str():
            return b"+%s\r\n" % reply.encode()
        case int():
            return b":%d\r\n" % reply
        case bytes():
            return b"$%d\r\n%s\r\n" % (len(reply), reply)
        case Encoded():
            return reply.data
        case dict():
            parts = [encode(part, version) for pair in reply.items() for part in (pair[0].encode(), pair[1])]
            head = b"%%%d\r\n" % len(reply) if version == 3 else b"*%d\r\n" % (2 * len(reply))
            return head + b"".join(parts)
        case list():
            return b"*%d\r\n%b" % (len(reply), b"".join(encode(part, version) for part in reply))


def encode_error(error: MintError) -> bytes:
    """Return an error reply: the catalogue's prefix, the message on one line, the time to wait if known, the code."""
    prefix = error.prefix if isinstance(error, ProtocolError) else CATALOGUE[error.code].resp
    message = "".join(letter if letter.isprintable() else "?" for letter in str(error))
    wait_ms = error.retry_after_ms if isinstance(error, TransientError) else None
    retry = "" if wait_ms is None else f" [retry_after_ms={wait_ms}]"
    return f"-{prefix} {message}{retry} ({error.code})\r\n".encode()
