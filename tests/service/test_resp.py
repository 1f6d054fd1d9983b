"""Tests of the Redis protocol: replies, their order, rights, and unchanged real clients."""

from __future__ import annotations

import asyncio
import json
import random
import re
import select
import socket
import sqlite3
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

from mintage import sno
from mintage.errors import CATALOGUE
from mintage.formats.kinds import NAMES
from mintage.server.config.keys import new_key
from mintage.server.config.settings import Settings
from mintage.server.core.service import Service
from mintage.server.resp.commands import COMMANDS
from mintage.server.resp.protocol import RespProtocol
from mintage.store import open_store
from mintage.store.memory import MemoryStore
from tests.servers import must_run
from tests.servers.server import until
from tests.service.programs import CLIENTS, check, installed, run, words_of
from tests.service.running import Running, certificate, key_toml, running, talk
from tests.service.wire import PATIENCE_S, after_hello, command, connect, exactly, head, say, until_closed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mintage.rules import NamespaceRecord


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service")) as service:
        yield service


# --- each command -------------------------------------------------------------------------------------------------

DOCS = b"$7\r\nsummary\r\n$14\r\nINCR namespace\r\n$5\r\ngroup\r\n$7\r\ngeneric\r\n"

# Words, and the reply in RESP2 and, where it is another, in RESP3.
REPLIES: list[tuple[str, bytes, bytes | None]] = [
    ("PING", b"+PONG\r\n", None),
    ("ping hello", b"$5\r\nhello\r\n", None),
    ("ECHO hello", b"$5\r\nhello\r\n", None),
    ("SELECT 0", b"+OK\r\n", None),
    ("SELECT 1", b"-ERR DB index is out of range: there is only 0 (request.malformed)\r\n", None),
    ("CLIENT GETNAME", b"$-1\r\n", b"_\r\n"),
    ("CLIENT SETNAME me", b"+OK\r\n", None),
    ("CLIENT SETINFO LIB-NAME mine", b"+OK\r\n", None),
    ("COMMAND COUNT", b":%d\r\n" % len(COMMANDS), None),
    (
        "COMMAND DOCS incr",
        b"*2\r\n$4\r\nincr\r\n*4\r\n" + DOCS,
        b"%1\r\n$4\r\nincr\r\n%2\r\n" + DOCS,
    ),
    (
        "COMMAND INFO incr nope",
        b"*2\r\n*10\r\n$4\r\nincr\r\n:2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n*0\r\n$-1\r\n",
        b"*2\r\n*10\r\n$4\r\nincr\r\n:2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n*0\r\n_\r\n",
    ),
    ("GET nobody-made-this", b"$-1\r\n", b"_\r\n"),
    (
        "MINT typeid",
        f"-ERR scheme 'typeid' does not exist: use one of {', '.join(NAMES)} (request.malformed)\r\n".encode(),
        None,
    ),
    ("MINT sno COUNT 0", b"-ERR count 0 is outside 1..10000 (field.range)\r\n", None),
    ("MINT sno COUNT 10001", b"-ERR count 10001 is outside 1..10000 (field.range)\r\n", None),
    ("MINT sno META 256", b"-ERR meta 256 is outside 0..255 (field.range)\r\n", None),
    ("MINT snowflake META 1", b"-ERR meta 1 is not 0: snowflake has no metabyte (field.range)\r\n", None),
    ("INCRBY rows 0", b"-ERR count 0 is outside 1..10000 (field.range)\r\n", None),
    ("INCRBY rows 10001", b"-ERR count 10001 is outside 1..10000 (field.range)\r\n", None),
    ("INCRBY rows -1", b"-ERR count '-1' is not a whole number of 1 to 19 digits (field.range)\r\n", None),
    ("INCRBY rows 1.5", b"-ERR count '1.5' is not a whole number of 1 to 19 digits (field.range)\r\n", None),
    (f"INCRBY rows {10**18}", b"-ERR count %d is outside 1..10000 (field.range)\r\n" % 10**18, None),
    ("MINT sno META -1", b"-ERR meta '-1' is not a whole number of 1 to 19 digits (field.range)\r\n", None),
    ("MINT sno COUNT", b"-ERR %s (request.malformed)\r\n" % COMMANDS[b"MINT"].usage.encode(), None),
    ("MINT sno COUNT 1 COUNT 1", b"-ERR %s (request.malformed)\r\n" % COMMANDS[b"MINT"].usage.encode(), None),
    ("MINT sno TIMES 1", b"-ERR %s (request.malformed)\r\n" % COMMANDS[b"MINT"].usage.encode(), None),
    ("CLIENT KILL ID 1", b"-ERR %s (request.malformed)\r\n" % COMMANDS[b"CLIENT"].usage.encode(), None),
    ("COMMAND GETKEYS", b"-ERR %s (request.malformed)\r\n" % COMMANDS[b"COMMAND"].usage.encode(), None),
    ("HELLO 3 NONSENSE", b"-ERR %s (request.malformed)\r\n" % COMMANDS[b"HELLO"].usage.encode(), None),
    ("HELLO 4", b"-NOPROTO unsupported protocol version '4': there are 2 and 3 (request.malformed)\r\n", None),
    ("AUTH x", b"-ERR there are no keys here: send no AUTH (request.malformed)\r\n", None),
    ("CONFIG GET save", b"-ERR unknown command 'CONFIG' (request.malformed)\r\n", None),
    ("SET rows 1", b"-ERR unknown command 'SET' (request.malformed)\r\n", None),
    ("EXPIRE rows 1", b"-ERR unknown command 'EXPIRE' (request.malformed)\r\n", None),
]


@pytest.mark.parametrize(("said", "resp2", "resp3"), REPLIES, ids=[row[0] for row in REPLIES])
def test_command_gets_its_documented_reply(service: Running, said: str, resp2: bytes, resp3: bytes | None) -> None:
    assert talk(service, said) == resp2
    assert talk(service, said, version=3) == (resp2 if resp3 is None else resp3)


@pytest.mark.parametrize("version", [2, 3])
def test_incr_begins_at_1_and_incrby_returns_the_last_integer(service: Running, version: int) -> None:
    name = f"replies{version}"
    said = [f"INCR {name}", f"incr {name}", f"INCRBY {name} 10", f"INCR {name}", f"INCRBY {name} 1"]
    assert talk(service, *said, version=version) == b":1\r\n:2\r\n:12\r\n:13\r\n:14\r\n"


def test_incrby_may_exceed_the_buffer(service: Running) -> None:
    counts = [1, 900, 5000, 3, 10_000, 10_000, 1]
    replies = talk(service, *(f"INCRBY long {count}" for count in counts)).split()
    given: list[int] = []
    for reply, count in zip(replies, counts, strict=True):
        last = int(reply[1:])
        given += range(last - count + 1, last + 1)
    assert len(set(given)) == sum(counts)
    assert min(given) == 1


def test_get_returns_the_last_integer_as_redis_does(service: Running) -> None:
    said = ("INCR marked", "GET marked", "INCRBY marked 10", "GET marked", "INCR marked", "GET marked", "GET marked")
    assert talk(service, *said) == b":1\r\n$1\r\n1\r\n:11\r\n$2\r\n11\r\n:12\r\n" + b"$2\r\n12\r\n" * 2
    with service.serving.http() as line:
        assert line.http("/v1/sequences/marked:next?count=5", method="POST").status == 200
        assert talk(service, "GET marked") == b"$2\r\n17\r\n"
        # A range too large for the current segment comes from the store, above the buffer.
        last = int(talk(service, "INCRBY marked 9000")[1:])
        assert talk(service, "GET marked") == b"$%d\r\n%d\r\n" % (len(str(last)), last)
        assert line.http("/alloc", '{"serviceName":"marked","count":3}', method="POST").status == 200


def test_get_without_local_integers_returns_what_is_reserved(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/ids.db"
    with open_store(store) as opened:
        opened.reserve("elsewhere", 40)
    with running(tmp_path, store=store) as service:
        assert talk(service, "GET elsewhere", "INCR elsewhere", "GET elsewhere") == (b"$2\r\n40\r\n:41\r\n$2\r\n41\r\n")


def test_mint_returns_readable_ids(service: Running) -> None:
    with redis.Redis(port=service.redis[1], decode_responses=True) as client:
        ask: Any = client.execute_command
        one = ask("MINT", "sno")
        assert str(sno.ID.parse(one)) == one
        many = ask("mint", "SNO", "count", 5, "meta", 7)
        assert [sno.ID.parse(each).meta for each in many] == [7] * 5
        assert len({one, *many}) == 6
        assert 0 < int(ask("MINT", "snowflake")) < 2**63
        assert len(ask("MINT", "locality", "COUNT", 1)) == 1


def test_hello_describes_the_server(service: Running) -> None:
    with redis.Redis(port=service.redis[1], protocol=3, decode_responses=True) as client:
        ask: Any = client.execute_command
        facts = ask("HELLO", "3")
    assert (facts["server"], facts["proto"], facts["mode"], facts["role"]) == ("mintage", 3, "standalone", "master")


def test_hello_changes_the_protocol_of_later_replies(service: Running) -> None:
    heard = say(service.redis, *(command(*words.split()) for words in ("GET none", "HELLO 3", "GET none", "QUIT")))
    assert heard.startswith(b"$-1\r\n%7\r\n")
    assert after_hello(heard) == b"_\r\n"
    heard = say(service.redis, *(command(*words.split()) for words in ("HELLO 3", "HELLO 2", "GET none", "QUIT")))
    assert heard.endswith(b"$-1\r\n+OK\r\n")


def test_client_has_a_name_and_an_id(service: Running) -> None:
    assert talk(service, "CLIENT SETNAME me", "CLIENT GETNAME") == b"+OK\r\n$2\r\nme\r\n"
    first, second = talk(service, "CLIENT ID"), talk(service, "CLIENT ID")
    assert int(first[1:]) < int(second[1:])


def test_info_can_be_parsed_with_any_namespace_names(service: Running) -> None:
    talk(service, "INCR told", "INCR role", "INCR loading")
    with redis.Redis(port=service.redis[1]) as client:
        facts: Any = client.info()
    assert facts["loading"] == 0
    assert facts["redis_version"]
    assert facts["mintage_version"]
    assert facts["role"] == "master"
    assert facts["connected_clients"] >= 1
    assert facts["held_told"] > 0


@pytest.mark.parametrize("protocol", [2, 3])
def test_command_lists_every_command(service: Running, protocol: int) -> None:
    with redis.Redis(port=service.redis[1], protocol=protocol) as client:
        listed: Any = client.command()
    assert {name.upper().encode() if isinstance(name, str) else name.upper() for name in listed} == set(COMMANDS)


@pytest.mark.parametrize("name", [name.decode() for name in COMMANDS])
def test_wrong_number_of_words_is_refused_with_the_usage(service: Running, name: str) -> None:
    known = COMMANDS[name.encode()]
    refused = f"-ERR wrong number of arguments for '{name.lower()}': {known.usage} (request.malformed)\r\n".encode()
    counts = {known.least - 1, known.most + 1} - {0, 1025}
    assert talk(service, *(" ".join([name, *["x"] * (count - 1)]) for count in counts)) == refused * len(counts)


def test_unknown_command_is_named_and_affects_no_other_reply(service: Running) -> None:
    said: list[str | list[bytes]] = ["PING", "FLUSHALL", "PING", [b"\xff\r\n" + b"x" * 100], "PING"]
    first, unknown, second, strange, third, end = talk(service, *said).split(b"\r\n")
    assert (first, second, third, end) == (b"+PONG",) * 3 + (b"",)
    assert unknown == b"-ERR unknown command 'FLUSHALL' (request.malformed)"
    assert strange == b"-ERR unknown command '\\xff\\r\\n" + b"x" * 61 + b"' (request.malformed)"


@pytest.mark.parametrize("name", ["", "a b", "-", "ä", "x" * 129, "a\r\nb", "\0"])
def test_invalid_name_is_refused_in_one_line(service: Running, name: str) -> None:
    for words in (["INCR", name], ["INCRBY", name, "2"], ["GET", name]):
        reply = talk(service, words)
        assert reply.startswith(b"-ERR ")
        assert reply.count(b"\n") == 1
        assert reply.endswith((b" (config.name)\r\n", b" (request.malformed)\r\n"))


def test_error_has_the_prefix_and_code_of_the_catalogue(service: Running) -> None:
    with redis.Redis(port=service.redis[1]) as client, pytest.raises(redis.ResponseError, match=r"\(field\.range\)$"):
        client.incrby("orders", 10**18)


# --- order and pieces -----------------------------------------------------------------------------------------------

STEPS = ["PING", "INCR {0}", "INCR {0}", "ECHO x", "INCRBY {0} 5", "NOPE", "GET none", "SELECT 0", "INCR {0}", "PING"]
SAID = (
    b"+PONG\r\n:1\r\n:2\r\n$1\r\nx\r\n:7\r\n-ERR unknown command 'NOPE' (request.malformed)\r\n$-1\r\n+OK\r\n:8\r\n"
    b"+PONG\r\n"
)


def steps(name: str) -> list[str]:
    return [step.format(name) for step in STEPS]


def test_replies_are_in_the_order_of_commands(service: Running) -> None:
    assert talk(service, *steps("order")) == SAID


def test_replies_keep_the_order_of_any_number_of_slow_commands(service: Running) -> None:
    chance = random.Random(4)
    said, expected, given = [], [], 0
    # Fewer integers than a segment has, after which a range may begin later.
    for at in range(600):
        kind = chance.choice(["INCR", "INCRBY", "ECHO", "GET", "FROB"])
        if kind == "INCR":
            given += 1
            said.append("INCR mixed")
            expected.append(b":%d\r\n" % given)
        elif kind == "INCRBY":
            count = chance.randint(1, 3)
            given += count
            said.append(f"INCRBY mixed {count}")
            expected.append(b":%d\r\n" % given)
        elif kind == "ECHO":
            said.append(f"ECHO {at:04}")
            expected.append(b"$4\r\n%04d\r\n" % at)
        elif kind == "GET":
            said.append("GET nothing")
            expected.append(b"$-1\r\n")
        else:
            said.append(f"FROB{at}")
            expected.append(b"-ERR unknown command 'FROB%d' (request.malformed)\r\n" % at)
    assert talk(service, *said) == b"".join(expected)


def test_command_in_pieces_is_reassembled(service: Running) -> None:
    whole = b"".join(command(*step.split()) for step in [*steps("bytes"), "QUIT"])
    assert say(service.redis, *(whole[at : at + 1] for at in range(len(whole)))) == SAID + b"+OK\r\n"
    for number, at in enumerate(range(1, len(whole), 7)):
        whole = b"".join(command(*step.split()) for step in [*steps(f"split{number}"), "QUIT"])
        assert say(service.redis, whole[:at], whole[at:]) == SAID + b"+OK\r\n"


def test_inline_commands_are_accepted(service: Running) -> None:
    heard = say(service.redis, b"\r\n  ping \r\nINCR typed\nincrby\ttyped 3\r\n\n", command("INCR", "typed"), b"QUIT\n")
    assert heard == b"+PONG\r\n:1\r\n:4\r\n:5\r\n+OK\r\n"


def test_quit_closes_and_ignores_everything_after_it(service: Running) -> None:
    assert say(service.redis, command("QUIT") + command("INCR", "after-quit")) == b"+OK\r\n"
    assert talk(service, "GET after-quit") == b"$-1\r\n"


def test_client_that_closes_its_sending_side_gets_its_replies(service: Running) -> None:
    for said in ("INCR half-closed", "GET none\nINCR half-closed\nGET none", "ECHO x\n" * 1000):
        with connect(service.redis) as connection:
            connection.sendall(said.encode() + b"\n")
            connection.shutdown(socket.SHUT_WR)
            assert until_closed(connection).count(b"\r\n") == said.count("INCR") + said.count("GET") + 2 * said.count(
                "ECHO"
            )


@pytest.mark.parametrize(
    ("bytes_", "why"),
    [
        (b"*x\r\n", b"invalid multibulk length"),
        (b"*-1\r\n", b"invalid multibulk length"),
        (b"*1\r\n+PING\r\n", b"expected '$'"),
        (b"*1\r\n$x\r\n", b"invalid bulk length"),
        (b"*1\r\n$-1\r\n", b"invalid bulk length"),
        (b"*1\r\n$4\r\nPINGxx", b"a bulk string does not end with CR LF"),
        (b"*1\r\n$70000\r\n", b"the command is too long"),
    ],
)
def test_protocol_error_is_named_after_earlier_replies_and_disconnects(
    service: Running, bytes_: bytes, why: bytes
) -> None:
    heard = say(service.redis, command("PING") + command("GET", "none") + bytes_)
    assert heard == b"+PONG\r\n$-1\r\n-ERR Protocol error: %s (request.malformed)\r\n" % why


@pytest.mark.parametrize(
    "first",
    [
        b"POST / HTTP/1.1\r\nHost: ids\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: ids\r\n\r\n",
        b"POST / HTTP/1.1\r\n",
        b"GET / HTTP/1.0\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"Host: ids\r\n",
        b"POST /\r\n",
        b"post\r\n",
        command("POST", "/"),
        command("Host:", "ids"),
        b"X-Mine: 1\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n",
        b"\x00\n",
        b"{\n",
    ],
)
def test_lines_of_other_protocols_are_no_commands(service: Running, first: bytes) -> None:
    for said in (first + b"INCR browsed\r\n", first, first[:1] + b"INCR browsed\r\n"):
        heard = say(service.redis, said + b"\r\nQUIT\r\n")
        assert heard.startswith(b"-ERR ")
    refused = b"-ERR Protocol error: this is the Redis protocol, not HTTP or TLS (request.malformed)\r\n"
    assert say(service.redis, first + b"INCR browsed\r\n") == refused
    assert talk(service, "GET browsed") == b"$-1\r\n"


def test_large_pipelines_are_answered_completely(service: Running) -> None:
    count = 20_000
    said = command("INCR", "large") * count + command("QUIT")
    with connect(service.redis) as connection, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(connection.sendall, said)
        heard = until_closed(connection)
        sending.result()
    assert heard == b"".join(b":%d\r\n" % n for n in range(1, count + 1)) + b"+OK\r\n"


# --- transactions -------------------------------------------------------------------------------------------------

BAD_COMMAND = b"-ERR unknown command 'NOPE' (request.malformed)\r\n"
ABORTED = b"-EXECABORT Transaction discarded because of previous errors. (request.malformed)\r\n"
NESTED = b"-ERR MULTI calls can not be nested (request.malformed)\r\n"


def lines(said: str) -> list[str | list[bytes]]:
    return [*said.split(", ")]


TRANSACTIONS: list[tuple[str, bytes]] = [
    (
        "MULTI, INCR {0}, PING, INCR {0}, EXEC, INCR {0}",
        b"+OK\r\n" + b"+QUEUED\r\n" * 3 + b"*3\r\n:1\r\n+PONG\r\n:2\r\n:3\r\n",
    ),
    ("MULTI, EXEC, PING", b"+OK\r\n*0\r\n+PONG\r\n"),
    ("MULTI, INCR {0}, DISCARD, INCR {0}", b"+OK\r\n+QUEUED\r\n+OK\r\n:1\r\n"),
    (
        "MULTI, INCR {0}, NOPE, INCR {0}, EXEC, INCR {0}",
        b"+OK\r\n+QUEUED\r\n" + BAD_COMMAND + b"+QUEUED\r\n" + ABORTED + b":1\r\n",
    ),
    ("MULTI, NOPE, DISCARD, MULTI, PING, EXEC", b"+OK\r\n" + BAD_COMMAND + b"+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n"),
    ("MULTI, MULTI, INCR {0}, EXEC, INCR {0}", b"+OK\r\n" + NESTED + b"+QUEUED\r\n" + ABORTED + b":1\r\n"),
    (
        "MULTI, INCRBY {0} 0, INCR {0}, EXEC",
        b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n-ERR count 0 is outside 1..10000 (field.range)\r\n:1\r\n",
    ),
    ("EXEC", b"-ERR EXEC without MULTI (request.malformed)\r\n"),
    ("DISCARD", b"-ERR DISCARD without MULTI (request.malformed)\r\n"),
    ("MULTI, ECHO x, GET {0}, EXEC", b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\nx\r\n$-1\r\n"),
    ("MULTI, QUIT", b"+OK\r\n"),
]


@pytest.mark.parametrize(("said", "heard"), TRANSACTIONS, ids=[row[0] for row in TRANSACTIONS])
def test_transaction_gets_the_replies_of_redis(service: Running, said: str, heard: bytes) -> None:
    number = [row[0] for row in TRANSACTIONS].index(said)
    assert talk(service, *lines(said.format(f"atomic2-{number}"))) == heard
    resp3 = heard.replace(b"$-1\r\n", b"_\r\n")
    assert talk(service, *lines(said.format(f"atomic3-{number}")), version=3) == resp3


def test_transaction_in_pieces_is_reassembled(service: Running) -> None:
    name = "atomic-pieces"
    whole = b"".join(command(*each.split()) for each in ("MULTI", f"INCR {name}", f"INCR {name}", "EXEC", "QUIT"))
    heard = say(service.redis, *(whole[at : at + 1] for at in range(len(whole))))
    assert heard == b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:2\r\n+OK\r\n"


def test_client_that_disconnects_before_exec_takes_no_integer(service: Running) -> None:
    name = "atomic-gone"
    with connect(service.redis) as connection:
        connection.sendall(command("MULTI") + command("INCR", name))
        assert exactly(connection, 14) == b"+OK\r\n+QUEUED\r\n"
    assert talk(service, f"INCR {name}") == b":1\r\n"


@pytest.mark.parametrize("word", ["WATCH orders", "UNWATCH"])
def test_optimistic_locks_are_refused(service: Running, word: str) -> None:
    assert b"there are no optimistic locks here" in talk(service, word)
    assert talk(service, "MULTI", word, "EXEC").endswith(ABORTED)


@pytest.mark.parametrize(("count", "word"), [(10_001, "x"), (30, "x" * 20_000)])
def test_transaction_above_a_limit_is_aborted(service: Running, count: int, word: str) -> None:
    heard = talk(service, "MULTI", *[f"ECHO {word}"] * count, "EXEC", "PING")
    refused = b"-ERR the transaction is longer than 10000 commands or 524288 bytes: send several (request.size)\r\n"
    assert heard.count(refused) == 1
    assert heard.endswith(ABORTED + b"+PONG\r\n")


def test_line_that_is_too_long_as_an_array_is_not_queued(service: Running) -> None:
    words = b" ".join([b"COMMAND INFO", *[b"x" * 100] * 640])
    assert len(words) < 65_536
    heard = say(service.redis, b"MULTI\n" + words + b"\nEXEC\nQUIT\n")
    assert heard == b"+OK\r\n-ERR the command is longer than 65536 bytes (request.size)\r\n" + ABORTED + b"+OK\r\n"


def test_transaction_with_large_replies_keeps_little_memory(service: Running) -> None:
    before = service.memory()
    with connect(service.redis) as connection:
        connection.sendall(command("MULTI") + command("COMMAND") * 10_000 + command("EXEC"))
        heard = 0
        row = len(talk(service, "COMMAND"))
        assert exactly(connection, 5 + 9 * 10_000 + 8).endswith(b"*10000\r\n")
        assert service.memory() - before < 2**25
        while heard < row * 10_000:
            heard += len(connection.recv(2**20))
    assert heard == row * 10_000


def test_queued_command_is_counted_once(service: Running) -> None:
    def counted() -> float:
        labels = {"interface": "redis", "operation": "get", "code": "ok"}
        return service.serving.metric("mintage_requests_total", **labels)

    talk(service, "INCR atomic-counted", "GET atomic-counted")
    before = counted()
    talk(service, "MULTI", "GET atomic-counted", "EXEC")
    assert counted() == before + 1


# --- slow stores ----------------------------------------------------------------------------------------------------


@contextmanager
def busy(home: Path) -> Iterator[None]:
    """Keep another process writing to the store."""
    other = sqlite3.connect(home / "ids.db", timeout=PATIENCE_S, isolation_level=None)
    try:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")
    finally:
        other.close()


def nothing_comes(connection: Any) -> bool:
    return not select.select([connection], [], [], 0.0)[0]


@pytest.mark.parametrize("slow", ["GET {}", "INCR {}", "INCRBY {} 5", "MINT sno"])
def test_slow_command_delays_only_its_own_connection(tmp_path: Path, slow: str) -> None:
    store = f"sqlite:///{tmp_path}/ids.db?timeout_ms=60000"
    with running(tmp_path, "--max-wait-ms", "60000", store=store) as service, connect(service.redis) as connection:
        assert talk(service, "INCR ready") == b":1\r\n"
        with busy(tmp_path):
            words = slow.format("waited").split()
            connection.sendall(command("PING") + command(*words) + command("INCR", "ready"))
            assert exactly(connection, 7) == b"+PONG\r\n"
            connection.sendall(command("ECHO", "x"))
            assert talk(service, "INCR ready", "PING") == b":2\r\n+PONG\r\n"
            assert nothing_comes(connection)
        connection.sendall(command("QUIT"))
        heard = until_closed(connection)
        assert heard.endswith(b"\r\n:3\r\n$1\r\nx\r\n+OK\r\n")
        assert not heard.startswith(b"-")


def test_slow_transaction_delays_only_its_own_connection(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/ids.db?timeout_ms=60000"
    with running(tmp_path, "--max-wait-ms", "60000", store=store) as service, connect(service.redis) as connection:
        assert talk(service, "INCR ready") == b":1\r\n"
        with busy(tmp_path):
            words = ("MULTI", "INCR ready", "INCR fresh", "INCR ready", "EXEC", "MULTI", "INCR ready")
            connection.sendall(b"".join(command(*each.split()) for each in words))
            begun = b"+OK\r\n" + b"+QUEUED\r\n" * 3 + b"*3\r\n:2\r\n"
            assert exactly(connection, len(begun)) == begun
            connection.sendall(command("EXEC"))
            assert talk(service, "INCR ready") == b":3\r\n"
        connection.sendall(command("QUIT"))
        assert until_closed(connection) == b":1\r\n:4\r\n+OK\r\n+QUEUED\r\n*1\r\n:5\r\n+OK\r\n"


def test_store_outage_is_reported_and_the_buffer_served(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/ids.db?timeout_ms=50"
    with running(tmp_path, "--max-wait-ms", "200", store=store) as service:
        until(lambda: talk(service, "INCR held") == b":1\r\n", "the store answers in time")
        with busy(tmp_path):
            reply = talk(service, "INCR empty", "INCR held", "GET empty", "MINT sno")
            first, second, third, fourth, _ = reply.split(b"\r\n")
            assert second == b":2"
            for refused in (first, third, fourth):
                assert re.fullmatch(rb"-TRYAGAIN .* \[retry_after_ms=\d+\] \(store\.unavailable\)", refused)
        assert talk(service, "INCR held") == b":3\r\n"
        until(lambda: talk(service, "INCR empty").startswith(b":"), "it recovers by itself")
        until(lambda: talk(service, "GET held", "MINT sno").count(b"-TRYAGAIN") == 0, "all of it")


def test_used_up_namespace_is_not_to_be_tried_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ids.db"
    with open_store(url) as store:
        store.create_namespace("few", maximum=1)
    with running(tmp_path, store=url) as service:
        assert talk(service, "INCR few") == b":1\r\n"
        assert re.fullmatch(rb"-ERR .* is used up: .* \(namespace\.exhausted\)\r\n", talk(service, "INCR few"))


def test_client_that_disconnects_while_waiting_is_no_error(tmp_path: Path) -> None:
    # The end of the service checks that there was none.
    store = f"sqlite:///{tmp_path}/ids.db?timeout_ms=60000"
    with running(tmp_path, "--max-wait-ms", "60000", store=store) as service:
        assert talk(service, "INCR ready") == b":1\r\n"
        with busy(tmp_path):
            for slow in ("INCR fresh", "GET none", "MINT sno"):
                with connect(service.redis) as connection:
                    connection.sendall(command("PING") + command(*slow.split()) + command("INCR", "ready"))
                    assert exactly(connection, 7) == b"+PONG\r\n"
                    # It disconnects without QUIT, like a killed client.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            service.serving.until_metric("mintage_connections", 0, interface="redis")
        until(lambda: not talk(service, "GET fresh").startswith(b"$-1"), "what was begun is done")
        assert talk(service, "INCR ready") == b":2\r\n", "nothing was done for who had gone"


# --- limits ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Return a service with small limits."""
    limits = {"max-count": 50, "max-connections": 3, "max-request-bytes": 4096, "max-namespaces": 2}
    options = [word for name, value in limits.items() for word in (f"--{name}", str(value))]
    with running(tmp_path_factory.mktemp("narrow"), *options) as service:
        yield service


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Return a service that waits for no client."""
    times = "--request-timeout-ms", "500", "--idle-timeout-ms", "2000"
    with running(tmp_path_factory.mktemp("hasty"), *times) as service:
        yield service


def test_limits_equal_those_of_the_settings(narrow: Running) -> None:
    assert talk(narrow, "INCR one", "INCRBY one 50", "INCRBY one 51", "MINT sno COUNT 51") == (
        b":1\r\n:51\r\n" + b"-ERR count 51 is outside 1..50 (field.range)\r\n" * 2
    )
    assert talk(narrow, "INCR two") == b":1\r\n"
    refused = (
        b"-NOPERM namespace 'three' is not made by its first use: there are 2, the limit is 2 (request.namespaces)"
    )
    assert talk(narrow, "INCR three", "INCR two") == refused + b"\r\n:2\r\n"
    assert say(narrow.redis, command("ECHO", "x" * 4096)).startswith(b"-ERR Protocol error: the command is too long")
    assert len(talk(narrow, "ECHO " + "x" * 4000)) == 4009


def test_connection_above_the_limit_is_told_and_closed(narrow: Running) -> None:
    connections = [connect(narrow.redis) for _ in range(3)]
    try:
        for connection in connections:
            connection.sendall(command("PING"))
            assert exactly(connection, 7) == b"+PONG\r\n"
        assert say(narrow.redis, b"") == b"-ERR max number of clients reached (request.busy)\r\n"
        connections.pop().close()
        until(
            lambda: say(narrow.redis, command("PING") + command("QUIT")) == b"+PONG\r\n+OK\r\n", "there is room again"
        )
    finally:
        for connection in connections:
            connection.close()


def test_silent_connections_block_nobody(tmp_path: Path) -> None:
    limits = ("--max-connections", "3", "--request-timeout-ms", "1000", "--idle-timeout-ms", "0")
    with running(tmp_path, *limits) as service:
        for address, said, heard in (
            (service.redis, command("PING") + command("QUIT"), b"+PONG\r\n+OK\r\n"),
            (service.http, head("GET /healthz", "Connection: close"), b"HTTP/1.1 200 "),
        ):
            silent = [connect(address) for _ in range(3)]
            try:
                for _ in range(3):
                    until(lambda: say(address, said).startswith(heard), "one gave way")  # noqa: B023 - called at once
            finally:
                for each in silent:
                    each.close()


def test_silent_or_slow_client_is_disconnected(hasty: Running) -> None:
    with connect(hasty.redis) as silent, connect(hasty.redis) as slow:
        silent.sendall(command("PING"))
        slow.sendall(command("PING") + command("INCR", "one")[:-1])
        assert (until_closed(slow), until_closed(silent)) == (b"+PONG\r\n", b"+PONG\r\n")


def test_client_that_does_not_read_is_not_read_and_disconnected(hasty: Running) -> None:
    before = hasty.memory()
    said = 0
    with connect(hasty.redis) as connection, suppress(ConnectionError):
        while said < 2**25:
            said += connection.send(command("COMMAND") * 1000)
    assert said < 2**25
    assert hasty.memory() - before < 2**25


class Transport(asyncio.Transport):
    """A transport that records writes, and reports a full buffer as a test says."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.written = b""
        self.room = room
        self.protocol: RespProtocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data
        self.room -= 1
        if self.room == 0:
            self.protocol.pause_writing()

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Ignore the limits: the test decides about room."""


def heard_by(service: Service, said: bytes, room: int = 10_000) -> Transport:
    """Return a connection that has just received these bytes at once."""
    transport = Transport(room)
    transport.protocol = RespProtocol(service)
    transport.protocol.connection_made(transport)
    transport.protocol.data_received(said)
    return transport


async def turns(room: int) -> AsyncIterator[Transport]:
    """Count the turns of other tasks while a connection answers 1000 commands; at most 200 of them."""
    service = Service(Settings(max_wait_ms=60_000), MemoryStore())
    transport = heard_by(service, b"SELECT 0\n" * 1000, room)
    for _ in range(200):
        yield transport
        await asyncio.sleep(0)
    await service.close()


def test_client_with_many_commands_lets_others_take_turns() -> None:
    async def main() -> list[int]:
        return [transport.written.count(b"+OK\r\n") async for transport in turns(room=10_000)]

    replies = asyncio.run(main())
    assert replies[-1] == 1000
    assert max(after - before for before, after in pairwise([0, *replies])) <= 100


def test_client_that_does_not_read_is_answered_once_it_does() -> None:
    async def main() -> list[int]:
        replies: list[int] = []
        async for transport in turns(room=5):
            replies.append(transport.written.count(b"+OK\r\n"))
            if len(replies) == 100:
                transport.protocol.resume_writing()
        return replies

    replies = asyncio.run(main())
    assert set(replies[:100]) == {5}
    assert replies[-1] == 1000


class Faulty(MemoryStore):
    """A store that fails unexpectedly."""

    def get_namespace(self, namespace: str) -> NamespaceRecord | None:
        raise KeyError("inner secrets")


def test_internal_error_is_reported_and_affects_no_other_reply() -> None:
    async def main() -> bytes:
        service = Service(Settings(max_wait_ms=60_000), Faulty())
        transport = heard_by(service, b"PING\nGET orders\nPING\n")
        async with asyncio.timeout(PATIENCE_S):
            while transport.written.count(b"\n") < 3:
                await asyncio.sleep(0.001)
        await service.close()
        return transport.written

    failed = b"-ERR the service has a fault; its log tells more (service.failed)\r\n"
    with structlog.testing.capture_logs() as logged:
        assert asyncio.run(main()) == b"+PONG\r\n" + failed + b"+PONG\r\n"
    (fault,) = [event for event in logged if event["event"] == "failed"]
    assert isinstance(fault["exc_info"], KeyError)


# --- several workers ------------------------------------------------------------------------------------------------


def test_workers_share_the_port_and_counts_but_no_integer(tmp_path: Path) -> None:
    with running(tmp_path, "--workers", "3") as service:

        def some(_: int) -> list[int]:
            replies = talk(service, *["INCR shared"] * 50, "INCRBY shared 7", "NOPE").split(b"\r\n")
            *singles, last = (int(reply[1:]) for reply in replies[:51])
            return [*singles, *range(last - 6, last + 1)]

        with ThreadPoolExecutor(6) as threads:
            given = [each for part in threads.map(some, range(60)) for each in part]
        assert len(given) == len(set(given)) == 60 * 57
        assert min(given) == 1
        assert len(service.serving.workers()) == 3
        until_metric = service.serving.until_metric
        until_metric("mintage_integers_total", len(given), namespace="shared")
        until_metric("mintage_requests_total", 3000, interface="redis", operation="incr", code="ok")
        until_metric("mintage_requests_total", 60, interface="redis", operation="incrby", code="ok")
        until_metric("mintage_requests_total", 60, interface="redis", operation="other", code="request.malformed")


# --- keys -----------------------------------------------------------------------------------------------------------

SHOP, TELLER, ADMIN, SLOW = (new_key() for _ in range(4))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Return a service with keys, and rates."""
    toml = "".join(
        [
            "auto_create = true\nburst = 2\nrates = { paced = 1 }\n",
            key_toml("shop", SHOP, {"shop*": ["next"], "sno": ["mint"]}),
            key_toml("teller", TELLER, {"*": ["describe"]}),
            key_toml("admin", ADMIN, {"*": ["admin"]}),
            key_toml("slow", SLOW, {"*": ["next"]}, "rate = 1\nburst = 3"),
        ]
    )
    with running(tmp_path_factory.mktemp("kept"), toml=toml) as service:
        yield service


NOAUTH = b"-NOAUTH Authentication required: send AUTH with a key (request.key)\r\n"


@pytest.mark.parametrize("name", sorted({name.decode() for name in COMMANDS} - {"AUTH", "HELLO", "QUIT", "PING"}))
def test_without_a_key_a_command_is_refused(kept: Running, name: str) -> None:
    known = COMMANDS[name.encode()]
    assert talk(kept, [name, *["0"] * (known.least - 1)], "PING") == NOAUTH + b"+PONG\r\n"


def test_auth_with_a_key_is_accepted(kept: Running) -> None:
    assert talk(kept, f"AUTH {SHOP}", "INCR shop.a", "INCR shop.a") == b"+OK\r\n:1\r\n:2\r\n"
    assert talk(kept, f"AUTH anybody {SHOP}", "INCR shop.a") == b"+OK\r\n:3\r\n"


def test_hello_with_a_key_is_accepted(kept: Running) -> None:
    for options in (["AUTH", "default", SHOP, "SETNAME", "me"], ["SETNAME", "me", "AUTH", "default", SHOP]):
        said = [command("HELLO", 3, *options), command("CLIENT", "GETNAME"), command("QUIT")]
        assert after_hello(say(kept.redis, *said)) == b"$2\r\nme\r\n"


def test_hello_without_a_key_says_that_it_needs_one(kept: Running) -> None:
    for said in ("HELLO", "HELLO 3"):
        assert talk(kept, said).startswith(b"-NOAUTH ")


@pytest.mark.parametrize("words", ["AUTH {}", "AUTH default {}", "HELLO 3 AUTH default {}"])
def test_wrong_key_is_refused_without_being_repeated(kept: Running, words: str) -> None:
    assert talk(kept, words.format("\0")).startswith(b"-WRONGPASS ")
    reply = talk(kept, words.format("mint_wrong"))
    assert reply.startswith(b"-WRONGPASS ")
    assert reply.endswith(b" (request.key)\r\n")
    assert b"mint_wrong" not in reply
    assert "mint_wrong" not in kept.logged()


def test_failed_auth_removes_the_rights_of_the_previous_key(kept: Running) -> None:
    replies = talk(kept, f"AUTH {SHOP}", "INCR shop.b", "INCR shop.b", "AUTH mint_wrong", "INCR shop.b").split(b"\r\n")
    assert replies[:3] == [b"+OK", b":1", b":2"]
    assert replies[3].startswith(b"-WRONGPASS")
    assert replies[4].startswith(b"-NOAUTH")


def test_refused_hello_changes_nothing(kept: Running) -> None:
    said = [f"HELLO 3 AUTH default {SHOP} SETNAME", "GET shop.none", "HELLO 3 SETNAME me AUTH"]
    replies = talk(kept, *said, f"AUTH {SHOP}", "CLIENT GETNAME").split(b"\r\n")
    assert [reply[:7] for reply in replies] == [b"-ERR HE", b"-NOAUTH", b"-ERR HE", b"+OK", b"$-1", b""]


def test_key_is_limited_to_its_names_even_for_buffered_integers(kept: Running) -> None:
    talk(kept, f"AUTH {ADMIN}", *["INCR other"] * 3)
    refused = b"-NOPERM the key 'shop' has no right 'next' for 'other' (request.rights)\r\n"
    assert talk(kept, f"AUTH {SHOP}", "INCR other", "INCRBY other 2", "INCR other") == b"+OK\r\n" + refused * 3
    refused = b"-NOPERM the key 'shop' has no right 'describe' for 'shop.a' (request.rights)\r\n"
    assert talk(kept, f"AUTH {SHOP}", "GET shop.a") == b"+OK\r\n" + refused


def test_rights_of_one_key_do_not_pass_to_the_next(kept: Running) -> None:
    said = [f"AUTH {SHOP}", "INCR shop.c", "INCR shop.c", f"AUTH {TELLER}", "INCR shop.c", "INCRBY shop.c 1"]
    replies = talk(kept, *said).split(b"\r\n")
    assert replies[:4] == [b"+OK", b":1", b":2", b"+OK"]
    assert [reply[:8] for reply in replies[4:6]] == [b"-NOPERM "] * 2


def test_right_to_one_scheme_is_no_right_to_others(kept: Running) -> None:
    replies = talk(kept, f"AUTH {SHOP}", "MINT sno", "MINT snowflake").split(b"\r\n")
    assert replies[1].startswith(b"$")
    assert replies[3].startswith(b"-NOPERM ")


def test_info_shows_only_what_the_key_allows(kept: Running) -> None:
    talk(kept, f"AUTH {ADMIN}", "INCR shown")
    assert b"held_shown:" in talk(kept, f"AUTH {TELLER}", "INFO")
    assert b"held_shown:" not in talk(kept, f"AUTH {SHOP}", "INFO")


def assert_rate(replies: list[bytes], burst: int, began_s: float) -> None:
    """Assert that no more commands succeeded than the burst and one a second, and how others were refused."""
    refused = [reply for reply in replies if not reply.startswith(b":")]
    assert len(replies) - len(refused) <= burst + (time.monotonic() - began_s)
    pattern = rb"-TRYAGAIN .* has more requests than its rate allows.* \[retry_after_ms=(\d+)\] \(request\.rate\)"
    for reply in refused:
        found = re.fullmatch(pattern, reply)
        assert found, reply
        assert 0 < int(found[1]) <= 1000


def test_rate_of_a_key_applies_to_every_command(kept: Running) -> None:
    talk(kept, f"AUTH {ADMIN}", "INCR fast", "INCR faster")
    began_s = time.monotonic()
    said = [f"AUTH {SLOW}", "INCR fast", "INCR fast", "INCRBY faster 3", *["INCR fast", "INCR faster"] * 3]
    replies = talk(kept, *said).split(b"\r\n")[1:-1]
    assert all(reply.startswith(b":") for reply in replies[:3])
    replies += talk(kept, *said).split(b"\r\n")[1:-1]  # the rate is the key's, not the connection's
    assert_rate(replies, 3, began_s)


def test_rate_of_a_namespace_applies_to_every_caller(kept: Running) -> None:
    talk(kept, f"AUTH {ADMIN}", "INCR unpaced")
    began_s = time.monotonic()
    said = ["INCR paced", "INCR unpaced"] * 6
    replies = talk(kept, f"AUTH {ADMIN}", *said).split(b"\r\n")[1:-1]
    assert all(reply.startswith(b":") for reply in replies[1::2])
    assert all(reply.startswith(b":") for reply in replies[:4:2])
    assert_rate(replies[::2], 2, began_s)


# --- real clients ---------------------------------------------------------------------------------------------------


ONCE = Retry(NoBackoff(), 0)


def test_redis_cli_works_unchanged(service: Running, kept: Running) -> None:
    cli = installed("redis-cli", must=must_run("redis"))
    port = str(service.redis[1])
    assert run(cli, "-p", port, "INCR", "cli") == "1\n"
    assert run(cli, "-3", "-p", port, "INCRBY", "cli", "9") == "10\n"
    assert run(cli, "-p", port, said="INCR cli\nPING\nGET never\nMINT sno COUNT 2\n").count("\n") == 5
    docs = '{"incr":{"summary":"INCR namespace","group":"generic"}}\n'
    assert run(cli, "-e", "--json", "-3", "-p", port, "COMMAND", "DOCS", "INCR") == docs
    assert run(cli, "-p", str(kept.redis[1]), "INCR", "shop.cli", REDISCLI_AUTH=SHOP) == "1\n"
    assert "NOPERM" in run(cli, "-p", str(kept.redis[1]), "INCR", "other", REDISCLI_AUTH=SHOP)
    told = run(cli, "-p", port, "--pipe", said=command("INCR", "piped") * 5000)
    assert "errors: 0, replies: 5000" in told


@pytest.mark.parametrize("pipeline", ["1", "16"])
def test_redis_benchmark_sees_no_error(service: Running, pipeline: str) -> None:
    benchmark = installed("redis-benchmark", must=must_run("redis"))
    port = str(service.redis[1])
    common = (benchmark, "-p", port, "-c", "10", "-n", "4000", "-P", pipeline, "-q")
    before = int(talk(service, "INCR benchmark")[1:])
    for words in (("INCR", "benchmark"), ("-t", "ping,incr")):
        told = run(*common, *words)
        assert "requests per second" in told
        assert "rror" not in told
    # The last pipeline of each connection may be complete.
    assert 4001 <= int(talk(service, "INCR benchmark")[1:]) - before <= 4001 + 10 * int(pipeline)


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_works_unchanged(service: Running, kept: Running, protocol: int) -> None:
    name = f"py{protocol}"
    with redis.Redis(port=service.redis[1], protocol=protocol, client_name="tests", decode_responses=True) as client:
        assert client.ping()
        assert (client.incr(name), client.incr(name, 9), client.incrby(name, 2)) == (1, 10, 12)
        pipeline = client.pipeline(transaction=False)
        for _ in range(1000):
            pipeline.incr(name)
        assert pipeline.execute() == list(range(13, 1013))
        pipeline.incr(name).echo("x").set(name, "1").incr(name)
        first, echoed, refused, second = pipeline.execute(raise_on_error=False)
        assert (first, echoed, second) == (1013, "x", 1014)
        assert isinstance(refused, redis.ResponseError)
        transaction = client.pipeline()
        for _ in range(1000):
            transaction.incr(name)
        assert transaction.execute() == list(range(1015, 2015))
        transaction.incr(name).incrby(name, 0).echo("x")
        first, refused, echoed = transaction.execute(raise_on_error=False)
        assert (first, echoed) == (2015, "x")
        assert isinstance(refused, redis.ResponseError)
        with pytest.raises(redis.ResponseError, match="unknown command 'SET'"):
            transaction.incr(name).set(name, "1").execute()
        with pytest.raises(redis.ResponseError, match="no optimistic locks"):
            transaction.watch(name)
        transaction.reset()
        assert client.incr(name) == 2016
        assert client.get(f"{name}-none") is None
        assert int(str(client.get(name))) >= 1014
    with redis.Redis(port=kept.redis[1], protocol=protocol, username="shop", password=SHOP) as client:
        assert client.incr(f"shop.{name}") == 1
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.incr("other")
        allowed, refused = client.pipeline().incr(f"shop.{name}").incr("other").execute(raise_on_error=False)
        assert allowed == 2
        assert isinstance(refused, redis.exceptions.NoPermissionError)
    with (
        redis.Redis(port=kept.redis[1], protocol=protocol, password="mint_wrong", retry=ONCE) as client,
        pytest.raises(redis.exceptions.AuthenticationError),
    ):
        client.ping()


def test_everything_works_over_tls(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "ids")
    with running(tmp_path, "--tls-cert", cert, "--tls-key", key) as service:
        cli = installed("redis-cli", must=must_run("redis"))
        assert run(cli, "--tls", "--cacert", cert, "-p", str(service.redis[1]), "INCR", "tls") == "1\n"
        with redis.Redis(*service.redis, ssl=True, ssl_ca_certs=cert) as client:
            pipeline = client.pipeline(transaction=False)
            for _ in range(5000):
                pipeline.incr("tls").echo("x" * 100)
            assert pipeline.execute()[::2] == list(range(2, 5002))
        assert b"PONG" not in say(service.redis, command("PING"))


def test_pool_of_connections_gives_no_integer_twice(service: Running) -> None:
    client = redis.Redis(port=service.redis[1], max_connections=8)

    def some(_: int) -> list[int]:
        return [int(client.incr("pooled")) for _ in range(100)]

    with ThreadPoolExecutor(8) as threads:
        given = [each for part in threads.map(some, range(16)) for each in part]
    client.close()
    assert sorted(given) == list(range(1, 1601))


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_asyncio_works_unchanged(service: Running, protocol: int) -> None:
    async def main() -> list[int]:
        async with redis.asyncio.Redis(port=service.redis[1], protocol=protocol, max_connections=20) as client:
            return [int(each) for each in await asyncio.gather(*(client.incr(f"aio{protocol}") for _ in range(20)))]

    assert sorted(asyncio.run(main())) == list(range(1, 21))


@pytest.mark.parametrize("protocol", ["2", "3"])
def test_node_client_works_unchanged(kept: Running, protocol: str) -> None:
    told = run(*words_of("node-redis"), str(kept.redis[1]), protocol, f"shop.node{protocol}", ADMIN, said="\n")
    got, last = (json.loads(line) for line in told.splitlines())
    check(got, 1)
    assert got["pipeline"] == [1012, "PONG", 1013]
    assert last == {"again": 1016}


@pytest.mark.parametrize("protocol", ["2", "3"])
def test_go_client_works_unchanged(kept: Running, protocol: str) -> None:
    told = run(*words_of("go-redis"), str(kept.redis[1]), protocol, f"shop.go{protocol}", ADMIN, said="\n")
    got, last = (json.loads(line) for line in told.splitlines())
    check(got, 1)
    assert last == {"again": 1014}


# --- the page -------------------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "redis.md").read_text(encoding="utf-8")


def test_page_lists_exactly_the_commands() -> None:
    assert re.findall(r"^### `(.*)`$", PAGE, re.MULTILINE) == [each.usage for each in COMMANDS.values()]


def shape(replies: str) -> str:
    """Return replies without IDs and their lengths, which differ."""
    return re.sub(r"\$\d+\n(\d{15,19}|[2-9a-x]{16})\n", "<ID>", replies)


def test_page_shows_the_actual_replies(tmp_path: Path) -> None:
    blocks = re.findall(r"```text\n(> .*?)```", PAGE, re.DOTALL)
    names = set()
    with running(tmp_path) as service:
        for block in blocks:
            said = re.findall(r"^> (.*)\n", block, re.MULTILINE)
            names |= {words.split()[0].encode() for words in said}
            with connect(service.redis) as connection:
                connection.sendall(b"".join(command(*words.split()) for words in said))
                connection.shutdown(socket.SHUT_WR)
                heard = until_closed(connection).decode().replace("\r\n", "\n")
            assert shape(heard) == shape(re.sub(r"(?m)^> .*\n", "", block))
    assert names >= set(COMMANDS) - {b"INFO"}


def test_page_lists_the_prefix_of_every_error() -> None:
    section = PAGE.partition("\n## Errors\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([A-Z]+)` \| (.*?) \|", section, re.MULTILINE)
    told = {prefix: set(re.findall(r"`([a-z]+\.[a-z_]+)`", codes)) for prefix, codes in rows}
    by_prefix: dict[str, set[str]] = {}
    for code, entry in CATALOGUE.items():
        by_prefix.setdefault(entry.resp, set()).add(code)
    assert told.keys() == by_prefix.keys() | {"EXECABORT", "NOPROTO", "WRONGPASS"}
    for prefix in by_prefix.keys() - {"ERR"}:
        assert told[prefix] == by_prefix[prefix]
    assert set(re.findall(r"`((?:config|field|lease|clock|store|sequence|request)\.[a-z_]+)`", PAGE)) <= set(CATALOGUE)


def test_page_names_the_tested_clients() -> None:
    def version(file: str, pattern: str) -> str:
        found = re.search(pattern, (CLIENTS / file).read_text(encoding="utf-8"))
        assert found
        return found[1]

    go = version("go/go.mod", r"go-redis/v9 v(\S+)")
    node = version("node/package.json", r'"redis": "(.*)"')
    assert f"redis-py {redis.__version__} (blocking and asyncio), go-redis {go}, node-redis {node}." in PAGE
    others = {
        "valkey-py": version("../../deep/requirements.txt", r"valkey==(.*)"),
        "rueidis": version("rueidis/go.mod", r"rueidis v(\S+)"),
        "ioredis": version("ioredis/package.json", r'"ioredis": "(.*)"'),
        **{
            name: version("java/pom.xml", rf"<artifactId>{artifact}</artifactId>\s*<version>([\d.]*\d)")
            for name, artifact in (("Jedis", "jedis"), ("Lettuce", "lettuce-core"), ("Redisson", "redisson"))
        },
        "redis-rs": version("rust/Cargo.toml", r'redis = "=(.*)"'),
    }
    assert ", ".join(f"{name} {each}" for name, each in others.items()) in re.sub(r"\s+", " ", PAGE)
