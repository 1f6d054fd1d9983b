"""``mintage serve``: listeners, one process or several, and a graceful stop.

With several workers the parent binds the listeners and starts one process for each worker. They accept connections from
the same sockets. No two workers share a segment or a lease, as each reserves its own.

On Linux the parent imports what a worker needs and forks it, so that all of them share the memory of the modules. The
parent has no thread, no event loop and no connection to a store, and so a worker inherits none.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import ssl
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import structlog

from mintage._core.lane import http_date
from mintage.errors import CATALOGUE, ConfigError, MintError, StoreError
from mintage.installation import install_line
from mintage.protocol.url import StoreUrl
from mintage.server.config.sources import variable
from mintage.server.config.values import is_loopback
from mintage.server.core import logs
from mintage.store import STORE_KINDS, load_driver

if sys.platform == "win32":
    raise ImportError("the service does not run on Windows")

import resource

import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection as Pipe

    from uvicorn.server import ServerState

    from mintage.server.config.settings import Settings
    from mintage.server.core.service import Service
    from mintage.server.loop.accept import Server
    from mintage.server.loop.limits import Connection
    from mintage.server.loop.spread import Share, Shares

_log = structlog.get_logger("mintage.server")

BACKLOG: Final = 2048
#: The most files that a worker has open beside its connections.
_OWN_FILES: Final = 256
#: The time limit for sending written data at the end of the grace period,
_FLUSH_TIMEOUT_S: Final = 1.0
#: and then for releasing leases and giving tails back.
_SHUTDOWN_TIMEOUT_S: Final = 2.0
#: The service warns of a certificate with fewer days left.
_CERTIFICATE_DAYS: Final = 14
#: The supervisor replaces a worker whose loop has sent no beat for this time.
_SILENCE_S: Final = 30.0
#: If a worker dies sooner than this after its start, the supervisor pauses before it starts the next one.
_STARTUP_GRACE_S: Final = 5.0
_PAUSE_S: Final = 1.0
#: Each of these signals stops the service gracefully; a second one ends the grace period at once.
_STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
#: Signals that make other servers read their configuration again, and that end a process by default.
_IGNORED: Final = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True, slots=True)
class Listeners:
    """Bound sockets; ``None`` where an interface is off."""

    http: socket.socket | None
    redis: socket.socket | None

    def bound(self) -> dict[str, socket.socket]:
        """Return the bound sockets, by interface."""
        return {name: each for name, each in (("http", self.http), ("redis", self.redis)) if each is not None}

    def addresses(self) -> dict[str, str]:
        """Return the actual host and port of each interface, as ``host:port``."""
        return {name: _shown(each) for name, each in self.bound().items()}


def _shown(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bind(name: str, address: tuple[str, int] | None) -> socket.socket | None:
    if address is None:
        return None
    try:
        # As bytes: to encode a text, Python imports the tables of internationalized names.
        host, port = address[0].encode("ascii"), address[1]
        (family, kind, number, _, place), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
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
            f"{name} {address[0]}:{address[1]} cannot be listened on: {error.strerror or error}: take another address, "
            f"with --{name} or {variable(name)}",
            code="config.setting",
        ) from error
    listener.setblocking(False)
    return listener


def serve(settings: Settings) -> int:
    """Serve until SIGTERM, SIGINT or SIGQUIT, and return the exit code.

    :raises ConfigError: ``config.setting``: an address is in use, a certificate cannot be read, or the store is this
        very service or refuses for a lasting reason; ``config.driver``.
    :raises StoreError: ``store.unavailable``: the registry cannot be made now.
    """
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    _keep_standard_error()
    for package in ("httptools", "prometheus_client", "pydantic", "uvicorn"):
        if find_spec(package) is None:
            raise ConfigError(
                f"the service needs the package {package}: {install_line('server')}", code="config.driver"
            )
    logs.configure(settings)
    _tls(settings)
    if settings.tls_cert is not None:
        _check_certificate(settings.tls_cert, settings.tls_key)
    _import_drivers(settings.store_url)
    _check_store(settings)
    _refuse_itself(settings)
    listeners = Listeners(_bind("http", settings.http_address), _bind("redis", settings.redis_address))
    _allow_files(len(listeners.bound()) * settings.max_connections + _OWN_FILES)
    if settings.workers > 1:
        code = _Supervisor(settings, listeners).run()
        _drop_unwritten_log()
        return code
    uvloop.run(_work(settings, listeners, partial(_announce, settings, listeners)))
    _drop_unwritten_log()
    _force_exit()
    return 0


def _check_store(settings: Settings) -> None:
    """Open the store, which makes the directory of the registry.

    :raises ConfigError: ``config.setting``: it cannot be made; ``config.driver``, ``config.store``.
    :raises StoreError: ``store.unavailable``: it cannot be made now, as on a full disk.
    """
    try:
        settings.open_store().close()
    except StoreError as error:
        from mintage.server.core.health import check_passing

        check_passing(error)
        raise


def _import_drivers(store: str) -> None:
    """Import the drivers of a store and its cache, once for all workers. Opening the store says what is missing."""
    url = StoreUrl.parse(store)
    for scheme in (url.scheme, url.options.get("cache", "").partition(":")[0]):
        module, _, extra = STORE_KINDS.get(scheme, ("", "", None))
        if module:
            with suppress(ConfigError):
                load_driver(module, extra)


def _keep_standard_error() -> None:
    """Open standard error on the null device if the parent process has closed it.

    Otherwise the next file or connection would get its number, and all that is written to it.
    """
    if sys.stderr is not None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    if nowhere != 2:
        os.close(nowhere)
    os.set_inheritable(2, True)
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - until the process ends


def _drop_unwritten_log() -> None:
    """Drop log lines that cannot be written, as to a full disk: they must not make the exit code that of a failure."""
    try:
        sys.stderr.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)


def _refuse_itself(settings: Settings) -> None:
    """Refuse a service as its own store: it would ask itself for every integer, and never get one."""
    url, address = StoreUrl.parse(settings.store_url), settings.http_address
    if url.scheme not in {"http", "https"} or address is None:
        return
    for host, port in url.hosts:
        if port == address[1] and (host == address[0] or is_loopback(host)):
            raise ConfigError(f"store {url} is this service itself: name the store behind it", code="config.setting")


def _allow_files(needed: int) -> None:
    """Raise this process's limit of open files, which its workers inherit, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    # A limit close to the maximum is not worth a log line: few services have that many connections.
    if limit < needed // 2:
        _log.info("few open files", allowed=limit, needed=needed)


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if settings.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    cert, key, ca = settings.tls_cert, settings.tls_key, settings.tls_client_ca
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


def _check_certificate(cert: str, key: str | None) -> None:
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


# --- one worker ---------------------------------------------------------------------------------------------------


async def _work(
    settings: Settings,
    listeners: Listeners,
    announce: Callable[[], None],
    parent: Pipe | None = None,
    shares: Mapping[str, Share] | None = None,
) -> None:
    """Serve until a signal, or the parent process, stops the service."""
    _import_worker()
    from mintage.server.core.health import every
    from mintage.server.core.service import Service
    from mintage.server.process.heap import TRIM_INTERVAL_S, Heap

    loop = asyncio.get_running_loop()
    stop, hurry = asyncio.Event(), asyncio.Event()

    def ask_to_stop() -> None:
        # A second request to stop ends the grace period.
        hurry.set() if stop.is_set() else stop.set()

    if parent is None:
        for number in _STOPPING:
            loop.add_signal_handler(number, ask_to_stop)
    else:
        # The parent sends SIGTERM once, and a service manager may send a signal to all processes. SIGINT is for the
        # parent alone, and ignored here from the start.
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        loop.add_signal_handler(signal.SIGQUIT, stop.set)
        loop.add_reader(parent.fileno(), _read_parent, loop, parent, stop, hurry)
    for number in _IGNORED:
        # Not a handler of the loop, which would restore the signal's default action at its end.
        signal.signal(number, partial(_note_ignored, loop))
    service = Service(settings, settings.open_store(), shares)
    # Probed before the log says that it serves: it is then ready if the store answers.
    probing = asyncio.create_task(service.probe.probe())
    await asyncio.sleep(0)
    servers, state = listen(service, listeners, shares)
    await probing
    service.probe.check()
    tasks = [
        asyncio.create_task(service.probe.run()),
        asyncio.create_task(every(1.0, partial(_gather, service))),
        asyncio.create_task(every(1.0, partial(_check_timeouts, service, state))),
        asyncio.create_task(every(TRIM_INTERVAL_S, Heap(service, servers).trim)),
    ]
    if parent is not None:
        tasks.append(asyncio.create_task(every(1.0, partial(_beat, parent))))
    announce()
    # All objects that exist by now stay: the collector need not visit them while clients wait.
    gc.freeze()
    gc.enable()
    await stop.wait()
    await _drain(service, servers, hurry)
    for task in tasks:
        task.cancel()
    try:
        await asyncio.wait_for(service.close(), _SHUTDOWN_TIMEOUT_S)
    except TimeoutError:
        _log.warning("not everything was given back", store=str(service.store.url))
    _log.info("stopped", pid=os.getpid())


def listen(
    service: Service, listeners: Listeners, shares: Mapping[str, Share] | None = None
) -> tuple[list[Server], ServerState]:
    """Accept connections from now on. Return the servers, and the state that all of uvicorn's protocols share."""
    from mintage.server.app import App
    from mintage.server.http import HttpProtocol, configured
    from mintage.server.loop.accept import Server, TlsServer
    from mintage.server.resp.protocol import RespProtocol

    config, state = configured(App(service))
    makers: dict[str, Callable[[], asyncio.Protocol]] = {
        "http": partial(HttpProtocol, service, config, state),
        "redis": partial(RespProtocol, service),
    }
    settings, context = service.settings, _tls(service.settings)
    most, timeout_s = settings.max_connections, settings.request_timeout_ms / 1000
    servers: list[Server] = []
    for name, listener in listeners.bound().items():
        how = listener, makers[name], settings.workers, shares[name] if shares else None
        if context is None:
            servers.append(Server(*how))
        else:
            servers.append(TlsServer(*how, service.connections[name], most, context, timeout_s))
    return servers, state


def _connections(service: Service) -> list[Connection]:
    return [each for connections in service.connections.values() for each in connections]


async def _gather(service: Service) -> None:
    """Update the metrics, as another worker may be scraped."""
    service.metrics.gather(service)


async def _check_timeouts(service: Service, state: ServerState) -> None:
    """Update the header Date of HTTP answers, and close connections that take too long."""
    state.default_headers = [(b"date", http_date(int(time.time())).encode())]
    for each in _connections(service):
        each.check_timeouts(service.settings.request_timeout_ms / 1000, service.settings.idle_timeout_ms / 1000)


async def _beat(parent: Pipe) -> None:
    """Send a beat to the parent: this loop turns."""
    # The pipe is full if the parent was frozen for hours. `_read_parent` notices that the parent has ended.
    with suppress(OSError):
        parent.send_bytes(b".")


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


def _note_ignored(loop: asyncio.AbstractEventLoop, number: int, _: object) -> None:
    """Log a signal from the loop, as the handler may interrupt the writing of another line."""
    # The loop is closed at the end of the process.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_log_ignored, number)


def _keep(kept: list[int], number: int, _: object) -> None:
    kept.append(number)


def _log_ignored(number: int) -> None:
    _log.warning(
        "signal ignored",
        pid=os.getpid(),
        signal=signal.Signals(number).name,
        hint="settings are read at the start only; SIGTERM stops the service",
    )


async def _drain(service: Service, servers: list[Server], hurry: asyncio.Event) -> None:
    """Accept no connections, answer all requests that were sent, and close connections once they are silent."""
    _log.info("stopping", pid=os.getpid(), connections={name: len(each) for name, each in service.connections.items()})
    service.draining = True
    service.lane.drain()
    for server in servers:
        server.close()
    grace_s = service.settings.grace_ms / 1000
    deadline = time.monotonic() + grace_s
    while (left := _connections(service)) and time.monotonic() < deadline and not hurry.is_set():
        for each in left:
            each.finish()
        with suppress(TimeoutError):
            await asyncio.wait_for(hurry.wait(), min(0.5, grace_s / 4))
    for each in left:
        each.close()
    # Clients that read get all answers that are written.
    deadline = time.monotonic() + _FLUSH_TIMEOUT_S
    while _connections(service) and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    for each in _connections(service):
        each.abort()
    if left:
        _log.warning("connections closed at the end of the grace period", connections=len(left))


def _force_exit() -> None:
    """End the process now if a thread still waits for a store that is away: a normal exit would wait for the thread."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        logging.shutdown()
        os._exit(0)


def _announce(settings: Settings, listeners: Listeners) -> None:
    """Log the addresses, and print commands to try on a terminal."""
    from mintage import __version__

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
        import shlex

        # The full path, as another terminal may not have activated the virtual environment.
        python = shlex.quote(sys.executable)
        lines.append(f"""{python} -c 'import mintage; print(mintage.Client("{url}").next("orders"))'""")
    print("\nTry it:", *lines, sep="\n  ", end="\n\n", flush=True)
    if "http" in addresses:
        print(f"Or open {url}/ in a browser. Ctrl-C stops it.\n", flush=True)


# --- several workers ----------------------------------------------------------------------------------------------


class _Worker:
    """A worker process, and the pipe to it."""

    def __init__(
        self,
        settings: Settings,
        listeners: Listeners,
        inherited: Sequence[Pipe | socket.socket],
        shares: Mapping[str, Share] | None,
    ) -> None:
        from multiprocessing import connection, get_context

        self.pipe, theirs = connection.Pipe()
        is_forked = _can_fork()
        context: Any = get_context("fork" if is_forked else "spawn")
        ours = (self.pipe, *inherited) if is_forked else ()
        self.process = context.Process(target=_run_worker, args=(settings, listeners, theirs, ours, shares))
        # Ctrl-C sends SIGINT to all processes of a terminal, but the parent stops its workers itself. The worker
        # inherits these settings, so no signal but SIGTERM ends it while it starts.
        ignored = (signal.SIGINT, signal.SIGQUIT, *_IGNORED)
        before = [signal.signal(number, signal.SIG_IGN) for number in ignored]
        # A forked worker has the parent's handler of SIGTERM until it removes it: the signal waits for that.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            for number, handler in zip(ignored, before, strict=True):
                signal.signal(number, handler)
            theirs.close()
        self.serves = False
        """True once it has sent a beat."""
        self._started_s = self._last_beat_s = time.monotonic()

    def is_responsive(self) -> bool:
        """Return True if the process lives and its loop turns."""
        with suppress(OSError, EOFError):
            while self.pipe.poll():
                self.pipe.recv_bytes(16)
                self.serves = True
                self._last_beat_s = time.monotonic()
        return self.process.is_alive() and time.monotonic() - self._last_beat_s < _SILENCE_S

    def in_startup_grace(self) -> bool:
        """Return True if the process was started only just now."""
        return time.monotonic() - self._started_s < _STARTUP_GRACE_S

    def hurry(self) -> None:
        """End its grace period: it then stops without waiting for its clients."""
        with suppress(OSError):
            self.pipe.send_bytes(b"!")

    def end(self) -> int:
        """Kill the process unless it has ended, and return its exit code."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        return self.process.exitcode or 0


class _Supervisor:
    """The parent process: it starts workers, replaces those that die or hang, and stops them."""

    def __init__(self, settings: Settings, listeners: Listeners) -> None:
        self._settings = settings
        self._listeners = listeners
        self._workers: list[_Worker] = []
        self._shares: Shares | None = None
        self._signals: list[int] = []
        self._ignored: list[int] = []
        # A signal writes to this pair, which wakes the thread in `_wait`.
        self._wake, self._waker = socket.socketpair()
        self._wake.setblocking(False)
        self._waker.setblocking(False)

    def run(self) -> int:
        """Run until SIGTERM, SIGINT or SIGQUIT, and return the exit code."""
        import shutil
        import tempfile

        # Set before any import of prometheus_client, which reads the variable once.
        directory = os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="mintage-metrics-")
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for numbers, kept in ((_STOPPING, self._signals), (_IGNORED, self._ignored)):
            for number in numbers:
                signal.signal(number, partial(_keep, kept))
        if _can_fork():
            _import_worker()
            from mintage.server.loop.spread import Shares

            self._shares = Shares(self._settings.workers, ("http", "redis"))
            # The collector would write to the memory that workers share.
            gc.collect()
            gc.freeze()
        gc.enable()
        try:
            failed = self._start() or self._watch()
        finally:
            stopped = self._stop()
            shutil.rmtree(directory, ignore_errors=True)
        return failed or stopped

    def _worker(self, at: int) -> _Worker:
        """Start the worker with this index.

        A forked one must close what the parent alone may have, to see the end of the parent.
        """
        pipes = [worker.pipe for worker in self._workers if not worker.pipe.closed]
        shares = self._shares.of(at) if self._shares else None
        return _Worker(self._settings, self._listeners, (*pipes, self._wake, self._waker), shares)

    def _start(self) -> int:
        """Start the workers. Return the exit code of one that cannot serve; 0 once all serve, or at a signal."""
        while len(self._workers) < self._settings.workers:
            self._workers.append(self._worker(len(self._workers)))
        while not self._signals:
            starting = [worker for worker in self._workers if not worker.serves]
            if not starting:
                _announce(self._settings, self._listeners)
                break
            self._wait([worker.pipe for worker in starting])
            for worker in starting:
                if not worker.is_responsive():
                    return self._reap(worker) or 1
        return 0

    def _watch(self) -> int:
        """Replace workers that die or hang, until a signal."""
        from mintage.server.core.metrics import Workers

        counted = Workers()
        while not self._signals:
            self._wait([worker.process.sentinel for worker in self._workers])
            for at, worker in enumerate(self._workers):
                if self._signals or worker.is_responsive():
                    continue
                self._reap(worker)
                counted.gone(worker.process.pid or 0)
                if worker.in_startup_grace():
                    self._wait([])
                if self._signals:
                    break
                try:
                    self._workers[at] = self._worker(at)
                except OSError as error:
                    # Too many processes or too little memory: it tries again later.
                    _log.error("worker not started", error=str(error))
                    self._wait([])
                else:
                    counted.replaced()
        return 0

    def _wait(self, signs: list[Any]) -> None:
        """Wait for one of these, for a signal, or for a pause."""
        from multiprocessing import connection

        connection.wait([self._wake, *signs], _PAUSE_S)
        self._log_ignored()

    def _log_ignored(self) -> None:
        with suppress(BlockingIOError):
            self._wake.recv(4096)
        while self._ignored:
            _log_ignored(self._ignored.pop(0))

    def _reap(self, worker: _Worker) -> int:
        code = worker.end()
        _log.error("worker died", pid=worker.process.pid, exit=code)
        return code

    def _stop(self) -> int:
        """Stop all workers, and return 0 if all of them ended as they should."""
        from multiprocessing import connection

        for listener in self._listeners.bound().values():
            listener.close()
        deadline = time.monotonic() + self._settings.grace_ms / 1000 + _FLUSH_TIMEOUT_S + _SHUTDOWN_TIMEOUT_S + _PAUSE_S
        for worker in self._workers:
            worker.process.terminate()
        hurried = False
        while (left := [each for each in self._workers if each.process.is_alive()]) and time.monotonic() < deadline:
            if len(self._signals) > 1 and not hurried:
                hurried = True
                for worker in left:
                    worker.hurry()
            connection.wait([worker.process.sentinel for worker in left], 0.1)
            self._log_ignored()
        for worker in left:
            self._reap(worker)
        # The signal may end a worker that was just starting, or that had just finished.
        codes = {worker.end() for worker in self._workers}
        return int(not codes <= {0, -signal.SIGTERM})


def _can_fork() -> bool:
    """Return True if a child inherits no thread's locks: on Linux, in a process of one thread."""
    return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1


def _import_worker() -> None:
    """Import all that a worker needs for its answers, so that none waits for an import."""
    from mintage.lease import keeper, lease_client, request, segment_client  # noqa: F401
    from mintage.server import app, http  # noqa: F401
    from mintage.server.core import health, service  # noqa: F401
    from mintage.server.loop import accept  # noqa: F401
    from mintage.server.process import heap  # noqa: F401
    from mintage.server.resp import protocol  # noqa: F401


def _run_worker(
    settings: Settings,
    listeners: Listeners,
    parent: Pipe,
    inherited: Sequence[Pipe | socket.socket],
    shares: Mapping[str, Share] | None,
) -> None:
    from multiprocessing import parent_process

    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    for each in inherited:
        each.close()
    logs.configure(settings)
    os.set_blocking(parent.fileno(), False)
    try:
        uvloop.run(_work(settings, listeners, lambda: None, parent, shares))
    except MintError as error:
        _log.error("cannot serve", code=error.code, error=str(error))
        sys.exit(CATALOGUE[error.code].exit)
    if (supervisor := parent_process()) is not None and supervisor.pid != os.getppid():
        import shutil

        shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
    _drop_unwritten_log()
    _force_exit()
