"""The rows of the formats: each beside its fastest library and beside its most used one.

A peer that takes more than 300 ns has to be five times slower; another no faster than ours.
"""

from collections.abc import Callable
from functools import partial
from pkgutil import resolve_name
from typing import Any

from benchmarks.row import Row, at_most, beside_uuid7, call, new
from benchmarks.timing import Loop, Side, calls, side_by_side

SLOW = 5_000
"""Calls of a loop of a peer that takes a microsecond or more."""
BLOCK = 65_536
BURST = 5_000
BURSTS = (
    f"Bursts of {BURST:,} from the beginning of a millisecond, which has 10,000 ticks: no call waits for the clock."
)
AFTER = "Like the others, it counts on from a tick's random bits: a key drawn for each generator makes these."


def beside(what: str, ours: str, name: str, peer: Side, limit: float | None, note: str = "") -> Row:
    return Row(what, name, side_by_side(call(ours), peer), at_most(limit) if limit else None, note=note)


def minted_text(module: str) -> Side:
    """Return an ID and its text, for peers that return only text."""

    def prepare() -> Loop:
        new, write = resolve_name(f"{module}:new"), str
        return lambda n: [write(new()) for _ in range(n)]

    return Side(prepare)


def peer_text(name: str) -> Side:
    """Return the text of a peer, stored in the same way."""

    def prepare() -> Loop:
        new = resolve_name(name)
        return lambda n: [new() for _ in range(n)]

    return Side(prepare)


def text_of(module: str) -> Side:
    return Side(lambda: calls(str, resolve_name(f"{module}:new")()))


def parsed(module: str) -> Side:
    def prepare() -> Loop:
        scheme = resolve_name(module)
        return calls(scheme.ID.parse, str(scheme.new()))

    return Side(prepare)


def filled(make: Callable[[], Any], size: int) -> Side:
    """Return a call that writes IDs into one reused buffer."""
    return Side(lambda: calls(make().fill, bytearray(size * BLOCK)), repeats=16, ids=BLOCK)


def _clickhouse_v7() -> Loop:
    query = resolve_name("chdb.session:Session")().query
    return lambda n: query(f"SELECT max(generateUUIDv7()) FROM zeros({n}) SETTINGS max_threads = 1")


def _version(number: int) -> Any:
    """Return a generator of UUIDs of a version."""
    return resolve_name("mintage.uuid:Generator")(version=number)


def _typeid() -> Loop:
    return calls(resolve_name("mintage.typeid:Generator")("user").new)


def _peers_typeid() -> Loop:
    return calls(resolve_name("typeid:TypeID"), "user")


def _cuid2() -> Loop:
    return calls(resolve_name("cuid2:Cuid")().generate)


FORMATS: tuple[Row, ...] = (
    beside_uuid7("uuid.new(), version 7", call("mintage.uuid:new"), 1.0, AFTER),
    beside("uuid.new(), version 7", "mintage.uuid:new", "uuid_utils.uuid7()", call("uuid_utils:uuid7"), None),
    beside("uuid.new(), version 7", "mintage.uuid:new", "uuid7_rs.uuid7()", call("uuid7_rs:uuid7"), None),
    beside("uuid.new(), version 7", "mintage.uuid:new", "fastuuidv7.uuid7()", call("fastuuidv7:uuid7"), None),
    beside("uuid.new(), version 7", "mintage.uuid:new", "fastuuid7.uuid7()", call("fastuuid7:uuid7"), None),
    Row(
        "uuid.Generator(version=4).new()",
        "uuid_utils.uuid4()",
        side_by_side(new(partial(_version, 4)), call("uuid_utils:uuid4")),
        at_most(0.6),
    ),
    *(
        Row(
            f"uuid.Generator(version={number}).new()",
            f"uuid_utils.uuid{number}()",
            side_by_side(new(partial(_version, number), BURST), call(f"uuid_utils:uuid{number}", repeats=BURST)),
            at_most(1.0),
            note=BURSTS,
        )
        for number in (1, 6)
    ),
    *(
        beside("uuid.uuid7(), a uuid.UUID", "mintage.uuid:uuid7", f"{name}.compat.uuid7()", peer, 0.2)
        for name in ("uuid_utils", "uuid7_rs")
        for peer in (call(f"{name}.compat:uuid7", repeats=SLOW),)
    ),
    beside("uuid.uuid4(), a uuid.UUID", "mintage.uuid:uuid4", "uuid.uuid4()", call("uuid:uuid4", repeats=SLOW), 0.2),
    Row(
        "uuid fill, version 7",
        "generateUUIDv7() in chdb",
        side_by_side(filled(partial(_version, 7), 16), Side(_clickhouse_v7, repeats=10_000_000)),
        at_most(0.5),
        note="A reused buffer of 65,536 IDs; `SELECT max(generateUUIDv7()) FROM zeros(10000000)`, one thread.",
    ),
    beside(
        "nanoid.new()", "mintage.nanoid:new", "fastnanoid.generate()", call("fastnanoid:generate", repeats=SLOW), 0.2
    ),
    beside("cuid.new()", "mintage.cuid:new", "cuid.cuid()", call("cuid:cuid", repeats=SLOW), 0.2),
    Row(
        "cuid2.new()",
        "cuid2.Cuid().generate()",
        side_by_side(call("mintage.cuid2:new", repeats=SLOW), Side(_cuid2, 500)),
        at_most(0.2),
    ),
    beside(
        "ulid.new()", "mintage.ulid:new", "ulid_transform.ulid_now(), text", call("ulid_transform:ulid_now"), 0.7, AFTER
    ),
    Row(
        "str(ulid.new())",
        "ulid_transform.ulid_now(), text",
        side_by_side(minted_text("mintage.ulid"), peer_text("ulid_transform:ulid_now")),
        at_most(1.0),
        note="Both in a list comprehension, whose price is in the figures.",
    ),
    beside("ulid.new()", "mintage.ulid:new", "ulid.ULID() of python-ulid", call("ulid:ULID", repeats=SLOW), 0.2),
    beside("ksuid.new()", "mintage.ksuid:new", "cyksuid.v2.ksuid()", call("cyksuid.v2:ksuid", repeats=SLOW), 0.2),
    beside("ksuid.new()", "mintage.ksuid:new", "ksuid.Ksuid() of svix-ksuid", call("ksuid:Ksuid", repeats=SLOW), 0.2),
    beside(
        "ksuid_ms.new()",
        "mintage.ksuid_ms:new",
        "ksuid.KsuidMs() of svix-ksuid",
        call("ksuid:KsuidMs", repeats=SLOW),
        0.2,
    ),
    beside("xid.new()", "mintage.xid:new", "epyxid.XID()", call("epyxid:XID"), 1.0),
    beside("objectid.new()", "mintage.objectid:new", "bson.ObjectId()", call("bson:ObjectId", repeats=SLOW), 0.2),
    Row(
        "typeid.Generator(prefix).new()",
        "typeid.TypeID(prefix) of typeid-python",
        side_by_side(Side(_typeid), Side(_peers_typeid, SLOW)),
        at_most(0.2),
    ),
    beside_uuid7("sandflake.new()", call("mintage.sandflake:new"), 1.0, "No library of Python's mints these."),
    *(
        Row(f"{what} of {scheme}", "the same of sno", side_by_side(side(f"mintage.{scheme}"), side("mintage.sno")))
        for scheme in ("ulid", "ksuid", "ksuid_ms", "xid", "objectid", "sandflake")
        for what, side in (("str(id)", text_of), ("ID.parse(text)", parsed))
    ),
)
