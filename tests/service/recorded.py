"""Requests to the service, and its recorded answers, in which volatile values are masked.

`python -m tests.service.recorded` records the answers anew. Read the difference: a client can see each changed line.
"""

from __future__ import annotations

import http.client
import json
import re
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mintage import __version__
from mintage.errors import CATALOGUE
from tests.service.running import Running, key_toml, running
from tests.service.wire import PATIENCE_S, command, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ANSWERS: Final = Path(__file__).with_name("recorded.json")
KEYS: Final = {name: f"mint_{(name * 9)[:43]}" for name in ("orders", "users", "admin")}


class Ask(NamedTuple):
    """A request: its method, target, headers and body."""

    method: str
    target: str
    body: bytes = b""
    headers: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = self.body if len(self.body) <= 400 else self.body[:40] + b"... %d bytes" % len(self.body)
        return " | ".join(
            [f"{self.method} {self.target}", *self.headers, *([shown.decode("latin-1")] if shown else [])]
        )


# --- requests of HTTP ---------------------------------------------------------------------------------------------

METHODS: Final = ("GET", "HEAD", "POST", "OPTIONS", "PATCH", "PUT", "DELETE")
PATHS: Final = (
    "/",
    "/healthz",
    "/healthz/",
    "/healthz%0A",
    "/HEALTHZ",
    "/readyz",
    "/metrics",
    "/debug/profile",
    "/openapi.json",
    "/alloc",
    "/alloc/",
    "/nowhere",
    "//",
    "/v1",
    "/v1/",
    "/v1/nowhere",
    "/v1/store",
    "/v1/sequences",
    "/v1/sequences/",
    "/v1/sequences:count",
    "/v1/sequences/matrix",
    "/v1/sequences/matrix/",
    "/v1/sequences/matrix/more",
    "/v1/sequences/matrix:next",
    "/v1/sequences/matrix:next%0A",
    "/v1/sequences/matrix:reserve",
    "/v1/sequences/matrix:give-back",
    "/v1/sequences/matrix:unknown",
    "/v1/ids/ulid",
    "/v1/inspect/01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "/v1/sequences/matrix/runs",
    "/v1/who/01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "/v1/who/matrix/7",
    "/v1/pools",
    "/v1/pools/matrix",
    "/v1/pools/matrix/leases/0/grants",
    "/v1/leases",
    "/v1/leases/matrix",
    "/v1/leases/matrix/0",
    "/v1/leases/matrix/0:revoke",
)

JUNK: Final = (
    b"",
    b" ",
    b"{",
    b"[]",
    b"null",
    b"5",
    b'"text"',
    b"{}",
    b'{"unknown":1}',
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"[" * 5000,
    b'{"a":NaN}',
    b'{"a":1} x',
    b'{"a":1,}',
)
"""Bodies that no operation accepts, or only an empty one."""


def _json(**members: object) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode()


def _changed(whole: dict[str, object], changes: Mapping[str, Sequence[object]]) -> Iterator[bytes]:
    """Return bodies that have one member changed, left out or repeated."""
    for name in whole:
        yield _json(**{other: value for other, value in whole.items() if other != name})
        yield _json(**whole)[:-1] + b"," + _json(**{name: whole[name]})[1:]
    for name, values in changes.items():
        for value in values:
            yield _json(**{**whole, name: value})


HUGE: Final = (2**63 - 1, 2**63, 10**19, 10**20, 10**30, -(2**63), -(10**20))
NOT_INTEGERS: Final[tuple[object, ...]] = (True, None, 1.0, 1.5, 1e300, "x", "", " 1", "1_000", "+1", "1.0", [], {})


def operations() -> Iterator[Ask]:
    """Return requests to each operation of ``/v1`` and to ``/alloc``, right and wrong."""
    for body in (b'{"start":"5","maximum":"99","stride":2,"offset":1}', b'{"start":"5"}', b'{"start":5}', b""):
        yield Ask("PUT", "/v1/sequences/made", body)
    for junk in JUNK:
        yield Ask("PUT", "/v1/sequences/junk", junk)
    spec: dict[str, object] = {"start": "1", "maximum": "1000", "stride": 1, "offset": 0}
    integers = [0, 1, "0", "1", "007", "-1", -1, *HUGE, str(2**63 - 1), str(2**63), "9" * 20, "9" * 21, *NOT_INTEGERS]
    small = [0, 1, 2, -1, 2**16, 2**16 + 1, *HUGE, *NOT_INTEGERS]
    changes: dict[str, Sequence[object]] = {
        "start": integers,
        "maximum": integers,
        "stride": small,
        "offset": small,
        "x": [1],
        "floor": ["5"],
    }
    for at, body in enumerate(_changed(spec, changes)):
        yield Ask("PUT", f"/v1/sequences/spec{at}", body)
    for value in ("5", 5, "4", "0", -1, 2**63, True, None, "x"):
        yield Ask("PUT", "/v1/sequences/raised", _json(floor=value))
    for name in ("a:next", "a:reserve", "a:give-back", "a:other", "a%3Anext", "b:next:next"):
        yield Ask("PUT", f"/v1/sequences/{name}", b'{"start":"1"}')
        yield Ask("GET", f"/v1/sequences/{name}")
        yield Ask("PUT", f"/v1/sequences/{name}", b'{"floor":"7"}')
        yield Ask("GET", f"/v1/sequences/{name}")
        yield Ask("POST", f"/v1/sequences/{name}:next")
        yield Ask("DELETE", f"/v1/sequences/{name}")
    for name in ("%20", "%C3%A9", "%FF", "a%2Fb", "a%00", "a%0A", "-a", ".", "..", "a+b", "a%25b", "%61b", "A" * 128):
        for method, verb in (("GET", ""), ("PUT", ""), ("POST", ":next"), ("DELETE", "")):
            yield Ask(method, f"/v1/sequences/{name}{verb}")
    yield Ask("GET", f"/v1/sequences/{'A' * 129}")
    yield Ask("POST", f"/v1/sequences/{'A' * 129}:next")
    counts = ["1", "3", "03", "0", "-1", "10000", "10001", "1000001", *map(str, HUGE), "", "x", "1.0", "1_0", "%201"]
    counts += ["+1", "1%0A", "%D9%A1", "true"]
    for verb in ("next", "reserve"):
        for query in (*(f"count={count}" for count in counts), "", "count=1&count=1", "Count=1", "x=1", "count", "&&"):
            yield Ask("POST", f"/v1/sequences/{verb}d:{verb}?{query}")
        for query in ("count=%FF", "=1", "x=%C3%A9%22%00", "a=1&" * 40):
            yield Ask("POST", f"/v1/sequences/{verb}d:{verb}?{query}")
        for junk in JUNK:
            yield Ask("POST", f"/v1/sequences/{verb}d:{verb}", junk)
        yield Ask("POST", f"/v1/sequences/made:{verb}?count=40")
        yield Ask("POST", f"/v1/sequences/made:{verb}?count=40")
        yield Ask("POST", f"/v1/sequences/matrix:{verb}")
    for at, holder in enumerate(("web-1:4242", "%F0%9F%90%99" * 200, "x" * 201, "%00", "%FF", "", "x" * 2401)):
        yield Ask("POST", f"/v1/sequences/held{at}:reserve?count=10", b"", (f"Holder: {holder}",))
        yield Ask("GET", f"/v1/sequences/held{at}")
    yield Ask("POST", "/v1/sequences/held0:reserve?count=10")
    for query in ("", "before=11", "before=0", "before=-1", "before=x", f"before={2**63}", "limit=1", "limit=0", "x=1"):
        yield Ask("GET", f"/v1/sequences/held0/runs?{query}")
    for integer in ("1", "11", "21", "-1", "x", f"{2**63}", ""):
        yield Ask("GET", f"/v1/who/held0/{integer}")
    yield Ask("GET", "/v1/who/never/1")
    yield Ask("GET", "/v1/who/-a/1")
    yield Ask("GET", "/v1/who/held0/1?x=1")
    tail: dict[str, object] = {"first": "1", "last": "1000", "first_unused": "900", "serial": 1}
    for junk in JUNK:
        yield Ask("POST", "/v1/sequences/reserved:give-back", junk)
    changes = {
        **dict.fromkeys(("first", "last", "first_unused"), integers),
        "serial": [-1, 0, 2**53 - 1, *HUGE, *NOT_INTEGERS],
        "stride": [1, 3, *small],
        "x": [1],
    }
    for body in _changed(tail, changes):
        yield Ask("POST", "/v1/sequences/lent:give-back", body)
    yield Ask("POST", "/v1/sequences/lent:reserve?count=10")
    yield Ask("POST", "/v1/sequences/lent:give-back", _json(first="1", last="10", first_unused="5", serial=1))
    yield Ask("POST", "/v1/sequences/lent:give-back", _json(first=1, last=10, first_unused=5, serial=1))
    for query in ("?after=n", "?after=", "?limit=2", "?limit=0", "?limit=10001", "?limit=x", "?after=%C3%A9", "?x=1"):
        yield Ask("GET", f"/v1/sequences{query}")
        yield Ask("GET", f"/v1/pools{query}")
        yield Ask("GET", f"/v1/leases{query}")
    yield Ask("GET", "/v1/sequences:count?x=1")
    yield Ask("GET", "/v1/sequences/made", b"{}")
    yield Ask("DELETE", "/v1/sequences/made", b"{}")
    yield Ask("DELETE", "/v1/sequences/made")
    yield Ask("GET", "/v1/sequences/made")
    yield Ask("GET", "/v1/sequences/never")
    yield from _ids()
    yield from _leases()
    yield from _alloc()


def _ids() -> Iterator[Ask]:
    schemes = ("snowflake", "sno", "ulid", "uuid7", "uuid4", "xid", "typeid", "locality", "x", "SNO", "%FF", "s%20o")
    for scheme in schemes:
        yield Ask("POST", f"/v1/ids/{scheme}")
    for query in ("count=2", "count=0", "count=10001", "count=x", "meta=255", "meta=256", "meta=-1", "meta=x", "y=1"):
        yield Ask("POST", f"/v1/ids/sno?{query}")
    yield Ask("POST", "/v1/ids/ulid?meta=1")
    yield Ask("POST", "/v1/ids/ulid", b"{}")
    for text in (
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "00000000-0000-0000-0000-000000000000",
        "x",
        "%00",
        "%C3%A9",
        "a" * 4097,
    ):
        yield Ask("GET", f"/v1/inspect/{text}")
    yield Ask("GET", "/v1/inspect/x?y=1")


def _leases() -> Iterator[Ask]:
    pool: dict[str, object] = {"layout": "mine/1", "span_ms": 30_000, "never_used": True}
    texts: list[object] = ["", "x" * 500, "x" * 501, "\u00e9", "a\n", "\u0000", 1, None, True, [], {}]
    spans: list[object] = [999, 1000, 86_400_000, 86_400_001, "1000", 0, -1, *HUGE, *NOT_INTEGERS]
    flags: list[object] = [False, "true", 1, 0, None, {}]
    nodes = {"first": 0, "last": 3}
    ms: list[object] = [-1, 0, 2**53 - 1, 2**53, *HUGE, *NOT_INTEGERS]
    ranges: list[object] = [
        {"first": 0},
        {"first": 1, "last": 0},
        {"first": -1, "last": 0},
        {"first": 0, "last": 10**9},
    ]
    ranges += [{**nodes, "x": 1}, {**nodes, "first": "0"}, {**nodes, "last": 1e9}, {**nodes, "last": 10**30}]
    for junk in JUNK:
        yield Ask("PUT", "/v1/pools/junk", junk)
    changes: dict[str, Sequence[object]] = {"layout": texts, "span_ms": spans, "never_used": flags, "x": [1]}
    changes |= {"nodes": [nodes, *ranges, None, 5, "0-3", [0, 3]], "wider_from_ms": [*ms, None]}
    for at, body in enumerate(_changed(pool, changes)):
        yield Ask("PUT", f"/v1/pools/pool{at}", body)
    for name in ("%20", "a%2Fb", "-a", "A" * 129, "a:b"):
        yield Ask("PUT", f"/v1/pools/{name}", _json(layout="mine/1"))
    for share in ({"first": 1, "last": 9}, {"first": 2, "last": 3}, {"first": 2, "last": 4}):
        yield Ask("PUT", "/v1/pools/shared", _json(layout="mine/1", nodes=share))
    yield Ask("PUT", "/v1/pools/shared", _json(layout="mine/1", nodes=nodes, wider_from_ms=2**53 - 1))
    yield Ask("PUT", "/v1/pools/shared", _json(layout="sno/1", nodes={"first": 0, "last": 65_536}))
    new: dict[str, object] = {"nodes": nodes, "layout": "mine/1", "now_ms": 0, "span_ms": 30_000}
    ranges += [*NOT_INTEGERS]
    changes = {
        "nodes": ranges,
        "layout": texts,
        "holder": ["", "x" * 200, "x" * 201, "\u00e9", "a\u0000", 1, None],
        "now_ms": ms,
        "span_ms": spans,
        "never_used": flags,
        "x": [1],
    }
    for junk in JUNK:
        yield Ask("POST", "/v1/leases/junk", junk)
    for body in _changed(new, changes):
        yield Ask("POST", "/v1/leases/far", body)
    token = "0f" * 16
    held: dict[str, object] = {"floor_ms": 0, "until_ms": 0, "now_ms": 0, "next_token": "f0" * 16}
    tokens: list[object] = ["", "a" * 64, "a" * 65, "a b", "\u00e9", "a\n", 1, None]
    changes = {
        **dict.fromkeys(("floor_ms", "until_ms", "now_ms"), ms),
        **dict.fromkeys(("next_token", "previous_token"), tokens),
        "x": [1],
    }
    for junk in JUNK:
        yield Ask("PATCH", "/v1/leases/far/0", junk, (f"Lease-Token: {token}",))
    for body in _changed(held, changes):
        yield Ask("PATCH", "/v1/leases/far/0", body, (f"Lease-Token: {token}",))
    for given in (
        ("Lease-Token: ",),
        ("Lease-Token: a b",),
        (f"Lease-Token: {'a' * 65}",),
        ("Lease-Token: a",) * 2,
        (),
    ):
        yield Ask("PATCH", "/v1/leases/far/0", _json(**held), given)
        yield Ask("DELETE", "/v1/leases/far/0?used_until_ms=0", b"", given)
    for node in ("0", "1", "-1", "65535", "65536", "99999999999999999999", "9" * 21, "x", "1.0", "%2B1", "00"):
        yield Ask("DELETE", f"/v1/leases/far/{node}?used_until_ms=0", b"", (f"Lease-Token: {token}",))
        yield Ask("POST", f"/v1/leases/far/{node}:revoke")
        yield Ask("GET", f"/v1/leases?pool=far&after={node}")
    for query in ("", "used_until_ms=-1", "used_until_ms=x", f"used_until_ms={2**53}", "used_until_ms=0&x=1"):
        yield Ask("DELETE", f"/v1/leases/far/0?{query}", b"", (f"Lease-Token: {token}",))
    for query in ("pool=far", "pool=%20", "pool=", "pool=far&limit=1", "after=1"):
        yield Ask("GET", f"/v1/leases?{query}")


def _alloc() -> Iterator[Ask]:
    for junk in JUNK:
        yield Ask("POST", "/alloc", junk)
    whole: dict[str, object] = {"serviceName": "allocated", "count": 2}
    names: list[object] = ["", " Allocated ", "a" * 64, "a" * 65, "\u00e9", "a b", 1, None, True, [], {}]
    counts: list[object] = [0, 1, 100, 101, -1, *HUGE, *NOT_INTEGERS]
    for body in _changed(whole, {"serviceName": names, "count": counts, "x": [1]}):
        yield Ask("POST", "/alloc", body)
    for kind in ("text/plain", "application/json; charset=latin-1", ""):
        yield Ask("POST", "/alloc", _json(**whole), (f"Content-Type: {kind}",))
    yield Ask("POST", "/alloc?x=1", _json(**whole))
    yield Ask("POST", "/alloc", b'{"SERVICENAME":"allocated","Count":1}')
    yield Ask("POST", "/alloc", b'{"serviceName":"made"}')
    yield Ask("POST", "/alloc", b'{"serviceName":"\xff"}')


def headers() -> Iterator[Ask]:
    """Return requests whose headers matter."""
    for path in ("/v1/sequences/traced:next", "/v1/sequences/traced", "/v1/nowhere", "/alloc", "/healthz"):
        method = "POST" if path.endswith((":next", "alloc")) else "GET"
        body = b'{"serviceName":"traced"}' if path == "/alloc" else b""
        for trace in ("mine", "a" * 128, "a" * 129, "a b", "", "\u00e9", 'x"y'):
            yield Ask(method, path, body, (f"X-Trace-Id: {trace}",))
        yield Ask(method, path, body, ("X-Trace-Id: a", "X-Trace-Id: a"))
        for origin in ("http://localhost:3000", "http://127.0.0.1", "https://example.org", "null", "http://[", ""):
            yield Ask(method, path, body, (f"Origin: {origin}",))
        for host in ("localhost", "127.0.0.1:80", "[::1]", "example.org", "evil.test:8080", "", "["):
            yield Ask(method, path, body, (f"Host: {host}",))
        for more in ("Accept: text/html", "Accept: application/xml", "Accept-Encoding: gzip", "Idempotency-Key: 1"):
            yield Ask(method, path, body, (more,))
        yield Ask(method, path, body, ("Authorization: Bearer nothing",))
        yield Ask(method, path, body, ("If-None-Match: *", "Range: bytes=0-1", "Cookie: a=b"))
    for path in ("/", "/openapi.json", "/readyz", "/metrics", "/v1/sequences"):
        for more in ("Accept: text/html", "Accept: application/json", "Accept: text/plain;version=1.0.0"):
            yield Ask("GET", path, b"", (more,))
        yield Ask("GET", path, b"", ("Host: example.org",))
        yield Ask("GET", path, b"", ("Origin: https://example.org",))
        yield Ask("GET", f"{path}?x=1")
    for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        yield Ask("PUT", "/v1/sequences/typed", b'{"start":"1"}', (f"Content-Type: {kind}",))
    yield Ask("OPTIONS", "*")


def authorized() -> Iterator[Ask]:
    """Return requests to a service with keys."""
    unknown = "mint_" + "z" * 43
    given = {name: f"Authorization: Bearer {key}" for name, key in KEYS.items()}
    tries: list[tuple[str, ...]] = [(), (f"Authorization: Bearer {unknown}",), ("Authorization: Bearer",)]
    tries += [("Authorization: ",), ("Authorization: Digest x",), ("Authorization: Basic !",), (given["orders"],) * 2]
    tries += [("Authorization: Basic bm9ib2R5Og==",), (given["orders"].replace("Bearer", "bearer"),)]
    tries += [(given["orders"],), (given["users"],), (given["admin"],)]
    asked = [
        ("POST", "/v1/sequences/orders:next", b""),
        ("POST", "/v1/sequences/orders:next", b""),
        ("POST", "/v1/sequences/orders:reserve", b""),
        ("POST", "/alloc", b'{"serviceName":"orders"}'),
        ("GET", "/v1/sequences/users", b""),
        ("PUT", "/v1/sequences/users", b""),
        ("GET", "/v1/sequences", b""),
        ("POST", "/v1/ids/ulid", b""),
        ("GET", "/v1/inspect/01ARZ3NDEKTSV4RRFFQ69G5FAV", b""),
        ("GET", "/v1/store", b""),
        ("GET", "/metrics", b""),
        ("GET", "/debug/profile?seconds=0", b""),
        ("GET", "/debug/profile?format=x", b""),
        ("GET", "/readyz", b""),
        ("GET", "/healthz", b""),
        ("GET", "/openapi.json", b""),
        ("GET", "/v1/nowhere", b""),
        ("PATCH", "/v1/sequences/orders", b""),
        ("OPTIONS", "/v1/sequences/orders", b""),
    ]
    for said in tries:
        for method, target, body in asked:
            yield Ask(method, target, body, said)


def limited() -> Iterator[Ask]:
    """Return requests to a service with small limits."""
    for count in (5, 6):
        yield Ask("POST", f"/v1/sequences/a:reserve?count={count}")
        yield Ask("POST", f"/v1/sequences/b:next?count={count}")
        yield Ask("POST", f"/v1/ids/ulid?count={count}")
    for name in ("a", "b", "c"):
        yield Ask("PUT", f"/v1/sequences/{name}")
        if name != "a":  # the keeper reserves ahead for a namespace in use, so that its next segment begins anywhere
            yield Ask("POST", f"/v1/sequences/{name}:next")
            yield Ask("POST", "/alloc", _json(serviceName=name))
        if name != "b":
            yield Ask("POST", f"/v1/sequences/{name}:reserve?count=1")
        yield Ask("DELETE", f"/v1/sequences/{name}")
        yield Ask("PUT", f"/v1/sequences/{name}", b'{"floor":"9"}')
    for target in ("/alloc", "/v1/sequences/a:give-back", "/v1/sequences/a:next", "/healthz", "/v1/nowhere"):
        for method in ("GET", "POST", "PUT"):
            yield Ask(method, target, b" " * 4097)
    yield Ask("POST", f"/v1/sequences/{'a' * 900}:next")
    yield Ask("GET", "/v1/sequences/a", b"", (f"X-More: {'a' * 4200}",))


CONFIGURATIONS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "open": ((), ""),
    "without-lane": (("--access-log", "all"), ""),
    "keys": (
        ("--auto-create",),
        key_toml("orders", KEYS["orders"], {"orders": ["next"]})
        + key_toml("users", KEYS["users"], {"users*": ["next", "describe", "reserve"]})
        + key_toml("admin", KEYS["admin"], {"*": ["admin"]}),
    ),
    "limits": (("--max-count", "5", "--max-reserve", "5", "--max-namespaces", "2", "--max-request-bytes", "4096"), ""),
}
"""The options and the configuration file of each service, by name."""
SAME: Final = {"without-lane": "open"}
"""Services that must give the answers recorded of another."""


def requests(name: str) -> Iterator[Ask]:
    """Return the requests to the service with that name."""
    if name in {"open", "without-lane"}:
        for path in PATHS:
            for method in METHODS:
                yield Ask(method, path)
        yield from headers()
        yield from operations()
    else:
        yield from {"keys": authorized, "limits": limited}[name]()


# --- commands of Redis --------------------------------------------------------------------------------------------

_LONE: Final = tuple(
    word.encode()
    for word in (
        *("INCR", "INCR a", "incr a", "INCR a b", "INCR \u00e9", "INCR -a", "INCR a:next", f"INCR {'a' * 129}"),
        *("INCRBY a", "INCRBY a 3", "INCRBY a 0", "INCRBY a -1", "INCRBY a x", "INCRBY a 10000", "INCRBY a 10001"),
        *(f"INCRBY a {2**63}", f"INCRBY a {10**20}", "INCRBY a 1 2", "INCRBY a 1.0", "INCRBY a 01"),
        *(
            "GET",
            "GET a",
            "GET never",
            "GET a b",
            "GET -a",
            "MINT",
            "MINT ulid",
            "MINT ULID",
            "MINT x",
            "MINT sno META 7",
        ),
        *("MINT sno META 256", "MINT sno META -1", "MINT ulid META 1", "MINT sno COUNT", "MINT sno COUNT 2"),
        *("MINT sno COUNT 0", "MINT sno COUNT 10001", "MINT sno COUNT 1 COUNT 1", "MINT sno COUNT 1 META 1 x"),
        *(
            "MINT sno X 1",
            "MINT sno count 1 meta 1",
            "AUTH",
            "AUTH x",
            "AUTH default x",
            "AUTH a b c",
            "PING",
            "PING x",
        ),
        *("PING x y", "ping", "ECHO", "ECHO x", "ECHO x y", "SELECT", "SELECT 0", "SELECT 1", "SELECT x", "SELECT 00"),
        *("CLIENT", "CLIENT ID", "CLIENT ID x", "CLIENT GETNAME", "CLIENT SETNAME x", "CLIENT SETNAME", "CLIENT LIST"),
        *("CLIENT SETINFO LIB-NAME x", "CLIENT SETINFO x", "CLIENT KILL x", "COMMAND", "COMMAND COUNT", "COMMAND LIST"),
        *(
            "COMMAND INFO",
            "COMMAND INFO incr x get",
            "COMMAND DOCS",
            "COMMAND DOCS incr x",
            "COMMAND X",
            "COMMAND COUNT x",
        ),
        *("INFO", "INFO server", "HELLO", "HELLO 2", "HELLO 3", "HELLO 4", "HELLO x", "HELLO 3 AUTH default x"),
        *("HELLO 3 SETNAME x", "HELLO 3 AUTH", "HELLO 3 X", "HELLO 2 SETNAME", "MULTI", "MULTI x", "EXEC", "DISCARD"),
        *("EXEC x", "WATCH a", "UNWATCH", "SET a 1", "DEL a", "KEYS *", "FLUSHALL", "QUIT", "QUIT x", "INCR\t a", "''"),
    )
)


def conversations() -> Iterator[tuple[str, bytes]]:
    """Return what a client sends in one connection, and a name of it; QUIT ends each."""
    for line in _LONE:
        for version in (b"", b"HELLO 3\r\n"):
            yield f"inline {version.decode().strip()} {line.decode()}", version + line + b"\r\n"
        yield f"array {line.decode()}", command(*line.split())
    several = {
        "pipeline": [b"INCR p", b"INCR p", b"PING", b"INCRBY p 5", b"GET p", b"INCR p"],
        "transaction": [b"MULTI", b"INCR t", b"PING x", b"INCRBY t 2", b"EXEC", b"INCR t"],
        "empty transaction": [b"MULTI", b"EXEC"],
        "discarded": [b"MULTI", b"INCR t", b"DISCARD", b"INCR t"],
        "nested": [b"MULTI", b"MULTI", b"INCR t", b"EXEC", b"INCR t"],
        "aborted": [b"MULTI", b"INCR", b"INCR t", b"EXEC", b"PING"],
        "aborted by name": [b"MULTI", b"SET a b", b"EXEC"],
        "failed inside": [b"MULTI", b"INCR -a", b"INCR t", b"EXEC"],
        "quit inside": [b"MULTI", b"INCR t", b"QUIT", b"PING"],
        "versions": [b"HELLO 3", b"GET never", b"HELLO 2", b"GET never", b"INFO x"],
        "name": [b"CLIENT SETNAME me", b"CLIENT GETNAME", b"HELLO 3 SETNAME you", b"CLIENT GETNAME"],
    }
    for name, lines in several.items():
        yield f"{name}, inline", b"".join(line + b"\r\n" for line in lines)
        yield f"{name}, arrays", b"".join(command(*line.split()) for line in lines)
    raw = {
        "empty lines": b"\r\n\r\nPING\r\n",
        "line feed": b"PING\n",
        "quoted": b'ECHO "a b"\r\n',
        "no array": b"*0\r\n*-1\r\nPING\r\n",
        "wrong array": b"*x\r\n",
        "too many words": b"*1025\r\n",
        "huge word": b"*1\r\n$99999999\r\n",
        "wrong length": b"*1\r\n$x\r\n",
        "negative length": b"*1\r\n$-1\r\n",
        "no bulk": b"*1\r\n:5\r\n",
        "bad end": b"*1\r\n$4\r\nPINGxx",
        "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "HTTP POST": b"POST /alloc HTTP/1.1\r\nHost: x\r\n\r\n",
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "long line": b"PING " + b"a" * 70_000 + b"\r\n",
        "binary": command("ECHO", b"\x00\xff\r\n"),
    }
    yield from raw.items()


def key_conversations() -> Iterator[tuple[str, bytes]]:
    """Return conversations with a service that has keys."""
    orders, admin = KEYS["orders"], KEYS["admin"]
    for line in (
        *("INCR orders", "PING", "ECHO x", "COMMAND COUNT", "HELLO 3", "HELLO", "AUTH wrong", "AUTH default wrong"),
        *("MULTI", "INFO", "QUIT", f"HELLO 3 AUTH default {orders}", "HELLO 3 AUTH default wrong", "SELECT 0"),
    ):
        yield f"without a key: {line}", line.encode() + b"\r\n"
    for line in (
        "INCR orders",
        "INCRBY orders 2",
        "GET orders",
        "INCR users",
        "MINT ulid",
        "INFO",
        "AUTH wrong",
        "GET x",
    ):
        for name, key in (("orders", orders), ("admin", admin)):
            yield f"{name}: {line}", f"AUTH {key}\r\n{line}\r\n{line}\r\n".encode()


# --- recording ----------------------------------------------------------------------------------------------------

_MASKS: Final = [
    (re.compile(pattern), mask)
    for pattern, mask in {
        r"\b[0-9a-f]{32}\b": "HEX",
        r"\b1[6-9]\d{11}\b": "MS",
        r'"holder":"[^":]+:\d+:[^"]*"': '"holder":"PROCESS"',
        r'"since":"[^"]*"': '"since":"TIME"',
        r'"identity":"[^"]*"': '"identity":"SERVER"',
        r'"(server|url)":"[^"]*"': r'"\1":"STORE"',
        r'"(held|likelihood|retry_after_ms)":[\d.e-]+': r'"\1":N',
        r"try again in \d+ ms": "try again in N ms",
        r"retry_after_ms=\d+": "retry_after_ms=N",
        r"(held_\S+|connected_clients):\d+": r"\1:N",
        r"\$2\r\nid\r\n:\d+": "$2\r\nid\r\n:N",
        r"is -?\d+ ms (ahead|behind)": r"is N ms \1",
        r"\$\d+\r\n# Server": "$N\r\n# Server",
        r"\bat \d{4}-\d\d-\d\dT[\d:.]+Z": "at TIME",
        re.escape(__version__): "VERSION",
    }.items()
]
#: The keeper fetches segments ahead, so the records of namespaces that are in use change at any time.
_LEVELS: Final = re.compile(r'"(high_water|largest|serial|serial_before|run_first|run_last)":"?-?\d+"?')
_RUN: Final = re.compile(r'"run_(holder|since_ms|until_ms)":("[^"]*"|\w+)')


def mask(text: str) -> str:
    """Return a text without values that differ from run to run."""
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return text


def _body(ask: Ask, kind: str, body: bytes) -> str:
    text = mask(body.decode("utf-8"))
    if kind == "application/problem+json":
        found = json.loads(body)
        code = found["code"]
        head = {"type": f"urn:mintage:error:{code}", "title": CATALOGUE[code].meaning, "status": CATALOGUE[code].http}
        written = json.dumps(head, separators=(",", ":"))[:-1] + ","
        assert text.startswith(written), (ask, text)
        return text.removeprefix(written)
    if kind.startswith("text/html") or ask.target.startswith("/openapi.json"):
        return "..."
    if kind.startswith("text/plain"):  # the metrics
        return "\n".join(line for line in text.splitlines() if line.startswith("# "))
    if ask.target.startswith("/v1/sequences") and (ask.method != "PUT" or b"floor" in ask.body):
        text = _LEVELS.sub(r'"\1":N', text)
        text = text if "/held" in ask.target else _RUN.sub(r'"run_\1":N', text)
    return _short(re.sub(r'("scheme":"\w+","ids":)\[.*\]', r"\1[...]", text))


def _short(text: str) -> str:
    """Return a text, or the beginning and the hash of a long one."""
    return text if len(text) <= 500 else f"{text[:300]}... {len(text)} {sha256(text.encode()).hexdigest()}"


def answer(connection: http.client.HTTPConnection, ask: Ask) -> str:
    """Return the answer to a request: its status, its headers that matter, and its body."""
    connection.putrequest(
        ask.method,
        ask.target,
        skip_host=any(line.startswith("Host:") for line in ask.headers),
        skip_accept_encoding=True,
    )
    for line in ask.headers:
        name, _, value = line.partition(": ")
        connection.putheader(name, value.encode("utf-8"))
    if ask.body or ask.method in {"POST", "PUT", "PATCH"}:
        connection.putheader("Content-Length", str(len(ask.body)))
    connection.endheaders(ask.body)
    heard = connection.getresponse()
    body = heard.read()
    headers = {name.lower(): value for name, value in heard.headers.items()}
    assert len(headers) == len(heard.headers), ask
    assert headers.pop("date"), ask
    if heard.status != 204:
        assert ask.method == "HEAD" or int(headers["content-length"]) == len(body), ask
        del headers["content-length"]
    if (trace := mask(headers.pop("x-trace-id"))) != "HEX":
        headers["x-trace-id"] = trace
    lines = sorted(f"{name}: {value}" for name, value in headers.items())
    shown = _body(ask, headers.get("content-type", ""), body) if body else ""
    return "\n".join([str(heard.status), *lines, shown])


def http_answers(service: Running, name: str) -> list[tuple[str, str]]:
    """Return each request to a service, and its answer."""
    connection = http.client.HTTPConnection(*service.http, timeout=PATIENCE_S)
    try:
        return [(str(ask), answer(connection, ask)) for ask in requests(name)]
    finally:
        connection.close()


def redis_answers(service: Running, name: str) -> list[tuple[str, str]]:
    """Return each conversation with a service, and the replies."""
    found = []
    for title, said in key_conversations() if name == "keys" else conversations():
        heard = say(service.redis, said + b"\r\nQUIT\r\n")
        text = mask(heard.decode("latin-1"))
        if "MINT" in title:
            text = re.sub(r"\$\d+\r\n[0-9A-Za-z_-]+\r\n", "ID\r\n", text)
        if "CLIENT ID" in title:
            text = re.sub(r":\d+\r\n", ":N\r\n", text)
        found.append((f"redis {title}"[:200], _short(text)))
    return found


def answers(service: Running, name: str) -> list[tuple[str, str]]:
    """Return all that a service is asked, with its answers."""
    asked = http_answers(service, name)
    return asked + redis_answers(service, name) if name in {"open", "without-lane", "keys"} else asked


def record(directory: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the answers of all services, by the name of the service."""
    found = {}
    for name, (options, toml) in CONFIGURATIONS.items():
        if name not in SAME:
            with running(directory / name, *options, toml=toml) as service:
                found[name] = answers(service, name)
    return found


def write(recorded: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Write the answers, each on a line."""
    parts = [
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(each) for each in found) + "\n]"
        for name, found in recorded.items()
    ]
    ANSWERS.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        write(record(Path(directory)))
