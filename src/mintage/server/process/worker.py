"""One worker: the process that serves."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog
import uvloop

from mintage.errors import CATALOGUE, MintError
from mintage.server.config.settings import Settings
from mintage.server.core import logs, otlp
from mintage.server.loop import tls
from mintage.server.loop.accept import Server
from mintage.server.loop.spread import Share
from mintage.server.process.drain import drain, drop_unwritten_output, force_exit, give_all_back

if TYPE_CHECKING:
    from multiprocessing.connection import Connection as Pipe

    from mintage.server.core.service import Service

STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
"""Each of these signals stops the service gracefully; a second one ends the grace period at once."""
IGNORED: Final = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that make other servers read their configuration again, and that end a process by default."""
HANDLED: Final = (*STOPPING, *IGNORED)
"""All signals that the service does not leave to the system."""
#: The pause between two trims of the heap, which take some milliseconds.
_TRIM_INTERVAL_S: Final = 5.0
#: The memory of fewer closed connections is not worth a trim.
_MANY: Final = 64

_log = structlog.get_logger("mintage.server")


def import_all() -> None:
    """Import all that a worker needs for its answers, so that none waits for an import.

    The supervisor calls it once it has set the variable that the module of the metrics reads.
    """
    from mintage.lease import keeper, lease_client, request, segment_client  # noqa: F401
    from mintage.server.core import health, service  # noqa: F401
    from mintage.server.http import app  # noqa: F401
    from mintage.server.http import protocol as http  # noqa: F401
    from mintage.server.resp import protocol  # noqa: F401


async def work(
    settings: Settings,
    listeners: Mapping[str, socket.socket],
    announce: Callable[[], None],
    parent: Pipe | None = None,
    shares: Mapping[str, Share] | None = None,
) -> None:
    """Serve until a signal, or the parent process, stops the service."""
    import_all()
    from mintage.server.core.health import check_passing, every
    from mintage.server.core.service import Service

    loop = asyncio.get_running_loop()
    stop, hurry = asyncio.Event(), asyncio.Event()

    def ask_to_stop() -> None:
        # A second request to stop ends the grace period.
        hurry.set() if stop.is_set() else stop.set()

    if parent is None:
        for number in STOPPING:
            loop.add_signal_handler(number, ask_to_stop)
    else:
        # The parent sends SIGTERM once, and a service manager may send a signal to all processes. SIGINT is for the
        # parent alone, and ignored here from the start.
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        loop.add_signal_handler(signal.SIGQUIT, stop.set)
        loop.add_reader(parent.fileno(), _read_parent, loop, parent, stop, hurry)
    for number in IGNORED:
        # Not a handler of the loop, which would restore the signal's default action at its end.
        signal.signal(number, partial(_note_ignored, loop))
    stop_exporters = otlp.start()
    service = Service(settings, settings.open_store(), shares)
    service.metrics.export()
    # Probed before the log says that it serves: it is then ready if the store answers.
    probing = asyncio.create_task(service.probe.probe())
    await asyncio.sleep(0)
    servers = listen(service, listeners, shares)
    await probing
    check_passing(service.probe.failure)
    tasks = [
        asyncio.create_task(service.probe.run()),
        asyncio.create_task(every(1.0, partial(_tick, service, parent))),
        asyncio.create_task(every(_TRIM_INTERVAL_S, _Heap(service, servers).trim)),
    ]
    announce()
    # All objects that exist by now stay: the collector need not visit them while clients wait.
    gc.freeze()
    gc.enable()
    await stop.wait()
    await drain(service, servers, hurry)
    for task in tasks:
        task.cancel()
    service.gather()
    await give_all_back(service)
    stop_exporters()
    _log.info("stopped", pid=os.getpid())


def listen(
    service: Service, listeners: Mapping[str, socket.socket], shares: Mapping[str, Share] | None = None
) -> list[Server]:
    """Accept connections from now on, and return the servers."""
    from mintage.server.http.app import create_app
    from mintage.server.http.protocol import HttpProtocol
    from mintage.server.resp.protocol import RespProtocol

    makers: dict[str, Callable[[], asyncio.Protocol]] = {
        "http": partial(HttpProtocol, service, create_app(service)),
        "redis": partial(RespProtocol, service),
    }
    settings = service.settings
    context = tls.server_context(settings.tls_cert, settings.tls_key, settings.tls_client_ca)
    timeout_s = settings.request_timeout_ms / 1000
    servers: list[Server] = []
    for name, listener in listeners.items():
        how = listener, makers[name], settings.workers, shares[name] if shares else None
        if context is None:
            servers.append(Server(*how))
        else:
            servers.append(tls.TlsServer(*how, service.connection_limits[name], context, timeout_s))
    return servers


class _Heap:
    """The memory of closed connections.

    The C library keeps freed memory that lies between blocks in use: a third of a megabyte for each of many half open
    TLS connections, long after they are closed.
    """

    def __init__(self, service: Service, servers: Sequence[Server]) -> None:
        self._connections = service.connections.values()
        self._servers = servers
        self._accepted = 0

    async def trim(self) -> None:
        """Return free memory to the system if, of many connections since the last time, at least half are closed."""
        accepted = sum(server.accepted for server in self._servers)
        came, are_open = accepted - self._accepted, sum(map(len, self._connections))
        if came >= _MANY and are_open <= came // 2:
            self._accepted = accepted
            import ctypes

            # Other C libraries than glibc have no such function.
            with suppress(AttributeError, OSError):
                ctypes.CDLL(None).malloc_trim(0)


async def _tick(service: Service, parent: Pipe | None) -> None:
    """Tell the parent that this loop turns, close connections that take too long, and update the metrics."""
    if parent is not None:
        # The pipe is full if the parent was frozen for hours. `_read_parent` notices that the parent has ended.
        with suppress(OSError):
            parent.send_bytes(b".")
    try:
        for each in service.open_connections():
            each.check_timeouts(service.settings.request_timeout_ms / 1000, service.settings.idle_timeout_ms / 1000)
    finally:
        service.gather()  # another worker may be scraped


def _read_parent(loop: asyncio.AbstractEventLoop, parent: Pipe, stop: asyncio.Event, hurry: asyncio.Event) -> None:
    """End the grace period if the parent sends a byte, and stop if the parent has ended."""
    try:
        data = os.read(parent.fileno(), 16)
    except BlockingIOError:
        return
    except OSError:
        data = b""
    if data:
        hurry.set()
    else:
        loop.remove_reader(parent.fileno())
        stop.set()


def log_ignored(number: int) -> None:
    """Log a signal that the service ignores."""
    _log.warning(
        "signal ignored",
        pid=os.getpid(),
        signal=signal.Signals(number).name,
        hint="settings are read at the start only; SIGTERM stops the service",
    )


def _note_ignored(loop: asyncio.AbstractEventLoop, number: int, _: object) -> None:
    """Log a signal from the loop, as the handler may interrupt the writing of another line."""
    # The loop is closed at the end of the process.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(log_ignored, number)


def run_worker(
    settings: Settings,
    listeners: Mapping[str, socket.socket],
    parent: Pipe,
    inherited: Sequence[Pipe | socket.socket],
    shares: Mapping[str, Share] | None,
) -> None:
    """Serve as a process that the supervisor has started.

    :param parent: the pipe to the supervisor.
    :param inherited: what a forked process must close, to see the end of the supervisor.
    """
    from multiprocessing import parent_process

    signal.set_wakeup_fd(-1)
    # The parent stops its workers itself, also at Ctrl-C, which signals all processes of a terminal.
    for number in (signal.SIGINT, signal.SIGQUIT, *IGNORED):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
    for each in inherited:
        each.close()
    logs.configure(settings)
    os.set_blocking(parent.fileno(), False)
    try:
        uvloop.run(work(settings, listeners, lambda: None, parent, shares))
    except MintError as error:
        _log.error("cannot serve", code=error.code, error=str(error))
        sys.exit(CATALOGUE[error.code].exit)
    if (supervisor := parent_process()) is not None and supervisor.pid != os.getppid():
        import shutil

        shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
    drop_unwritten_output()
    force_exit()
