"""Tests of compatibility with idalloc: both servers run, and answer the same requests alike."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.flushall import COUNT, MintageInBatches
from benchmarks.servers import PEERS, Idalloc, Measured, Mintage, Place, alloc
from benchmarks.timing import UnavailableError
from mintage import open_store
from mintage.server.config.settings import Settings
from mintage.store.idalloc import import_idalloc, read_idalloc_hashes, read_idalloc_table
from tests.servers import MariaDB, Redis, RedisWithoutAOF
from tests.servers.server import HOST, START_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.fixtures import Servers

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "migrate.md"
TRACE = "X-Trace-Id"


def body(**members: object) -> bytes:
    return json.dumps(members, ensure_ascii=False).encode()


ONE = body(serviceName="orders")

SAME: dict[str, bytes | None] = {
    "the demo's request": body(serviceName="orders", count=3),
    "no count": ONE,
    "count 0": body(serviceName="orders", count=0),
    "count 1": body(serviceName="orders", count=1),
    "count 100": body(serviceName="orders", count=100),
    "count 101": body(serviceName="orders", count=101),
    "count -1": body(serviceName="orders", count=-1),
    "count null": body(serviceName="orders", count=None),
    "count as text": body(serviceName="orders", count="1"),
    "count 1.5": body(serviceName="orders", count=1.5),
    "count 1.0": body(serviceName="orders", count=1.0),
    "count 1e0": b'{"serviceName":"orders","count":1e0}',
    "the largest count": body(serviceName="orders", count=2**63 - 1),
    "a count beyond 64 bits": body(serviceName="orders", count=2**63),
    "no body": None,
    "an empty body": b"",
    "half a body": b'{"serviceName":',
    "more than a body": b'{"serviceName":"orders"} {}',
    "not JSON": b"serviceName=orders",
    "null": b"null",
    "an array": b"[]",
    "a text": b'"orders"',
    "a byte order mark": b"\xef\xbb\xbf" + ONE,
    "no name": body(count=1),
    "an empty name": body(serviceName=""),
    "a blank name": body(serviceName="   "),
    "a name with spaces around it": body(serviceName="  orders\t"),
    "a name with a no-break space around it": body(serviceName="\u00a0orders\u00a0"),
    "a name in capitals": body(serviceName="ORDERS"),
    "a name of 64 bytes": body(serviceName="n" * 64),
    "a name of 65 bytes": body(serviceName="n" * 65),
    "a name of 33 characters and 66 bytes": body(serviceName="é" * 33),
    "a name that is a number": body(serviceName=1),
    "a name that is null": body(serviceName=None),
    "unknown members": body(serviceName="orders", region={"name": ["eu"]}),
    "keys in another case": body(SERVICENAME="orders", Count=2),
    "keys twice": b'{"serviceName":"users","serviceName":"orders","count":2,"count":3}',
    "white space": b' \r\n\t{ "serviceName" : "orders" } \n',
}

REFUSED = {
    "a name with a space in it": body(serviceName="my orders"),
    "a name with a slash": body(serviceName="shop/orders"),
    "a name that is not ASCII": body(serviceName="aufträge"),
    "a name with a control character": body(serviceName="orders\u0000"),
    "a name that is not UTF-8": b'{"serviceName":"\xff"}',
}
"""Names that only idalloc accepts: a namespace is part of URLs, commands and metrics."""

HEADERS = {
    "a trace id": {TRACE: "0123456789abcdef0123456789abcdef"},
    "a short trace id": {TRACE: "a"},
    "a trace id in another case of the header": {TRACE.lower(): "order-7/retry:2"},
    "a form's content type": {"Content-Type": "application/x-www-form-urlencoded"},
    "JSON's content type": {"Content-Type": "application/json"},
    "a client that names itself": {"User-Agent": "Go-http-client/1.1", "Accept-Encoding": "gzip"},
}

OTHER_TRACES = {"a trace id with a space": "a b", "a trace id of 200 characters": "x" * 200}
"""Trace ids that idalloc echoes and mintage replaces, as they appear in logs."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    envelope: dict[str, Any]

    @property
    def shape(self) -> dict[str, Any]:
        """Return everything on which a client could depend; integers, trace ids and times differ by nature."""
        data = self.envelope["data"]
        return {
            "status": self.status,
            "content type": self.headers["content-type"].lower(),
            "length": "content-length" in self.headers,
            "keys": list(self.envelope),
            "types": [type(value) for value in self.envelope.values()],
            "code": self.envelope["code"],
            "msg": self.envelope["msg"],
            "data": data and {key: [type(item) for item in items] for key, items in data.items()},
            "in a row": data and [item - data["ids"][0] for item in data["ids"]],
        }

    def check(self, trace: str | None) -> None:
        """Check the invariants of a single answer."""
        assert self.envelope["traceId"] == self.headers[TRACE.lower()]
        if trace:
            assert self.envelope["traceId"] == trace
        else:
            assert re.fullmatch("[0-9a-f]{32}", self.envelope["traceId"])
        assert abs(self.envelope["ts"] / 1000 - time.time()) < START_S


def ask(server: Measured, sent: bytes | None, headers: dict[str, str] | None = None) -> Answer:
    connection = http.client.HTTPConnection(HOST, server.port, timeout=START_S)
    try:
        connection.request("POST", "/alloc", sent, headers or {})
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, json.load(answer))
    finally:
        connection.close()


@contextmanager
def running(kind: type[Measured], place: Place) -> Iterator[Measured]:
    server = kind(place)
    try:
        server.start()
        yield server
    except UnavailableError as error:
        pytest.skip(str(error))
    finally:
        server.kill()


@pytest.fixture(scope="module")
def place(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Place:
    directory: Path = tmp_path_factory.mktemp("idalloc")
    return Place(directory, None, servers.get(MariaDB), servers.get(Redis))


@pytest.fixture(scope="module")
def both(place: Place) -> Iterator[tuple[Measured, Measured]]:
    with running(Idalloc, place) as theirs, running(Mintage, place) as ours:
        yield theirs, ours


@pytest.mark.parametrize("sent", SAME.values(), ids=SAME)
def test_both_services_answer_with_the_same_shape(both: tuple[Measured, Measured], sent: bytes | None) -> None:
    theirs, ours = (ask(server, sent) for server in both)
    assert ours.shape == theirs.shape
    for answer in (theirs, ours):
        answer.check(None)


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
def test_both_services_read_headers_alike(both: tuple[Measured, Measured], headers: dict[str, str]) -> None:
    theirs, ours = (ask(server, ONE, headers) for server in both)
    assert ours.shape == theirs.shape
    trace = {name.lower(): value for name, value in headers.items()}.get(TRACE.lower())
    for answer in (theirs, ours):
        answer.check(trace)


def test_both_services_read_chunked_bodies(both: tuple[Measured, Measured]) -> None:
    shapes = []
    for server in both:
        connection = http.client.HTTPConnection(HOST, server.port, timeout=START_S)
        connection.request("POST", "/alloc", iter([ONE[:5], ONE[5:]]), encode_chunked=True)
        answer = connection.getresponse()
        shapes.append((answer.status, json.load(answer)["code"]))
        connection.close()
    assert shapes == [(200, 0), (200, 0)]


def test_many_requests_on_one_connection_never_repeat_an_integer(both: tuple[Measured, Measured]) -> None:
    for server in both:
        connection = http.client.HTTPConnection(HOST, server.port, timeout=START_S)
        given: list[int] = []
        for _ in range(300):
            connection.request("POST", "/alloc", body(serviceName="users", count=100))
            given += json.load(connection.getresponse())["data"]["ids"]
        connection.close()
        assert len(set(given)) == len(given) == 30_000


@pytest.mark.parametrize("sent", REFUSED.values(), ids=REFUSED)
def test_invalid_namespaces_are_refused_unlike_idalloc(both: tuple[Measured, Measured], sent: bytes) -> None:
    theirs, ours = (ask(server, sent) for server in both)
    assert theirs.envelope["code"] == 0
    assert (ours.status, ours.envelope["code"], ours.envelope["data"]) == (200, 400_000, None)
    assert list(ours.envelope) == list(theirs.envelope)
    ours.check(None)


@pytest.mark.parametrize("trace", OTHER_TRACES.values(), ids=OTHER_TRACES)
def test_invalid_trace_id_is_replaced_unlike_idalloc(both: tuple[Measured, Measured], trace: str) -> None:
    theirs, ours = (ask(server, ONE, {TRACE: trace}) for server in both)
    assert ours.shape == theirs.shape
    theirs.check(trace)
    ours.check(None)


def test_import_continues_above_the_integers_of_idalloc(both: tuple[Measured, Measured], tmp_path: Path) -> None:
    theirs, _ = both
    old = [integer for _ in range(150) for integer in alloc(theirs.port, "moving", 100)]
    with open_store(f"sqlite:///{tmp_path}/moved.db") as store:
        table, hashes = read_idalloc_table(theirs.place.mariadb.url), read_idalloc_hashes(theirs.place.redis.url)
        imported = import_idalloc(store, table, hashes)
        assert max(old) <= hashes["moving"] < imported.floors["moving"]
        assert store.reserve("moving", 1).first == imported.floors["moving"]


class LimitedIdalloc(Idalloc):
    label = "idalloc-limited"

    def program(self) -> list[str]:
        return [*super().program(), "-qps", "1"]


class LimitedMintage(Mintage):
    label = "mintage-limited"

    def program(self) -> list[str]:
        return [*super().program(), "--rate", "1", "--burst", "1"]


def rows(heading: str) -> list[tuple[str, str]]:
    """Return the rows of the page's table below a heading."""
    section = PAGE.read_text(encoding="utf-8").partition(f"### {heading} of idalloc\n")[2].partition("\n#")[0]
    table = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")][2:]
    return [(theirs, ours) for theirs, ours in table]


def named(cell: str, pattern: str = r"[\w.]+") -> set[str]:
    """Return the names in a cell that are written as code."""
    return set(re.findall(f"`({pattern})`", cell))


@pytest.fixture(scope="module")
def source() -> Path:
    """Return the source of the idalloc that the tests run."""
    if (go := shutil.which("go")) is None:
        pytest.skip("Go is not installed")
    command = [go, "list", "-m", "-f", "{{.Dir}}", "github.com/daemon-coder/idalloc"]
    return Path(
        subprocess.run(command, cwd=PEERS / "idalloc", check=True, capture_output=True, text=True).stdout.strip()
    )


def test_page_has_each_setting_of_idalloc(both: tuple[Measured, Measured], source: Path) -> None:
    config = (source / "definition" / "config.go").read_text(encoding="utf-8")
    structs = dict(re.findall(r"(?s)type (\w+) struct {\n(.*?)\n}", config))
    settings = {name: set(re.findall(r"(?m)^\t(\w+) ", members)) for name, members in structs.items()}
    expected = settings["Config"] - {"RateLimit"} | {f"RateLimit.{name}" for name in settings["RateLimit"]}
    found = set().union(*(named(theirs, r"[A-Z][\w.]+") for theirs, _ in rows("Settings")))
    assert found == expected
    assert "`middleware.TraceIDHeaderKey`" in PAGE.read_text(encoding="utf-8")
    ours = set(re.findall(r"--([a-z-]+)", " ".join(ours for _, ours in rows("Settings"))))
    assert {flag.replace("-", "_") for flag in ours} <= {each.name for each in fields(Settings)}


def test_page_has_each_endpoint_of_idalloc(both: tuple[Measured, Measured], source: Path) -> None:
    routed = [
        path
        for file in ("app/server/route.go", "infrastructure/iris_infra/iris.go")
        for path in re.findall(r'app\.(?:Any|Get|Handle)\(.*?"(/[^"]*)"', (source / file).read_text(encoding="utf-8"))
    ]
    table = rows("Endpoints")
    shown = {path for theirs, _ in table for _, path in map(str.split, named(theirs, "[A-Z]+ /[^`]*"))}
    assert shown == {path.replace("{action:path}", "heap") for path in routed}
    for server, column in zip(both, zip(*table, strict=True), strict=True):
        for cell in column:
            for method, path in map(str.split, named(cell, "[A-Z]+ /[^`]*")):
                connection = http.client.HTTPConnection(HOST, server.port, timeout=START_S)
                connection.request(method, path)
                assert connection.getresponse().status not in {404, 405}, (method, path)
                connection.close()


def test_page_has_each_metric_of_idalloc(both: tuple[Measured, Measured]) -> None:
    theirs, ours = ({name for name, _ in metrics(server)} for server in both)
    table = rows("Metrics")
    own = {name for name in theirs if not name.startswith(("go_", "process_", "promhttp_"))}
    shown = set().union(*(named(cell, "http_[a-z_]+") for cell, _ in table))
    assert own == shown
    assert set().union(*(named(cell, "mintage_[a-z_]+") for _, cell in table)) <= ours
    # What the page says of its counter.
    assert {line for name, line in metrics(both[0]) if name == "http_requests_total"} != set()
    assert not any('path="/alloc"' in line for _, line in metrics(both[0]))
    assert any('operation="alloc"' in line for _, line in metrics(both[1]))


def metrics(server: Measured) -> set[tuple[str, str]]:
    """Return the metrics of a server that has answered a request, with their lines."""
    ask(server, ONE)
    for _ in range(2):  # idalloc counts the first one
        connection = http.client.HTTPConnection(HOST, server.port, timeout=START_S)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {(re.sub(r"_(bucket|sum|count)$", "", re.split(r"[{ ]", line)[0]), line) for line in lines}


def test_page_has_each_signal_of_idalloc(source: Path) -> None:
    server = (source / "app" / "server" / "server.go").read_text(encoding="utf-8")
    ignored, stops = (re.findall(r"syscall\.(SIG\w+)", case) for case in re.findall(r"case (syscall.*):", server))
    assert [named(theirs) for theirs, _ in rows("Signals")] == [set(stops), set(ignored)]


def test_both_services_refuse_too_many_requests(place: Place) -> None:
    refused = []
    for kind in (LimitedIdalloc, LimitedMintage):
        with running(kind, place) as server:
            answers = [ask(server, ONE) for _ in range(20)]
        refused.append(next(answer for answer in answers if answer.status != 200))
    theirs, ours = refused
    assert ours.shape == theirs.shape
    assert (ours.status, ours.envelope["code"]) == (429, 429_000)
    ours.check(None)
    # On purpose: it also has a retry delay.
    assert int(ours.headers["retry-after"]) >= 1


def given_again(server: Measured) -> list[int]:
    """Return the integers that are repeated when Redis is flushed between several fetches and several more."""
    given: Counter[int] = Counter()
    for number in range(1_000):
        if number == 350:
            server.place.redis.ask("FLUSHALL")
        given.update(alloc(server.port, "flushed", COUNT))
    return [integer for integer, times in given.items() if times > 1]


def test_flushall_repeats_integers_of_idalloc_but_not_of_mintage(
    place: Place, servers: Servers, tmp_path: Path
) -> None:
    # A Redis of its own: the one that the other tests' idalloc counts on is not flushed.
    pair = replace(place, directory=tmp_path, redis=servers.get(RedisWithoutAOF))
    with running(Idalloc, pair) as server:
        assert given_again(server) != []
    with running(MintageInBatches, pair) as server:
        assert given_again(server) == []
        assert pair.redis.ask("DBSIZE") != "0"  # it needed its Redis since
