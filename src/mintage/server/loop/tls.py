"""TLS: the certificate of the service, and connections during their handshake.

The event loop's own servers report a connection only after its handshake, so strangers could keep as many connections
half open as the process may open files. This module counts, times and closes them from their first byte on.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import structlog

from mintage.errors import ConfigError
from mintage.server.loop.accept import Server
from mintage.server.loop.limits import Connection, ConnectionLimit
from mintage.server.loop.spread import Share

#: The service warns of a certificate with fewer days left.
_CERTIFICATE_DAYS: Final = 14

_log = structlog.get_logger("mintage.server")


def server_context(cert: str | None, key: str | None, ca: str | None) -> ssl.SSLContext | None:
    """Return the context of the service; ``None`` without a certificate.

    :param ca: the file of the authorities that sign the certificates of clients; clients need none if left out.
    :raises ConfigError: ``config.setting``: a file is not what its setting needs.
    """
    if cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with _as_config_error(
        f"tls_cert {cert!a} with tls_key {key!a} is not a certificate and its private key, without a password"
    ):
        # An empty password, as nobody can type one.
        context.load_cert_chain(cert, key, password=str)
    if ca is not None:
        with _as_config_error(f"tls_client_ca {ca!a} is not a file of certificates"):
            context.load_verify_locations(ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def check_certificate(cert: str, key: str | None) -> None:
    """Log a certificate that clients refuse, or will refuse soon."""
    # Python tells the end of a certificate to a client that trusts it: to one in this process, without a connection.
    showing, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    showing.load_cert_chain(cert, key, password=str)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.load_verify_locations(cert)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, server = trusting.wrap_bio(down, up), showing.wrap_bio(up, down, server_side=True)
    try:
        for each in (client, server, client, server, client):
            with suppress(ssl.SSLWantReadError):
                each.do_handshake()
    except ssl.SSLError as error:
        _log.warning("certificate refused", file=cert, reason=getattr(error, "verify_message", str(error)))
        return
    ends: Any = (client.getpeercert() or {})["notAfter"]
    days = (ssl.cert_time_to_seconds(ends) - time.time()) / 86_400
    if days < _CERTIFICATE_DAYS:
        _log.warning("certificate ends", file=cert, days_left=round(days, 1))


@contextmanager
def _as_config_error(what: str) -> Iterator[None]:
    """Raise an error with this message for one of OpenSSL, which does not name the setting."""
    try:
        yield
    except OSError as error:
        raise ConfigError(what, code="config.setting") from error


class TlsServer(Server):
    """A server with TLS.

    :param limit: the limit on the connections of the interface, to which half open ones count.
    :param timeout_s: the time limit of a handshake, in seconds.
    """

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.Protocol],
        workers: int,
        share: Share | None,
        limit: ConnectionLimit,
        context: ssl.SSLContext,
        timeout_s: float,
    ) -> None:
        super().__init__(listener, make, workers, share)
        self._limit = limit
        self._context = context
        self._timeout_s = timeout_s

    def _begin(self, connection: socket.socket) -> None:
        if not self._limit.try_admit():
            # No refusal is sent: it would need a handshake, which is the work to save.
            connection.close()
            return
        Handshake(self._limit.connections, self._make).begin(connection, self._context, self._timeout_s)


class Handshake(Connection):
    """The protocol of a connection during its handshake, which has a time-out of its own.

    The interface's own protocol then replaces it.
    """

    def __init__(self, connections: set[Connection], make: Callable[[], asyncio.Protocol]) -> None:
        self._connections = connections
        self._make = make
        self._task: asyncio.Task[None]

    def begin(self, connection: socket.socket, context: ssl.SSLContext, timeout_s: float) -> None:
        """Start the handshake on an accepted connection."""
        self._connections.add(self)
        self._task = asyncio.get_running_loop().create_task(self._shake_hands(connection, context, timeout_s))

    async def _shake_hands(self, connection: socket.socket, context: ssl.SSLContext, timeout_s: float) -> None:
        try:
            # Failures are the client's: it does not speak TLS, has no certificate, or takes too long.
            with suppress(OSError):
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: self, connection, ssl=context, ssl_handshake_timeout=timeout_s
                )
        finally:
            self._connections.discard(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hand the connection over to the interface's own protocol."""
        self._connections.discard(self)
        protocol = self._make()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)

    def abort(self) -> None:
        """End the handshake."""
        self._task.cancel()
