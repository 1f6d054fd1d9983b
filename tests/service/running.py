"""``mintage serve`` with a configuration file, for one test, with checks at its end."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mintage.server.config.keys import digest
from tests.servers.server import HOST, ServerError
from tests.service.serving import Serving
from tests.service.wire import Address, after_hello, command, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


EXPIRED = """[ca]
default_ca = own
[own]
database = index
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = names
[names]
commonName = supplied
"""
"""The configuration of an authority that signs with any dates."""


class _Configured(Serving):
    """The service with a configuration file and unchanged words of the command line."""

    def __init__(self, home: Path, store: str, toml: str, options: Sequence[str]) -> None:
        super().__init__(home / "service", store)
        self._toml = toml
        self._options = options

    @property
    def _config(self) -> Path:
        return self.directory / "mintage.toml"

    def create(self) -> None:
        super().create()
        self._config.write_text(self._toml, encoding="utf-8")

    def command(self) -> Sequence[str]:
        return [*super().command(), "--config", str(self._config), *self._options]


class Running:
    """A running service and its addresses."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.http: Address = (HOST, serving.port)
        self.redis: Address = (HOST, serving.redis_port)
        self.url = serving.url

    def logged(self) -> str:
        """Return its complete log."""
        return self.serving.log.read_text(encoding="utf-8")

    def events(self) -> list[dict[str, Any]]:
        """Return its log, line by line."""
        # The last line may be half written.
        lines = self.logged().split("\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith("{")]

    def memory(self) -> int:
        """Return the bytes of memory that it uses."""
        return round(self.serving.memory_mb() * 1e6)

    def is_up(self) -> bool:
        return self.serving.pid is not None

    def stop(self) -> None:
        """Stop it, and assert that it ended cleanly and logged no error."""
        self.serving.stop()
        log = self.logged()
        assert self.serving.wait() == 0, log
        assert "Traceback" not in log, log
        assert not [event for event in self.events() if event["level"] in {"error", "critical"}], log

    def kill(self) -> None:
        self.serving.kill()


@contextmanager
def running(home: Path, *options: str, toml: str = "", store: str = "") -> Iterator[Running]:
    """Run a service with these options, over a registry in ``home``; stop it at the end and check it."""
    home.mkdir(exist_ok=True)
    serving = _Configured(home, store or f"sqlite:///{home}/ids.db", toml, options)
    try:
        serving.start()
        service = Running(serving)
        yield service
        if not service.is_up():
            raise ServerError(f"the service died with {serving.wait()}:\n{service.logged()}")
        service.stop()
    finally:
        serving.kill()


def key_toml(name: str, key: str, rights: Mapping[str, Sequence[str]], more: str = "") -> str:
    """Return the lines of the configuration that accept a key."""
    table = ", ".join(f'"{pattern}" = {json.dumps(list(granted))}' for pattern, granted in rights.items())
    return f'[keys.{name}]\nhash = "{digest(key)}"\nrights = {{ {table} }}\n{more}\n'


def certificate(home: Path, name: str, days: int | None = 2) -> tuple[str, str]:
    """Return a certificate of its own authority that ends in some days, or has ended (``None``), and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    cert, key = str(home / f"{name}.crt"), str(home / f"{name}.key")
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:127.0.0.1,DNS:{name}", "-days", str(days or 1)]
    subprocess.run([*made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    if days is None:
        (home / "index").touch()
        (home / "ca.conf").write_text(EXPIRED, encoding="utf-8")
        again = ["openssl", "x509", "-x509toreq", "-in", cert, "-signkey", key, "-out", f"{cert}.asked"]
        subprocess.run(again, check=True, capture_output=True)
        sign = ["openssl", "ca", "-config", "ca.conf", "-batch", "-notext", "-selfsign", "-keyfile", key, "-out", cert]
        sign += ["-in", f"{cert}.asked", "-startdate", "20200101000000Z", "-enddate", "20200102000000Z"]
        subprocess.run(sign, check=True, capture_output=True, cwd=home)
    return cert, key


def locked(key: str) -> str:
    """Return a private key with a password."""
    file = f"{key}.locked"
    lock = ["openssl", "pkcs8", "-topk8", "-in", key, "-out", file, "-passout", "pass:secret"]
    subprocess.run(lock, check=True, capture_output=True)
    return file


def talk(service: Running, *commands: Iterable[str | bytes | int] | str, version: int = 2) -> bytes:
    """Return the replies to commands in one segment, each of words or a text of words; QUIT is sent last."""
    said = [command(*(each.split() if isinstance(each, str) else each)) for each in commands]
    hello = [command("HELLO", 3)] if version == 3 else []
    heard = say(service.redis, b"".join([*hello, *said, command("QUIT")]))
    assert heard.endswith(b"+OK\r\n"), heard
    return after_hello(heard) if hello else heard.removesuffix(b"+OK\r\n")
