"""Tests of HTTP with real clients: lane and Starlette together are one interface."""

from __future__ import annotations

import json
import re
import select
import shutil
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from mintage.server.config.keys import new_key
from tests.helpers import web
from tests.servers.server import until
from tests.service.running import Running, certificate, key_toml, locked, running
from tests.service.wire import connect, exactly, head, say, until_closed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BODY = b'{"serviceName":"orders","count":3}'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Return a service without a lane, which logging all requests turns off."""
    with running(tmp_path_factory.mktemp("slow"), "--access-log", "all") as service:
        yield service


class Keys(NamedTuple):
    service: Running
    orders: str
    users: str
    admin: str


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keys]:
    orders, users, admin = new_key(), new_key(), new_key()
    toml = (
        key_toml("orders", orders, {"orders": ["next"]})
        + key_toml("users", users, {"users*": ["next", "describe"]})
        + key_toml("admin", admin, {"*": ["admin"]})
    )
    with running(tmp_path_factory.mktemp("keyed"), "--auto-create", toml=toml) as service:
        yield Keys(service, orders, users, admin)


def reserve(service: Running, name: str, count: int) -> range:
    answer = web.post(f"{service.url}/v1/sequences/{name}:reserve?count={count}", timeout=30).json()
    found = range(int(answer["first"]), int(answer["last"]) + 1)
    assert len(found) == count
    return found


def test_delta_7572_retry_reserves_another_range(service: Running) -> None:
    first = reserve(service, "identity", 10)
    assert reserve(service, "identity", 10).start >= first.stop  # as if the first answer had been lost


def test_unitycatalog_1832_concurrent_writers_get_separate_ranges(service: Running) -> None:
    with ThreadPoolExecutor(8) as threads:
        ranges = list(threads.map(partial(reserve, service, "columns"), [1, 7, 30] * 40))
    assert len({value for each in ranges for value in each}) == 38 * 40


def test_request_may_have_a_hundred_headers(service: Running) -> None:
    # Host, Connection, and those that count.
    last = head("GET /healthz", "Connection: close", *["X: 1"] * 98)
    assert b" 200 " in say(service.http, last)[:20]
    heard = say(service.http, head("GET /healthz", *["X: 1"] * 100))
    assert heard.startswith(b"HTTP/1.1 413 ")
    assert b"the request has more than 100 headers" in heard


@pytest.mark.parametrize(
    ("hosts", "version", "status"),
    [
        ([], "1.1", 400),
        (["a"], "1.1", 200),
        (["a", "a"], "1.1", 400),
        (["a", "b"], "1.1", 400),
        ([""], "1.1", 200),
        ([], "1.0", 200),
        (["a", "b"], "1.0", 400),
    ],
    ids=str,
)
def test_rfc_9112_request_has_one_host_header(service: Running, hosts: list[str], version: str, status: int) -> None:
    for request, body in (("POST /alloc", BODY), ("POST /v1/sequences/orders:next", b"")):
        lines = [f"{request} HTTP/{version}", *(f"Host: {host}" for host in hosts), f"Content-Length: {len(body)}"]
        heard = say(service.http, "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
        assert heard.startswith(f"HTTP/1.1 {status} ".encode()), heard
        assert (b"header" in heard and b"Host" in heard) == (status == 400)


def test_trailer_is_not_read_as_a_header(service: Running) -> None:
    said = head("POST /alloc", "Transfer-Encoding: chunked", "Connection: close")
    heard = say(service.http, said + b"%x\r\n%s\r\n0\r\nX-Trace-Id: mine\r\n\r\n" % (len(BODY), BODY))
    assert b'"code":0' in heard
    assert b"mine" not in heard


# --- answers, in bytes --------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def read(connection: socket.socket) -> Answer:
    """Return the next answer on a connection, byte by byte, so that no byte of the next is consumed."""
    text = b""
    while not text.endswith(b"\r\n\r\n"):
        byte = exactly(connection, 1)
        assert byte, text
        text += byte
    line, *lines = text.decode("latin-1").split("\r\n")[:-2]
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
    status = int(line.split()[1])
    length = int(headers.get("content-length", 0)) if status >= 200 else 0
    return Answer(status, headers, exactly(connection, length))


def post(path: str, body: bytes = b"", *headers: str) -> bytes:
    return head(f"POST {path}", *headers, length=len(body)) + body


def get(path: str, *headers: str) -> bytes:
    return head(f"GET {path}", *headers)


def ask(service: Running, *parts: bytes) -> Answer:
    """Return the answer to one request, sent in a number of segments."""
    with connect(service.http) as connection:
        for each in parts:
            connection.sendall(each)
        return read(connection)


def curl(*arguments: str) -> Answer:
    """Return the answer to curl."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    command = ["curl", "--silent", "--show-error", "--include", "--max-time", "60", *arguments]
    answered = subprocess.run(command, capture_output=True, check=True)
    text, _, body = answered.stdout.partition(b"\r\n\r\n")
    while text.split()[1] == b"100":
        text, _, body = body.partition(b"\r\n\r\n")
    line, *lines = text.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
    return Answer(int(line.split()[1]), headers, body)


def timed(service: Running, operation: str) -> float:
    """Return the number of requests answered outside the lane, which records no times."""
    text = web.get(f"{service.url}/metrics").text
    name = f'mintage_request_seconds_count{{interface="http",operation="{operation}"}}'
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name))


# --- idalloc's clients --------------------------------------------------------------------------------------------


def test_requests_of_the_idalloc_demo_get_its_envelope(service: Running) -> None:
    last = 0
    for count in (1, 3, 100):
        body = json.dumps({"serviceName": "demo", "count": count})
        answer = curl("-X", "POST", f"{service.url}/alloc", "-H", "Content-Type: application/json", "-d", body)
        ids = ",".join(str(last + 1 + each) for each in range(count))
        start = re.escape(f'{{"code":0,"msg":"OK","data":{{"ids":[{ids}]}},"traceId":"')
        found = re.fullmatch(start + r'([0-9a-f]{32})","ts":\d{13}\}', answer.body.decode())
        assert found, answer
        assert (answer.status, answer.headers["x-trace-id"]) == (200, found[1])
        assert answer.headers["content-type"] == "application/json; charset=utf-8"
        last += count


def test_lane_and_python_give_the_same_answers(service: Running, slow: Running) -> None:
    requests = {
        "alloc": post("/alloc", b'{"serviceName":"same","count":3}', "X-Trace-Id: mine"),
        "next": post("/v1/sequences/same:next?count=3", b"", "X-Trace-Id: mine"),
    }
    for operation, request in requests.items():
        shapes = []
        for each in (service, slow):
            # The first opens the namespace, and takes the slow path in either.
            ask(each, request)
            before = timed(each, operation)
            answer = ask(each, request)
            assert timed(each, operation) - before == (each is slow)
            differing = re.compile(rb"(?<=ts\":)\d+")
            headers = {name: value for name, value in answer.headers.items() if name not in {"date", "content-length"}}
            shapes.append((answer.status, headers, differing.sub(b"0", answer.body)))
        assert shapes[0] == shapes[1]
        assert shapes[0][1]["x-trace-id"] == "mine"


# --- spellings of requests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_", [post("/alloc", BODY), post("/v1/sequences/orders:next?count=3")], ids=["alloc", "next"]
)
def test_request_may_be_split_at_every_byte(service: Running, request_: bytes) -> None:
    with connect(service.http) as connection:
        for at in range(1, len(request_)):
            connection.sendall(request_[:at])
            connection.sendall(request_[at:])
            assert read(connection).status == 200
        for byte in request_:
            connection.sendall(bytes([byte]))
        assert read(connection).status == 200


WRITTEN = {
    "small letters": b"POST /alloc HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n",
    "capitals": b"POST /alloc HTTP/1.1\r\nHOST: a\r\nCONTENT-LENGTH: %d\r\n\r\n",
    "no space": b"POST /alloc HTTP/1.1\r\nHost:a\r\nContent-Length:%d\r\n\r\n",
    "a form": (
        b"POST /alloc HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        b"Content-Length: %d\r\n\r\n"
    ),
    "many headers": b"POST /alloc HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 90 + b"Content-Length: %d\r\n\r\n",
    "an absolute address": b"POST http://a/alloc HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
    "an empty query": b"POST /alloc? HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
    "an offer of HTTP/2": (
        b"POST /alloc HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nHost: a\r\nContent-Length: %d\r\n"
        b"Upgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA\r\n\r\n"
    ),
    "keep-alive": b"POST /alloc HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive\r\nContent-Length: %d\r\n\r\n",
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_request_may_be_written_in_many_forms(service: Running, written: bytes) -> None:
    request = written % len(BODY) + BODY
    with connect(service.http) as connection:
        connection.sendall(request + request[:-9])
        first = read(connection)
        connection.sendall(request[-9:] + get("/healthz"))
        second = read(connection)
        for answer in (first, second):
            assert (answer.status, answer.json["code"], len(answer.json["data"]["ids"])) == (200, 0, 3), answer
        assert read(connection).json == {"status": "ok"}


@pytest.mark.parametrize(
    "head",
    [
        b"POST /alloc HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade\r\nUpgrade: h2c\r\n",
        b"POST /alloc HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n",
        b"POST /alloc HTTP/1.0\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n",
    ],
)
def test_last_request_may_offer_another_protocol(service: Running, head: bytes) -> None:
    heard = say(service.http, b"%sContent-Length: %d\r\n\r\n%s" % (head, len(BODY), BODY))
    assert heard.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nconnection: close\r\n" in heard
    assert b'"code":0' in heard


@pytest.mark.parametrize("request_", [post("/alloc", BODY), get("/healthz")], ids=["lane", "Python"])
@pytest.mark.parametrize(
    ("version", "said", "kept"),
    [
        ("1.1", "", ""),
        ("1.1", "connection: Keep-Alive", ""),
        ("1.1", "CONNECTION: Close", "close"),
        ("1.1", "Connection: close, keep-alive", "close"),
        ("1.1", "Connection: keep-alive\r\nConnection: close", "close"),
        ("1.0", "", "close"),
        ("1.0", "Connection: close", "close"),
        ("1.0", "connection: keep-alive", "keep-alive"),
        ("1.0", "Connection: Keep-Alive, TE", "keep-alive"),
        ("1.0", "Connection: keep-alive, close", "close"),
        ("1.0", "Connection: close\r\nConnection: keep-alive", "close"),
    ],
)
def test_connection_ends_where_both_sides_said_so(
    service: Running, request_: bytes, version: str, said: str, kept: str
) -> None:
    lines = f" HTTP/{version}\r\n{said}\r\n" if said else f" HTTP/{version}\r\n"
    with connect(service.http) as connection:
        # The second request is sent before the answer to the first.
        connection.sendall(request_.replace(b" HTTP/1.1\r\n", lines.encode(), 1) + get("/healthz"))
        answer = read(connection)
        assert (answer.status, answer.headers.get("connection", "")) == (200, kept)
        if kept == "close":
            assert until_closed(connection) == b""
        else:
            assert read(connection).json == {"status": "ok"}


def test_http_1_0_client_is_answered_in_its_own_terms(service: Running) -> None:
    asked = b"POST /alloc HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n%s"
    heard = say(service.http, asked % (len(BODY), BODY))
    assert heard.startswith(b"HTTP/1.1 200 OK\r\n"), "no interim answer"
    assert b"content-length" in heard
    assert b'"code":0' in heard
    assert curl("--http1.0", "-d", BODY.decode(), f"{service.url}/alloc").json["code"] == 0


@pytest.mark.parametrize("path", ["/", "*", "/readyz", "/healthz", "/alloc", "/v1/sequences/orders"])
def test_plain_check_of_a_balancer_succeeds(service: Running, path: str) -> None:
    heard = say(service.http, f"OPTIONS {path} HTTP/1.0\r\n\r\n".encode())
    assert re.match(rb"HTTP/1.1 20[04] ", heard)
    assert b"OPTIONS" in re.findall(rb"\r\nallow: ([^\r]*)", heard)[0]


def test_client_that_closes_its_sending_side_gets_its_answers(service: Running) -> None:
    slow, quick = post("/v1/sequences/half-closed:reserve?count=10"), post("/v1/sequences/half-closed:next")
    for said, answers in ((slow, 1), (quick, 1), (quick + slow + quick + get("/v1/store") + quick, 5)):
        with connect(service.http) as connection:
            connection.sendall(said)
            connection.shutdown(socket.SHUT_WR)
            assert until_closed(connection).count(b"HTTP/1.1 200") == answers
    with connect(service.http) as connection:
        connection.sendall(slow + slow[:-10])
        connection.shutdown(socket.SHUT_WR)
        assert until_closed(connection).count(b"HTTP/1.1 200") == 1, "half a request is none"


def test_connection_is_kept_until_the_client_closes_it(service: Running) -> None:
    with connect(service.http) as connection:
        for _ in range(3):
            for request in (post("/alloc", BODY), get("/healthz"), get("/nothing")):
                connection.sendall(request)
                assert "connection" not in read(connection).headers
        connection.sendall(post("/alloc", BODY, "Connection: close"))
        assert read(connection).headers["connection"] == "close"
        assert until_closed(connection) == b""


def test_body_may_be_chunked_and_after_expect_continue(service: Running) -> None:
    chunks = b"".join(b"%x\r\n%c\r\n" % (1, byte) for byte in BODY) + b"0\r\n\r\n"
    answer = ask(service, head("POST /alloc", "Transfer-Encoding: chunked"), chunks)
    assert answer.json["code"] == 0
    with connect(service.http) as connection:
        connection.sendall(head("POST /alloc", "Expect: 100-continue", length=len(BODY)))
        assert read(connection).status == 100
        connection.sendall(BODY)
        assert read(connection).json["code"] == 0
    url = f"{service.url}/alloc"
    assert curl("-H", "Expect: 100-continue", "-d", BODY.decode(), url).json["code"] == 0
    assert curl("-H", "Transfer-Encoding: chunked", "-d", BODY.decode(), url).json["code"] == 0
    assert curl("--http2", "-d", BODY.decode(), url).json["code"] == 0


def test_requests_sent_all_at_once_are_answered_in_their_order(service: Running) -> None:
    expected = []
    sent = b""
    for at in range(600):
        kinds = [
            (post("/v1/sequences/piped:next", b"", f"X-Trace-Id: {at}"), 200),
            (post("/alloc", b'{"serviceName":"piped%d"}' % (at // 50), f"X-Trace-Id: {at}"), 200),
            (get("/healthz", f"X-Trace-Id: {at}"), 200),
            (post("/v1/sequences/piped:next?count=0", b"", f"X-Trace-Id: {at}"), 400),
        ]
        request, status = kinds[at % 7 % len(kinds)]
        sent += request
        expected.append((str(at), status))
    with connect(service.http) as connection:
        threading.Thread(target=connection.sendall, args=[sent]).start()
        answers = [read(connection) for _ in expected]
    assert [(each.headers["x-trace-id"], each.status) for each in answers] == expected
    found = [each.json["ids"][0] for each in answers if b'"namespace":"piped"' in each.body]
    assert len(set(found)) == len(found) > 100


CHUNKED: Final = (
    b"POST /alloc HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'e\r\n{"serviceName"\r\n9;x=\r\n:"cut",\n\r\r\nA\r\n"count":3}\r\n0\r\nX: 1\r\n\r\n'
)
"""A request with the end of a line in its body, and a trailer."""
SEVERAL: Final = [
    *(get("/healthz"), CHUNKED, post("/alloc", BODY), CHUNKED, b"\r\n\n" + get("/healthz"), post("/alloc", BODY)),
    *(post("/nothing", b"\n\r\n" * 9), post("/alloc", BODY, "Upgrade: h2c", "Connection: Upgrade"), get("/readyz")),
]


def test_requests_end_where_they_say_however_they_are_cut(service: Running) -> None:
    sent = b"".join(SEVERAL)
    statuses = [200, 200, 200, 200, 200, 200, 404, 200, 200]
    for at in range(1, len(sent), 3):
        with connect(service.http) as connection:
            connection.sendall(sent[:at])
            connection.sendall(sent[at:])
            assert [read(connection).status for _ in statuses] == statuses


@pytest.mark.parametrize("pieces", [1, 7])
def test_head_may_have_as_many_bytes_as_the_limit(service: Running, pieces: int) -> None:
    for length, status in ((65_536, 200), (65_537, 413)):
        empty = head("GET /healthz", "X: ", "Connection: close")
        said = empty.replace(b"X: ", b"X: " + b"x" * (length - len(empty)))
        step = -(-len(said) // pieces)
        heard = say(service.http, *(said[at : at + step] for at in range(0, len(said), step)))
        assert heard.startswith(b"HTTP/1.1 %d " % status), heard[:100]


def test_requests_before_a_broken_one_are_answered(service: Running) -> None:
    good = post("/v1/sequences/before:next") + get("/healthz")
    for broken in (b"\0\r\n\r\n", b"GET / HTTP/1.1\r\nno header\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n"):
        with connect(service.http) as connection:
            connection.sendall(good + broken)
            assert [read(connection).status for _ in range(2)] == [200, 200]
            refused = read(connection)
            assert (refused.status, refused.json["code"]) == (400, "request.malformed")
            assert refused.headers["content-type"] == "application/problem+json"
            assert refused.headers["x-trace-id"] == refused.json["trace_id"]
            assert until_closed(connection) == b""
        with connect(service.http) as connection:
            connection.sendall(good + broken)
            connection.shutdown(socket.SHUT_WR)
            assert re.findall(rb"HTTP/1.1 (\d+)", until_closed(connection)) == [b"200", b"200", b"400"]


BROKEN = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a command of Redis": b"*1\r\n$4\r\nPING\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a proxy's request": b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
    "two lengths": post("/alloc", BODY, "Content-Length: 1"),
    "a length and chunks": head("POST /alloc", "Transfer-Encoding: chunked", length=5) + b"0\r\n\r\n",
    "a negative length": head("POST /alloc", "Content-Length: -1"),
    "a chunk that is none": head("POST /alloc", "Transfer-Encoding: chunked") + b"zz\r\n",
    "a method that is none": head("FETCH /alloc"),
    "HTTP/0.9": b"GET /healthz\r\n\r\n",
    "HTTP/0.9, named": b"GET /healthz HTTP/0.9\r\n\r\n",
    "HTTP/1.2": head("GET /healthz").replace(b"1.1", b"1.2", 1),
    "HTTP/2, named": head("GET /healthz").replace(b"1.1", b"2.0", 1),
    "HTTP/1.0 in chunks": head("POST /alloc", "Transfer-Encoding: chunked").replace(b"1.1", b"1.0", 1) + b"0\r\n\r\n",
    "a target that is none": head("POST orders:next"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_malformed_request_is_refused_and_the_connection_closed(service: Running, broken: bytes) -> None:
    heard = say(service.http, broken)
    assert heard.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert heard.count(b"HTTP/1.1 ") == 1
    assert b'"code":"request.malformed"' in heard


def test_answer_to_head_has_no_body(service: Running) -> None:
    ask(service, post("/v1/sequences/headed:next"))
    for path in ("/v1/sequences/headed", "/healthz", "/nothing"):
        with connect(service.http) as connection:
            connection.sendall(head(f"HEAD {path}") + get("/healthz"))
            text = b""
            while not text.endswith(b"\r\n\r\n"):
                text += exactly(connection, 1)
            assert int(re.findall(rb"content-length: (\d+)", text)[0]) > 0
            assert read(connection).json == {"status": "ok"}


# --- trace ids ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [("/alloc", BODY), ("/v1/sequences/orders:next", b"")], ids=["alloc", "next"])
def test_valid_trace_id_is_kept_by_lane_and_python(service: Running, request_: tuple[str, bytes]) -> None:
    for sent in ("a", "order-4711", "x" * 128, "A._:/+=-9"):
        assert ask(service, post(*request_, f"X-Trace-Id: {sent}")).headers["x-trace-id"] == sent
        assert ask(service, post(*request_, f"x-TRACE-id:   {sent} \t ")).headers["x-trace-id"] == sent
        assert ask(service, get("/healthz", f"X-Trace-Id: {sent} \t")).headers["x-trace-id"] == sent
    for sent in ("", "x" * 129, "a b", 'a"b', "\x80", "ä"):
        found = ask(service, post(*request_, f"X-Trace-Id: {sent}")).headers["x-trace-id"]
        assert re.fullmatch("[0-9a-f]{32}", found)
    twice = ask(service, post(*request_, "X-Trace-Id: a", "X-Trace-Id: b")).headers["x-trace-id"]
    assert re.fullmatch("[0-9a-f]{32}", twice)
    made = [ask(service, post(*request_)).headers["x-trace-id"] for _ in range(20)]
    assert len(set(made)) == 20


def test_logged_ids_are_those_of_the_request_alone(slow: Running) -> None:
    first = get("/first", f"traceparent: 00-{'4b' * 16}-{'00f0' * 4}-01", "X-Trace-Id: order-4711")
    with connect(slow.http) as connection:
        connection.sendall(first + get("/second") + b"GARBAGE\r\n\r\n")
        answers = [read(connection) for _ in range(3)]
    trace_ids = ["4b" * 16, *(each.headers["x-trace-id"] for each in answers[1:])]
    lines = [each for each in slow.events() if each.get("trace_id") in trace_ids]
    assert [each["trace_id"] for each in lines] == trace_ids
    assert [each.get("request_id") for each in lines] == ["order-4711", None, None]


# --- keys ---------------------------------------------------------------------------------------------------------


def test_curl_sends_a_key_as_bearer_or_password(keyed: Keys) -> None:
    url, body = f"{keyed.service.url}/alloc", BODY.decode()
    assert curl("-d", body, url).status == 401
    assert curl("-d", body, "-u", ":mint_nobody", url).status == 401
    assert curl("-d", body, "-u", f":{keyed.users}", url).status == 403
    for _ in range(2):
        assert curl("-d", body, "-u", f":{keyed.orders}", url).json["code"] == 0
        assert curl("-d", body, "-H", f"Authorization: Bearer {keyed.orders}", url).json["code"] == 0
    assert curl(f"{keyed.service.url}/debug/profile", "-u", f":{keyed.orders}").status == 403
    assert keyed.orders not in keyed.service.logged()


def test_rights_of_one_key_do_not_pass_to_the_next_on_a_connection(keyed: Keys) -> None:
    def answered(connection: socket.socket, namespace: str, *headers: str) -> int:
        statuses = set()
        # Twice, as the second request may use a cached result.
        for _ in range(2):
            connection.sendall(post(f"/v1/sequences/{namespace}:next", b"", *headers))
            statuses.add(read(connection).status)
        assert len(statuses) == 1
        return statuses.pop()

    orders, users = f"Authorization: Bearer {keyed.orders}", f"Authorization: Bearer {keyed.users}"
    with connect(keyed.service.http) as connection:
        for _ in range(3):
            assert answered(connection, "orders", orders) == 200
            assert answered(connection, "orders") == 401
            assert answered(connection, "orders", users) == 403
            assert answered(connection, "users", orders) == 403
            assert answered(connection, "users", users) == 200
            assert answered(connection, "users1", users) == 200
            assert answered(connection, "users", f"{users}x") == 401
            assert answered(connection, "users", orders, users) == 401


def test_profile_shows_the_running_service(keyed: Keys) -> None:
    def served_meanwhile() -> bool:
        """Take a profile of a second; return True if many requests were answered before it was there."""
        served = 0
        with connect(keyed.service.http) as connection, connect(keyed.service.http) as profiling:
            profiling.sendall(get("/debug/profile?seconds=1&format=text", f"Authorization: Bearer {keyed.admin}"))
            while not select.select([profiling], [], [], 0)[0]:
                connection.sendall(get("/v1/sequences/users", f"Authorization: Bearer {keyed.users}"))
                assert read(connection).status in {200, 404}
                served += 1
            answer = read(profiling)
        assert answer.status == 200
        return served > 10 and b"mintage/server" in answer.body

    until(served_meanwhile, "the service is profiled while it answers")


def test_without_keys_profiles_and_foreign_leases_are_refused(service: Running) -> None:
    for request in (get("/debug/profile"), post("/v1/leases/sno/0:revoke")):
        answer = ask(service, request)
        assert (answer.status, answer.json["code"]) == (403, "request.rights")


# --- TLS ----------------------------------------------------------------------------------------------------------


@contextmanager
def over_tls(home: Path, *options: str) -> Iterator[tuple[Running, str]]:
    cert, key = certificate(home, "ids")
    with running(home, "--tls-cert", cert, "--tls-key", key, *options) as service:
        yield service, f"https://127.0.0.1:{service.http[1]}/alloc"


def test_curl_is_answered_only_over_tls(tmp_path: Path) -> None:
    with over_tls(tmp_path) as (service, url):
        ca = ["--cacert", str(tmp_path / "ids.crt")]
        for _ in range(2):
            assert curl(*ca, "-d", BODY.decode(), url).json["code"] == 0
        assert curl(*ca, "--tls-max", "1.2", "-d", BODY.decode(), url).json["code"] == 0
        with pytest.raises(subprocess.CalledProcessError):
            curl("-d", BODY.decode(), url)
        with pytest.raises(subprocess.CalledProcessError):
            curl(*ca, "--tls-max", "1.1", "-d", BODY.decode(), url)
        assert b"HTTP/1.1" not in say(service.http, post("/alloc", BODY))


def test_invalid_certificate_files_are_named(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "ids")
    secret = locked(key)
    for files, sentence in (
        ({"cert": cert, "key": secret}, f"tls_cert '{cert}' with tls_key '{secret}' is not a certificate"),
        ({"cert": cert, "key": cert}, f"tls_cert '{cert}' with tls_key '{cert}' is not a certificate"),
        ({"cert": cert, "key": key, "client-ca": key}, f"tls_client_ca '{key}' is not a file of certificates"),
    ):
        options = [word for name, file in files.items() for word in (f"--tls-{name}", file)]
        serve = [sys.executable, "-m", "mintage", "serve", "--http", "127.0.0.1:0", "--redis", "off", *options]
        done = subprocess.run(serve, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        assert done.returncode == 78
        assert sentence in done.stderr


@pytest.mark.parametrize("days", [2, 30, None])
def test_service_warns_of_a_certificate_that_ends_or_has_ended(tmp_path: Path, days: int | None) -> None:
    cert, key = certificate(tmp_path, "ids", days=days)
    with running(tmp_path, "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", cert) as service:
        told = [each for each in service.events() if each["event"].startswith("certificate")]
    if days is None:
        assert [(each["event"], each["reason"]) for each in told] == [
            ("certificate refused", "certificate has expired")
        ]
    elif days == 2:
        assert [(each["event"], each["level"], each["file"]) for each in told] == [
            ("certificate ends", "warning", cert)
        ]
        assert 1.9 < told[0]["days_left"] <= 2
    else:
        assert told == []


def test_client_without_a_required_certificate_is_refused(tmp_path: Path) -> None:
    mine, other = certificate(tmp_path, "me"), certificate(tmp_path, "other")
    with over_tls(tmp_path, "--tls-client-ca", mine[0]) as (_, url):
        ca = ["--cacert", str(tmp_path / "ids.crt")]
        assert curl(*ca, "--cert", mine[0], "--key", mine[1], "-d", BODY.decode(), url).json["code"] == 0
        for wrong in ([], ["--cert", other[0], "--key", other[1]]):
            with pytest.raises(subprocess.CalledProcessError):
                curl(*ca, *wrong, "-d", BODY.decode(), url)
