"""Tests of who minted an ID: the holder of its node number at its time, or why nobody can say."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage import cuid2, locality, nanoid, sno, snowflake, typeid, ulid, uuid
from mintage.errors import ParseError
from mintage.formats.catalogue import LAYOUTS, write_layout
from mintage.formats.kinds import KINDS
from mintage.lease import Holder, registry
from mintage.process.holder import holder
from mintage.rules import HISTORY_MS, NodeRecord
from mintage.store import Forwarding, open_store
from mintage.store.copying import copy_pools
from mintage.store.memory import MemoryStore
from mintage.testing import ManualClock
from mintage.who import Finding, who, who_reserved
from tests.helpers.outcomes import code_of
from tests.helpers.processes import in_child

if TYPE_CHECKING:
    from pathlib import Path

    from mintage.rules import Lease, Segment
    from mintage.store import Store

MS = 10**6
NOW_MS = 1_700_000_000_001
TEN_MS = snowflake.Layout("node:3 time:40 sequence:6", epoch_ms=1_600_000_000_007, unit_ms=10)

Make = Any
"""A function that returns a generator, of ``store``, ``nodes``, ``pool``, ``span_ms`` and ``clock``."""


def _of(module: Any, **own: Any) -> Make:
    return lambda **options: module.Generator(**own, **options)


SCHEMES: dict[str, Make] = {
    **{name: _of(kind.module) for name, kind in KINDS.items() if not kind.is_text and name != "uuid"},
    **{f"uuid v{version}": _of(uuid, version=version) for version in (1, 6, 7)},
    "sno in shards": _of(sno, shards=8),
    "locality, sequential": _of(locality, mode="sequential"),
    **{name: _of(snowflake, layout=layout) for name, layout in LAYOUTS.items()},
    "ticks of 10 ms": _of(snowflake, layout=TEN_MS),
}


class Named(Forwarding):
    """A store for a process of another name than this one."""

    def __init__(self, inner: Store, name: str) -> None:
        super().__init__(inner)
        self.name = name

    def acquire(self, pool: str, *, holder: str, **options: Any) -> Lease:
        granted: Lease = super().acquire(pool, holder=self.name, **options)
        return granted


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS * MS)


@pytest.fixture
def store(clock: ManualClock) -> MemoryStore:
    """Return a store with the clock of the generators."""
    return MemoryStore(clock=lambda: clock.now_ns // MS)


def process(pid: int) -> str:
    return f"web-1:{pid}:1690000000:1:0.1.0"


def answer(one: object, store: Store) -> Finding:
    """Return the best answer."""
    return who(one, store)[0]


def lease(
    store: Store, pool: str = "ulid", *, pid: int = 1, node: int = 0, layout: str = "", span_ms: int = 1000
) -> Lease:
    return store.acquire(
        pool,
        nodes=range(node, node + 1),
        layout=layout or pool,
        holder=process(pid),
        now_ms=store.now_ms(),
        span_ms=span_ms,
    )


def minted(clock: ManualClock, node: int = 0) -> ulid.ID:
    """Return an ID of now."""
    return ulid.Generator(node, clock=clock).new()


# --- the right holder -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_holder_is_named_however_numbers_change_hands(store: MemoryStore, clock: ManualClock, scheme: str) -> None:
    chance = random.Random(scheme)
    expected: list[tuple[Any, int]] = []
    for pid in range(1, 60):
        named = Named(store, process(pid))
        nodes = range(8) if scheme == "sno in shards" else range(2)
        generator = SCHEMES[scheme](store=named, nodes=nodes, clock=clock, span_ms=5_000, max_wait_ms=10_000)
        for _ in range(chance.randrange(1, 4)):
            expected.append((generator.new(), pid))
            clock.advance(chance.randrange(3_000) * MS)
        # Half of them are killed: their windows end by themselves.
        if chance.random() < 0.5:
            generator.close()
        else:
            generator._detach()
        clock.advance(chance.randrange(12_000) * MS)
    for one, pid in expected:
        first = answer(one, store)
        assert (first.state, first.holder and first.holder.pid) == ("held", pid), (one, first)


@pytest.mark.usefixtures("inline")
def test_id_ahead_of_the_clock_names_its_holder(store: MemoryStore, clock: ManualClock) -> None:
    generator = snowflake.Generator(
        store=Named(store, process(7)), clock=clock, on_exhausted="advance", layout=TEN_MS, pool="ahead"
    )
    last = generator.batch(64 * 200)[-1]
    assert TEN_MS.parse(last).timestamp_ms > store.now_ms() + 1_500
    found = answer(last, store)
    assert found.holder is not None
    assert (found.pool, found.holder.pid, found.is_current) == ("ahead", 7, True)


@pytest.mark.usefixtures("inline")
def test_old_row_names_the_process_that_gave_it_an_id(store: MemoryStore, clock: ManualClock) -> None:
    generator = ulid.Generator(store=Named(store, process(7)), clock=clock, never_used=True)
    found = answer(generator.new_at((NOW_MS - 10**9) * MS), store)
    assert found.holder is not None
    assert found.holder.pid == 7
    assert (found.state, answer(generator.new(), store).state) == ("late", "held")
    assert "with new_at" in found.sentence


def test_number_that_was_released_unused_names_nobody(store: MemoryStore, clock: ManualClock) -> None:
    before = lease(store, pid=1)
    clock.advance(10 * MS)
    store.release(before, used_until_ms=store.now_ms())
    unused = lease(store, pid=2)
    store.release(unused, used_until_ms=unused.floor_ms)
    lease(store, pid=3)
    assert [answer(minted(ManualClock(ms * MS)), store).holder for ms in (before.until_ms - 991, unused.floor_ms)] == [
        Holder.parse(process(1)),
        Holder.parse(process(3)),
    ]


def test_revoked_holder_is_named_to_the_end_of_its_window(store: MemoryStore, clock: ManualClock) -> None:
    lease(store, pid=1)
    store.revoke("ulid", 0)
    one = minted(clock)
    assert answer(one, store).is_current
    clock.advance(2_000 * MS)
    lease(store, pid=2)
    found = answer(one, store)
    assert (found.holder, found.is_current) == (Holder.parse(process(1)), False)


def test_pools_of_one_layout_are_answers_each(store: MemoryStore, clock: ManualClock) -> None:
    lease(store, pid=1)
    lease(store, "eu", layout="ulid", pid=2)
    lease(store, "us", layout="ulid", pid=3, node=9)
    found = who(minted(clock), store)
    assert [(each.pool, each.state) for each in found] == [("eu", "held"), ("ulid", "held"), ("us", "free")]


def test_each_layout_of_an_integer_is_an_answer(store: MemoryStore, clock: ManualClock) -> None:
    for name in ("default", "twitter"):
        lease(store, name, layout=f"snowflake {write_layout(LAYOUTS[name])}", node=1)
    one = snowflake.Generator(1, clock=clock).new()
    best, *others = who(str(one), store)
    assert (best.format, best.state, best.pool) == ("snowflake default", "held", "default")
    states = {each.format: each.state for each in others}
    # Twitter's epoch is earlier, and no holder had a window before the first one.
    assert (others[0].format, others[0].state) == ("snowflake twitter", "late")
    assert states["snowflake discord"] == "unknown pool"
    assert all(each.why for each in others)


def test_shard_of_sno_is_part_of_the_node_number(store: MemoryStore, clock: ManualClock) -> None:
    lease(store, "sno", layout="sno/4", node=5 * 4 + 3, pid=3)
    one = sno.Generator(5, clock=clock, sequence_min=49_152).new()
    assert (answer(one, store).node, answer(one, store).holder) == (23, Holder.parse(process(3)))
    assert answer(one.replace(sequence=49_151), store).node == 22


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("scheme", ["ulid", "uuid v7", "locality", "sandflake"])
def test_holder_of_a_leased_typeid_is_named(store: MemoryStore, clock: ManualClock, scheme: str) -> None:
    one = typeid.Generator("user", SCHEMES[scheme](store=Named(store, process(7)), clock=clock)).new()
    for value in (one, str(one)):
        found = answer(value, store)
        assert (found.state, found.holder) == ("held", Holder.parse(process(7)))


def test_forked_child_is_another_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ids.db"
    parent = ulid.Generator(store=url)
    ids = [str(parent.new()), in_child(lambda: str(parent.new()))]
    found = [answer(one, open_store(url)).holder for one in ids]
    assert all(found)
    first, second = (each.pid for each in found if each)
    assert first == Holder.parse(holder()).pid != second
    parent.close()


# --- nobody, or unknown -----------------------------------------------------------------------------------------------


def test_number_that_was_never_granted_is_free(store: MemoryStore, clock: ManualClock) -> None:
    lease(store)
    found = answer(minted(clock, 5), store)
    assert (found.state, found.holder) == ("free", None)
    assert "never granted" in found.sentence


def test_time_after_the_last_window_is_free(store: MemoryStore, clock: ManualClock) -> None:
    ended = lease(store)
    clock.advance(2_000 * MS)
    found = answer(minted(clock), store)
    assert found.state == "free"
    assert "its last window ended at 2023-11-14T22:13:21.001Z" in found.sentence
    assert ended.until_ms == NOW_MS + 1_000


def test_tick_across_two_windows_is_of_nobody(store: MemoryStore, clock: ManualClock) -> None:
    first = lease(store, "ksuid")
    clock.advance(1_000 * MS)
    lease(store, "ksuid", pid=2)
    generator = KINDS["ksuid"].module.Generator(0, clock=clock)
    found = answer(generator.new(), store)
    assert first.until_ms % 1_000
    assert found.state == "free"
    assert "crosses the end of a window" in found.sentence


def test_time_before_the_history_is_forgotten(store: MemoryStore, clock: ManualClock) -> None:
    old = minted(clock)
    for pid in range(3):
        lease(store, pid=pid)
        clock.advance(8 * 86_400_000 * MS)
    found = answer(old, store)
    assert (found.state, found.holder) == ("forgotten", None)
    assert "keeps 7 days of it" in found.sentence


def test_pool_without_history_knows_the_last_holder_alone(store: MemoryStore, clock: ManualClock) -> None:
    store.create_pool("ulid", layout="ulid", history_ms=0)
    ids = []
    for pid in (1, 2):
        lease(store, pid=pid)
        ids.append(minted(clock))
        clock.advance(2_000 * MS)
    before, last = (answer(one, store) for one in ids)
    assert last.holder == Holder.parse(process(2))
    assert before.state == "forgotten"
    assert "keeps none" in before.sentence


def test_pool_of_an_older_mintage_knows_the_last_holder_alone(store: MemoryStore, clock: ManualClock) -> None:
    store.create_pool("ulid", layout="ulid", history_ms=0)
    old = minted(clock)
    lease(store, pid=1)
    clock.advance(2_000 * MS)
    lease(store, pid=2)
    pool, record = store.list_pools()[0], store.list_leases()[0]
    store._records.put(replace(pool, history_ms=HISTORY_MS, history_from_ms=0))
    store._records.put(replace(record, since_ms=0))
    found = answer(old, store)
    assert found.state == "forgotten"
    assert "has none yet" in found.sentence
    found = answer(minted(clock), store)
    assert (found.holder, found.since_ms, found.state) == (Holder.parse(process(2)), None, "held")


def test_id_from_before_its_holder_started_is_late(store: MemoryStore, clock: ManualClock) -> None:
    foreign = ulid.Generator(0, clock=clock).new_at(1_600_000_000_000 * MS)
    lease(store, pid=1)  # which began in 2023
    store._records.put(replace(store.list_leases()[0], since_ms=0))  # as an older version granted it
    assert answer(foreign, store).state == "late"


def test_answer_from_before_a_loss_of_data_says_so(store: MemoryStore, clock: ManualClock) -> None:
    lease(store, pid=1)
    one = minted(clock)
    assert "lost data" not in answer(one, store).sentence
    store._records.identity = "another server"
    found = answer(one, store)
    assert (found.state, "if a release was forgotten" in found.sentence) == ("held", True)
    store.create_pool("ulid", layout="ulid")
    assert answer(one, store) == found


def test_grant_that_a_new_server_forgot_is_forgotten_at_once(store: MemoryStore, clock: ManualClock) -> None:
    first = lease(store, pid=1)
    store.release(first, used_until_ms=NOW_MS)
    known = dict(store._records.tables[NodeRecord])
    lease(store, pid=2)
    store._records.tables[NodeRecord] = known
    store._records.identity = "another server"
    assert answer(minted(clock), store).state == "forgotten"
    assert answer(minted(clock, node=1), store).state == "forgotten"
    [record] = store.list_pools()
    assert record.identity == "memory"


def test_server_that_takes_over_between_two_reads_may_have_forgotten_it(store: MemoryStore, clock: ManualClock) -> None:
    first = lease(store, pid=1)
    store.release(first, used_until_ms=NOW_MS)
    known = dict(store._records.tables[NodeRecord])
    lease(store, pid=2)

    class Failing(Forwarding):
        def get_lease(self, pool: str, node: int) -> NodeRecord | None:
            store._records.tables[NodeRecord] = known
            store._records.identity = "another server"
            return store.get_lease(pool, node)

    assert answer(minted(clock), Failing(store)).state == "forgotten"


def test_store_that_lost_grants_says_so(store: MemoryStore, clock: ManualClock) -> None:
    store.create_pool("ulid", layout="ulid")
    store._records.identity = "another server"
    assert code_of(lambda: lease(store)) == "lease.none_free"
    found = answer(minted(clock), store)
    assert found.state == "forgotten"
    assert "changed or lost data" in found.sentence


def test_copied_window_sends_to_the_store_that_it_is_from(clock: ManualClock) -> None:
    source, target = (MemoryStore(clock=lambda: clock.now_ns // MS) for _ in range(2))
    ids = []
    for pid in (1, 2):
        held = lease(source, pid=pid)
        ids.append(minted(clock))
        clock.advance(100 * MS)
        source.release(held, used_until_ms=source.now_ms())
    [copied] = copy_pools(source, target)
    assert copied.windows == 1
    for one in ids:
        assert answer(one, target).holder == Holder("a copy of memory:", "a copy of memory:")
        assert answer(one, source).state == "held"


def test_id_from_long_before_a_copy_is_of_no_holder_of_this_store(clock: ManualClock) -> None:
    source, target = (MemoryStore(clock=lambda: clock.now_ns // MS) for _ in range(2))
    lease(source, pid=1)
    one = minted(clock)
    clock.advance(3_600_000 * MS)
    list(copy_pools(source, target))
    assert answer(one, target).sentence.startswith("Nobody had node 0 of pool ulid from this store at that time.")


def test_number_outside_the_share_sends_to_the_other_store(store: MemoryStore, clock: ManualClock) -> None:
    store.create_pool("ulid", layout="ulid", nodes=range(512))
    found = answer(minted(clock, 700), store)
    assert found.state == "free"
    assert "its share is 0..511: ask the store that grants the other numbers" in found.sentence


def test_time_in_which_another_store_granted_a_number_says_so(store: MemoryStore, clock: ManualClock) -> None:
    lease(store, pid=1, node=700)
    store.create_pool("ulid", layout="ulid", nodes=range(512))
    clock.advance(3_600_000 * MS)
    foreign = minted(clock, 700)
    clock.advance(1_000 * MS)
    store.create_pool("ulid", layout="ulid", nodes=range(1024), wider_from_ms=store.now_ms())
    found = [answer(foreign, store)]
    lease(store, pid=2, node=700)
    found.append(answer(foreign, store))
    assert [each.state for each in found] == ["forgotten"] * 2
    assert all("or another store granted it" in each.sentence for each in found)


def test_format_without_a_pool_is_named(store: MemoryStore, clock: ManualClock) -> None:
    found = who(minted(clock, 5), store)
    assert [(each.format, each.state, each.node) for each in found] == [("ulid", "unknown pool", 5)]


@pytest.mark.parametrize(
    "one",
    [uuid.uuid4(), nanoid.new(), cuid2.new(), uuid.uuid3(uuid.NAMESPACE_DNS, "a")],
    ids=["uuid4", "nanoid", "cuid2", "uuid3"],
)
def test_id_without_a_node_number_tells_no_process(store: MemoryStore, one: object) -> None:
    assert {each.state for each in who(one, store)} == {"no lease"}


def test_address_of_a_network_card_is_no_node_number(store: MemoryStore, clock: ManualClock) -> None:
    lease(store, "uuid.v1")
    assert answer("c232ab00-9414-11ec-b3c8-9e6bdeced846", store).state == "no lease"


def test_time_before_1970_is_of_no_holder(store: MemoryStore) -> None:
    lease(store, "uuid.v1")
    old = uuid.UUID(fields=(0, 0, 0x1000, 0x80, 0, 1 << 40))
    assert answer(old, store).state == "forgotten"


def test_number_of_a_locked_file_has_no_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINTAGE_HOME", str(tmp_path))
    monkeypatch.delenv("MINTAGE_STORE", raising=False)
    locked = snowflake.Generator(registry.numbers.locked(1024)[0], clock=ManualClock(NOW_MS * MS)).new()
    for _ in range(2):
        found = who(locked)[0]
        assert found.state == "forgotten"
        assert "locks keep no history" in found.sentence
        own = snowflake.Generator()
        last = own.new()
        own.close()
    assert who(last)[0].holder == Holder.parse(holder())


@pytest.mark.parametrize("value", ["", "x", "orders", "\x1b[31m", "9" * 5000, "-1", 2**200, b"", "\ud800"])
def test_value_that_is_no_id_is_an_error(store: MemoryStore, value: object) -> None:
    lease(store, "snowflake", layout=f"snowflake {write_layout(TEN_MS)}")
    with pytest.raises(ParseError):
        who(value, store)


def test_unknown_layout_of_a_pool_is_no_answer(store: MemoryStore, clock: ManualClock) -> None:
    lease(store, "odd", layout="of another version")
    lease(store, "wrong", layout="snowflake time:99 @0 1ms")
    assert [each.state for each in who(minted(clock), store)] == ["unknown pool"]


# --- texts ------------------------------------------------------------------------------------------------------------


def test_finding_is_written_as_json(store: MemoryStore, clock: ManualClock) -> None:
    lease(store)
    facts = json.loads(json.dumps(answer(minted(clock), store).as_dict()))
    assert facts["holder"]["started"] == "2023-07-22T04:26:40Z"
    assert (facts["time"], facts["since_ms"]) == ("2023-11-14T22:13:20.001Z", NOW_MS)


def test_holder_of_this_process_is_parsed() -> None:
    mine = Holder.parse(holder())
    assert None not in {mine.pid, mine.started, mine.generation, mine.version}
    assert str(mine) == mine.text == holder()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:4711:1690000000:3:0.1.0", ("a", 4711, 3, "0.1.0")),
        ("a:4711:1690000000:3", ("a", 4711, 3, None)),
        ("::1:4711:1690000000:3", ("::1", 4711, 3, None)),
        ("fe80::1:4711:1690000000:3:1.2.3rc1+x", ("fe80::1", 4711, 3, "1.2.3rc1+x")),
        ("a:1:2:3:4:5.0", ("a:1", 2, 4, "5.0")),
        ("a:4711:0:3", ("a", 4711, 3, None)),
        ("a:4711", ("a:4711", None, None, None)),
        ("", ("", None, None, None)),
        (":1:2:3", (":1:2:3", None, None, None)),
        ("a:-1:2:3", ("a:-1:2:3", None, None, None)),
        ("a:\u0661:2:3", ("a:\u0661:2:3", None, None, None)),
        ("a:1:2:3:1.x y", ("a:1:2:3:1.x y", None, None, None)),
        ("a:1:" + "9" * 19 + ":3", ("a", 1, 3, None)),
        ("a:1:" + "9" * 5000 + ":3", ("a:1:" + "9" * 5000 + ":3", None, None, None)),
    ],
)
def test_text_of_a_holder_is_parsed(text: str, expected: tuple[object, ...]) -> None:
    found = Holder.parse(text)
    assert (found.host, found.pid, found.generation, found.version) == expected
    assert found.text == text
    assert found.words


def test_start_of_a_process_outside_all_years_is_unknown() -> None:
    assert Holder.parse("a:1:" + "9" * 18 + ":3").started is None


# --- integers -----------------------------------------------------------------------------------------------------

RESERVING = st.one_of(
    st.tuples(st.just("reserve"), st.integers(1, 4), st.sampled_from(["one", "two", ""])),
    st.tuples(st.just("give_back"), st.integers(0, 2), st.integers(0, 4)),
    st.tuples(st.just("raise_floor"), st.integers(0, 60)),
    st.tuples(st.just("change_server")),
)


@given(start=st.integers(0, 9), stride=st.integers(1, 3), steps=st.lists(RESERVING, max_size=30))
def test_last_process_that_reserved_an_integer_is_named(start: int, stride: int, steps: list[tuple[Any, ...]]) -> None:
    store = MemoryStore()
    store.create_namespace("n", start=start, stride=stride)
    segments: list[Segment] = []
    holders: dict[int, str] = {}
    begun = 10**9  # what was skipped before the first reservation is not known
    for step in steps:
        match step:
            case ("reserve", count, name):
                segments.append(store.reserve("n", count, holder=name))
                begun = min(begun, segments[-1].first)
                holders |= dict.fromkeys(segments[-1].as_range(), name)
            case ("give_back", at, used) if at < len(segments):
                given = segments[-1 - at]
                first = given.first + used * stride
                if store.give_back(given, first):
                    record = store.get_namespace("n")
                    assert record is not None
                    holders = {integer: name for integer, name in holders.items() if integer <= record.high_water}
            case ("raise_floor", value):
                store.raise_floor("n", value)
            case ("change_server",):
                store._records.identity += "'"
    last = max([*holders, 60]) + 9
    for integer in range(last):
        found = who_reserved("n", integer, store)
        name = holders.get(integer)
        state = "free" if name is None else "held" if name else "unknown"
        assert (found.state, found.holder and found.holder.text) == (state, name or None) or (
            integer < begun and found.state == "forgotten"
        ), integer


def test_answer_for_an_integer_says_when_and_within_what() -> None:
    now = 1_700_000_000_000
    store = MemoryStore(clock=lambda: now)
    store.reserve("n", 10, holder=process(1))
    found = who_reserved("n", 3, store)
    assert found.sentence.endswith(", at 2023-11-14T22:13:20Z, within 1 to 10.")
    now += 1_000
    store.reserve("n", 10, holder=process(1))
    found = who_reserved("n", 3, store)
    assert found.sentence.endswith(", between 2023-11-14T22:13:20Z and 2023-11-14T22:13:21Z, within 1 to 20.")
    assert found.holder == Holder.parse(process(1))
    assert (found.as_dict()["integer"], found.as_dict()["last"], found.as_dict()["since_ms"]) == (
        "3",
        "20",
        now - 1_000,
    )


def test_namespace_without_reservations_names_no_last_one() -> None:
    store = MemoryStore()
    store.create_namespace("n", start=10, stride=7)
    assert who_reserved("n", 14, store).sentence.endswith("Its next reservation begins above 7.")
    store.raise_floor("n", 100)
    assert who_reserved("n", 105, store).sentence.endswith("Its next reservation begins above 98.")
    store.retire("n")
    assert who_reserved("n", 105, store).sentence.endswith("or took it back. It is retired.")


def test_integers_that_a_new_server_may_have_forgotten_are_skipped() -> None:
    store = MemoryStore()
    store.reserve("n", 10, holder="one")
    store._records.identity = "another server"
    for _ in range(2):
        assert who_reserved("n", 10, store).state == "held"
        assert "its server changed" in who_reserved("n", 11, store).sentence
        assert "its server changed" in who_reserved("n", 110, store).sentence
        store.raise_floor("n", 0)  # which notes the server
    assert who_reserved("n", 111, store).sentence.endswith("Its next reservation begins above 110.")


def test_holders_from_before_a_namespace_was_lost_are_named() -> None:
    store = MemoryStore()
    for name in ("one", "two"):
        store.reserve("n", 10, holder=name)
    store._records.remove(store.list_namespaces()[0])
    store.create_namespace("n", start=21)
    for _ in range(2):
        found = [who_reserved("n", integer, store) for integer in (1, 10, 11, 20)]
        assert [each.holder and each.holder.text for each in found] == ["one", "one", None, None]
        assert found[-1].sentence == "Nobody is known to have reserved it: namespace n begins at 21 in this store."
        store.reserve("n", 10, holder="three")


@pytest.mark.parametrize(("integer", "code"), [(-1, "field.range"), (2**63, "field.range"), ("1", "argument.type")])
def test_wrong_integer_is_refused(integer: Any, code: str) -> None:
    assert code_of(lambda: who_reserved("n", integer, MemoryStore())) == code
