"""``mintage serve``: checks at the start, listeners, and one process or several."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Final

import structlog
import uvloop

from mintage.errors import ConfigError, StoreError
from mintage.installation import install_line
from mintage.protocol.url import StoreUrl
from mintage.server.config.settings import Settings
from mintage.server.config.sources import variable
from mintage.server.config.values import is_loopback
from mintage.server.core import logs
from mintage.server.loop import tls
from mintage.server.process.drain import drop_unwritten_output, force_exit
from mintage.server.process.worker import HANDLED, IGNORED, work
from mintage.store import STORE_KINDS, load_driver

BACKLOG: Final = 2048
"""The most connections of a listener that wait to be accepted."""
#: The most files that a worker has open beside its connections.
_OWN_FILES: Final = 256

_log = structlog.get_logger("mintage.server")


def serve(settings: Settings) -> int:
    """Serve until SIGTERM, SIGINT or SIGQUIT, and return the exit code.

    :raises ConfigError: ``config.setting``: an address is in use, a certificate cannot be read, or the store is this
        very service or refuses for a lasting reason; ``config.driver``.
    :raises StoreError: ``store.unavailable``: the registry cannot be made now.
    """
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    # The program that started this one may have ignored or blocked them.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
    _keep_standard_error()
    # The directory of another program's metrics. Several workers have one of their own.
    for name in ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"):
        os.environ.pop(name, None)
    for package in ("httptools", "jinja2", "msgspec", "prometheus_client", "starlette"):
        if find_spec(package) is None:
            raise ConfigError(
                f"the service needs the package {package}: {install_line('server')}", code="config.driver"
            )
    logs.configure(settings)
    tls.server_context(settings.tls_cert, settings.tls_key, settings.tls_client_ca)
    if settings.tls_cert is not None:
        tls.check_certificate(settings.tls_cert, settings.tls_key)
    url = StoreUrl.parse(settings.store_url)
    _import_drivers(url)
    _check_store(settings)
    _refuse_itself(url, settings.addresses.get("http"))
    listeners = {name: _bind(name, *address) for name, address in settings.addresses.items()}
    settings = _allow_files(settings)
    announce = partial(_announce, settings, url, listeners)
    if settings.workers > 1:
        from mintage.server.process.supervisor import Supervisor

        code = Supervisor(settings, listeners, announce).run()
        drop_unwritten_output()
        return code
    uvloop.run(work(settings, listeners, announce))
    drop_unwritten_output()
    force_exit()
    return 0


def _check_store(settings: Settings) -> None:
    """Open the store, which makes the directory of the registry."""
    try:
        settings.open_store().close()
    except StoreError as error:
        from mintage.server.core.health import check_passing

        check_passing(error)
        raise


def _import_drivers(url: StoreUrl) -> None:
    """Import the drivers of a store and its cache, once for all workers. Opening the store says what is missing."""
    for each in (url, url.cache):
        if each is not None and each.scheme in STORE_KINDS:
            module, _, extra = STORE_KINDS[each.scheme]
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


def _refuse_itself(url: StoreUrl, address: tuple[str, int] | None) -> None:
    """Refuse a service as its own store: it would ask itself for every integer, and never get one."""
    if url.scheme not in {"http", "https"} or address is None:
        return
    for host, port in url.hosts:
        if port == address[1] and (host == address[0] or is_loopback(host)):
            raise ConfigError(f"store {url} is this service itself: name the store behind it", code="config.setting")


def _bind(name: str, host: str, port: int) -> socket.socket:
    try:
        # As bytes: to encode a text, Python imports the tables of internationalized names.
        (family, kind, number, _, place), *_ = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
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
            f"{name} {host}:{port} cannot be listened on: {error.strerror or error}: take another address, "
            f"with --{name} or {variable(name)}",
            code="config.setting",
        ) from error
    listener.setblocking(False)
    return listener


def _allow_files(settings: Settings) -> Settings:
    """Raise this process's limit of open files, which its workers inherit, as far as the system allows.

    Return the settings with fewer connections if it allows too few: the store needs files as well.
    """
    needed = len(settings.addresses) * settings.max_connections + _OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return settings
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    most = min(settings.max_connections, max(limit - _OWN_FILES, limit // 2) // len(settings.addresses))
    if most < settings.max_connections:
        _log.info("few open files", allowed=limit, needed=needed, max_connections=most)
    return replace(settings, max_connections=most)


def _shown(listener: socket.socket) -> str:
    """Return the host and port that a listener has in the end, as ``host:port``."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _announce(settings: Settings, url: StoreUrl, listeners: Mapping[str, socket.socket]) -> None:
    """Log the addresses, and print commands to try on a terminal."""
    from mintage import __version__

    bound = {name: _shown(each) for name, each in listeners.items()}
    _log.info(
        "serving",
        version=__version__,
        pid=os.getpid(),
        workers=settings.workers,
        store=str(url),
        keys=len(settings.keys),
        auto_create=settings.creates,
        **bound,
    )
    if not logs.is_console(settings):
        return
    scheme = "https" if settings.tls_cert is not None else "http"
    service = f"{scheme}://{bound.get('http', '')}"
    lines = []
    if "http" in bound:
        lines.append(f"""curl -d '{{"serviceName": "orders", "count": 3}}' {service}/alloc""")
    if "redis" in bound:
        host, _, port = bound["redis"].rpartition(":")
        at = "" if host == "127.0.0.1" else f"-h {host.strip('[]')} "
        lines.append(f"redis-cli {at}-p {port} INCR orders")
    if "http" in bound:
        import shlex

        # The full path, as another terminal may not have activated the virtual environment.
        python = shlex.quote(sys.executable)
        lines.append(f"""{python} -c 'import mintage; print(mintage.Client("{service}").next("orders"))'""")
    with suppress(OSError):
        print("\nTry it:", *lines, sep="\n  ", end="\n\n", flush=True)
        if "http" in bound:
            print(f"Or open {service}/ in a browser. Ctrl-C stops it.\n", flush=True)
