"""``mintmark serve``: listeners, one process or several, and the way to a graceful stop.

With several workers the parent binds the listeners and starts a process for each worker, which accept from the same
sockets. No two of them share a segment or a lease, for each reserves its own.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import ssl
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from multiprocessing import connection, get_context
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
import uvloop

from mintmark.errors import ConfigError, MintError
from mintmark.server import logs

if TYPE_CHECKING:
    from multiprocessing.connection import Connection as Pipe

    from mintmark.server.service import Service
    from mintmark.server.settings import Settings

__all__ = ["serve"]

_log = structlog.get_logger("mintmark.server")

BACKLOG: Final = 2048
#: How long the leases and tails may take to be given back, beyond the grace period.
_FAREWELL_S: Final = 2.0
#: A worker whose loop says nothing for so long hangs, and is replaced.
_SILENCE_S: Final = 30.0
#: Workers that die sooner than this after their start are replaced at a slower pace.
_YOUNG_S: Final = 5.0
#: The exit code of a worker that cannot work: replacing it would not help.
_EXIT_HOPELESS: Final = 78


class Listeners(NamedTuple):
    """Bound sockets; ``None`` where an interface is off."""

    http: socket.socket | None
    redis: socket.socket | None

    def addresses(self) -> dict[str, str]:
        """By interface, host and port as they are."""
        return {name: _shown(each) for name, each in self._asdict().items() if each is not None}


def _shown(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bind(name: str, address: tuple[str, int] | None) -> socket.socket | None:
    if address is None:
        return None
    try:
        (family, kind, number, _, place), *_ = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
        listener = socket.socket(family, kind, number)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ConfigError(
            f"{name} {address[0]}:{address[1]} cannot be listened on: {error.strerror or error}: take another address",
            code="config.setting",
        ) from error
    listener.setblocking(False)
    return listener


def serve(settings: Settings) -> int:
    """Serves until SIGTERM or SIGINT, and returns the exit code.

    :raises ConfigError: ``config.setting``: an address is taken, a certificate cannot be read; ``config.driver``.
    :raises StoreError: ``store.refused``: there is no place for the registry.
    """
    logs.configure(settings)
    _tls(settings)
    settings.open_store().close()
    listeners = Listeners(_bind("http", settings.http_address), _bind("redis", settings.redis_address))
    if settings.workers > 1:
        return _Supervisor(settings, listeners).run()
    uvloop.run(_work(settings, listeners, announce=True))
    return 0


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if settings.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
        if settings.tls_client_ca is not None:
            context.load_verify_locations(settings.tls_client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"tls_cert, tls_key or tls_client_ca cannot be used: {error.strerror or error}", code="config.setting"
        ) from error
    return context


# --- one worker ---------------------------------------------------------------------------------------------------


async def _work(
    settings: Settings, listeners: Listeners, *, announce: bool = False, parent: Pipe | None = None
) -> None:
    """Serves until it is told to stop."""
    from mintmark.server.service import Service

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    hurry = asyncio.Event()

    def ask_to_stop() -> None:
        # Whoever asks twice does not want to wait.
        hurry.set() if stop.is_set() else stop.set()

    loop.add_signal_handler(signal.SIGTERM, ask_to_stop)
    if parent is None:
        loop.add_signal_handler(signal.SIGINT, ask_to_stop)
    else:
        # The parent never writes: what can be read is its end.
        loop.add_reader(parent.fileno(), stop.set)

    service = Service(settings, settings.open_store())
    state = None
    servers: list[asyncio.Server] = []
    tls: dict[str, Any] = {}
    if (context := _tls(settings)) is not None:
        tls = {"ssl": context, "ssl_handshake_timeout": settings.request_timeout_ms / 1000}
    if listeners.http is not None:
        make, state = _http(service)
        servers.append(await loop.create_server(make, sock=listeners.http, backlog=BACKLOG, **tls))
    if listeners.redis is not None:
        from mintmark.server.resp import RespProtocol

        resp = partial(RespProtocol, service)
        servers.append(await loop.create_server(resp, sock=listeners.redis, backlog=BACKLOG, **tls))
    tasks = [asyncio.create_task(service.watch.run()), asyncio.create_task(_look(service, state, parent))]
    if announce:
        _announce(settings, listeners)
    await stop.wait()
    await _drain(service, servers, hurry)
    for task in tasks:
        task.cancel()
    with suppress(TimeoutError):
        await asyncio.wait_for(service.close(), _FAREWELL_S)
    _log.info("stopped", pid=os.getpid())


def _http(service: Service) -> tuple[Any, Any]:
    """What makes protocols, and uvicorn's state that they share."""
    from uvicorn import Config
    from uvicorn.server import ServerState

    from mintmark.server.app import create_app
    from mintmark.server.http import HttpProtocol

    config = Config(
        create_app(service),
        lifespan="off",
        ws="none",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        # Silent connections are closed by `look`.
        timeout_keep_alive=10**9,
    )
    config.load()
    state = ServerState()
    return partial(HttpProtocol, service, config, state), state


async def _look(service: Service, state: Any, parent: Pipe | None) -> None:
    """Once a second: the date of HTTP's answers, and connections that take too long."""
    from email.utils import formatdate

    request_timeout_s = service.settings.request_timeout_ms / 1000
    idle_timeout_s = service.settings.idle_timeout_ms / 1000
    while True:
        if state is not None:
            state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        if parent is not None:
            with suppress(OSError):
                parent.send_bytes(b".")
        for connections in service.connections.values():
            for each in tuple(connections):
                each.look(request_timeout_s, idle_timeout_s)
        await asyncio.sleep(1)


async def _drain(service: Service, servers: list[asyncio.Server], hurry: asyncio.Event) -> None:
    """Accepts nothing new, answers what was asked, and closes connections once they are silent."""
    _log.info("stopping", pid=os.getpid(), connections={name: len(each) for name, each in service.connections.items()})
    service.draining = True
    service.lane.drain()
    for server in servers:
        server.close()
    grace_s = service.settings.grace_ms / 1000
    deadline = time.monotonic() + grace_s
    while any(service.connections.values()) and time.monotonic() < deadline and not hurry.is_set():
        for connections in service.connections.values():
            for each in tuple(connections):
                each.finish()
        with suppress(TimeoutError):
            await asyncio.wait_for(hurry.wait(), min(0.5, grace_s / 4))
    rest = [each for connections in service.connections.values() for each in tuple(connections)]
    for each in rest:
        each.close()
    patience = time.monotonic() + 1.0
    while any(service.connections.values()) and time.monotonic() < patience:
        await asyncio.sleep(0.01)
    for connections in service.connections.values():
        for each in tuple(connections):
            each.abort()
    if rest:
        _log.warning("connections closed at the end of the grace period", connections=len(rest))


def _announce(settings: Settings, listeners: Listeners) -> None:
    """Says where it serves: in the log, and on a terminal as lines to paste."""
    from mintmark import __version__
    from mintmark.store.url import StoreUrl

    addresses = listeners.addresses()
    _log.info(
        "serving",
        version=__version__,
        pid=os.getpid(),
        workers=settings.workers,
        store=str(StoreUrl.parse(settings.store_url)),
        keys=len(settings.keys),
        auto_create=settings.creates,
        **addresses,
    )
    if not logs.is_console(settings):
        return
    scheme = "https" if settings.tls_cert is not None else "http"
    url = f"{scheme}://{addresses.get('http', '')}"
    lines = []
    if "http" in addresses:
        lines.append(f"""curl -d '{{"serviceName": "orders", "count": 3}}' {url}/alloc""")
    if "redis" in addresses:
        host, _, port = addresses["redis"].rpartition(":")
        at = "" if host == "127.0.0.1" else f"-h {host.strip('[]')} "
        lines.append(f"redis-cli {at}-p {port} INCR orders")
    if "http" in addresses:
        lines.append(f"""python -c 'import mintmark; print(mintmark.Client("{url}").next("orders"))'""")
    print("\nTry it:", *lines, sep="\n  ", end="\n\n", flush=True)
    if "http" in addresses:
        print(f"Or open {url}/ in a browser. Ctrl-C stops it.\n", flush=True)


# --- several workers ----------------------------------------------------------------------------------------------


class _Worker:
    """A process, and what it lets the parent hear."""

    def __init__(self, settings: Settings, listeners: Listeners) -> None:
        self._pipe, theirs = connection.Pipe()
        self.process = get_context("spawn").Process(target=_run_worker, args=(settings, listeners, theirs))
        self.process.start()
        theirs.close()
        self.started_s = self._heard_s = time.monotonic()

    def is_well(self) -> bool:
        """Whether it lives, and its loop turns."""
        with suppress(OSError, EOFError):
            while self._pipe.poll():
                self._pipe.recv_bytes(16)
                self._heard_s = time.monotonic()
        return self.process.is_alive() and time.monotonic() - self._heard_s < _SILENCE_S

    def kill(self) -> int:
        """Ends it at once, and returns its exit code."""
        self.process.kill()
        self.process.join()
        self._pipe.close()
        return self.process.exitcode or 0


class _Supervisor:
    """Starts workers, replaces those that die or hang, and stops them."""

    def __init__(self, settings: Settings, listeners: Listeners) -> None:
        self._settings = settings
        self._listeners = listeners
        self._workers: list[_Worker] = []
        self._signals: list[int] = []

    def run(self) -> int:
        """Until SIGTERM or SIGINT; returns the exit code."""
        # Before anything imports prometheus_client: it reads this once.
        directory = tempfile.mkdtemp(prefix="mintmark-metrics-")
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
        try:
            return self._run()
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _run(self) -> int:
        from mintmark.server.metrics import Workers

        counted = Workers()
        # A signal wakes the wait below.
        wake, waker = socket.socketpair()
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: self._signals.append(number))
        self._workers = [_Worker(self._settings, self._listeners) for _ in range(self._settings.workers)]
        _announce(self._settings, self._listeners)
        while not self._signals:
            connection.wait([wake, *(worker.process.sentinel for worker in self._workers)], timeout=1.0)
            for at, worker in enumerate(self._workers):
                if worker.is_well():
                    continue
                code = worker.kill()
                counted.gone(worker.process.pid or 0)
                if code == _EXIT_HOPELESS:
                    self._stop()
                    return code
                if self._signals:
                    break
                _log.error("worker died", pid=worker.process.pid, exit=code)
                if time.monotonic() - worker.started_s < _YOUNG_S:
                    time.sleep(1.0)
                counted.replaced()
                self._workers[at] = _Worker(self._settings, self._listeners)
        return self._stop()

    def _stop(self) -> int:
        """Stops all; returns 0 if all of them ended as they should."""
        for worker in self._workers:
            worker.process.terminate()
        deadline = time.monotonic() + self._settings.grace_ms / 1000 + 2 * _FAREWELL_S
        for worker in self._workers:
            while worker.process.is_alive() and time.monotonic() < deadline and len(self._signals) < 2:
                worker.process.join(0.1)
        codes = [worker.kill() for worker in self._workers]
        return int(any(codes))


def _run_worker(settings: Settings, listeners: Listeners, parent: Pipe) -> None:
    # Ctrl-C reaches all processes of a terminal; the parent tells its workers by itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logs.configure(settings)
    try:
        uvloop.run(_work(settings, listeners, parent=parent))
    except MintError as error:
        _log.error("cannot serve", code=error.code, error=str(error))
        sys.exit(_EXIT_HOPELESS)
