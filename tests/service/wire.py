"""Clients that send exact bytes, and commands and requests as bytes."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Final

PATIENCE_S: Final = 60
"""The timeout of a test for an expected answer."""
Address = tuple[str, int]


def connect(address: Address) -> socket.socket:
    connection = socket.create_connection(address, timeout=PATIENCE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def until_closed(connection: socket.socket) -> bytes:
    """Return all bytes until the other side closes."""
    heard = bytearray()
    with suppress(ConnectionResetError):
        while data := connection.recv(65536):
            heard += data
    return bytes(heard)


def exactly(connection: socket.socket, length: int) -> bytes:
    """Return a number of bytes."""
    heard = bytearray()
    while len(heard) < length:
        data = connection.recv(length - len(heard))
        if not data:
            break
        heard += data
    return bytes(heard)


def say(address: Address, *parts: bytes) -> bytes:
    """Return the answer of the service to these segments, until it closes the connection."""
    with connect(address) as connection:
        for part in parts:
            connection.sendall(part)
        return until_closed(connection)


def command(*words: str | bytes | int) -> bytes:
    """Return a command of the Redis protocol as clients write it."""
    encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n%s" % (len(encoded), b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded))


def after_hello(heard: bytes) -> bytes:
    """Return the bytes between the reply to HELLO, which ends with no modules, and that to QUIT."""
    hello, mark, rest = heard.partition(b"$7\r\nmodules\r\n*0\r\n")
    assert mark, hello
    return rest.removesuffix(b"+OK\r\n")


def head(request: str, *headers: str, length: int | None = None) -> bytes:
    """Return the head of an HTTP request as curl would write it."""
    lines = [f"{request} HTTP/1.1", "Host: localhost", *headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
