"""Tests of nginx and HAProxy in front of two instances, configured as docs/how-to/balancers.md shows."""

from __future__ import annotations

import csv
import json
import os
import pwd
import signal
import socket
from base64 import b64encode
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import pytest

from tests.helpers.markdown import blocks
from tests.servers.server import HOST, Daemon, free_port, program, until
from tests.service.load import Answer, Line, read_answer
from tests.service.running import certificate, key_toml
from tests.service.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "balancers.md"
KEY: Final = "mint_balanced"
RIGHTS: Final = key_toml("shop", KEY, {"*": ["next", "mint", "create", "describe"]})
NOTHING: Final[Mapping[str, str]] = {}
DEFAULT: Final = {"keepalive 32;": "", "proxy_http_version 1.1;": "", 'proxy_set_header Connection "";': ""}
"""Without these lines, nginx speaks HTTP/1.0 and opens a connection for each request."""
MANY: Final = 50
UP: Final = ("UP", "L7OK")
SECTIONS: Final = ("mintage-http", "mintage-redis")
ALL: Final = {(section, name) for section in SECTIONS for name in ("ids-1", "ids-2")}
"""The servers of HAProxy."""


class Balancer(Daemon):
    """A balancer with the configuration of the page, in which ``edits`` replace some lines."""

    language: ClassVar[str]
    """The language of the blocks of its configuration."""

    def __init__(self, directory: Path, instances: Sequence[Serving], edits: Mapping[str, str] = NOTHING) -> None:
        super().__init__(directory)
        self._instances = instances
        self._edits = edits

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def page(self) -> str:
        """Return the configuration of the page, with the addresses of the instances."""
        text, _ = blocks(PAGE, self.language)
        for line, edited in self._edits.items():
            assert line in text
            text = text.replace(line, edited)
        for at, instance in enumerate(self._instances, start=1):
            text = text.replace(f"ids-{at}:8080", f"{HOST}:{instance.port}")
            text = text.replace(f"ids-{at}:6380 port 8080", f"{HOST}:{instance.redis_port} port {instance.port}")
        return text

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0

    def reset(self) -> None:
        """Do nothing: it has no data."""

    def post(self, path: str) -> Answer:
        """Return the answer to a request with the key, on a connection of its own."""
        return self.ask("POST", path, f"Authorization: Basic {b64encode(f':{KEY}'.encode()).decode()}")

    def ask(self, method: str, path: str, *lines: str, host: str = "ids.example") -> Answer:
        """Return the answer to a request on a connection of its own."""
        with Line(self.port) as line:
            head = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Content-Length: 0", *lines, "", ""]
            line.send("\r\n".join(head).encode())
            return read_answer(line.replies)

    def next(self) -> int:
        """Return the next integer of a namespace."""
        answer = self.post("/v1/sequences/orders:next")
        assert answer.status == 200, answer
        return int(json.loads(answer.body)["ids"][0])


class Nginx(Balancer):
    name = language = "nginx"
    programs = ("nginx",)

    def create(self) -> None:
        page = self.page().replace("listen 80;", f"listen {HOST}:{self.port};")
        places = [f"{what}_temp_path {what};" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
        user = [f"user {pwd.getpwuid(0).pw_name} root;"] if os.geteuid() == 0 else []
        lines = [*user, "daemon off;", "pid pid;", "events {}", "http {", "access_log off;", *places, page, "}"]
        (self.directory / "nginx.conf").write_text("\n".join(lines), "utf-8")

    def command(self) -> Sequence[str]:
        return ["nginx", "-p", str(self.directory), "-c", "nginx.conf", "-e", "stderr"]


class HAProxy(Balancer):
    name = "haproxy"
    language = "text"
    programs = ("haproxy",)

    def create(self) -> None:
        self.redis_port, self._stats_port = free_port(), free_port()
        page = self.page().replace("bind :80\n", f"bind {HOST}:{self.port}\n")
        page = page.replace("bind :6380\n", f"bind {HOST}:{self.redis_port}\n")
        (self.directory / "haproxy.cfg").write_text(
            f"global\n    stats socket {HOST}:{self._stats_port}\n{page}", "utf-8"
        )

    def command(self) -> Sequence[str]:
        return ["haproxy", "-db", "-f", "haproxy.cfg"]

    def servers(self) -> list[dict[str, str]]:
        """Return what it tells about each server of each section."""
        with socket.create_connection((HOST, self._stats_port)) as asked, asked.makefile("r") as told:
            asked.sendall(b"show stat\n")
            rows = csv.DictReader(told.read().removeprefix("# ").splitlines())
            return [row for row in rows if row["svname"] not in {"FRONTEND", "BACKEND"}]

    def up(self) -> set[tuple[str, str]]:
        """Return the section and name of each server whose last check succeeded."""
        known = self.servers()
        return {(each["pxname"], each["svname"]) for each in known if (each["status"], each["check_status"]) == UP}

    @contextmanager
    def redis(self) -> Iterator[Line]:
        """Return a connection of the Redis protocol with the key."""
        with Line(self.redis_port) as line:
            assert line.redis("AUTH", KEY) == "+OK"
            yield line


@pytest.fixture
def instances(tmp_path: Path) -> Iterator[list[Serving]]:
    """Return two instances on one store; the first has two workers."""
    with ExitStack() as stack:
        found = []
        for name, workers in (("one", 2), ("two", 1)):
            found.append(make(tmp_path, name, workers=workers))
            stack.callback(found[-1].kill)
            found[-1].start()
        yield found


def make(home: Path, name: str, toml: str = RIGHTS, **settings: object) -> Serving:
    (config := home / f"{name}.toml").write_text(toml, "utf-8")
    serving = Serving(home / name, f"sqlite:///{home}/ids.db", config=config, **settings)
    serving.environment["MINTAGE_AUTO_CREATE"] = "true"
    return serving


@contextmanager
def started(balancer: Balancer) -> Iterator[None]:
    if any(program(needed) is None for needed in balancer.programs):
        reason = f"{balancer.name} is not installed: run tests/servers/install.sh as root"
        (pytest.fail if any(map(os.environ.get, ("CI", "MINTAGE_REQUIRE_SERVERS"))) else pytest.skip)(reason)
    try:
        balancer.start()
        yield
        balancer.stop()
    finally:
        balancer.kill()


@pytest.fixture(params=["nginx", "nginx as it is by default", "haproxy"])
def balancer(request: pytest.FixtureRequest, tmp_path: Path, instances: list[Serving]) -> Iterator[Balancer]:
    kind = HAProxy if request.param == "haproxy" else Nginx
    with started(found := kind(tmp_path / "balancer", instances, DEFAULT if "default" in request.param else NOTHING)):
        yield found


@pytest.fixture
def haproxy(tmp_path: Path, instances: list[Serving]) -> Iterator[HAProxy]:
    with started(found := HAProxy(tmp_path / "balancer", instances)):
        yield found


def test_integers_and_ids_pass_every_balancer_once(balancer: Balancer) -> None:
    integers = [balancer.next() for _ in range(MANY)]
    ids = [json.loads(balancer.post("/v1/ids/sno?count=2").body)["ids"] for _ in range(MANY)]
    assert len(set(integers)) == MANY
    assert len({each for pair in ids for each in pair}) == 2 * MANY
    assert balancer.ask("GET", "/readyz").status == 200
    refused = balancer.ask("POST", "/v1/sequences/orders:next", "X-Trace-Id: order-4711")
    assert (refused.status, refused.headers["x-trace-id"]) == (401, "order-4711")


def test_no_request_fails_after_a_worker_or_an_instance_has_ended(balancer: Balancer, instances: list[Serving]) -> None:
    first, second = instances
    integers = [balancer.next() for _ in range(MANY)]
    worker = first.workers()[0]
    os.kill(worker, signal.SIGKILL)
    until(lambda: worker not in first.workers() and len(first.workers()) == 2, "another worker runs")
    integers += [balancer.next() for _ in range(MANY)]
    second.stop()
    integers += [balancer.next() for _ in range(MANY)]
    second.start()
    if isinstance(balancer, HAProxy):
        until(lambda: balancer.up() == ALL, "both are up again")
    first.stop()
    integers += [balancer.next() for _ in range(MANY)]
    assert len(set(integers)) == 4 * MANY


def test_redis_protocol_passes_haproxy_to_both_instances(haproxy: HAProxy) -> None:
    until(lambda: haproxy.up() == ALL, "both are up")
    with haproxy.redis() as one, haproxy.redis() as other:
        integers = [int(line.redis("INCR", "orders")[1:]) for _ in range(MANY) for line in (one, other)]
        assert [line.redis("MINT", "sno") for line in (one, other)] == ["$16", "$16"]
    assert len(set(integers)) == 2 * MANY
    used = {each["svname"] for each in haproxy.servers() if each["pxname"] == "mintage-redis" and int(each["stot"])}
    assert used == {"ids-1", "ids-2"}


def test_haproxy_leaves_out_an_instance_that_does_not_answer(haproxy: HAProxy, instances: list[Serving]) -> None:
    until(lambda: haproxy.up() == ALL, "both are up")
    instances[1].pause()
    until(lambda: haproxy.up() == {(section, "ids-1") for section in SECTIONS}, "the second is left out")
    with haproxy.redis() as line:
        assert line.redis("INCR", "orders").startswith(":")
    assert haproxy.next()
    instances[1].resume()
    until(lambda: haproxy.up() == ALL, "both are up again")


def test_service_without_keys_is_read_through_nginx_by_the_clients_host(tmp_path: Path) -> None:
    only = make(tmp_path, "only", toml="")
    try:
        only.start()
        with started(nginx := Nginx(tmp_path / "named", [only, only])):
            assert nginx.ask("GET", "/healthz").status == 403
        passing = "proxy_set_header Host $http_host;"
        assert passing in PAGE.read_text("utf-8")
        edits = {"proxy_pass http://mintage;": f"proxy_pass http://mintage; {passing}"}
        with started(nginx := Nginx(tmp_path / "passing", [only, only], edits)):
            found = [nginx.ask("GET", "/healthz", host=host).status for host in ("localhost", "ids.example")]
            assert found == [200, 403]
    finally:
        only.kill()


@pytest.mark.parametrize(
    ("kind", "line"),
    [(Nginx, "proxy_pass http://mintage;"), (HAProxy, "default-server check inter 2s fall 2 rise 1")],
)
@pytest.mark.parametrize("is_known", [True, False])
def test_balancer_checks_the_certificates_of_instances(
    tmp_path: Path, kind: type[Balancer], line: str, is_known: bool
) -> None:
    cert, key = certificate(tmp_path, "ids.example")
    authority, _ = certificate(tmp_path, "ids.other")
    only = make(tmp_path, "only", tls_cert=cert, tls_key=key)
    _, encrypted = blocks(PAGE, kind.language)
    try:
        only.start()
        edits = {line: encrypted.replace("/etc/ssl/ids-ca.crt", cert if is_known else authority)}
        with started(balancer := kind(tmp_path / "balancer", [only, only], edits)):
            if isinstance(balancer, HAProxy):
                until(lambda: balancer.up() == (ALL if is_known else set()), "the checks are over")
            status = balancer.post("/v1/sequences/orders:next").status
            assert status == 200 if is_known else status in {502, 503}
    finally:
        only.kill()
