"""Tests of the lane: packet boundaries do not change its answers, and no input causes an error.

The tests take the place of the Python code behind the lane: they answer what the lane hands over.
"""

from __future__ import annotations

import json
import re
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mintage import Sequence
from mintage._core import start_generation
from mintage._core.lane import MAX_REPLY_BATCH, Bucket, HttpSession, Lane, RespSession, http_date
from mintage.lease import keeper
from mintage.store import open_store
from mintage.store.memory import MemoryStore
from tests.helpers.keepers import keeper_in_place
from tests.helpers.processes import in_child
from tests.service.wire import command, head

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mintage.store import Store

LIMIT = 4096
MOST = 100
STEP = 50
HELD = 2 * STEP - 1


@pytest.fixture(autouse=True, scope="module")
def inline() -> Iterator[None]:
    """Fetch segments only on request of the test."""
    with keeper_in_place():
        yield


class Served(NamedTuple):
    lane: Lane
    orders: Sequence


def served(*, is_open: bool = True, bucket: Bucket | None = None, store: Store | None = None) -> Served:
    """Return a lane with one namespace that has two segments less one integer: 2 to 50, and 51 to 100."""
    lane = Lane(open=is_open, limit=LIMIT, most=MOST, trace_header="X-Trace-Id")
    orders = Sequence("orders", store or MemoryStore(), step=STEP)
    lane.serve("orders", orders, bucket)
    orders.next()
    # No more is fetched after this, as nobody waits.
    while keeper.current().step() == 0:
        pass
    assert orders.buffered == HELD
    return Served(lane, orders)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    """Draw the pieces of a stream."""
    bounds = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(bounds)]


def damaged(streams: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Draw streams in which a few bytes are changed, missing or doubled."""

    def damage(stream: bytes, wounds: list[tuple[int, int, bytes]]) -> bytes:
        for place, length, instead in wounds:
            at = place % (len(stream) + 1)
            stream = stream[:at] + instead + stream[at + length :]
        return stream

    wound = st.tuples(st.integers(0, 2**16), st.integers(0, 3), st.binary(max_size=3))
    return streams | st.builds(damage, streams, st.lists(wound, min_size=1, max_size=3))


PLACES = st.lists(st.integers(0, 2**16), max_size=8)

# --- the Redis protocol ----------------------------------------------------------------------------------------------

WORDS = st.one_of(
    st.just(["INCR", "orders"]),
    st.builds(lambda count: ["incrby", "orders", str(count)], st.integers(0, 2 * MOST)),
    st.just(["PING"]),
    st.sampled_from(
        [["GET", "orders"], ["ECHO", "\r\n"], ["INCR", "others"], ["INCR"], ["MINT", "sno"], ["X" * 2000], []]
    ),
    st.lists(st.text(max_size=5), max_size=4),
)
TYPED = st.sampled_from([b"\r\n", b"PING\n", b"  incr   orders \r\n", b"INCRBY orders 3\n", b"GET x\n"])
COMMANDS = st.lists(WORDS.map(lambda words: command(*words)) | TYPED, max_size=30).map(b"".join)


def behind(orders: Sequence, words: list[bytes]) -> bytes:
    """Return the answer of Python."""
    match [words[0].upper(), *words[1:]]:
        case [b"INCR", b"orders"]:
            return b":%d\r\n" % orders.reserve(1)[-1]
        case [b"INCRBY", b"orders", count] if count.isdigit() and 1 <= int(count[:9]) <= MOST:
            return b":%d\r\n" % orders.reserve(int(count))[-1]
    return b"+%r\r\n" % words


def talk(served: Served, pieces: list[bytes], *, late: bool = False) -> tuple[bytes, str | None]:
    """Return all replies to a stream in pieces, and its errors; with ``late`` a piece comes while Python answers."""
    session = RespSession(served.lane)
    replies = b""
    left = list(pieces)
    while left:
        answer = session.feed(left.pop(0))
        while not isinstance(answer, bytes):
            said, words = answer
            replies += said
            if isinstance(words, str):
                return replies, words
            assert words is not None, "all of it is less than a share of a turn"
            if late and left:
                session.hold(left.pop(0))
            replies += behind(served.orders, words)
            answer = session.resume()
        replies += answer
    return replies, None


@given(stream=damaged(COMMANDS) | st.binary(max_size=200), places=PLACES, late=st.booleans())
def test_answers_to_commands_do_not_depend_on_packet_boundaries(stream: bytes, places: list[int], late: bool) -> None:
    assert talk(served(), cut(stream, places), late=late) == talk(served(), [stream])


@given(stream=COMMANDS)
def test_answers_to_commands_are_the_same_byte_by_byte(stream: bytes) -> None:
    assume(len(stream) < 3000)
    whole = served(), served()
    assert talk(whole[0], [bytes([byte]) for byte in stream]) == talk(whole[1], [stream])
    assert whole[0].lane.counts() == whole[1].lane.counts()


@given(counts=st.lists(st.integers(0, MOST), max_size=60))
def test_no_integer_repeats_and_the_lane_counts_its_integers(counts: list[int]) -> None:
    lane, orders = served()
    session = RespSession(lane)
    given: list[int] = []
    expected = {"incr": [0, 0], "incrby": [0, 0]}
    for count in counts:
        words = ["INCRBY", "orders", str(count)] if count else ["INCR", "orders"]
        answer = session.feed(command(*words))
        if isinstance(answer, bytes):
            expected[words[0].lower()][0] += 1
            expected[words[0].lower()][1] += count or 1
        else:
            said, heard = answer
            assert said == b""
            assert isinstance(heard, list)
            answer = behind(orders, heard)
            assert session.resume() == b""
        last = int(answer[1:])
        given += range(last - (count or 1) + 1, last + 1)
    assert len(given) == len(set(given))
    told = {operation: [requests, integers] for _, _, operation, requests, integers in lane.counts()}
    assert told == {operation: counted for operation, counted in expected.items() if counted[0]}


def test_incrby_within_the_buffer_is_answered_and_larger_left_to_python() -> None:
    session = RespSession(served().lane)
    assert session.feed(command("INCRBY", "orders", 10)) == b":11\r\n"
    assert session.feed(command("INCRBY", "orders", 39)) == b":50\r\n"
    assert session.feed(command("INCRBY", "orders", 49)) == b":99\r\n"
    assert session.feed(command("INCRBY", "orders", 2)) == (b"", [b"INCRBY", b"orders", b"2"])
    for count in ("0", "-1", "+1", " 1", "1.0", "", str(MOST + 1), "9" * 30):
        words = ["INCRBY", "orders", count]
        assert RespSession(served().lane).feed(command(*words)) == (b"", [word.encode() for word in words])


def test_commands_after_a_slow_one_wait_for_it() -> None:
    session = RespSession(served().lane)
    later = command("INCR", "orders") + command("ECHO", "y") + b"PING\n"
    assert session.feed(b"PING\n" + command("ECHO", "x") + later) == (b"+PONG\r\n", [b"ECHO", b"x"])
    assert session.held == len(later)
    session.hold(b"PING\n")
    assert session.resume() == (b":2\r\n", [b"ECHO", b"y"])
    assert session.resume() == b"+PONG\r\n+PONG\r\n"
    assert session.held == 0


@pytest.mark.parametrize(
    "endless",
    [(b"PING ", b"PING "), (b"*1024\r\n", b"$1\r\nx\r\n"), (b"*1\r\n$4096\r\n", b""), (b"*1\r\n$4000\r\n", b"x" * 999)],
)
def test_no_command_is_buffered_beyond_the_limit(endless: tuple[bytes, bytes]) -> None:
    session = RespSession(served().lane)
    answer = session.feed(endless[0])
    while isinstance(answer, bytes):
        assert answer == b""
        assert session.held <= LIMIT
        answer = session.feed(endless[1])
    assert answer[1] in {"the command is too long", "a bulk string does not end with CR LF"}
    assert session.held == 0


def test_without_a_key_only_names_allowed_by_python_are_served() -> None:
    session = RespSession(served(is_open=False).lane)
    incr = command("INCR", "orders")
    asked = (b"", [b"INCR", b"orders"])
    assert session.feed(incr) == asked
    session.allow("others")
    assert session.feed(incr) == asked
    session.allow("orders")
    assert session.feed(incr) == b":2\r\n"
    session.admit(all=False)
    assert session.feed(incr) == asked
    session.admit(all=True)
    assert session.feed(incr) == b":3\r\n"


def test_answers_are_counted_by_the_name_of_the_key() -> None:
    lane, _ = served(is_open=False)
    commands, requests = RespSession(lane), HttpSession(lane)
    for key, count in (("shop", 1), ("till", 2), ("shop", 3)):
        commands.admit(all=True, key=key)
        commands.feed(command("INCR", "orders") * count)
        requests.allow(key.encode(), "orders", key)
        requests.feed(ask("orders:next", f"Authorization: Bearer {key}"))
    assert sorted(lane.counts()) == [
        ("orders", "shop", "incr", 4, 4),
        ("orders", "shop", "next", 2, 2),
        ("orders", "till", "incr", 2, 2),
        ("orders", "till", "next", 1, 1),
    ]


def test_caller_above_its_rate_is_left_to_python() -> None:
    def slow() -> Bucket:
        return Bucket(1e-6, 3)

    incr = command("INCR", "orders")
    session = RespSession(served(bucket=slow()).lane)
    assert session.feed(incr * 4) == (b":2\r\n:3\r\n:4\r\n", [b"INCR", b"orders"]), "of a namespace"
    session = RespSession(served().lane)
    session.admit(all=True, bucket=slow())
    assert session.feed(incr * 4) == (b":2\r\n:3\r\n:4\r\n", [b"INCR", b"orders"]), "of a key"


def test_commands_for_python_are_passed_through() -> None:
    long = command("INCRBY", "orders", str(MOST))
    for limits in ("key", "namespace", "both"):
        of_key, of_namespace = Bucket(1e-6, 2), Bucket(1e-6, 2 if limits != "both" else 1)
        session = RespSession(served(bucket=None if limits == "key" else of_namespace).lane)
        session.admit(all=True, bucket=None if limits == "namespace" else of_key)
        for _ in range(10):
            assert session.feed(long)[0] == b"", "no row is so long"
        assert session.feed(command("INCR", "orders")) == b":2\r\n"
        if limits == "both":
            assert session.feed(command("INCR", "orders"))[0] == b""
            assert of_key.take() == 0, "who was refused by one has lost nothing to the other"


def test_http_requests_for_python_are_passed_through() -> None:
    session = HttpSession(served(bucket=Bucket(1e-6, 1)).lane)
    for _ in range(10):
        assert isinstance(session.feed(ask(f"orders:next?count={MOST}")), tuple), "not so many are held"
    assert isinstance(session.feed(ask("orders:next")), bytes)


# --- HTTP ------------------------------------------------------------------------------------------------------------


def alloc(body: bytes | str, *headers: str) -> bytes:
    encoded = body if isinstance(body, bytes) else body.encode()
    return head("POST /alloc", "X-Trace-Id: t", *headers, length=len(encoded)) + encoded


def rss_kb() -> int:
    """Return the kilobytes of memory of this process."""
    return int(next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line).split()[1])


def ask(path: str, *headers: str) -> bytes:
    return head(f"POST /v1/sequences/{path}", "X-Trace-Id: t", *headers)


REQUESTS = st.lists(
    st.one_of(
        st.builds(lambda count: alloc(json.dumps({"serviceName": "orders", "count": count})), st.integers(0, 20)),
        st.builds(lambda count: ask(f"orders:next?count={count}"), st.integers(1, 20)),
        st.just(ask("orders:next")),
        st.sampled_from(
            [
                head("GET /healthz"),
                alloc("{}"),
                alloc('{"serviceName": "Orders"}'),
                alloc(b'{"serviceName": "\xff"}'),
                ask("others:next"),
                ask("orders:next?count=0"),
                ask("orders:next", "Expect: 100-continue"),
            ]
        ),
    ),
    max_size=8,
).map(b"".join)


def exchange(served: Served, pieces: list[bytes]) -> tuple[bytes, bytes]:
    """Return the answers of the lane to a stream in pieces, without times, and everything that it leaves to others."""
    session = HttpSession(served.lane)
    said, left = b"", list(pieces)
    rest: bytes | None = None
    while left and rest is None:
        answer = session.feed(left.pop(0))
        if isinstance(answer, tuple):
            rest = answer[1]
            answer = answer[0]
        said += answer
    if rest is None:
        rest = session.release()
    assert session.held == 0
    # A trace id is made where the client brings none.
    return re.sub(rb'date: [^\r]*|"ts":\d+|[0-9a-f]{32}', b"", said), rest + b"".join(left)


@given(stream=damaged(REQUESTS) | st.binary(max_size=200), places=PLACES)
def test_answers_to_requests_do_not_depend_on_packet_boundaries(stream: bytes, places: list[int]) -> None:
    one, other = served(), served()
    assert exchange(one, cut(stream, places)) == exchange(other, [stream])
    assert one.lane.counts() == other.lane.counts()


@given(stream=damaged(REQUESTS))
def test_unanswered_request_is_left_complete(stream: bytes) -> None:
    said, rest = exchange(served(), [stream])
    assert stream.endswith(rest)
    answered = stream[: len(stream) - len(rest)]
    assert said.count(b"HTTP/1.1 200 OK\r\n") == answered.count(b"POST ")


@given(counts=st.lists(st.integers(1, 10), max_size=20))
def test_answers_have_the_requested_integers_and_none_twice(counts: list[int]) -> None:
    lane, _ = served()
    session = HttpSession(lane)
    given: list[int] = []
    for at, count in enumerate(counts):
        is_alloc = at % 2 == 0
        body = json.dumps({"serviceName": "orders", "count": count})
        answer = session.feed(alloc(body) if is_alloc else ask(f"orders:next?count={count}"))
        if isinstance(answer, tuple):
            # Fewer are buffered, so nothing was taken.
            assert len(given) + count > HELD
            continue
        told, _, body = answer.decode().partition("\r\n\r\n")
        assert told.startswith("HTTP/1.1 200 OK\r\n")
        assert "\r\nx-trace-id: t" in told
        assert f"\r\ncontent-length: {len(body)}\r\n" in told
        parsed = json.loads(body)
        ids = parsed["data"]["ids"] if is_alloc else list(map(int, parsed["ids"]))
        assert len(ids) == count
        given += ids
    assert given == list(range(2, len(given) + 2))
    assert sum(integers for *_, integers in lane.counts()) == len(given)


def test_no_request_is_buffered_beyond_the_limit() -> None:
    for start, more in ((b"POST /alloc HTTP/1.1\r\n", b"a: b\r\n"), (b"POST /v1/sequences/", b"x")):
        session = HttpSession(served().lane)
        answer = session.feed(start)
        while isinstance(answer, bytes):
            assert answer == b""
            assert session.held < LIMIT
            answer = session.feed(more)
        said, rest = answer
        assert said == b""
        assert rest is not None
        assert rest.startswith(start)


def test_request_left_to_python_has_its_caller_and_operation() -> None:
    session = HttpSession(served(is_open=False).lane)
    mine, theirs = (ask("orders:next", f"Authorization: Bearer {key}") for key in ("mine", "theirs"))
    for request, asked in ((ask("orders:next"), (None, "orders")), (mine, (b"mine", "orders"))):
        assert session.feed(request) == (b"", request)
        assert session.asked == asked
    session.allow(b"mine", "orders")
    assert isinstance(session.feed(mine), bytes)
    before = rss_kb()
    for number in range(2_000):
        session.allow(b"mine", f"{number}" * 10_000)
    assert rss_kb() - before < 10_000, "what is not served is not remembered"
    assert session.feed(theirs) == (b"", theirs)
    assert session.feed(ask("orders:next"))[0] == b""
    session.allow(b"theirs", "others")
    assert session.feed(theirs) == (b"", theirs)
    assert session.feed(mine) == (b"", mine), "a connection has one key at a time"
    assert session.feed(head("GET /"))[0] == b""
    assert session.asked is None


def test_stopping_service_answers_no_requests_in_the_lane() -> None:
    lane, _ = served()
    session = HttpSession(lane)
    assert isinstance(session.feed(ask("orders:next")), bytes)
    lane.drain()
    assert session.feed(ask("orders:next")) == (b"", ask("orders:next"))


# --- calls from Python -----------------------------------------------------------------------------------------------


def test_integers_are_taken_up_to_the_buffered_ones() -> None:
    lane, orders = served()
    assert lane.take("orders", 3) == [2, 3, 4]
    assert lane.row("orders", 6) == range(5, 11)
    assert lane.has_next("orders")
    assert lane.row("orders", STEP + 1) is None
    assert lane.take("orders", HELD) == list(range(11, 2 * STEP + 1))
    assert not lane.has_next("orders")
    assert (lane.take("orders", 1), lane.row("orders", 1), orders.buffered) == ([], None, 0)
    for verb in (lane.take, lane.row):
        with pytest.raises(KeyError):
            verb("others", 1)
    assert lane.counts() == [], "only what the lane answered by itself is counted"


def test_restored_process_discards_the_buffer_of_its_lane(tmp_path: Path) -> None:
    def restored() -> None:
        keeper.use(keeper.Keeper(inline=True))
        lane, orders = served(store=open_store(f"sqlite:///{tmp_path}/ids.db"))
        session = RespSession(lane)
        assert session.feed(command("INCR", "orders")) == b":2\r\n"
        start_generation()
        # Python fetches again, above everything reserved.
        assert session.feed(command("INCR", "orders") * 3) == (b"", [b"INCR", b"orders"])
        assert lane.take("orders", HELD) == []
        assert lane.row("orders", 1) is None
        assert orders.next() > 1 + HELD

    # In a child, as it would be another process for all later tests.
    in_child(restored)


# --- rates -----------------------------------------------------------------------------------------------------------


@given(burst=st.integers(1, 500))
def test_bucket_allows_a_burst_and_then_tells_the_wait(burst: int) -> None:
    bucket = Bucket(0.001, burst)
    assert [bucket.take() for _ in range(burst)] == [0] * burst
    waits = [bucket.take() for _ in range(3)]
    assert all(900_000 < wait <= 1_000_000 for wait in waits), "who is refused costs nothing"


def test_bucket_refills() -> None:
    bucket = Bucket(1000, 2)
    passed = 0
    while passed < 100:
        wait_ms = bucket.take()
        assert wait_ms <= 1
        passed += wait_ms == 0


@given(rate=st.floats(), burst=st.integers(0, 2**32 - 1))
def test_invalid_rate_is_an_error(rate: float, burst: int) -> None:
    bucket = Bucket(rate, burst)
    assert bucket.take() == 0
    assert bucket.take() >= 0


# --- a connection's share of a turn ----------------------------------------------------------------------------------


def test_commands_are_answered_up_to_a_share_and_then_resumed() -> None:
    session = RespSession(served().lane)
    answer = session.feed(command("PING") * 20_000 + command("ECHO", "x") + command("PING"))
    said, held = b"", session.held
    while answer != (answer[0], [b"ECHO", b"x"]):
        assert isinstance(answer, tuple)
        assert answer[1] is None
        assert 0 < len(answer[0]) <= MAX_REPLY_BATCH
        said += answer[0]
        held = session.held
        answer = session.resume()
        assert held - session.held <= MAX_REPLY_BATCH
    assert said + answer[0] == b"+PONG\r\n" * 20_000
    assert session.resume() == b"+PONG\r\n"


@pytest.mark.parametrize("count", [1, 1000, 10_000])
def test_requests_are_answered_up_to_a_share_and_then_resumed(count: int) -> None:
    lane = Lane(open=True, limit=LIMIT, most=10_000, trace_header="X-Trace-Id")
    many = Sequence("many", MemoryStore(), step=100_000)
    lane.serve("many", many)
    assert many.next() == 1
    while keeper.current().step() == 0:
        pass
    session = HttpSession(lane)
    left = head(f"POST /v1/sequences/many:next?count={count}", length=0) * 8
    left *= 1 if count > 1 else 100
    left += head("GET /")
    given: list[int] = []
    while not left.startswith(b"GET "):
        answer = session.feed(left)
        assert isinstance(answer, tuple)
        said, rest = answer
        assert rest is not None
        left = rest
        assert session.paused == left.startswith(b"POST ")
        assert session.held == 0
        bodies = re.findall(rb'"ids":\[([^]]*)\]', said)
        assert len(bodies) == 1 or len(said) <= MAX_REPLY_BATCH
        given += [int(digits.strip(b'"')) for body in bodies for digits in body.split(b",")]
    assert given == list(range(2, len(given) + 2))
    assert len(given) == 8 * (count if count > 1 else 100)


@given(st.integers(-62135596800, 253402300799))
def test_date_of_an_answer_is_that_of_the_standard_library(seconds: int) -> None:
    assert http_date(seconds) == formatdate(seconds, usegmt=True)
