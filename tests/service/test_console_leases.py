"""Tests of the console's pages over HTTP: pools, node numbers, and who minted an ID."""

from __future__ import annotations

import csv
import html
import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest

from mintage import snowflake, ulid
from mintage.rules import MAX_NODES, PoolRecord
from mintage.server.config.keys import new_key
from mintage.store import Store, open_store
from mintage.store.sqlite.store import SqliteStore
from tests.helpers import web
from tests.service.running import Running, key_toml, running

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = "<script>alert(1)</script>\u202e&\"'"
"""A host that is no name of a host."""


class Console(NamedTuple):
    service: Running
    store: Store

    def get(self, path: str, **query: Any) -> httpx.Response:
        return web.get(f"{self.service.url}/console/{path}", params=query or None)

    def read(self, path: str, **query: Any) -> str:
        """Return the text of a page, without its tags, in one line."""
        answer = self.get(path, **query)
        assert answer.status_code == 200, answer.text
        return text_of(answer)

    def rows(self, path: str, **query: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(path, format="json", **query).json()
        return found


def text_of(answer: httpx.Response) -> str:
    """Return the text of a page, without its tags, in one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


def acquire(store: Store, host: str, node: int | None = None, pool: str = "sno", **how: Any) -> Any:
    nodes = range(65_536) if node is None else range(node, node + 1)
    holder = f"{host}:4711:1732240000:1:0.1.0"
    how = {"layout": "sno/1", "span_ms": 30_000, "now_ms": store.now_ms(), **how}
    return store.acquire(pool, nodes=nodes, holder=holder, **how)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    home = tmp_path_factory.mktemp("leases")
    with open_store(f"sqlite:///{home}/ids.db") as store, running(home) as service:
        store.create_pool("sno", layout="sno/1", span_ms=86_400_000)
        acquire(store, "web-1", 17, span_ms=86_400_000)
        acquire(store, HOSTILE, 18, span_ms=86_400_000)
        store.revoke("sno", acquire(store, "web-2", 300, span_ms=86_400_000).node)
        store.release(acquire(store, "gone", 400), used_until_ms=store.now_ms())
        acquire(store, "far", MAX_NODES - 1, "locality", layout="locality")
        record = store.create_pool("restored", layout="ulid")
        assert isinstance(store, SqliteStore)
        with store._begin() as transaction:
            transaction.get(PoolRecord, "restored")
            transaction.put(replace(record, identity="another server"))
        yield Console(service, store)


# --- pools --------------------------------------------------------------------------------------------------------


def test_pool_of_an_unknown_layout_counts_no_numbers(console: Console) -> None:
    acquire(console.store, "web-1", 40, "later", layout="of a later version")
    page = console.read("pools/later")
    assert "Numbers not known" in page
    assert "Held now 1 Span" in page


def test_page_of_a_pool_shows_its_span_exactly(console: Console) -> None:
    console.store.create_pool("long", layout="ulid", span_ms=119_000, history_ms=129_600_000)
    page = console.read("pools/long")
    assert "Span 119 seconds: " in page
    assert "History of 36 hours, since " in page


def test_pools_are_listed_with_their_share_in_use(console: Console) -> None:
    found = {each["pool"]: each for each in console.rows("pools")}
    assert found["sno"]["nodes"] == 65_536
    assert (found["sno"]["held"], found["sno"]["granted"]) == (3, 4)
    assert found["sno"]["share"] == pytest.approx(300 / 65_536, abs=0.001)
    assert 'href="/console/pools/sno"' in console.get("pools").text


def test_lists_and_health_name_a_pool_in_quarantine(console: Console) -> None:
    found = {each["pool"]: each for each in console.rows("pools")}
    assert found["sno"]["quarantine"] is None
    assert found["restored"]["quarantine"] is not None
    assert "in quarantine, and grant no node number before its end: restored" in console.read("")


def test_pool_names_the_live_holders_and_their_fences(console: Console) -> None:
    [held] = [each for each in console.rows("pools/sno") if each["node"] == 17]
    assert (held["host"], held["process"], held["version"], held["state"]) == ("web-1", 4711, "0.1.0", "held")
    assert held["started"] == "2024-11-22T01:46:40.000Z"
    assert held["granted"] < held["fence"]


@pytest.mark.parametrize(
    ("state", "nodes"),
    [("live", [17, 18, 300]), ("all", [17, 18, 300, 400]), ("held", [17, 18]), ("revoked", [300]), ("cooling", [400])],
)
def test_numbers_are_chosen_by_their_state(console: Console, state: str, nodes: list[int]) -> None:
    assert [each["node"] for each in console.rows("pools/sno", state=state)] == nodes


def test_search_by_host_finds_and_frames_its_number(console: Console) -> None:
    page = console.get("pools/sno", q="web-2")
    assert "web-2" in page.text
    assert "web-1" not in page.text
    assert page.text.count(' class="found"') == 1
    assert [each["node"] for each in console.rows("pools/sno", q="web-2")] == [300]


def test_search_by_number_leads_to_its_page(console: Console) -> None:
    assert console.get("pools/sno", node=17).headers["location"] == "/console/pools/sno/17"


def test_each_cell_of_the_map_leads_closer(console: Console) -> None:
    page = console.get("pools/sno").text
    links = re.findall(r'<a href="([^"]+)"[^>]*><title>([^<]+)', page)
    assert len(links) == 1024
    address, title = links[300 // 64]
    assert title == "256 to 319: 1 revoked, 63 free"
    closer = web.get(console.service.url + html.unescape(address)).text
    assert '<a href="/console/pools/sno/300"><title>300: revoked</title>' in closer
    assert "Numbers 256 to 319" in " ".join(closer.split())


def test_table_of_a_part_of_a_pool_has_its_numbers_only(console: Console) -> None:
    assert [each["node"] for each in console.rows("pools/sno", first=18, last=299)] == [18]


def test_pool_of_2_44_numbers_shows_those_in_use(console: Console) -> None:
    page = console.get("pools/locality").text
    assert f'<a href="/console/pools/locality/{MAX_NODES - 1}"><title>' in page
    assert page.count("<title>17,592,186,044,415: held") == 1


def test_hostile_holder_is_shown_as_text(console: Console) -> None:
    for path in ("pools/sno", "pools/sno/18"):
        page = console.get(path).text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "<script>alert" not in page
        assert "\u202e" not in page
    rows = list(csv.DictReader(io.StringIO(console.get("pools/sno", format="csv").text)))
    assert [each["host"] for each in rows] == ["web-1", HOSTILE, "web-2"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("pools/none", 404),
        ("pools/none/1", 404),
        ("pools/sno/65536", 404),
        ("pools/sno/-1", 404),
        ("pools/sno/1e3", 404),
        ("pools/sno/%D9%A1", 404),
        ("pools/sno/99999999999999999999", 404),
        ("pools/%3Cscript%3E", 400),
        ("pools/sno?first=9&last=3", 400),
        ("pools/sno?first=-1", 400),
        ("pools/sno?first=65536", 400),
        ("pools/sno?last=17592186044416", 400),
        ("pools/sno?state=nothing", 400),
        ("pools/sno?node=x", 400),
        ("pools/sno/1?from=5&to=5", 400),
        ("pools/sno/1?at=9007199254740992", 400),
        ("pools/sno/1?before=x", 400),
    ],
)
def test_malformed_address_is_one_clear_error(console: Console, path: str, status: int) -> None:
    answer = console.get(path)
    assert answer.status_code == status, answer.text
    assert "<script>" not in answer.text


@pytest.mark.parametrize("query", ["first=65535", "first=65000&last=80000", "first=3&last=5"])
def test_map_of_any_range_is_drawn(console: Console, query: str) -> None:
    assert console.get(f"pools/sno?{query}").status_code == 200


# --- a node number ------------------------------------------------------------------------------------------------


def test_windows_of_a_number_are_drawn_along_time(console: Console) -> None:
    now_ms = console.store.now_ms()
    for at, host in enumerate(("first", "second", "first")):
        lease = acquire(console.store, host, 1000, now_ms=now_ms + 1000 * at)
        console.store.release(lease, used_until_ms=now_ms + 1000 * at + 500)
    page = console.get("pools/sno/1000").text
    windows = re.findall(r'class="shade-\d"><title>(\w+), (\w+):', page)
    assert windows == [("A", "first"), ("B", "second"), ("A", "first")]
    assert "now " in page
    rows = console.rows("pools/sno/1000")
    assert [(each["holder"], each["host"]) for each in rows] == [("A", "first"), ("B", "second"), ("A", "first")]
    assert rows[0]["floor"] == rows[1]["fence"]


def test_page_of_a_held_number_names_its_holder_and_fence(console: Console) -> None:
    page = console.read("pools/sno/17")
    assert "held : process 4711 on web-1, started 2024-11-22 01:46:40 UTC, mintage 0.1.0 holds it." in page
    assert re.search(r"fence \d\d:\d\d:\d\d, in 23 hours", page)


def test_page_of_a_number_never_granted_says_so(console: Console) -> None:
    assert "It was never granted." in console.read("pools/sno/60000")


def test_picture_of_older_windows_draws_no_later_time_as_free(console: Console) -> None:
    for _ in range(2):
        store = console.store
        floor_ms = store.now_ms()
        store.release(acquire(store, "gone", 500), used_until_ms=floor_ms + 1)
    record = store.get_lease("sno", 500)
    assert record is not None
    page = console.get("pools/sno/500", before=record.floor_ms - 1, to=record.until_ms + 10**6).text
    assert "not listed from" in page
    assert "<title>free from" not in page


@pytest.mark.parametrize("query", ["from=0&to=9007199254740991", "from=0&to=1", "at=1", "before=0", "from=1"])
def test_strip_of_any_time_is_drawn(console: Console, query: str) -> None:
    assert console.get(f"pools/sno/17?{query}").status_code == 200


# --- who ----------------------------------------------------------------------------------------------------------


def test_id_leads_to_the_process_that_minted_it(console: Console) -> None:
    with ulid.Generator(store=console.store) as generator:
        minted = generator.new()
        page = console.get("who", id=str(minted))
        text = text_of(page)
        assert re.search(r"held : .*process \d+ on \S+, started .* node 0 of pool ulid", text)
        [link] = {html.unescape(each) for each in re.findall(r'href="(/console/pools/ulid/0\?at=\d+)"', page.text)}
        assert link.endswith(f"at={minted.timestamp_ms}")
        assert "the ID " in web.get(console.service.url + link).text


def test_id_from_before_1970_leads_to_its_node_number(console: Console) -> None:
    layout = "snowflake time:41 node:10 sequence:12 @-1735689600000 1ms"
    console.store.create_pool("old", layout=layout)
    page = console.get("who", id=str(5 << 22))
    links = set(re.findall(r'href="(/console/pools/old/[^"]*)"', page.text))
    assert [web.get(console.service.url + each).status_code for each in links] == [200]


def test_each_reading_has_its_bits_and_the_reason(console: Console) -> None:
    page = console.get("who", id="454947766275222906")
    assert page.text.count('class="bits"') >= 3
    assert 'aria-label="Bits of the ID as snowflake twitter"' in page.text
    assert "An integer of this size" in text_of(page)


def test_two_possible_answers_say_why(console: Console) -> None:
    for name in ("default", "twitter"):
        layout = {"default": snowflake.DEFAULT, "twitter": snowflake.TWITTER}[name]
        with snowflake.Generator(store=console.store, layout=layout) as generator:
            minted = generator.new()
    page = console.read("who", id=str(minted))
    assert "possible answers, as the ID can be read in several ways" in page
    assert "node 0 of pool snowflake" in page


@pytest.mark.parametrize(
    "id", ["zz", HOSTILE, "x" * 201, "orders 17 18", "../x 1", "orders 99999999999999999999", "\ud7ff"]
)
def test_text_that_is_no_id_is_shown_as_text(console: Console, id: str) -> None:
    page = console.get("who", id=id)
    assert page.status_code == 200
    assert 'role="alert"' in page.text
    assert "<script>alert" not in page.text
    assert "\u202e" not in text_of(page)


def test_integer_leads_to_the_process_that_reserved_it(console: Console) -> None:
    console.store.reserve("who.orders", 10, holder="web-1:4711:1700000000:1:0.1.0")
    text = text_of(console.get("who", id="who.orders 7"))
    assert re.search(r"held : Reserved by process 4711 on web-1, started .*, within 1 to 10\.", text)
    assert "has no namespace" in text_of(console.get("who", id="who.nothing 7"))


def test_page_without_an_id_asks_for_one(console: Console) -> None:
    page = console.get("who")
    assert 'name="id"' in page.text
    assert 'role="alert"' not in page.text


# --- rights -------------------------------------------------------------------------------------------------------


def test_key_reads_the_pools_of_its_rights_only(tmp_path_factory: pytest.TempPathFactory) -> None:
    key = new_key()
    home = tmp_path_factory.mktemp("keys")
    toml = key_toml("sno", key, {"sno": ["describe"]})
    with open_store(f"sqlite:///{home}/ids.db") as store, running(home, toml=toml) as service:
        acquire(store, "web-1", 1)
        with httpx.Client(base_url=service.url, timeout=60, headers={"Authorization": f"Bearer {key}"}) as client:
            for path, status in {
                "pools/sno": 200,
                "pools/sno/1": 200,
                "choose": 200,
                "pools": 403,
                "pools/x": 403,
            }.items():
                assert client.get(f"/console/{path}").status_code == status, path
            page = client.get("/console/who", params={"id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
            assert page.status_code == 200
            assert "request.rights" in page.text
            assert "Bits of the ID as ulid" in page.text
